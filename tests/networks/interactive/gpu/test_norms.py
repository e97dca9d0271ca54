"""Norms of rows and merged levels for a GPU, by torch and by kernels, against torch's own layers in float64."""

import pytest
import torch
import triton_loops  # noqa: F401
from torch import nn
from torch.nn import functional
from triton_tests import DEVICE, NEEDS_TRITON

from hardlook.networks.interactive.gpu import norms as gpu_norms
from hardlook.networks.interactive.gpu.norms import (
    NormKernels,
    add_and_normalise,
    build_kernels,
    load_kernels,
    merge_levels,
    normalise_group,
)

UNUSABLE = NormKernels(None, None, None, None)
BY = [pytest.param(True, marks=NEEDS_TRITON, id="kernel"), pytest.param(False, id="torch")]
# Of the largest value: what float32 rounds in a few sums, and a last bit of others (Triton's interpreter cuts it off).
ROUNDING = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2**-7, torch.float16: 2**-10}


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def check(found, exact, dtype, tolerance=None):
    assert found.dtype == dtype
    assert found.shape == exact.shape
    tolerance = ROUNDING[dtype] if tolerance is None else tolerance
    assert (found.double() - exact).abs().max() <= tolerance * exact.abs().max()


def draw_norm(norm, dtype=torch.float32):
    norm.weight.uniform_(0.5, 2).mul_(torch.tensor([1.0, -1.0])[torch.arange(len(norm.weight)) % 2])
    norm.bias.normal_()
    return norm.to(DEVICE, dtype)


def group_norm(x, norm, gelu):
    """Torch's in float64, of rows of channels."""
    exact = functional.group_norm(x.double().mT, 1, norm.weight.double(), norm.bias.double(), norm.eps).mT
    return functional.gelu(exact) if gelu else exact


