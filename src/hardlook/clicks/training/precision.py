"""Mixed precision: which type a training computes in, and the loss scaler that float16 needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardlook.clicks.training.settings import Precision
from hardlook.errors import OptionError

if TYPE_CHECKING:
    import torch
    from torch.amp import GradScaler

KINDS = ("float32", "bfloat16", "float16")


def chosen(precision: Precision, device: str) -> str:
    """One of `KINDS`: what `auto` means on the device, or what was asked for.

    >>> chosen("auto", "cpu"), chosen("bfloat16", "cpu")
    ('float32', 'bfloat16')
    """
    import torch

    on_gpu = device.startswith("cuda")
    if precision == "float16" and not on_gpu:
        raise OptionError("float16 trains on a GPU only", remedy="precision is float32 or bfloat16 here")
    if precision != "auto":
        return precision
    if not on_gpu:
        return "float32"
    return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"


def autocast(kind: str, device: str) -> torch.autocast:
    """The context in which the network is called."""
    import torch

    types = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    used = types[kind] if kind != "float32" else torch.bfloat16
    return torch.autocast(torch.device(device).type, dtype=used, enabled=kind != "float32")


def scaler(kind: str, device: str) -> GradScaler:
    """A scaler that does nothing unless small float16 gradients need it."""
    from torch.amp import GradScaler

    return GradScaler(torch_device(device), enabled=kind == "float16")


def torch_device(device: str) -> str:
    """The kind of a device, without its number.

    >>> torch_device("cuda:1")
    'cuda'
    """
    return device.split(":")[0]
