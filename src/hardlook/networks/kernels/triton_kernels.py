"""Kernels in Triton's language, for those who have Triton and a GPU that it compiles for; elsewhere torch computes.

A module writes its kernels as functions that use `tl` and has a line `tl: Any = None`: Triton looks names up in the
module of a kernel, and its language can be imported only where it is installed.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Collection
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

from hardlook.errors import ModelError, RunWarning
from hardlook.networks.gpu import is_switched_off

if TYPE_CHECKING:
    from torch import Tensor, device

K = TypeVar("K")

SWITCH = "HARDLOOK_KERNELS"
"""The environment variable that switches all of these kernels off."""
EARLIEST = (8, 0)
"""The compute capability of Ampere, the first generation that Triton supports."""


def compile_kernels(*functions: Any, called: Collection[Any] = (), varying: Collection[str] = ()) -> tuple[Any, ...]:
    """The functions as kernels, compiled at their first launch; `called` are functions that kernels call.

    A function of another module has to be called as an attribute of that module, which is imported. For other values of
    the arguments named in `varying` nothing is compiled anew. Without Triton: ImportError.
    """
    triton, language = import_module("triton"), import_module("triton.language")
    for one in called:
        module = _globals_of(one)
        module["tl"] = language
        if not hasattr(one, "fn"):
            module[one.__name__] = triton.jit(one)
    kernels = []
    for one in functions:
        _globals_of(one)["tl"] = language
        arguments = signature(one).parameters.items()
        names = [name for name, found in arguments if name in varying and "constexpr" not in str(found.annotation)]
        kernels.append(Kernel(triton.jit(one, do_not_specialize=names)))
    return tuple(kernels)


class Kernel:
    """A kernel of Triton, launched as `kernel[grid](...)`. Errors of the compiler become a ModelError with a remedy."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """A function that launches the kernel on this grid."""
        import torch

        def launch(*given: Any, **options: Any) -> Any:
            try:
                return self._compiled[grid](*given, **options)
            except torch.cuda.OutOfMemoryError:
                raise
            except Exception as error:
                name, kind = getattr(self._compiled, "__name__", "?"), type(error).__name__
                what = f"the kernel {name} cannot run here: {kind}: {error}"
                raise ModelError(
                    what, remedy=f"set the environment variable {SWITCH}=off: torch is used instead"
                ) from error

        return launch


def _globals_of(function: Any) -> dict[str, Any]:
    found: dict[str, Any] = getattr(function, "fn", function).__globals__
    return found


def try_kernels(build: Callable[[], K], where: device, what: str) -> K | None:
    """The kernels that `build` makes, launches on random numbers and compares with torch (`check_close`).

    None on a processor, an AMD GPU, an NVIDIA GPU before Ampere, without Triton and with `HARDLOOK_KERNELS=off`. None,
    too, where that fails, with a warning in which `what` names the kernels: Triton may lack a compiler, a driver or a
    version that it knows, a GPU may lack memory for a kernel's blocks, and a compiler may be wrong.
    """
    import torch

    if where.type != "cuda" or torch.version.cuda is None or is_switched_off(SWITCH):
        return None
    if torch.cuda.get_device_capability(where) < EARLIEST:
        return None
    try:
        with torch.no_grad(), torch.autocast("cuda", enabled=False), torch.cuda.device(where):
            found = build()
            torch.cuda.synchronize(where)
        return found
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "triton":
            return None
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        name = torch.cuda.get_device_name(where)
        text = f"{what} are not used on this {name} ({reason}): torch is used instead"
        warnings.warn(f"{text}; {SWITCH}=off leaves them out without this warning", RunWarning, stacklevel=3)
        return None


def check_close(found: Tensor, exact: Tensor, most: float, what: str) -> None:
    """Raise where a kernel's result differs from the exact one by more than `most` times the exact one's norm.

    No number may differ by more than four times `most` of the largest one: rounding is spread over all of them, and an
    error of a few, such as those of the last row, hardly changes the norm.

    >>> import torch
    >>> check_close(torch.tensor([1.0]), torch.tensor([1.1]), 1e-3, "a sum")
    Traceback (most recent call last):
    ...
    ArithmeticError: a sum is off by 9.1e-02, at most 1.0e-03 is rounding
    """
    if found.shape != exact.shape:
        raise ArithmeticError(f"{what} has the shape {tuple(found.shape)} in place of {tuple(exact.shape)}")
    apart, exact = found.double() - exact.double(), exact.double()
    error = float(apart.norm() / exact.norm())
    if not error <= most:
        raise ArithmeticError(f"{what} is off by {error:.1e}, at most {most:.1e} is rounding")
    largest = float(apart.abs().max() / exact.abs().max())
    if not largest <= 4 * most:
        raise ArithmeticError(f"a number of {what} is off by {largest:.1e}, at most {4 * most:.1e} is rounding")


def on_device_of(tensor: Tensor) -> contextlib.AbstractContextManager[Any]:
    """Kernels are launched on the current GPU, which has to be the tensor's."""
    import torch

    return torch.cuda.device(tensor.device) if tensor.is_cuda else contextlib.nullcontext()


# Triton's language, which `compile_kernels` puts here.
tl: Any = None


def round_to_tf32(value, precision: tl.constexpr):  # type: ignore[no-untyped-def]
    """A factor of a product in TF32, rounded to its digits, which a tensor core would cut off; for kernels to call.

    NaN stays: its bits, which may all be 1, would overflow.
    """
    if precision == "tf32" and value.dtype == tl.float32:
        nearest = (value.to(tl.int32, bitcast=True) + 0x1000) & -0x2000
        value = tl.where(value == value, nearest.to(tl.float32, bitcast=True), value)
    return value


def load_statistics(statistics, channel, channels: tl.constexpr):  # type: ignore[no-untyped-def]
    """Mean, 1 / deviation, scale and offset of some channels, each a row, of statistics (4, channels); for kernels."""
    place = statistics + channel[None, :]
    return tl.load(place), tl.load(place + channels), tl.load(place + 2 * channels), tl.load(place + 3 * channels)
