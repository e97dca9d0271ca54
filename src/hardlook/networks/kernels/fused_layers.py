"""Steps of a mask decoder on a GPU, each in one pass over its maps by a kernel of Triton; elsewhere torch computes.

They are attention between many places and few, layer norms with the addition before them and the activation after
them, and masks drawn from upscaled pixels. All are of float32, and summed in an order that does not depend on timing.
"""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

from hardlook.networks.gpu import is_observed
from hardlook.networks.kernels.triton_kernels import check_close, compile_kernels, on_device_of, try_kernels

if TYPE_CHECKING:
    from torch import Tensor, device, nn

MANY, FEW = 1024, 64
"""At least so many places, and at most so many, are handled by the kernels of attention."""
CHUNK = 512
"""Keys that one program attends to."""
CHANNELS, OF_A_HEAD = (16, 32, 64), (16, 32)
"""Of a pixel and its mask's filter, and of a head, that kernels handle. Of larger heads a block fills all registers."""
WIDEST = 1024
"""The most channels of a layer norm that a kernel handles."""
MOST_ROUNDED = 1e-5
"""The largest relative error that counts as rounding: about ten times float32's, a fiftieth of TF32's."""


def attend(queries: Tensor, keys: Tensor, values: Tensor, heads: int) -> Tensor:
    """Attention of queries (P, n, C) to keys and values (P, m, C) by so many heads: (P, n, C).

    >>> import torch
    >>> attend(torch.zeros(1, 1, 2), torch.zeros(1, 2, 2), torch.tensor([[[1.0, 2], [3, 6]]]), 2)
    tensor([[[2., 4.]]])
    """
    channels, (few, many) = queries.shape[-1] // heads, sorted((queries.shape[1], keys.shape[1]))
    fits = queries.numel() and 0 < few <= FEW and many >= MANY and channels in OF_A_HEAD
    if fits and (kernels := _choose(queries, keys, values)) is not None:
        return kernels.attend(queries, keys, values, heads)
    return _attend_by_torch(queries, keys, values, heads)


def _attend_by_torch(queries: Tensor, keys: Tensor, values: Tensor, heads: int) -> Tensor:
    from torch.nn.functional import scaled_dot_product_attention

    channels = queries.shape[-1] // heads
    q, k, v = (one.reshape(*one.shape[:2], heads, channels).transpose(1, 2) for one in (queries, keys, values))
    return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def normalize(rows: Tensor, norm: nn.LayerNorm, *, plus: Tensor | None = None, gelu: bool = False) -> Tensor:
    """The layer norm over the last axis of (P, m, C), after `plus` was added, and with GELU after it."""
    width, added = rows.shape[-1], rows if plus is None else plus
    fits = rows.numel() and width <= WIDEST and added.shape == rows.shape
    if fits and (kernels := _choose(rows, added, norm.weight, norm.bias)) is not None:
        return kernels.normalize(rows, norm, plus, gelu)
    return _normalize_by_torch(rows, norm, plus, gelu)


def _normalize_by_torch(rows: Tensor, norm: nn.LayerNorm, plus: Tensor | None, gelu: bool) -> Tensor:
    from torch.nn import functional

    rows = rows if plus is None else plus + rows
    rows = functional.layer_norm(rows, rows.shape[-1:], norm.weight, norm.bias, norm.eps)
    return functional.gelu(rows) if gelu else rows


def draw_masks(blocks: Tensor, filters: Tensor, height: int, width: int) -> Tensor:
    """Logits (P, k, 4 h, 4 w): the products of the masks' filters (P, k, C) with GELU of every pixel's C numbers.

    Blocks (P, h w, 16 C) have a cell's pixels in the order in which two upscalings make them: 2 x 2 blocks of 2 x 2.
    """
    channels = filters.shape[-1]
    if filters.numel() and channels in CHANNELS and (kernels := _choose(blocks, filters)) is not None:
        return kernels.draw(blocks, filters, height, width)
    return _draw_by_torch(blocks, filters, height, width)


def _draw_by_torch(blocks: Tensor, filters: Tensor, height: int, width: int) -> Tensor:
    from torch.nn import functional

    count, masks, channels = filters.shape
    pixels = functional.gelu(blocks).reshape(count, 16 * height * width, channels)
    logits = filters @ pixels.transpose(1, 2)
    logits = logits.view(count, masks, height, width, 2, 2, 2, 2).permute(0, 1, 2, 4, 6, 3, 5, 7)
    return logits.reshape(count, masks, 4 * height, 4 * width)


