"""The operations of `task_convolutions` as kernels for GPUs, in Triton's language.

Convolutions are matrix products whose rows are the pixels of a task's images, a tap after the other; one that starts a
block also sums what its normalisation wants to know. Then a pass over the maps normalises, activates and pools, and on
the way back one sums and one writes the gradient. Maps are float32 or bfloat16, and everything is computed in float32.
Sums are formed in parts, which depend on the size of a task's maps alone, and added in one order: a task has the same
result, bit for bit, every time and beside whichever other tasks.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from hardlook.networks.kernels import triton_kernels
from hardlook.networks.kernels.task_convolutions import PATCH, Block, Tangent, TorchOperations
from hardlook.networks.kernels.triton_kernels import check_close, compile_kernels, on_device_of, try_kernels


@dataclass(frozen=True)
class Tile:
    """Rows that a program of a matrix product takes at once, and how it is compiled."""

    rows: int
    warps: int = 4
    stages: int = 3


@dataclass(frozen=True)
class Tiles:
    """Of convolutions, of gradients of weights, and how many windows the programs of the other kernels take."""

    convolve: Tile
    weigh: Tile
    windows: int = 16


TILES = {torch.bfloat16: Tiles(Tile(128), Tile(64)), torch.float32: Tiles(Tile(64), Tile(32))}
"""By the type of maps. With twice the rows float32 has too few registers."""

PARTS = {1: 128, 9: 32}
"""At most so many programs each sum a part of the gradient of a weight with so many taps."""
LEAST_ROWS = 1024
"""The fewest rows of such a part, but for the last one."""
CELLS = 256
"""Windows whose gradients a program sums."""
SPANS = {"statistics": 256, "sums": 64, "weights": 32}
"""Parts that are added at once."""
VARYING = ("rows", "parts", "chunk", "cells", "windows", "height", "width")
"""Arguments of kernels for whose values nothing is compiled anew."""

TRIED = (4, 131, 129)
"""Images, height and width of a trial: more parts of a sum than are added at once, and none of it a multiple."""
ROUNDED = {torch.float32: 3e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""The relative error of a kernel that is rounding, by how its products are rounded; TF32 has the digits of float16."""

# Triton's language: kernels find it among the globals of their module, and it may be imported only where there is one.
tl: Any = None


def find_operations(where: torch.device, dtype: torch.dtype, channels: int, rounds: bool) -> TritonOperations | None:
    """The operations on maps of a type with so many channels, tried once (`try_kernels`).

    With `rounds` products of float32 are those of TF32.
    """
    return _find_operations(where, dtype, channels, "tf32" if rounds and dtype == torch.float32 else "ieee")


@functools.cache
def _find_operations(where: torch.device, dtype: torch.dtype, channels: int, precision: str) -> TritonOperations | None:
    trial = functools.partial(_try_operations, where, dtype, channels, precision)
    return try_kernels(trial, where, "faster inner loops")


