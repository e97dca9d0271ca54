"""Where and in which precision a training runs: Lightning Fabric, opened from a few words.

Fabric and not Accelerate: it wraps a module, an optimiser and a launch, and leaves the loop, the checkpoints and the
random state to us, which have to be the same bit for bit after a kill; `lightning-fabric` is a package of its own.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import torch
from torch import nn

from hardlook.errors import MissingExtra, OptionError
from hardlook.networks.gpu import multiplying
from hardlook.networks.kernels.fused_norm import fuse_norms

Precision = Literal["float32", "tf32", "bfloat16", "float16"]
_MIXED = {"bfloat16": "bf16-mixed", "float16": "16-mixed"}
_ROUNDED = ("tf32", *_MIXED)


def import_fabric() -> Any:
    """The package of Fabric, alone or as a part of `lightning`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries that Fabric tries to import
            return importlib.import_module("lightning_fabric")
    except ModuleNotFoundError:
        try:
            return importlib.import_module("lightning.fabric")
        except ModuleNotFoundError:
            what = "training needs the package 'lightning_fabric', which is not installed"
            raise MissingExtra(what, remedy='pip install "hardlook[train]"') from None


def open_fabric(
    device: str = "cpu", *, precision: Precision = "float32", devices: int = 1, strategy: str = "auto"
) -> Any:
    """A Fabric on `cpu`, `cuda` or `cuda:1`; with several `devices` by the strategy (auto is ddp).

    Inputs of a module keep their precision: autocast rounds where it multiplies.
    """
    if precision not in get_args(Precision):
        raise OptionError(f"there is no precision {precision!r}", remedy=f"one of {', '.join(get_args(Precision))}")
    kind, _, number = device.partition(":")
    if precision in ("float16", "tf32") and kind != "cuda":
        raise OptionError(f"{precision} trains on a GPU only", remedy="precision is float32 or bfloat16 here")
    package = import_fabric()
    plugins = []
    if precision in _MIXED:
        mixed = package.plugins.MixedPrecision(_MIXED[precision], kind)
        # By default inputs are rounded before they reach the module.
        mixed.convert_input = lambda data: data
        plugins = [mixed]
    if devices > 1 and strategy in ("auto", "ddp", "ddp_spawn", "ddp_fork"):
        # A stage may leave parameters of the other one without a gradient.
        start = {"ddp_spawn": "spawn", "ddp_fork": "fork"}.get(strategy, "popen")
        strategy = package.strategies.DDPStrategy(find_unused_parameters=True, start_method=start)
    where: Any = [int(number)] if number else devices
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a GPU that is there and not used, and the like
        return package.Fabric(
            accelerator=kind, devices=where, strategy=strategy, plugins=plugins, num_nodes=1, loggers=[]
        )


def arrange_network(module: nn.Module, device: torch.device, precision: str | None) -> None:
    """Prepare a network for fast steps where a GPU rounds what it multiplies: channels last, fused normalisation.

    Its kernels for TF32 and half precision want that layout: with the other one they convert every map, and batch
    normalisation takes several times as long. Values do not change; fused, they are rounded less often.
    """
    if device.type == "cuda" and precision in _ROUNDED:
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        fuse_norms(module)


def read_scaler(fabric: Any) -> dict[str, Any]:
    """The state of the loss scaler of float16; empty in other precisions."""
    scaler = getattr(fabric.strategy.precision, "scaler", None)
    return dict(scaler.state_dict()) if scaler is not None else {}


def load_scaler(fabric: Any, state: dict[str, Any]) -> None:
    """Set the state of the loss scaler, where there is one."""
    scaler = getattr(fabric.strategy.precision, "scaler", None)
    if scaler is not None and state:
        scaler.load_state_dict(state)


@contextmanager
def multiplying_in(precision: str | None) -> Iterator[None]:
    """float32 multiplies with all digits on a GPU, tf32 and the mixed precisions with three; None changes nothing."""
    if precision is None:
        yield
        return
    rounded = precision != "float32"
    with multiplying(rounded=rounded, benchmark=rounded, deterministic=not rounded):
        yield
