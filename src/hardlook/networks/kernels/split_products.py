"""Linear layers on the tensor cores of a GPU with the precision of float32: a product is three of half precision.

Half precision keeps 11 significant bits of a number, float32 24. A row is first multiplied by a power of two, so that
its largest number is between 2^14 and 2^15. Then a number x is `high`, x rounded to 11 bits, plus `low`, the rest
rounded to 11 bits. What is left of x is at most 2^-23 of x, or 2^-39 of the row's largest number where x is small, and
mostly nothing. x w becomes low w_high + high w_low + high w_high. The missing low w_low is of either sign and about
2^-25 of x w (2^-22 at most), where float32 rounds off 2^-24 at every step of a sum.

A tensor core cuts off its running sum at every step instead of rounding it, which would be most of the error. So it
sums 64 terms at most, from zero, and these sums are added by ordinary float32 additions (Ootomo and Yokota,
"Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance", 2022).

>>> import torch
>>> values = torch.tensor([[1 / 3, -2.0]])
>>> high, low, scale = split(values)
>>> high.tolist(), low.tolist(), scale.tolist() == [2**-13]
([[2730.0, -16384.0]], [[0.6669921875, 0.0]], True)
>>> float(((high.double() + low.double()) * 2**-13 - values.double()).abs().max()) < 2**-23 / 3
True

Rows with infinity or NaN, and those whose largest number is below 2^-60 or 2^61 and more, are multiplied in float32.
"""

from __future__ import annotations

import functools
import weakref
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hardlook.networks.gpu import is_observed, read_tf32
from hardlook.networks.kernels.triton_kernels import check_close, compile_kernels, on_device_of, try_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from torch import Tensor, device, nn

LEAST_ROWS = 1024
"""With fewer rows the product is too small for a GPU's tensor cores to gain anything."""
WIDEST = 16384
"""Numbers of a row that one program splits at most."""
SMALLEST, LARGEST = 67, 187
"""Exponents as float32 stores them, of 2^-60 and 2^60."""
MOST_LOST = 3e-6
"""A relative error of products with 4,104 terms that float32 stays below.

Sums that are not apart lose 1e-5, a product that is left out 1e-4.
"""


MOST_LOST_ALONE = 1e-5
"""The same for a row that cannot be split, whose terms are added one after the other."""
TRIED = 1100, 4104
"""Rows of a trial, more than a group has, and their numbers."""


class Parts(NamedTuple):
    """A matrix (R, K) in half precision: `high` and `low` of its rows, which are (high + low) times `scale` (R,).

    The scale is NaN and the parts are 0 for a row that cannot be split.
    """

    high: Tensor
    low: Tensor
    scale: Tensor


def split(values: Tensor) -> Parts:
    """The parts of float32 (R, K)."""
    import torch

    largest = values.abs().amax(1, keepdim=True)
    exponent = (largest.view(torch.int32) >> 23) & 0xFF
    is_zero = largest == 0
    fits = is_zero | ((exponent >= SMALLEST) & (exponent <= LARGEST))
    exponent = torch.where(is_zero | ~fits, 127, exponent)
    scaled = torch.where(fits, values, 0) * ((268 - exponent) << 23).view(torch.float32)
    high = scaled.half()
    scale = ((exponent - 14) << 23).view(torch.float32).masked_fill(~fits, torch.nan)
    return Parts(high, (scaled - high.float()).half(), scale[:, 0])


class Kernels(Protocol):
    """What a GPU computes."""

    def split(self, rows: Tensor) -> Parts:
        """As the function `split`, in one pass."""

    def multiply(
        self, rows: Tensor, parts: Parts, weight: Tensor, weight_parts: Parts, bias: Tensor | None, table: Tensor | None
    ) -> Tensor:
        """Rows (M, K) times the transposed weight (N, K), plus bias (N,) and table (T, N), repeated every T rows."""


