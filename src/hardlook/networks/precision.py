"""Parts of a network that keep float32 while the rest is trained in half precision.

Autocast rounds what it multiplies to 8 or 11 binary digits. Sums of squares, differences of nearly equal numbers,
logarithms and exponentials lose their meaning then, and on a GPU torch has no linear solver for such tensors at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

P = ParamSpec("P")
T = TypeVar("T")


def full_precision(function: Callable[P, T]) -> Callable[P, T]:
    """The function without autocast: half-precision tensors among its inputs, or in a dataclass, come as float32.

    Where autocast is off nothing changes.

    >>> times = full_precision(lambda a, b: a @ b)
    >>> third = torch.full((1, 1), 1 / 3)
    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     (third @ third).dtype, times(third, third).dtype
    (torch.bfloat16, torch.float32)
    """

    @wraps(function)
    def call(*inputs: P.args, **options: P.kwargs) -> T:
        device = next((found for found in map(_find_device, (*inputs, *options.values())) if found), "")
        if not device or not torch.is_autocast_enabled(device):
            return function(*inputs, **options)
        with torch.autocast(device, enabled=False):
            changed: Any = [_widen(one) for one in inputs], {name: _widen(one) for name, one in options.items()}
            return function(*changed[0], **changed[1])

    return call


def _tensors(value: Any) -> dict[str, Tensor]:
    """The tensors of a dataclass by the names of their fields."""
    if not is_dataclass(value) or isinstance(value, type):
        return {}
    found = {one.name: getattr(value, one.name) for one in fields(value)}
    return {name: one for name, one in found.items() if isinstance(one, Tensor)}


def _find_device(value: Any) -> str:
    if isinstance(value, nn.Module):
        found: Tensor | None = next(value.parameters(), None)
    else:
        found = value if isinstance(value, Tensor) else next(iter(_tensors(value).values()), None)
    return "" if found is None else found.device.type


def _widen(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
    tensors = _tensors(value)
    return replace(value, **{name: _widen(one) for name, one in tensors.items()}) if tensors else value