@pytest.mark.parametrize("by_kernel", BY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize(("shape", "gelu"), [((2, 7, 5), True), ((3, 70, 60), False), ((1, 1, 3), True)])
def test_a_group_norm_of_rows_is_torchs(by_kernel, dtype, shape, gelu):
    norm = draw_norm(nn.GroupNorm(1, shape[-1], eps=0.1), torch.promote_types(dtype, torch.float32))
    x = (1 + 3 * torch.randn(shape, device=DEVICE)).to(dtype)
    kernels = build_kernels() if by_kernel else None
    check(normalise_group(x, norm, gelu=gelu, kernels=kernels), group_norm(x, norm, gelu), dtype)


@NEEDS_TRITON
@pytest.mark.parametrize("rows", [1, 3, 8, 9, 20, 21])
def test_parts_of_several_blocks_have_the_statistics_of_all(rows):
    """A block has 64 numbers and a picture at most 4 parts: the last part and its last block may be short."""
    norm, x = draw_norm(nn.GroupNorm(1, 22)), torch.randn(2, rows, 22, device=DEVICE)
    x += torch.linspace(-2, 3, rows, device=DEVICE)[:, None]
    found = gpu_norms._normalise_by_kernels(x, norm, False, build_kernels(), block=64, most=4)
    check(found, group_norm(x, norm, False), torch.float32)


@NEEDS_TRITON
def test_numbers_far_from_zero_keep_their_digits():
    """Of a mean of 1000 and a deviation of 1, float32 has four digits left; a sum of squares would have none."""
    norm, x = nn.GroupNorm(1, 8).to(DEVICE), 1000 + torch.randn(2, 100, 8, device=DEVICE)
    found = gpu_norms._normalise_by_kernels(x, norm, False, build_kernels(), block=256, most=4)
    check(found, group_norm(x, norm, False), torch.float32, tolerance=1e-4)


@pytest.mark.parametrize("by_kernel", BY)
@pytest.mark.parametrize("adds", [None, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("channels", "dtype"), [(20, torch.float32), (64, torch.bfloat16), (1, torch.float32)])
def test_tokens_are_added_and_normalised(by_kernel, adds, channels, dtype):
    norm, x = draw_norm(nn.LayerNorm(channels, eps=0.1)), torch.randn(2, 5, channels, device=DEVICE) * 3 + 1
    added = None if adds is None else torch.randn(2, 5, channels, device=DEVICE).to(adds)
    before = x.clone()
    total, found = add_and_normalise(x, added, norm, dtype, kernels=build_kernels() if by_kernel else None)
    expected = x if added is None else x + added
    assert torch.equal(total, expected)
    assert torch.equal(x, before)
    double = expected.double(), (channels,), norm.weight.double(), norm.bias.double(), norm.eps
    check(found, functional.layer_norm(*double), dtype)


def draw_levels(sizes, channels, dtype):
    return [torch.randn(2, *size, channels, device=DEVICE).to(dtype) for size in sizes]


def merge(levels, weight, bias):
    """Enlarged and merged by torch in float64."""
    maps = [level.double().permute(0, 3, 1, 2) for level in levels]
    size = maps[0].shape[2:]
    total = sum(functional.interpolate(one, size, mode="bilinear", align_corners=False) for one in maps)
    return functional.conv2d(total.relu(), weight.double()[None, :, None, None], bias.double())[:, 0]


@pytest.mark.parametrize("by_kernel", BY)
@pytest.mark.parametrize(
    ("sizes", "channels", "dtype"),
    [
        ([(8, 12), (4, 6), (2, 3), (1, 1)], 20, torch.float32),
        ([(12, 4), (6, 2), (3, 1), (1, 1)], 5, torch.bfloat16),
        ([(12, 8), (6, 4), (3, 2), (3, 5)], 16, torch.float32),
        ([(4, 4), (2, 2), (1, 1), (1, 1)], 16, torch.float64),
    ],
)
def test_levels_are_enlarged_and_merged(by_kernel, sizes, channels, dtype):
    levels, wide = draw_levels(sizes, channels, dtype), torch.promote_types(dtype, torch.float32)
    weight, bias = torch.randn(channels, device=DEVICE, dtype=wide), torch.randn(1, device=DEVICE, dtype=wide)
    found = merge_levels(levels, weight, bias, kernels=build_kernels() if by_kernel else None)
    exact, in_float32 = merge(levels, weight, bias), by_kernel and dtype != torch.float64
    # Torch rounds each enlarged level and the products to bfloat16, the kernel nothing.
    check(found, exact, torch.float32 if in_float32 else dtype, None if in_float32 else 2 * ROUNDING[dtype])


@pytest.mark.parametrize("by_kernel", BY)
def test_a_pixel_without_a_number_has_no_logit(by_kernel):
    """As by torch, whose ReLU of NaN is NaN."""
    levels = draw_levels([(4, 4), (2, 2), (1, 1), (1, 1)], 16, torch.float32)
    levels[0][0, 1, 2, 3] = torch.nan
    kernels = build_kernels() if by_kernel else None
    found = merge_levels(levels, torch.ones(16, device=DEVICE), torch.zeros(1, device=DEVICE), kernels=kernels)
    assert found.isnan().nonzero().tolist() == [[0, 1, 2]]


@NEEDS_TRITON
def test_weights_may_be_a_part_of_others():
    kernels, x = build_kernels(), torch.randn(2, 7, 10, device=DEVICE)
    layer, group, apart = nn.LayerNorm(10, device=DEVICE), nn.GroupNorm(1, 10, device=DEVICE), torch.randn(10, 2, 2)
    for norm in (layer, group):
        norm.weight.data, norm.bias.data = apart.to(DEVICE)[:, 0, 0], apart.to(DEVICE)[:, 1, 1]
        assert not norm.weight.is_contiguous() and not norm.bias.is_contiguous()
    check(normalise_group(x, group, gelu=False, kernels=kernels), group_norm(x, group, False), x.dtype)
    exact = functional.layer_norm(x.double(), (10,), layer.weight.double(), layer.bias.double(), layer.eps)
    check(add_and_normalise(x, None, layer, x.dtype, kernels=kernels)[1], exact, x.dtype)
    levels, weight = draw_levels([(4, 4), (2, 2), (1, 1), (1, 1)], 10, x.dtype), layer.bias
    bias = torch.zeros(1, device=DEVICE)
    check(merge_levels(levels, weight, bias, kernels=kernels), merge(levels, weight, bias), x.dtype)


@NEEDS_TRITON
def test_nothing_beside_the_rows_is_read_or_written(monkeypatch):
    """A NaN that is read would show in the result even where its factor is 0."""
    buffers = []

    def surround(values):
        buffer = torch.full((values.numel() + 8192,), torch.nan, device=DEVICE, dtype=values.dtype)
        buffers.append((buffer, values.numel()))
        return buffer[4096 : 4096 + values.numel()].view(values.shape).copy_(values)

    kernels, zeros = build_kernels(), torch.zeros_like
    monkeypatch.setattr(torch, "empty_like", lambda x, **options: surround(zeros(x, **options)))
    norm = draw_norm(nn.GroupNorm(1, 10))
    norm.weight.data, norm.bias.data = surround(norm.weight), surround(norm.bias)
    x = torch.randn(1, 7, 10, device=DEVICE)
    check(normalise_group(surround(x), norm, gelu=False, kernels=kernels), group_norm(x, norm, False), x.dtype)
    layer = nn.LayerNorm(10, device=DEVICE)
    layer.weight.data, layer.bias.data = norm.weight.data, norm.bias.data
    total, found = add_and_normalise(surround(x), surround(2 * x), layer, x.dtype, kernels=kernels)
    check(total, 3 * x.double(), x.dtype)
    check(found, layer.double()(3 * x.double()), x.dtype)
    levels = draw_levels([(4, 6), (2, 3), (1, 2), (1, 1)], 10, torch.float32)
    weight, bias = torch.randn(10, device=DEVICE), torch.randn(1, device=DEVICE)
    found = merge_levels([surround(one) for one in levels], surround(weight), surround(bias), kernels=kernels)
    check(found, merge(levels, weight, bias), torch.float32)
    for buffer, count in buffers:
        assert buffer.isnan().sum() == len(buffer) - count


@pytest.mark.parametrize("by_kernel", BY)
def test_rows_may_lie_otherwise_in_memory(by_kernel):
    kernels = build_kernels() if by_kernel else None
    x, layer, norm = torch.randn(2, 6, 5, device=DEVICE).mT, nn.LayerNorm(6).to(DEVICE), nn.GroupNorm(1, 6).to(DEVICE)
    check(normalise_group(x, norm, gelu=False, kernels=kernels), group_norm(x, norm, False), x.dtype)
    added = torch.randn(2, 6, 5, device=DEVICE).mT
    total, found = add_and_normalise(x, added, layer, x.dtype, kernels=kernels)
    assert torch.equal(total, x + added)
    check(found, functional.layer_norm((x + added).double(), (6,)), x.dtype)
    levels = [one.transpose(1, 2) for one in draw_levels([(8, 4), (4, 2), (2, 1), (1, 1)], 6, torch.float32)]
    weight, bias = torch.randn(6, device=DEVICE), torch.randn(1, device=DEVICE)
    check(merge_levels(levels, weight, bias, kernels=kernels), merge(levels, weight, bias), x.dtype, 1e-5)


@pytest.mark.parametrize("why", ["large", "types", "levels", "channels"])
def test_kernels_are_not_asked_for_what_they_cannot(monkeypatch, why):
    if why == "large":
        monkeypatch.setattr(gpu_norms, "MOST", 4)
    dtype = torch.float64 if why == "types" else torch.float32
    x = torch.randn(1, 3, 5000 if why == "channels" else 8, dtype=dtype)
    norm, group = nn.LayerNorm(x.shape[2], dtype=dtype), nn.GroupNorm(1, x.shape[2], dtype=dtype)
    if why != "levels":
        check(add_and_normalise(x, x, norm, dtype, kernels=UNUSABLE)[1], norm.double()(2 * x.double()), dtype)
    if why in ("large", "types"):
        check(normalise_group(x, group, gelu=True, kernels=UNUSABLE), group_norm(x, group, True), dtype)
    sizes, channels = [(4, 4), (2, 2), (1, 1), (1, 1)], 600 if why == "channels" else 8
    levels = [one.cpu() for one in draw_levels(sizes[:3] if why == "levels" else sizes, channels, dtype)]
    weight, bias = torch.randn(channels, dtype=dtype), torch.randn(1, dtype=dtype)
    check(merge_levels(levels, weight, bias, kernels=UNUSABLE), merge(levels, weight, bias), dtype)


@pytest.mark.skipif(DEVICE.type != "cuda", reason="no GPU here")
def test_the_kernels_are_loaded_on_a_gpu():
    assert load_kernels(torch.device("cuda", 0)) is not None


def test_a_processor_has_no_kernels():
    assert load_kernels(torch.device("cpu")) is None