def state_of(tensor: Tensor) -> Hashable:
    """What differs once torch has counted a change of the tensor: its place in memory, its version and its type.

    Fused optimizers and writes to `tensor.data` are not counted, nor is any change of a tensor of inference mode.
    """
    version = 0 if tensor.is_inference() else tensor._version
    return tensor.data_ptr(), version, tensor.dtype, tensor.device


class SplitWeight:
    """Products with one weight: its parts are made at the first product, and again once `state_of` the weight differs.

    A CUDA graph reads the parts where they were when it was recorded. Once the weight has changed it gives wrong
    numbers, and has to be recorded anew.
    """

    def __init__(self) -> None:
        self._known: tuple[weakref.ref[Tensor], Hashable, Parts, Any] | None = None

    def __reduce__(self) -> tuple[type[SplitWeight], tuple[()]]:
        return SplitWeight, ()  # a copy belongs to another weight

    def multiply(
        self, input: Tensor, weight: Tensor, bias: Tensor | None = None, table: Tensor | None = None
    ) -> Tensor | None:
        """`torch.nn.functional.linear` of (..., T, K), plus table (T, N); None where it cannot be.

        That is for other types than float32, where gradients are recorded, under autocast, where TF32 is allowed, for
        few rows, for a table with another number of rows, without a GPU that has the kernels, while a mode such as
        torch's FLOP counter wants to see all, and while a CUDA graph is recorded before the weight has its parts.
        """
        if table is not None and input.shape[-2:-1] != table.shape[:1]:
            return None
        kernels = self._find_kernels(input, weight, *(one for one in (bias, table) if one is not None))
        if kernels is None:
            return None
        rows = input.reshape(-1, input.shape[-1]).contiguous()
        result = kernels.multiply(rows, kernels.split(rows), weight, self._split(weight), bias, table)
        return result.view(*input.shape[:-1], len(weight))

    def _find_kernels(self, input: Tensor, weight: Tensor, *added: Tensor) -> Kernels | None:
        import torch

        width = input.shape[-1]
        if (
            input.device.type not in ("cpu", "cuda")  # others may not even know autocast
            or {one.dtype for one in (input, weight, *added)} != {torch.float32}
            or {one.device for one in (weight, *added)} != {input.device}
            or weight.shape[-1] != width
            or width % 8
            or not 0 < width <= WIDEST
            or not weight.is_contiguous()
            or not len(weight)
            or input.numel() < LEAST_ROWS * width
            or torch.is_grad_enabled()
            or torch.is_autocast_enabled(input.device.type)
            or read_tf32().products
            or torch._C._are_functorch_transforms_active()
            or is_observed()
        ):
            return None
        # Recorded now, the parts would be made at every replay; and kernels cannot be tried within a recording.
        if input.is_cuda and not self._is_split(weight) and torch.cuda.is_current_stream_capturing():
            return None
        return find_kernels(input.device)

    def _is_split(self, weight: Tensor) -> bool:
        if self._known is None or self._known[0]() is not weight or self._known[1] != state_of(weight):
            return False
        # A tensor's memory may be replaced, as `float()` does, by other memory at the same place.
        return bool(self._known[3] == _refer_to_memory(weight))

    def _split(self, weight: Tensor) -> Parts:
        if self._known is None or not self._is_split(weight):
            self._known = None  # its memory is free before the next is made
            parts, memory = split(weight.detach()), _refer_to_memory(weight)
            self._known = weakref.ref(weight), state_of(weight), parts, memory
        return self._known[2]


def _refer_to_memory(tensor: Tensor) -> Any:
    """Equal for the same memory alone: as long as it is kept, torch gives no other memory its name."""
    from torch.multiprocessing.reductions import StorageWeakRef

    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]