def _choose(first: Tensor, *others: Tensor | None) -> Kernels | None:
    import torch

    if (
        first.dtype != torch.float32
        or any(one is None or one.dtype != first.dtype or one.device != first.device for one in others)
        or torch.is_grad_enabled()
        or torch._C._are_functorch_transforms_active()
        or is_observed()
    ):
        return None
    return find_kernels(first.device)


@functools.cache
def find_kernels(where: device) -> Kernels | None:
    """The kernels, tried once (`try_kernels`)."""
    return try_kernels(functools.partial(_try_steps, where), where, "faster steps of a mask decoder")


def _try_steps(where: device) -> Kernels:
    """The kernels, whose results on random numbers are those of torch in float64."""
    import torch

    kernels, random = Kernels(), torch.Generator(where).manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, device=where, dtype=torch.float32)

    # Neither full chunks nor full blocks of places; keys and values are parts of one product, as in a decoder.
    many = draw(2, MANY + 37, 96)
    for count in (3, FEW):
        few = draw(2, count, 96)
        for asking, asked in ((few, many), (many, few)):
            given = asking[..., :32].contiguous(), *asked.chunk(3, -1)[1:]
            for queries, keys, values in (given, (given[0], given[1], given[2].contiguous())):
                expected = _attend_by_torch(queries.double(), keys.double(), values.double(), 2)
                check_close(kernels.attend(queries, keys, values, 2), expected, MOST_ROUNDED, "attention")
    # With a small epsilon its absence would pass for rounding. Rows of 24 leave a part of a block empty.
    rows, norm = draw(3, 37, 24), torch.nn.LayerNorm(24, eps=0.1, device=where, dtype=torch.float32)
    norm.weight.copy_(draw(24))
    norm.bias.copy_(draw(24))
    exact = copy.deepcopy(norm).double()
    for plus, gelu in ((draw(3, 37, 24), False), (draw(1, 37, 24).expand(3, -1, -1), False), (None, True)):
        expected = _normalize_by_torch(rows.double(), exact, None if plus is None else plus.double(), gelu)
        check_close(kernels.normalize(rows, norm, plus, gelu), expected, MOST_ROUNDED, "a layer norm")
    blocks, filters = draw(2, 6, 512), draw(2, 3, 32)
    expected = _draw_by_torch(blocks.double(), filters.double(), 2, 3)
    check_close(kernels.draw(blocks, filters, 2, 3), expected, MOST_ROUNDED, "a mask's logits")
    return kernels