def _try_operations(where: torch.device, dtype: torch.dtype, channels: int, precision: str) -> TritonOperations:
    """The operations, whose results on random numbers are those of torch in float64."""
    kernels, plain, random = (
        TritonOperations(dtype, precision),
        TorchOperations(),
        torch.Generator(where).manual_seed(0),
    )
    most = ROUNDED[dtype] if precision == "ieee" or dtype != torch.float32 else ROUNDED[torch.float16]
    tasks, sides, slope = 2, TRIED, 0.1

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, device=where, dtype=torch.float32)

    def check(ours: Tensor, theirs: Tensor, what: str) -> None:
        check_close(ours, theirs, most, what)

    images = draw(tasks, sides[0], 3, *sides[1:])
    patches = kernels.cut_patches(images)
    check(patches, plain.cut_patches(images.double()), "a patch")
    for taps, inputs in ((1, PATCH), (9, channels)):
        long = taps * inputs * channels

        def view(row: Tensor) -> tuple[Tensor, Tensor]:
            norm = row[:, long : long + 2 * channels].view(tasks, 2, channels)  # noqa: B023
            return row[:, :long].view(tasks, taps, inputs, channels), norm  # noqa: B023

        maps = patches if taps == 1 else draw(tasks, *sides, inputs).to(dtype)
        moves = None if taps == 1 else draw(tasks, *sides, inputs).to(dtype)
        gradient, along = (draw(tasks, sides[0], sides[1] // 2, sides[2] // 2, channels).to(dtype) for _ in range(2))
        (weight, norm), (weight_along, norm_along) = (view(draw(tasks, long + 2 * channels)) for _ in range(2))
        rounded, rounded_along = weight.to(dtype), weight_along.to(dtype)
        (product, sums), (product_along, sums_along) = (view(draw(tasks, long + 2 * channels)) for _ in range(2))
        exact = torch.empty_like(weight, dtype=torch.float64)
        exact_sums, exact_sums_along = (torch.empty_like(norm, dtype=torch.float64) for _ in range(2))
        # Of the size of a map's variance: with a small one its absence would pass for rounding.
        epsilon = float(taps * inputs)
        block = kernels.run(maps, rounded, norm, epsilon, slope)
        expected = plain.run(maps.double(), rounded.double(), norm.double(), epsilon, slope)
        for name in ("y", "statistics", "pooled"):
            check(getattr(block, name), getattr(expected, name), "a block")
        # From here on with the same pixels chosen.
        known = _widen(block)
        dy = kernels.go_back(block, gradient, slope, sums)
        check(dy, plain.go_back(known, gradient.double(), slope, exact_sums), "a block's gradient")
        check(sums, exact_sums, "a norm's gradient")
        known = _widen(block)
        kernels.weigh(maps, dy, product)
        plain.weigh(maps.double(), dy.double(), exact)
        check(product, exact, "a weight's gradient")
        wide = None if moves is None else moves.double()
        tangent = kernels.run_tangent(block, moves, rounded, rounded_along, norm_along, slope)
        given = known, wide, rounded.double(), rounded_along.double(), norm_along.double(), slope
        expected_tangent = plain.run_tangent(*given)
        for name in ("y", "moments", "pooled", "kept"):
            check(getattr(tangent, name), getattr(expected_tangent, name), "a block's tangent")
        dy_along = kernels.go_back_tangent(block, tangent, along, norm_along, slope, sums, sums_along)
        given_back = known, _widen(tangent), along.double(), norm_along.double(), slope, sums.double(), exact_sums_along
        check(dy_along, plain.go_back_tangent(*given_back), "the tangent of a block's gradient")
        check(sums_along, exact_sums_along, "the tangent of a norm's gradient")
        kernels.weigh_tangent(block, moves, dy_along, product_along)
        plain.weigh_tangent(known, wide, dy_along.double(), exact)
        check(product_along, exact, "the tangent of a weight's gradient")
        if taps > 1:
            expected_back = plain.transpose(dy.double(), rounded.double())
            check(kernels.transpose(dy, rounded), expected_back, "a map's gradient")
            back = kernels.transpose_tangent(block, dy_along, rounded, rounded_along)
            exact_back = plain.transpose_tangent(known, dy_along.double(), rounded.double(), rounded_along.double())
            check(back, exact_back, "the tangent of a map's gradient")
    return kernels


def _widen(value: Any) -> Any:
    """A block or a tangent whose numbers are float64."""
    wide = {name: one.double() for name, one in vars(value).items() if one is not None and one.is_floating_point()}
    return replace(value, **wide)


class TritonOperations:
    """`Operations` on maps of one type; `precision` is that of products of float32: ieee or tf32."""

    def __init__(self, dtype: torch.dtype, precision: str = "ieee", tiles: Tiles | None = None) -> None:
        self.dtype, self.precision, self.tiles = dtype, precision, tiles or TILES[dtype]
        self._kernels = _compile()

    def cut_patches(self, images: Tensor) -> Tensor:
        """As in `Operations`."""
        images = images.contiguous()
        tasks, count, _, height, width = images.shape
        patches = images.new_empty((tasks, count, height, width, PATCH), dtype=self.dtype)
        rows = count * height * width
        with on_device_of(images):
            self._kernels.cut_patches[(_divide(rows, 64), tasks)](
                images, patches, rows, height, width, patch=PATCH, tile=64
            )
        return patches

    def run(self, inputs: Tensor, weight: Tensor, norm: Tensor, epsilon: float, slope: float) -> Block:
        """As in `Operations`."""
        y, partial = self._convolve([(inputs, weight)], collects=1)
        tasks, count, height, width, channels = y.shape
        rows = count * height * width
        statistics = norm.new_empty(tasks, 4, channels)
        pooled = y.new_empty(tasks, count, height // 2, width // 2, channels)
        chosen, kept = torch.empty_like(pooled, dtype=torch.uint8), torch.empty_like(pooled)
        cells, tile = pooled[0, ..., 0].numel(), self.tiles.windows
        assert norm.stride()[1:] == (channels, 1)
        with on_device_of(y):
            self._kernels.finish[(channels // 16, tasks)](
                partial,
                norm,
                statistics,
                rows,
                partial.shape[1],
                norm.stride(0),
                epsilon,
                channels=channels,
                tile=self.tiles.convolve.rows,
                span=SPANS["statistics"],
                block=16,
            )
            self._kernels.pool[(_divide(cells, tile), tasks)](
                y, statistics, pooled, chosen, kept, cells, rows, height, width, slope, channels=channels, tile=tile
            )
        return Block(inputs, y, statistics, pooled, chosen, kept)

    def go_back(self, block: Block, gradient: Tensor, slope: float, sums: Tensor) -> Tensor:
        """As in `Operations`."""
        block.gradient = gradient = gradient.contiguous()
        tasks, count, height, width, channels = block.y.shape
        cells, rows, tile = gradient[0, ..., 0].numel(), count * height * width, self.tiles.windows
        parts, windows = _divide(cells, CELLS), count * _divide(height, 2) * _divide(width, 2)
        partial = sums.new_empty(tasks, parts, 2 * channels)
        block.dy = torch.empty_like(block.y)
        with on_device_of(gradient):
            self._kernels.collect[(parts, tasks)](
                gradient,
                block.kept,
                block.statistics,
                partial,
                cells,
                parts,
                slope,
                channels=channels,
                chunk=CELLS,
                tile=32,
            )
            self._add(partial, sums)
            self._kernels.spread[(_divide(windows, tile), tasks)](
                gradient,
                block.chosen,
                block.kept,
                block.y,
                block.statistics,
                sums,
                block.dy,
                windows,
                rows,
                height,
                width,
                slope,
                sums.stride(0),
                channels=channels,
                tile=tile,
            )
        return block.dy

    def weigh(self, inputs: Tensor, dy: Tensor, result: Tensor) -> None:
        """As in `Operations`."""
        self._weigh([(inputs, dy)], result)

    def transpose(self, dy: Tensor, weight: Tensor) -> Tensor:
        """As in `Operations`."""
        return self._convolve([(dy, weight)], transposed=True)[0]

    def run_tangent(
        self,
        block: Block,
        inputs: Tensor | None,
        weight: Tensor,
        weight_tangent: Tensor,
        norm_tangent: Tensor,
        slope: float,
    ) -> Tangent:
        """As in `Operations`."""
        pairs = [(block.inputs, weight_tangent)] + ([] if inputs is None else [(inputs, weight)])
        y, partial = self._convolve(pairs, collects=2, block=block)
        tasks, count, height, width, channels = y.shape
        rows, tile = count * height * width, self.tiles.windows
        moments = norm_tangent.new_empty(tasks, 2, channels)
        pooled, kept = torch.empty_like(block.pooled), torch.empty_like(block.pooled)
        cells = pooled[0, ..., 0].numel()
        with on_device_of(y):
            self._add(partial, moments, 1 / rows)
            self._kernels.pool_tangent[(_divide(cells, tile), tasks)](
                block.chosen,
                block.kept,
                y,
                block.statistics,
                norm_tangent,
                moments,
                pooled,
                kept,
                cells,
                rows,
                height,
                width,
                slope,
                norm_tangent.stride(0),
                channels=channels,
                tile=tile,
            )
        return Tangent(y, moments, pooled, kept)

    def go_back_tangent(
        self,
        block: Block,
        tangent: Tangent,
        gradient: Tensor,
        norm_tangent: Tensor,
        slope: float,
        sums: Tensor,
        sums_tangent: Tensor,
    ) -> Tensor:
        """As in `Operations`."""
        gradient = gradient.contiguous()
        tasks, count, height, width, channels = block.y.shape
        cells, rows, tile = gradient[0, ..., 0].numel(), count * height * width, self.tiles.windows
        parts, windows = _divide(cells, CELLS), count * _divide(height, 2) * _divide(width, 2)
        partial = sums.new_empty(tasks, parts, 2 * channels)
        dy = torch.empty_like(block.y)
        assert norm_tangent.stride() == sums.stride() == sums_tangent.stride()
        with on_device_of(gradient):
            self._kernels.collect_tangent[(parts, tasks)](
                block.gradient,
                gradient,
                block.kept,
                tangent.kept,
                block.statistics,
                tangent.moments,
                partial,
                cells,
                parts,
                slope,
                channels=channels,
                chunk=CELLS,
                tile=32,
            )
            self._add(partial, sums_tangent)
            self._kernels.spread_tangent[(_divide(windows, tile), tasks)](
                block.gradient,
                gradient,
                block.chosen,
                block.kept,
                block.y,
                tangent.y,
                block.statistics,
                tangent.moments,
                norm_tangent,
                sums,
                sums_tangent,
                dy,
                windows,
                rows,
                height,
                width,
                slope,
                sums.stride(0),
                channels=channels,
                tile=tile,
            )
        return dy

    def weigh_tangent(self, block: Block, inputs: Tensor | None, dy: Tensor, result: Tensor) -> None:
        """As in `Operations`."""
        pairs = [(block.inputs, dy)]
        if inputs is not None:
            assert block.dy is not None
            pairs.append((inputs, block.dy))
        self._weigh(pairs, result)

    def transpose_tangent(self, block: Block, dy: Tensor, weight: Tensor, weight_tangent: Tensor) -> Tensor:
        """As in `Operations`."""
        assert block.dy is not None
        return self._convolve([(dy, weight), (block.dy, weight_tangent)], transposed=True)[0]

    def _convolve(
        self,
        pairs: list[tuple[Tensor, Tensor]],
        *,
        transposed: bool = False,
        collects: int = 0,
        block: Block | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The sum of convolutions of maps with weights, and (tasks, parts, 2, C) what was summed of it."""
        (maps, weight), (other, other_weight) = pairs[0], pairs[1] if len(pairs) > 1 else (None, None)
        tasks, count, height, width, _ = maps.shape
        _, taps, inputs, channels = weight.shape
        rows, tile = count * height * width, self.tiles.convolve
        parts = _divide(rows, tile.rows)
        result = maps.new_empty(tasks, count, height, width, inputs if transposed else channels)
        partial = maps.new_empty((tasks, parts, 2, channels) if collects else 0, dtype=torch.float32)
        assert weight.stride()[1:] == (inputs * channels, channels, 1)
        assert other_weight is None or other_weight.stride() == weight.stride()
        with on_device_of(maps):
            self._kernels.convolve[(parts, tasks)](
                maps,
                weight,
                other,
                other_weight,
                result,
                None if block is None else block.y,
                None if block is None else block.statistics,
                partial,
                rows,
                height,
                width,
                weight.stride(0),
                inputs=inputs,
                channels=channels,
                taps=taps,
                transposed=transposed,
                collects=collects,
                tile=tile.rows,
                precision=self.precision,
                num_warps=tile.warps,
                num_stages=tile.stages,
            )
        return result, partial

    def _weigh(self, pairs: list[tuple[Tensor, Tensor]], result: Tensor) -> None:
        (maps, dy), (other, other_dy) = pairs[0], pairs[1] if len(pairs) > 1 else (None, None)
        tasks, taps, inputs, channels = result.shape
        _, count, height, width, _ = maps.shape
        rows, tile = count * height * width, self.tiles.weigh
        parts = min(PARTS[taps], _divide(rows, LEAST_ROWS))
        chunk = _divide(_divide(rows, parts), tile.rows) * tile.rows
        partial = result.new_empty(tasks, parts, taps * inputs * channels)
        with on_device_of(maps):
            self._kernels.weigh[(parts, 3 if taps == 9 else 1, tasks)](
                maps,
                dy,
                other,
                other_dy,
                partial,
                rows,
                chunk,
                parts,
                height,
                width,
                inputs=inputs,
                channels=channels,
                taps=taps,
                tile=tile.rows,
                precision=self.precision,
                num_warps=tile.warps,
                num_stages=tile.stages,
            )
            self._add(partial, result)

    def _add(self, partial: Tensor, result: Tensor, factor: float = 1.0) -> None:
        """Write the sum of (tasks, parts, numbers) over the parts, times a factor, into views of these numbers."""
        tasks, parts, numbers = partial.shape[0], partial.shape[1], partial[0, 0].numel()
        block, span = (16, SPANS["sums"]) if numbers < 1024 else (64, SPANS["weights"])
        self._kernels.add[(_divide(numbers, block), tasks)](
            partial, result, parts, result.stride(0), factor, numbers=numbers, span=span, block=block
        )


def _divide(count: int, size: int) -> int:
    return -(-count // size)


@functools.cache
def _compile() -> _Kernels:
    return _Kernels()


class _Kernels:
    """Compiled at their first launch, once for all sizes of maps."""

    def __init__(self) -> None:
        made = compile_kernels(
            _cut_patches,
            _convolve,
            _finish,
            _add,
            _pool,
            _pool_tangent,
            _collect,
            _collect_tangent,
            _spread,
            _spread_tangent,
            _weigh,
            called=(triton_kernels.round_to_tf32, triton_kernels.load_statistics, _add_taps, _add_products),
            varying=VARYING,
        )
        self.cut_patches, self.convolve, self.finish, self.add, self.pool, self.pool_tangent = made[:6]
        self.collect, self.collect_tangent, self.spread, self.spread_tangent, self.weigh = made[6:]


# What follows is in Triton's language. The second axis of a grid is the task, but for `_weigh`, where it is the third.
# A task's maps are rows, a pixel of an image each, of `channels` numbers; a program has all channels of its rows.


def _cut_patches(  # type: ignore[no-untyped-def]
    images, patches, rows, height, width, patch: tl.constexpr, tile: tl.constexpr
):
    """Rows of patches of images (tasks, n, 3, h, w)."""
    task = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * tile + tl.arange(0, tile)
    number = tl.arange(0, patch)
    channel, tap = number % 3, number // 3
    column = (row % width)[:, None] + (tap % 3 - 1)[None, :]
    line = ((row // width) % height)[:, None] + (tap // 3 - 1)[None, :]
    within = (line >= 0) & (line < height) & (column >= 0) & (column < width)
    within = within & (row < rows)[:, None] & (number < 27)[None, :]
    plane = (row // (width * height) * 3)[:, None] + channel[None, :]
    value = tl.load(images + task * rows * 3 + (plane * height + line) * width + column, mask=within, other=0.0)
    place = patches + task * rows * patch + row[:, None] * patch + number[None, :]
    tl.store(place, value.to(patches.dtype.element_ty), mask=(row < rows)[:, None])


def _convolve(  # type: ignore[no-untyped-def]
    maps,
    weight,
    other,
    other_weight,
    result,
    known,
    statistics,
    partial,
    rows,
    height,
    width,
    stride,
    inputs: tl.constexpr,
    channels: tl.constexpr,
    taps: tl.constexpr,
    transposed: tl.constexpr,
    collects: tl.constexpr,
    tile: tl.constexpr,
    precision: tl.constexpr,
):
    """Rows of a convolution, or of a transposed one, plus those of another.

    Collected are mean and squared deviations of the rows (1), or the sums of the result and of its products with what
    is normalised of `known` (2).
    """
    task = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * tile + tl.arange(0, tile)
    inside = row < rows
    # Of the product: from `depth` numbers of a pixel to `breadth`.
    depth: tl.constexpr = channels if transposed else inputs
    breadth: tl.constexpr = inputs if transposed else channels
    total = tl.zeros((tile, breadth), tl.float32)
    maps += task * rows * depth
    weight += task * stride
    total = _add_taps(total, maps, weight, row, inside, height, width, inputs, channels, taps, transposed, precision)
    if other is not None:
        other += task * rows * depth
        other_weight += task * stride
        total = _add_taps(
            total, other, other_weight, row, inside, height, width, inputs, channels, taps, transposed, precision
        )
    outer = tl.arange(0, breadth)
    target = task * rows * breadth + row[:, None] * breadth + outer[None, :]
    rounded = total.to(result.dtype.element_ty)
    tl.store(result + target, rounded, mask=inside[:, None])
    if collects > 0:
        wide = rounded.to(tl.float32)
        if collects == 1:
            size = tl.minimum(rows - tl.program_id(0) * tile, tile).to(tl.float32)
            first = tl.sum(wide, 0) / size
            apart = tl.where(inside[:, None], wide - first[None, :], 0.0)
            second = tl.sum(apart * apart, 0)
        else:
            statistics += task * (4 * breadth)
            mean, inverse = tl.load(statistics + outer), tl.load(statistics + breadth + outer)
            value = tl.load(known + target, mask=inside[:, None], other=0.0).to(tl.float32)
            first = tl.sum(wide, 0)
            second = tl.sum(wide * ((value - mean[None, :]) * inverse[None, :]), 0)
        part = partial + (task * tl.num_programs(0) + tl.program_id(0)) * (2 * breadth)
        tl.store(part + outer, first)
        tl.store(part + breadth + outer, second)


def _add_taps(  # type: ignore[no-untyped-def]
    total,
    maps,
    weight,
    row,
    inside,
    height,
    width,
    inputs: tl.constexpr,
    channels: tl.constexpr,
    taps: tl.constexpr,
    transposed: tl.constexpr,
    precision: tl.constexpr,
):
    """The sum with the products of all taps of a convolution added."""
    depth: tl.constexpr = channels if transposed else inputs
    column = row % width
    line = (row // width) % height
    inner = tl.arange(0, depth)
    block = tl.arange(0, inputs)[:, None] * channels + tl.arange(0, channels)[None, :]
    for tap in range(taps):
        down, right = 0, 0
        if taps == 9:
            down, right = tap // 3 - 1, tap % 3 - 1
            if transposed:
                down, right = -down, -right
        within = inside & (line + down >= 0) & (line + down < height)
        within = within & (column + right >= 0) & (column + right < width)
        place = (row + down * width + right)[:, None] * depth + inner[None, :]
        value = tl.load(maps + place, mask=within[:, None], other=0.0)
        factor = tl.load(weight + tap * (inputs * channels) + block)
        if transposed:
            factor = tl.trans(factor)
        value, factor = triton_kernels.round_to_tf32(value, precision), triton_kernels.round_to_tf32(factor, precision)
        total = tl.dot(value, factor, total, input_precision=precision)
    return total


def _finish(  # type: ignore[no-untyped-def]
    partial,
    norm,
    statistics,
    rows,
    parts,
    stride,
    epsilon,
    channels: tl.constexpr,
    tile: tl.constexpr,
    span: tl.constexpr,
    block: tl.constexpr,
):
    """Statistics of a task from those of its parts, merged by Chan's rule, and what they make of scale and offset."""
    task = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(0) * block + tl.arange(0, block)
    partial += task * parts * (2 * channels)
    count = rows.to(tl.float32)
    total = tl.zeros((span, block), tl.float32)
    for start in range(0, parts, span):
        part = start + tl.arange(0, span)
        size = tl.minimum(tl.maximum(rows - part * tile, 0), tile).to(tl.float32)[:, None]
        place = partial + part[:, None] * (2 * channels) + channel[None, :]
        total += tl.load(place, mask=(part < parts)[:, None], other=0.0) * size
    mean = tl.sum(total, 0) / count
    total = tl.zeros((span, block), tl.float32)
    for start in range(0, parts, span):
        part = start + tl.arange(0, span)
        size = tl.minimum(tl.maximum(rows - part * tile, 0), tile).to(tl.float32)[:, None]
        place = partial + part[:, None] * (2 * channels) + channel[None, :]
        apart = tl.load(place, mask=(part < parts)[:, None], other=0.0) - mean[None, :]
        total += tl.load(place + channels, mask=(part < parts)[:, None], other=0.0) + apart * apart * size
    inverse = 1.0 / tl.sqrt(tl.sum(total, 0) / count + epsilon)
    norm += task * stride
    scale = tl.load(norm + channels + channel) * inverse
    statistics += task * (4 * channels)
    tl.store(statistics + channel, mean)
    tl.store(statistics + channels + channel, inverse)
    tl.store(statistics + 2 * channels + channel, scale)
    tl.store(statistics + 3 * channels + channel, tl.load(norm + channel) - mean * scale)


def _add(  # type: ignore[no-untyped-def]
    partial, result, parts, stride, factor, numbers: tl.constexpr, span: tl.constexpr, block: tl.constexpr
):
    """The sum of parts."""
    task = tl.program_id(1).to(tl.int64)
    number = tl.program_id(0) * block + tl.arange(0, block)
    partial += task * parts * numbers
    total = tl.zeros((span, block), tl.float32)
    for start in range(0, parts, span):
        part = start + tl.arange(0, span)
        within = (part < parts)[:, None] & (number < numbers)[None, :]
        total += tl.load(partial + part[:, None] * numbers + number[None, :], mask=within, other=0.0)
    tl.store(result + task * stride + number, tl.sum(total, 0) * factor, mask=number < numbers)


def _pool(  # type: ignore[no-untyped-def]
    y,
    statistics,
    pooled,
    chosen,
    kept,
    cells,
    rows,
    height,
    width,
    slope,
    channels: tl.constexpr,
    tile: tl.constexpr,
):
    """Normalised, activated and pooled values; which pixel each comes from, and y there."""
    task = tl.program_id(1).to(tl.int64)
    cell = tl.program_id(0) * tile + tl.arange(0, tile)
    channel = tl.arange(0, channels)
    inside = (cell < cells)[:, None]
    columns, lines = width // 2, height // 2
    first = (cell // (columns * lines) * height + cell // columns % lines * 2) * width + cell % columns * 2
    y += task * rows * channels
    statistics += task * (4 * channels)
    _, _, scale, offset = triton_kernels.load_statistics(statistics, channel, channels)
    value = tl.load(y + first[:, None] * channels + channel[None, :], mask=inside, other=0.0)
    best = value.to(tl.float32) * scale + offset
    index = tl.zeros((tile, channels), tl.int32)
    for number in tl.static_range(1, 4):
        there = first + number // 2 * width + number % 2
        one = tl.load(y + there[:, None] * channels + channel[None, :], mask=inside, other=0.0)
        score = one.to(tl.float32) * scale + offset
        better = score > best
        best = tl.where(better, score, best)
        index = tl.where(better, number, index)
        value = tl.where(better, one, value)
    target = task * cells * channels + cell[:, None] * channels + channel[None, :]
    tl.store(pooled + target, tl.where(best > 0, best, best * slope).to(pooled.dtype.element_ty), mask=inside)
    tl.store(chosen + target, index.to(tl.uint8), mask=inside)
    tl.store(kept + target, value, mask=inside)


def _pool_tangent(  # type: ignore[no-untyped-def]
    chosen,
    kept,
    y_tangent,
    statistics,
    norm_tangent,
    moments,
    pooled,
    kept_tangent,
    cells,
    rows,
    height,
    width,
    slope,
    stride,
    channels: tl.constexpr,
    tile: tl.constexpr,
):
    """The tangent of the pooled values, and that of y where each comes from."""
    task = tl.program_id(1).to(tl.int64)
    cell = tl.program_id(0) * tile + tl.arange(0, tile)
    channel = tl.arange(0, channels)
    inside = (cell < cells)[:, None]
    columns, lines = width // 2, height // 2
    first = (cell // (columns * lines) * height + cell // columns % lines * 2) * width + cell % columns * 2
    y_tangent += task * rows * channels
    target = task * cells * channels + cell[:, None] * channels + channel[None, :]
    index = tl.load(chosen + target, mask=inside, other=0).to(tl.int32)
    value = tl.load(y_tangent + first[:, None] * channels + channel[None, :], mask=inside, other=0.0)
    for number in tl.static_range(1, 4):
        there = first + number // 2 * width + number % 2
        one = tl.load(y_tangent + there[:, None] * channels + channel[None, :], mask=inside, other=0.0)
        value = tl.where(index == number, one, value)
    tl.store(kept_tangent + target, value, mask=inside)
    statistics += task * (4 * channels)
    norm_tangent += task * stride
    moments += task * (2 * channels)
    mean, inverse, scale, offset = triton_kernels.load_statistics(statistics, channel, channels)
    here = tl.load(kept + target, mask=inside, other=0.0).to(tl.float32)
    x = (here - mean) * inverse
    centred = value.to(tl.float32) - tl.load(moments + channel)[None, :]
    centred -= x * tl.load(moments + channels + channel)[None, :]
    z_tangent = tl.load(norm_tangent + channels + channel)[None, :] * x + scale * centred
    z_tangent += tl.load(norm_tangent + channel)[None, :]
    score = here * scale + offset
    tl.store(
        pooled + target, tl.where(score > 0, z_tangent, z_tangent * slope).to(pooled.dtype.element_ty), mask=inside
    )


def _collect(  # type: ignore[no-untyped-def]
    gradient,
    kept,
    statistics,
    partial,
    cells,
    parts,
    slope,
    channels: tl.constexpr,
    chunk: tl.constexpr,
    tile: tl.constexpr,
):
    """A and B of a part of the windows."""
    task = tl.program_id(1).to(tl.int64)
    channel = tl.arange(0, channels)
    statistics += task * (4 * channels)
    mean, inverse, scale, offset = triton_kernels.load_statistics(statistics, channel, channels)
    first = tl.zeros((tile, channels), tl.float32)
    second = tl.zeros((tile, channels), tl.float32)
    for start in range(0, chunk, tile):
        cell = tl.program_id(0) * chunk + start + tl.arange(0, tile)
        inside = (cell < cells)[:, None]
        place = task * cells * channels + cell[:, None] * channels + channel[None, :]
        own = tl.load(gradient + place, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(kept + place, mask=inside, other=0.0).to(tl.float32)
        own = tl.where(value * scale + offset > 0, own, own * slope)
        first += own
        second += own * ((value - mean) * inverse)
    partial += (task * parts + tl.program_id(0)) * (2 * channels)
    tl.store(partial + channel, tl.sum(first, 0))
    tl.store(partial + channels + channel, tl.sum(second, 0))


def _collect_tangent(  # type: ignore[no-untyped-def]
    gradient,
    gradient_tangent,
    kept,
    kept_tangent,
    statistics,
    moments,
    partial,
    cells,
    parts,
    slope,
    channels: tl.constexpr,
    chunk: tl.constexpr,
    tile: tl.constexpr,
):
    """A' and B' of a part of the windows."""
    task = tl.program_id(1).to(tl.int64)
    channel = tl.arange(0, channels)
    statistics += task * (4 * channels)
    moments += task * (2 * channels)
    mean, inverse, scale, offset = triton_kernels.load_statistics(statistics, channel, channels)
    mean_tangent = tl.load(moments + channel)[None, :]
    product = tl.load(moments + channels + channel)[None, :]
    first = tl.zeros((tile, channels), tl.float32)
    second = tl.zeros((tile, channels), tl.float32)
    for start in range(0, chunk, tile):
        cell = tl.program_id(0) * chunk + start + tl.arange(0, tile)
        inside = (cell < cells)[:, None]
        place = task * cells * channels + cell[:, None] * channels + channel[None, :]
        own = tl.load(gradient + place, mask=inside, other=0.0).to(tl.float32)
        own_tangent = tl.load(gradient_tangent + place, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(kept + place, mask=inside, other=0.0).to(tl.float32)
        value_tangent = tl.load(kept_tangent + place, mask=inside, other=0.0).to(tl.float32)
        factor = tl.where(value * scale + offset > 0, 1.0, slope)
        x = (value - mean) * inverse
        first += own_tangent * factor
        second += factor * (own_tangent * x + own * (inverse * (value_tangent - mean_tangent - x * product)))
    partial += (task * parts + tl.program_id(0)) * (2 * channels)
    tl.store(partial + channel, tl.sum(first, 0))
    tl.store(partial + channels + channel, tl.sum(second, 0))


def _spread(  # type: ignore[no-untyped-def]
    gradient,
    chosen,
    kept,
    y,
    statistics,
    sums,
    result,
    windows,
    rows,
    height,
    width,
    slope,
    stride,
    channels: tl.constexpr,
    tile: tl.constexpr,
):
    """dy: of every window and, in maps of odd sides, of the pixels that are in none."""
    task = tl.program_id(1).to(tl.int64)
    window = tl.program_id(0) * tile + tl.arange(0, tile)
    channel = tl.arange(0, channels)
    columns, lines = (width + 1) // 2, (height + 1) // 2
    column, line, image = window % columns, window // columns % lines, window // (columns * lines)
    inside = window < windows
    cell = (image * (height // 2) + line) * (width // 2) + column
    pooled = (inside & (line < height // 2) & (column < width // 2))[:, None]
    cells = rows // (height * width) * (height // 2) * (width // 2)
    source = task * cells * channels + cell[:, None] * channels + channel[None, :]
    count = rows.to(tl.float32)
    statistics += task * (4 * channels)
    sums += task * stride
    mean, inverse, scale, offset = triton_kernels.load_statistics(statistics, channel, channels)
    first = (tl.load(sums + channel) / count)[None, :]
    second = (tl.load(sums + channels + channel) / count)[None, :]
    own = tl.load(gradient + source, mask=pooled, other=0.0).to(tl.float32)
    score = tl.load(kept + source, mask=pooled, other=0.0).to(tl.float32) * scale + offset
    own = tl.where(score > 0, own, own * slope)
    index = tl.load(chosen + source, mask=pooled, other=0).to(tl.int32)
    y += task * rows * channels
    result += task * rows * channels
    for number in tl.static_range(4):
        below, beside = 2 * line + number // 2, 2 * column + number % 2
        here = (inside & (below < height) & (beside < width))[:, None]
        place = ((image * height + below) * width + beside)[:, None] * channels + channel[None, :]
        x = (tl.load(y + place, mask=here, other=0.0).to(tl.float32) - mean) * inverse
        written = scale * (tl.where(index == number, own, 0.0) - first - x * second)
        tl.store(result + place, written.to(result.dtype.element_ty), mask=here)


def _spread_tangent(  # type: ignore[no-untyped-def]
    gradient,
    gradient_tangent,
    chosen,
    kept,
    y,
    y_tangent,
    statistics,
    moments,
    norm_tangent,
    sums,
    sums_tangent,
    result,
    windows,
    rows,
    height,
    width,
    slope,
    stride,
    channels: tl.constexpr,
    tile: tl.constexpr,
):
    """dy', pixel by pixel as `_spread`."""
    task = tl.program_id(1).to(tl.int64)
    window = tl.program_id(0) * tile + tl.arange(0, tile)
    channel = tl.arange(0, channels)
    columns, lines = (width + 1) // 2, (height + 1) // 2
    column, line, image = window % columns, window // columns % lines, window // (columns * lines)
    inside = window < windows
    cell = (image * (height // 2) + line) * (width // 2) + column
    pooled = (inside & (line < height // 2) & (column < width // 2))[:, None]
    cells = rows // (height * width) * (height // 2) * (width // 2)
    source = task * cells * channels + cell[:, None] * channels + channel[None, :]
    count = rows.to(tl.float32)
    statistics += task * (4 * channels)
    moments += task * (2 * channels)
    norm_tangent += task * stride
    sums += task * stride
    sums_tangent += task * stride
    mean, inverse, scale, offset = triton_kernels.load_statistics(statistics, channel, channels)
    mean_tangent = tl.load(moments + channel)[None, :]
    product = tl.load(moments + channels + channel)[None, :]
    first = (tl.load(sums + channel) / count)[None, :]
    second = (tl.load(sums + channels + channel) / count)[None, :]
    first_tangent = (tl.load(sums_tangent + channel) / count)[None, :]
    second_tangent = (tl.load(sums_tangent + channels + channel) / count)[None, :]
    # Of q: the tangent of scale r.
    turn = inverse * (tl.load(norm_tangent + channels + channel)[None, :] - scale * product)
    score = tl.load(kept + source, mask=pooled, other=0.0).to(tl.float32) * scale + offset
    factor = tl.where(score > 0, 1.0, slope)
    own = tl.load(gradient + source, mask=pooled, other=0.0).to(tl.float32) * factor
    own_tangent = tl.load(gradient_tangent + source, mask=pooled, other=0.0).to(tl.float32) * factor
    # What a window's gradients give to its chosen pixel.
    own = turn * own + scale * own_tangent
    index = tl.load(chosen + source, mask=pooled, other=0).to(tl.int32)
    y += task * rows * channels
    y_tangent += task * rows * channels
    result += task * rows * channels
    for number in tl.static_range(4):
        below, beside = 2 * line + number // 2, 2 * column + number % 2
        here = (inside & (below < height) & (beside < width))[:, None]
        place = ((image * height + below) * width + beside)[:, None] * channels + channel[None, :]
        x = (tl.load(y + place, mask=here, other=0.0).to(tl.float32) - mean) * inverse
        x_tangent = tl.load(y_tangent + place, mask=here, other=0.0).to(tl.float32)
        x_tangent = inverse * (x_tangent - mean_tangent - x * product)
        written = tl.where(index == number, own, 0.0) - turn * (first + x * second)
        written -= scale * (first_tangent + x_tangent * second + x * second_tangent)
        tl.store(result + place, written.to(result.dtype.element_ty), mask=here)


def _weigh(  # type: ignore[no-untyped-def]
    maps,
    dy,
    other,
    other_dy,
    partial,
    rows,
    chunk,
    parts,
    height,
    width,
    inputs: tl.constexpr,
    channels: tl.constexpr,
    taps: tl.constexpr,
    tile: tl.constexpr,
    precision: tl.constexpr,
):
    """A part of the rows' share of the gradient of a weight: of three taps of one row, or of the only one."""
    part, group, task = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    last = tl.minimum(part * chunk + chunk, rows)
    own_inputs, own_channels = tl.arange(0, inputs), tl.arange(0, channels)
    down = 0
    if taps == 9:
        down = group - 1
    left = tl.zeros((channels, inputs), tl.float32)
    middle = tl.zeros((channels, inputs), tl.float32)
    right = tl.zeros((channels, inputs), tl.float32)
    maps += task * rows * inputs
    dy += task * rows * channels
    left, middle, right = _add_products(
        left,
        middle,
        right,
        maps,
        dy,
        part * chunk,
        last,
        down,
        height,
        width,
        inputs,
        channels,
        taps,
        tile,
        precision,
    )
    if other is not None:
        other += task * rows * inputs
        other_dy += task * rows * channels
        left, middle, right = _add_products(
            left, middle, right, other, other_dy, part * chunk, last, down, height, width,
            inputs, channels, taps, tile, precision,
        )  # fmt: skip
    partial += ((task * parts + part) * taps + group * 3) * (inputs * channels)
    block = own_inputs[:, None] * channels + own_channels[None, :]
    if taps == 9:
        tl.store(partial + block, tl.trans(left))
        tl.store(partial + inputs * channels + block, tl.trans(middle))
        tl.store(partial + 2 * inputs * channels + block, tl.trans(right))
    else:
        tl.store(partial + block, tl.trans(middle))


def _add_products(  # type: ignore[no-untyped-def]
    left,
    middle,
    right,
    maps,
    dy,
    first,
    last,
    down,
    height,
    width,
    inputs: tl.constexpr,
    channels: tl.constexpr,
    taps: tl.constexpr,
    tile: tl.constexpr,
    precision: tl.constexpr,
):
    """The sums of three taps of one row, or of the only one, with the products of some rows of maps added."""
    own_inputs, own_channels = tl.arange(0, inputs), tl.arange(0, channels)
    for start in range(first, last, tile):
        row = start + tl.arange(0, tile)
        column = row % width
        line = row // width % height + down
        inside = row < last
        within = inside & (line >= 0) & (line < height)
        place = dy + row[:, None] * channels + own_channels[None, :]
        gradient = triton_kernels.round_to_tf32(tl.trans(tl.load(place, mask=inside[:, None], other=0.0)), precision)
        place = maps + (row + down * width)[:, None] * inputs + own_inputs[None, :]
        value = tl.load(place, mask=within[:, None], other=0.0)
        value = triton_kernels.round_to_tf32(value, precision)
        middle = tl.dot(gradient, value, middle, input_precision=precision)
        if taps == 9:
            value = tl.load(place - inputs, mask=(within & (column > 0))[:, None], other=0.0)
            value = triton_kernels.round_to_tf32(value, precision)
            left = tl.dot(gradient, value, left, input_precision=precision)
            value = tl.load(place + inputs, mask=(within & (column + 1 < width))[:, None], other=0.0)
            value = triton_kernels.round_to_tf32(value, precision)
            right = tl.dot(gradient, value, right, input_precision=precision)
    return left, middle, right
