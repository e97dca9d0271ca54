"""Linear layers on the tensor cores of a GPU at nearly the precision of float32: a product is three in TF32.

TF32 keeps 11 significant bits of a factor, float32 24. So a number x is split into `high`, x rounded to 11 bits, and
`low` = x - high, which is exact. Then x w = low w_high + high w_low + high w_high, but for low w_low, which is smaller
than the rounding of float32. The three are one product whose inner dimension is three times as long. The small terms
come first: a tensor core cuts its running sum at every step, and these steps cut least while the sum is small. What is
cut is the error that remains: on an H200 3e-6 and 1.2e-5 of products with 1,280 and 5,120 terms, where float32 has 6e-7
and 1.3e-6 and TF32 2.9e-4 (with the small terms last, 1.3e-5 and 5.3e-5).

>>> import torch
>>> low, _, high = split(torch.tensor([1 / 3]))
>>> float(high), bool(high + low == torch.tensor([1 / 3]))
(0.333251953125, True)

Infinity and NaN come out as from the plain layer, and the largest numbers are split without overflow.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from torch import Tensor, nn

HALF, KEPT = 0x1000, ~0x1FFF
"""Of float32's bits, as integers: half of the last bit that TF32 keeps, and all that it keeps."""
EXPONENT = 0x7F800000


def split(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`low`, `high` where the value is finite, and `high`: float32 of the values' shape, the last two with 11 bits.

    An infinite value is in the last part alone and 0 in the others, which then add nothing to its products.
    """
    import torch

    bits = values.view(torch.int32)
    rounded = (bits + HALF) & KEPT
    # The largest numbers would be rounded to infinity: their bits are cut.
    high = torch.where((rounded & EXPONENT) == EXPONENT, bits & KEPT, rounded).view(torch.float32)
    infinite = values.isinf()
    return (values - high).masked_fill(infinite, 0), high.masked_fill(infinite, 0), high


def split_rows(rows: Tensor) -> Tensor:
    """Contiguous float32 (M, K) as (M, 3 K): low, high and high beside each other. In one pass on a GPU with Triton."""
    import torch

    if rows.is_cuda and (kernel := _load_kernel()) is not None:
        with torch.cuda.device(rows.device):
            return kernel(rows)
    return torch.cat(split(rows), 1)


def split_weight(weight: Tensor) -> Tensor:
    """Float32 (N, K) as (N, 3 K), in the order that meets `split_rows`: high, low and high."""
    import torch

    low, finite, high = split(weight)
    return torch.cat([finite, low, high], 1)


def state_of(tensor: Tensor) -> Hashable:
    """What differs once the tensor's values do: its place in memory, its version and its type."""
    version = 0 if tensor.is_inference() else tensor._version
    return tensor.data_ptr(), version, tensor.dtype, tensor.device


def build_split_linear(linear: nn.Linear) -> nn.Linear:
    """The layer with the same parameters and hooks, whose products of float32 are computed from three in TF32.

    Where gradients are recorded, under autocast, where TF32 is allowed anyway and for other types it is the plain
    layer. The split weights take three times the memory of the weights, beside these (ViT-H: 7.6 GB); they are made
    at the first call, and again once the weights have changed.
    """
    import torch
    from torch import nn
    from torch.nn import functional

    class SplitLinear(nn.Linear):
        """A linear layer of three products in one."""

        def __init__(self) -> None:
            nn.Module.__init__(self)
            self.__dict__.update(vars(linear))  # the parameters and hooks themselves, not copies
            self._split: tuple[Hashable, Tensor] | None = None

        def forward(self, input: Tensor) -> Tensor:
            """Map (..., in_features) to (..., out_features)."""
            matmul = torch.backends.cuda.matmul
            if matmul.allow_tf32 or not self._can_split(input):
                return super().forward(input)
            rows = split_rows(input.reshape(-1, self.in_features).contiguous())
            weight = self._split_weight()
            matmul.allow_tf32 = True
            try:
                product = functional.linear(rows, weight, self.bias)
            finally:
                matmul.allow_tf32 = False
            return product.view(*input.shape[:-1], self.out_features)

        def _can_split(self, input: Tensor) -> bool:
            types = {input.dtype, self.weight.dtype}
            autocast = torch.is_autocast_enabled(input.device.type)
            return types == {torch.float32} and input.numel() > 0 and not autocast and not torch.is_grad_enabled()

        def _split_weight(self) -> Tensor:
            state = state_of(self.weight)
            if self._split is None or self._split[0] != state:
                self._split = None  # its memory is free before the next is made
                self._split = state, split_weight(self.weight.detach())
            return self._split[1]

    return SplitLinear()


def replace_linear_layers(network: nn.Module, least: int = 512) -> int:
    """Put `build_split_linear` in place of every linear layer with `least` inputs or more; return how many there were.

    Layers with fewer inputs gain nothing: splitting takes as long as the product. Subclasses of torch's layer, which
    may compute something else, stay.
    """
    from torch import nn

    replaced = 0
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear and child.in_features >= least:
                setattr(module, name, build_split_linear(child))
                replaced += 1
    return replaced


# Triton's language: a kernel finds it among the globals of its module, and it may be imported only where there is one.
tl: Any = None


@functools.cache
def _load_kernel() -> Callable[[Tensor], Tensor] | None:
    """`split_rows` by Triton's kernel, tried once; None where Triton is missing or cannot compile."""
    global tl
    try:
        triton = import_module("triton")
        tl = import_module("triton.language")
        return _try_kernel(triton.jit(_split_row))
    except Exception:  # Triton lacks a compiler, a driver or a version that it knows: each has an error of its own.
        return None


def _try_kernel(jitted: Any) -> Callable[[Tensor], Tensor]:
    import torch

    def run(rows: Tensor) -> Tensor:
        count, width = rows.shape
        result = rows.new_empty(count, 3 * width)
        block = 1 << (width - 1).bit_length()
        warps = max(1, min(16, block // 512))  # 16 numbers for each of a warp's 32 threads
        jitted[(count,)](rows, result, width, block=block, num_warps=warps)
        return result

    run(torch.zeros(1, 16, device="cuda"))
    return run


def _split_row(rows, result, width, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """`split` of one row by one program, in Triton's language."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, block)
    inside = column < width
    value = tl.load(rows + row * width + column, mask=inside, other=0.0)
    bits = value.to(tl.int32, bitcast=True)
    rounded = (bits + 0x1000) & -0x2000
    cut = (rounded & 0x7F800000) == 0x7F800000
    high = tl.where(cut, bits & -0x2000, rounded).to(tl.float32, bitcast=True)
    infinite = tl.abs(value) == float("inf")
    place = result + row * width * 3 + column
    tl.store(place, tl.where(infinite, 0.0, value - high), mask=inside)
    tl.store(place + width, tl.where(infinite, 0.0, high), mask=inside)
    tl.store(place + 2 * width, high, mask=inside)