class Kernels:
    """The functions above in Triton, for float32."""

    def __init__(self) -> None:
        kernels = (_attend_to_few, _attend_to_many, _join_chunks, _normalize, _draw)
        # What differs from prompt to prompt.
        varying = ("asking", "asked", "chunks", "count", "period")
        self._to_few, self._to_many, self._join, self._normalize, self._draw = compile_kernels(
            *kernels, varying=varying
        )

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, heads: int) -> Tensor:
        """As the function `attend`."""
        queries, keys, values = (one if one.stride(-1) == 1 else one.contiguous() for one in (queries, keys, values))
        count, asking, width = queries.shape
        asked, channels = keys.shape[1], width // heads
        result = queries.new_empty(count, asking, width)
        strides = [one.stride(axis) for one in (queries, keys, values) for axis in (0, 1)]
        numbers = (asking, asked, heads, channels**-0.5, *strides)
        few = max(16, 1 << (min(asking, asked) - 1).bit_length())
        with on_device_of(queries):
            if asked <= asking:
                grid = (-(-asking // 64), heads, count)
                self._to_few[grid](queries, keys, values, result, *numbers, channels=channels, few=few, block=64)
                return result
            chunks = -(-asked // CHUNK)
            sums = queries.new_empty(count, heads, chunks, asking, channels)
            totals = queries.new_empty(2, count, heads, chunks, asking)
            self._to_many[(chunks, heads, count)](
                queries, keys, values, sums, totals, *numbers, channels=channels, few=few, block=64, chunk=CHUNK
            )
            self._join[(heads, count)](sums, totals, result, asking, heads, chunks, channels=channels, few=few)
        return result

    def normalize(self, rows: Tensor, norm: nn.LayerNorm, plus: Tensor | None, gelu: bool) -> Tensor:
        """As the function `normalize`."""
        import torch

        rows, width = rows.contiguous(), rows.shape[-1]
        count = period = rows.numel() // width
        if plus is not None:
            if plus.dim() == 3 and plus.stride(0) == 0:  # one map for all prompts
                plus = plus[0]
            plus = plus.contiguous()
            period = plus.numel() // width
        result = torch.empty_like(rows)
        block = 1 << (width - 1).bit_length()
        together = max(1, 2048 // block)
        with on_device_of(rows):
            self._normalize[(-(-count // together),)](
                rows,
                rows if plus is None else plus,
                norm.weight.contiguous(),
                norm.bias.contiguous(),
                result,
                count,
                width,
                period,
                norm.eps,
                has_plus=plus is not None,
                gelu=gelu,
                block=block,
                together=together,
            )
        return result

    def draw(self, blocks: Tensor, filters: Tensor, height: int, width: int) -> Tensor:
        """As the function `draw_masks`."""
        count, masks, channels = filters.shape
        result = blocks.new_empty(count, masks, 4 * height, 4 * width)
        with on_device_of(blocks):
            self._draw[(-(-16 * height * width // 128), count)](
                blocks.contiguous(),
                filters.contiguous(),
                result,
                height,
                width,
                masks=masks,
                channels=channels,
                block=128,
            )
        return result


# What follows is in Triton's language.

tl: Any = None


def _attend_to_few(  # type: ignore[no-untyped-def]
    queries, keys, values, result, asking, asked, heads, factor,
    query_stride, query_row, key_stride, key_row, value_stride, value_row,
    channels: tl.constexpr, few: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """One block of queries, all keys."""
    head, prompt = tl.program_id(1), tl.program_id(2).to(tl.int64)
    channel = head * channels + tl.arange(0, channels)
    row, key = tl.program_id(0) * block + tl.arange(0, block), tl.arange(0, few)
    there, known = (row < asking)[:, None], (key < asked)[:, None]
    query = tl.load(
        queries + prompt * query_stride + row[:, None] * query_row + channel[None, :], mask=there, other=0.0
    )
    place = keys + prompt * key_stride + key[:, None] * key_row + channel[None, :]
    scores = tl.dot(query, tl.load(place, mask=known, other=0.0).T, input_precision="ieee") * factor
    scores = tl.where((key < asked)[None, :], scores, float("-inf"))
    shares = tl.exp(scores - tl.max(scores, 1)[:, None])
    shares = shares / tl.sum(shares, 1)[:, None]
    place = values + prompt * value_stride + key[:, None] * value_row + channel[None, :]
    attended = tl.dot(shares, tl.load(place, mask=known, other=0.0), input_precision="ieee")
    place = result + (prompt * asking + row[:, None]) * heads * channels + channel[None, :]
    tl.store(place, attended, mask=there)


def _attend_to_many(  # type: ignore[no-untyped-def]
    queries, keys, values, sums, totals, asking, asked, heads, factor,
    query_stride, query_row, key_stride, key_row, value_stride, value_row,
    channels: tl.constexpr, few: tl.constexpr, block: tl.constexpr, chunk: tl.constexpr,
):  # fmt: skip
    """All queries, one chunk of keys: the largest score, the sum of shares, and the values' sum."""
    chunks, head, prompt = tl.num_programs(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    channel = head * channels + tl.arange(0, channels)
    row = tl.arange(0, few)
    there = (row < asking)[:, None]
    query = tl.load(
        queries + prompt * query_stride + row[:, None] * query_row + channel[None, :], mask=there, other=0.0
    )
    largest = tl.full((few,), float("-inf"), tl.float32)
    total = tl.zeros((few,), tl.float32)
    attended = tl.zeros((few, channels), tl.float32)
    for start in range(0, chunk, block):
        key = tl.program_id(0) * chunk + start + tl.arange(0, block)
        known = (key < asked)[:, None]
        place = keys + prompt * key_stride + key[:, None] * key_row + channel[None, :]
        scores = tl.dot(query, tl.load(place, mask=known, other=0.0).T, input_precision="ieee") * factor
        scores = tl.where((key < asked)[None, :], scores, float("-inf"))
        now = tl.maximum(largest, tl.max(scores, 1))
        # Where all scores so far are -inf, all shares are 0, for other keys may follow.
        base = tl.where(now == float("-inf"), 0.0, now)
        before = tl.exp(largest - base)
        shares = tl.exp(scores - base[:, None])
        place = values + prompt * value_stride + key[:, None] * value_row + channel[None, :]
        total = total * before + tl.sum(shares, 1)
        attended = attended * before[:, None]
        attended += tl.dot(shares, tl.load(place, mask=known, other=0.0), input_precision="ieee")
        largest = now
    first = ((prompt * heads + head) * chunks + tl.program_id(0)) * asking + row
    last = tl.num_programs(2).to(tl.int64) * heads * chunks * asking
    tl.store(totals + first, largest, mask=row < asking)
    tl.store(totals + last + first, total, mask=row < asking)
    tl.store(sums + first[:, None] * channels + tl.arange(0, channels)[None, :], attended, mask=there)


def _join_chunks(  # type: ignore[no-untyped-def]
    sums, totals, result, asking, heads, chunks, channels: tl.constexpr, few: tl.constexpr
):
    """The attention to all chunks of keys."""
    head, prompt, row = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.arange(0, few)
    there, channel = row < asking, tl.arange(0, channels)
    largest = tl.full((few,), float("-inf"), tl.float32)
    total = tl.zeros((few,), tl.float32)
    attended = tl.zeros((few, channels), tl.float32)
    last = tl.num_programs(1).to(tl.int64) * heads * chunks * asking
    for chunk in range(0, chunks):
        place = ((prompt * heads + head) * chunks + chunk) * asking + row
        high = tl.load(totals + place, mask=there, other=0.0)
        now = tl.maximum(largest, high)
        base = tl.where(now == float("-inf"), 0.0, now)
        before, new = tl.exp(largest - base), tl.exp(high - base)
        total = total * before + tl.load(totals + last + place, mask=there, other=1.0) * new
        part = tl.load(sums + place[:, None] * channels + channel[None, :], mask=there[:, None], other=0.0)
        attended = attended * before[:, None] + part * new[:, None]
        largest = now
    place = result + (prompt * asking + row[:, None]) * heads * channels + head * channels + channel[None, :]
    tl.store(place, attended / total[:, None], mask=there[:, None])


def _normalize(  # type: ignore[no-untyped-def]
    rows, plus, weight, bias, result, count, width, period, epsilon,
    has_plus: tl.constexpr, gelu: tl.constexpr, block: tl.constexpr, together: tl.constexpr,
):  # fmt: skip
    """So many rows together."""
    row = tl.program_id(0).to(tl.int64) * together + tl.arange(0, together)
    column = tl.arange(0, block)
    known = (column < width)[None, :]
    inside = (row < count)[:, None] & known
    place = row[:, None] * width + column[None, :]
    value = tl.load(rows + place, mask=inside, other=0.0)
    if has_plus:
        value += tl.load(plus + (row % period)[:, None] * width + column[None, :], mask=inside, other=0.0)
    value = tl.where(known, value - (tl.sum(value, 1) / width)[:, None], 0.0)
    value = value * (1 / tl.sqrt(tl.sum(value * value, 1) / width + epsilon))[:, None]
    value = value * tl.load(weight + column, mask=column < width, other=0.0)[None, :]
    value += tl.load(bias + column, mask=column < width, other=0.0)[None, :]
    if gelu:
        value = 0.5 * value * (1 + tl.erf(value * 0.7071067811865476))
    tl.store(result + place, value, mask=inside)


def _draw(  # type: ignore[no-untyped-def]
    blocks, filters, result, height, width, masks: tl.constexpr, channels: tl.constexpr, block: tl.constexpr
):
    """So many pixels, in the order of the masks."""
    prompt = tl.program_id(1).to(tl.int64)
    pixel, channel = tl.program_id(0) * block + tl.arange(0, block), tl.arange(0, channels)
    inside = pixel < 16 * height * width
    y, x = pixel // (4 * width), pixel % (4 * width)
    within = (y % 4 // 2 * 2 + x % 4 // 2) * 4 + y % 2 * 2 + x % 2
    place = (prompt * height * width + y // 4 * width + x // 4) * 16 + within
    value = tl.load(blocks + place[:, None] * channels + channel[None, :], mask=inside[:, None], other=0.0)
    value = 0.5 * value * (1 + tl.erf(value * 0.7071067811865476))
    for mask in tl.static_range(masks):
        one = prompt * masks + mask
        logits = tl.sum(value * tl.load(filters + one * channels + channel)[None, :], 1)
        tl.store(result + one * 16 * height * width + pixel, logits, mask=inside)