def build_split_linear(linear: nn.Linear) -> nn.Linear:
    """The layer with the same parameters and hooks, whose products are `SplitWeight.multiply` where that can be.

    The weights' parts take as much memory as the weights, beside these.
    """
    from torch import nn

    class SplitLinear(nn.Linear):
        """A linear layer on tensor cores."""

        def __init__(self, plain: nn.Linear) -> None:  # not from outside: a class lives until garbage is collected
            nn.Module.__init__(self)
            self.__dict__.update(vars(plain))  # the parameters and hooks themselves, not copies
            self._split = SplitWeight()

        def __reduce__(self) -> tuple[Callable[[nn.Linear], nn.Linear], tuple[nn.Linear]]:
            plain = nn.Linear.__new__(nn.Linear)
            plain.__dict__.update({name: value for name, value in vars(self).items() if name != "_split"})
            return build_split_linear, (plain,)

        def forward(self, input: Tensor) -> Tensor:
            """Map (..., in_features) to (..., out_features)."""
            product = self._split.multiply(input, self.weight, self.bias)
            return super().forward(input) if product is None else product

    return SplitLinear(linear)


def replace_linear_layers(network: nn.Module, least: int = 128) -> int:
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


@functools.cache
def find_kernels(where: device) -> Kernels | None:
    """The kernels, tried once (`try_kernels`); None on GPUs other than Hopper's (H100, H200).

    These have the memory that the blocks take.
    """
    import torch

    if where.type == "cuda" and torch.cuda.get_device_capability(where)[0] != 9:
        return None
    return try_kernels(functools.partial(_try_products, where), where, "products of three in half precision")


def _try_products(where: device) -> Kernels:
    """The kernels, whose products are as exact as those of float32."""
    import torch

    kernels, random = TritonKernels(), torch.Generator(where).manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, device=where, dtype=torch.float32)

    count, width = TRIED
    rows = draw(count, width)
    rows[7] *= 2.0**80  # cannot be split
    others = torch.arange(count, device=where) != 7
    for features in (192, 512):  # every block of `choose_block`, and several of its columns
        weight, bias = draw(features, width), draw(features)
        exact = rows.double() @ weight.double().T + bias.double()
        for table in (None, draw(11, features)):
            turns = 0 if table is None else table.double()[torch.arange(count, device=where) % 11]
            found = kernels.multiply(rows, kernels.split(rows), weight, split(weight), bias, table)
            check_close(found[others], (exact + turns)[others], MOST_LOST, "a product")
            check_close(found[7], exact[7], MOST_LOST_ALONE, "a product of large numbers")
    return kernels


@dataclass(frozen=True)
class Block:
    """What one program of the kernel computes: `rows` x `columns`, in steps of `depth` terms.

    With `halves` 2 it computes twice as many columns, one half after the other from the same rows, so these are read
    half as often. Programs run in groups of `group` blocks of rows, which find their weights in the GPU's cache.
    """

    rows: int = 128
    columns: int = 128
    depth: int = 64
    halves: int = 1
    warps: int = 8
    stages: int = 3
    group: int = 8


def choose_block(features: int) -> Block:
    """The block for a product with so many columns: by its shape alone, so that results do not depend on timing."""
    return Block(halves=2, stages=2) if features % 256 == 0 else Block()


class TritonKernels:
    """`Kernels` in Triton."""

    def __init__(self) -> None:
        kernels = (_split_rows, _multiply)
        self._split, self._multiply = compile_kernels(*kernels, called=(_finish,), varying=("count", "period"))
        self._descriptor: Any = import_module("triton.tools.tensor_descriptor").TensorDescriptor

    def split(self, rows: Tensor) -> Parts:
        """As the function `split`."""
        import torch

        count, width = rows.shape
        high, low = (torch.empty_like(rows, dtype=torch.float16) for _ in range(2))
        scale = rows.new_empty(count)
        block = 1 << (width - 1).bit_length()
        together = max(1, 2048 // block)
        warps = max(4, min(16, block // 512))
        with on_device_of(rows):
            self._split[(-(-count // together),)](
                rows,
                high,
                low,
                scale,
                count,
                width,
                least=SMALLEST,
                most=LARGEST,
                block=block,
                together=together,
                num_warps=warps,
            )
        return Parts(high, low, scale)

    def multiply(
        self,
        rows: Tensor,
        parts: Parts,
        weight: Tensor,
        weight_parts: Parts,
        bias: Tensor | None,
        table: Tensor | None,
        block: Block | None = None,
    ) -> Tensor:
        """As in `Kernels`."""
        (count, width), features = rows.shape, len(weight)
        bias, table = (None if one is None else one.contiguous() for one in (bias, table))
        chosen = block or choose_block(features)
        result = rows.new_empty(count, features)
        left = [self._describe(one, chosen.rows, chosen.depth) for one in parts[:2]]
        right = [self._describe(one, chosen.columns, chosen.depth) for one in weight_parts[:2]]
        programs = -(-count // chosen.rows) * -(-features // (chosen.columns * chosen.halves))
        with on_device_of(rows):
            self._multiply[(programs,)](
                *left,
                *right,
                parts.scale,
                weight_parts.scale,
                rows,
                weight,
                result if bias is None else bias,
                result if table is None else table,
                result,
                count,
                features,
                width,
                1 if table is None else len(table),
                has_bias=bias is not None,
                has_table=table is not None,
                block_rows=chosen.rows,
                block_columns=chosen.columns,
                depth=chosen.depth,
                halves=chosen.halves,
                group=chosen.group,
                num_warps=chosen.warps,
                num_stages=chosen.stages,
            )
        return result

    def _describe(self, matrix: Tensor, rows: int, columns: int) -> Any:
        return self._descriptor.from_tensor(matrix, [rows, columns])


# What follows is in Triton's language. A number that differs from itself is NaN.

tl: Any = None


def _split_rows(  # type: ignore[no-untyped-def]
    rows,
    high,
    low,
    scale,
    count,
    width,
    least: tl.constexpr,
    most: tl.constexpr,
    block: tl.constexpr,
    together: tl.constexpr,
):
    """`split` of so many rows together by one program."""
    row = tl.program_id(0).to(tl.int64) * together + tl.arange(0, together)
    column = tl.arange(0, block)
    inside = (row < count)[:, None] & (column < width)[None, :]
    place = row[:, None] * width + column[None, :]
    value = tl.load(rows + place, mask=inside, other=0.0)
    # Of numbers without their sign the bits are in the same order as the numbers; infinity and NaN come last.
    largest = tl.max(value.to(tl.int32, bitcast=True) & 0x7FFFFFFF, 1)
    exponent = largest >> 23
    fits = (largest == 0) | ((exponent >= least) & (exponent <= most))
    exponent = tl.where((largest == 0) | (fits == 0), 127, exponent)
    factor = ((268 - exponent) << 23).to(tl.float32, bitcast=True)
    scaled = tl.where(fits[:, None], value, 0.0) * factor[:, None]
    first = scaled.to(tl.float16)
    tl.store(high + place, first, mask=inside)
    tl.store(low + place, (scaled - first.to(tl.float32)).to(tl.float16), mask=inside)
    back = ((exponent - 14) << 23).to(tl.float32, bitcast=True)
    tl.store(scale + row, tl.where(fits, back, float("nan")), mask=row < count)


def _multiply(  # type: ignore[no-untyped-def]
    row_high,
    row_low,
    weight_high,
    weight_low,
    row_scale,
    weight_scale,
    rows,
    weight,
    bias,
    table,
    result,
    count,
    features,
    width,
    period,
    has_bias: tl.constexpr,
    has_table: tl.constexpr,
    block_rows: tl.constexpr,
    block_columns: tl.constexpr,
    depth: tl.constexpr,
    halves: tl.constexpr,
    group: tl.constexpr,
):
    """One block of the product."""
    across = tl.cdiv(features, block_columns * halves)
    first = tl.program_id(0) // (group * across) * group
    down = tl.minimum(tl.cdiv(count, block_rows) - first, group)
    row = (first + tl.program_id(0) % (group * across) % down) * block_rows
    column = tl.program_id(0) % (group * across) // down * block_columns * halves
    total = tl.zeros((block_rows, block_columns), tl.float32)
    if halves == 2:
        other = tl.zeros((block_rows, block_columns), tl.float32)
    for start in range(0, width, depth):
        high = row_high.load([row, start])
        low = row_low.load([row, start])
        across_high = weight_high.load([column, start]).T
        across_low = weight_low.load([column, start]).T
        # A sum of its own, whose innermost start is zero: Triton would put `total` into a single product's start.
        part = tl.dot(low, across_high)
        part = tl.dot(high, across_low, part)
        part = tl.dot(high, across_high, part)
        total += part
        if halves == 2:
            across_high = weight_high.load([column + block_columns, start]).T
            across_low = weight_low.load([column + block_columns, start]).T
            part = tl.dot(low, across_high)
            part = tl.dot(high, across_low, part)
            part = tl.dot(high, across_high, part)
            other += part
    _finish(
        total, row, column, row_scale, weight_scale, rows, weight, bias, table, result, count, features, width, period,
        has_bias, has_table, block_rows, block_columns,
    )  # fmt: skip
    if halves == 2:
        _finish(
            other, row, column + block_columns, row_scale, weight_scale, rows, weight, bias, table, result, count,
            features, width, period, has_bias, has_table, block_rows, block_columns,
        )  # fmt: skip


def _finish(  # type: ignore[no-untyped-def]
    total,
    first_row,
    first_column,
    row_scale,
    weight_scale,
    rows,
    weight,
    bias,
    table,
    result,
    count,
    features,
    width,
    period,
    has_bias: tl.constexpr,
    has_table: tl.constexpr,
    block_rows: tl.constexpr,
    block_columns: tl.constexpr,
):
    """Scale and store a block; then compute in float32, 16 columns at a time, what could not be split."""
    row = first_row + tl.arange(0, block_rows)
    column = first_column + tl.arange(0, block_columns)
    by_row = tl.load(row_scale + row, mask=row < count, other=1.0)
    by_column = tl.load(weight_scale + column, mask=column < features, other=1.0)
    place = row.to(tl.int64)[:, None] * features
    turn = (row % period).to(tl.int64)[:, None] * features
    total = total * by_row[:, None] * by_column[None, :]
    inside = (row < count)[:, None] & (column < features)[None, :]
    if has_bias:
        total += tl.load(bias + column, mask=column < features, other=0.0)[None, :]
    if has_table:
        total += tl.load(table + turn + column[None, :], mask=inside, other=0.0)
    # Nothing puts two stores to one place in order, so none has two.
    known = inside & (by_row == by_row)[:, None] & (by_column == by_column)[None, :]
    tl.store(result + place + column[None, :], total, mask=known)
    unsplit = tl.max((by_row != by_row).to(tl.int32), 0) + tl.max((by_column != by_column).to(tl.int32), 0)
    if unsplit > 0:
        for start in range(0, block_columns, 16):
            few = first_column + start + tl.arange(0, 16)
            by_few = tl.load(weight_scale + few, mask=few < features, other=1.0)
            plain = tl.zeros((block_rows, 16), tl.float32)
            for term in range(0, width):
                left = tl.load(rows + row.to(tl.int64) * width + term, mask=row < count, other=0.0)
                right = tl.load(weight + few.to(tl.int64) * width + term, mask=few < features, other=0.0)
                plain += left[:, None] * right[None, :]
            here = (row < count)[:, None] & (few < features)[None, :]
            if has_bias:
                plain += tl.load(bias + few, mask=few < features, other=0.0)[None, :]
            if has_table:
                plain += tl.load(table + turn + few[None, :], mask=here, other=0.0)
            again = here & ((by_row != by_row)[:, None] | (by_few != by_few)[None, :])
            tl.store(result + place + few[None, :], plain, mask=again)
