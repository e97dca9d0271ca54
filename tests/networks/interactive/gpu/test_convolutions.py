"""Convolutions and enlarging for a GPU, by torch and by kernels, against each picture alone in float64."""

import importlib
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
import triton_loops  # noqa: F401
from torch import nn
from torch.nn import functional
from triton_tests import DEVICE, NEEDS_TRITON

from hardlook.networks.interactive.gpu import convolutions as gpu_convolutions
from hardlook.networks.interactive.gpu.convolutions import (
    ConvolutionKernels,
    build_kernels,
    choose_tiles,
    convolve,
    enlarge,
    fold,
    load_kernels,
    pack,
)
from hardlook.networks.interactive.hrnet import Frame

PADDED, SIZES = (9, 11), [(9, 11), (5, 8), (1, 3)]
UNUSABLE = ConvolutionKernels(None, None)


class Nothing:
    """A kernel that is launched and does nothing."""

    def __getitem__(self, grid):
        return lambda *given, **named: None


NOTHING = ConvolutionKernels(Nothing(), Nothing())
BY = [pytest.param(True, marks=NEEDS_TRITON, id="kernel"), pytest.param(False, id="torch")]


@pytest.fixture(autouse=True)
def all_digits():
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False), torch.no_grad():
        yield


def halve(sizes, times):
    return [tuple(-(-side // 2**times) for side in size) for size in sizes]


def draw_maps(channels, padded, sizes):
    """Maps with zeros wherever no picture is."""
    maps = torch.zeros(len(sizes), channels, *padded, device=DEVICE)
    for place, (rows, columns) in enumerate(sizes):
        maps[place, :, :rows, :columns] = torch.randn(channels, rows, columns)
    return maps


def check(found, expected, sizes, tolerance=1e-5):
    """Found are maps of pictures, one after the other, with zeros around them."""
    assert found.dtype == torch.float32
    for place, ((rows, columns), one) in enumerate(zip(sizes, expected, strict=True)):
        assert one.shape[1:] == (rows, columns)
        shown = found[place, :, :rows, :columns].double()
        assert (shown - one).abs().max() <= tolerance * max(1, one.abs().max())
        assert found[place].count_nonzero() == shown.count_nonzero(), "zeros elsewhere"


def activate(one, slope):
    return torch.where(one > 0, one, slope * one)


def make_frame(sizes=SIZES, padded=PADDED):
    return Frame(torch.tensor(sizes, device=DEVICE), padded)


@pytest.mark.parametrize("by_kernel", BY)
@pytest.mark.parametrize(
    ("inputs", "outputs", "side", "stride", "slope", "adds", "shifts"),
    [
        (4, 4, 3, 1, 0.0, False, False),
        (20, 36, 3, 1, 0.2, True, False),
        (12, 20, 3, 2, 1.0, False, False),
        (8, 4, 3, 2, 0.0, True, True),
        (20, 36, 1, 1, 0.0, False, True),
        (4, 12, 1, 2, 0.2, True, False),
        (16, 4, 1, 1, 1.0, True, True),
    ],
)
def test_a_convolution_of_each_picture_alone(by_kernel, inputs, outputs, side, stride, slope, adds, shifts):
    layer = nn.Conv2d(inputs, outputs, side, stride, side // 2, device=DEVICE)
    folded, frame, x = fold(layer), make_frame(), draw_maps(inputs, PADDED, SIZES)
    new_sizes, padded = halve(SIZES, stride - 1), halve([PADDED], stride - 1)[0]
    # Whatever is added where no picture is does not count.
    added = torch.randn(3, outputs, *padded, device=DEVICE) if adds else None
    shift = torch.randn(3, outputs, device=DEVICE) if shifts else None
    expected = []
    for place, (rows, columns) in enumerate(SIZES):
        bias = (shift[place] if shifts else layer.bias).double()
        own = x[place : place + 1, :, :rows, :columns].double()
        one = functional.conv2d(own, layer.weight.double(), bias, stride, side // 2)[0]
        if adds:
            one = one + added[place, :, : one.shape[1], : one.shape[2]]
        expected.append(activate(one, slope))
    kernels = build_kernels() if by_kernel else None
    before = x.clone(), None if added is None else added.clone()
    found = convolve(x, folded, frame, slope=slope, added=added, shift=shift, kernels=kernels)
    check(found, expected, new_sizes)
    assert torch.equal(x, before[0])
    assert added is None or torch.equal(added, before[1])


@pytest.mark.parametrize("slope", [0.0, 0.2, 1.0])
def test_without_a_frame_a_convolution_is_torchs(slope):
    layer, x = nn.Conv2d(3, 5, 3, 2, 1, dtype=torch.float64), torch.randn(2, 3, 7, 9, dtype=torch.float64)
    added, shift = torch.randn(2, 5, 4, 5, dtype=torch.float64), torch.randn(2, 5, dtype=torch.float64)
    expected = activate(layer(x) - layer.bias[:, None, None] + shift[:, :, None, None] + added, slope)
    found = convolve(x, fold(layer), None, slope=slope, added=added, shift=shift, kernels=UNUSABLE)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(convolve(x, fold(layer), None), layer(x), rtol=1e-12, atol=1e-12)


@NEEDS_TRITON
@pytest.mark.parametrize("outputs", [20, 72, 128])
def test_every_tile_gives_the_same(monkeypatch, outputs):
    """The tiles of large maps, of fewer pixels than one of them has and of more."""
    tiles = choose_tiles(10**6, outputs)
    monkeypatch.setattr(gpu_convolutions, "choose_tiles", lambda *_: tiles)
    layer, x = nn.Conv2d(12, outputs, 1, device=DEVICE), draw_maps(12, PADDED, SIZES)
    one = layer.double()(x.double())
    folded = fold(layer.float())
    expected = [one[place, :, :rows, :columns] for place, (rows, columns) in enumerate(SIZES)]
    check(convolve(x, folded, make_frame(), kernels=build_kernels()), expected, SIZES)
    few = convolve(x[1:2, :, :5, :8], folded, make_frame([(5, 8)], (5, 8)), kernels=build_kernels())
    check(few, expected[1:2], [(5, 8)])


@pytest.mark.parametrize("outputs", [4, 20, 36, 64, 72, 144, 256, 270])
@pytest.mark.parametrize("pixels", [1, 1000, 10**5, 10**7])
def test_tiles_are_of_sizes_that_tensor_cores_have(pixels, outputs):
    tiles = choose_tiles(pixels, outputs)
    for name, value in tiles._asdict().items():
        assert name == "num_stages" or value & (value - 1) == 0, "a power of 2"
    assert tiles.tall >= 64
    assert min(tiles.wide, tiles.deep) >= 16
    # At most 64 of a thread's 255 registers for the sums, and blocks that fit into the shared memory of every GPU.
    assert tiles.tall * tiles.wide <= 64 * 32 * tiles.num_warps
    assert 4 * tiles.num_stages * tiles.deep * (tiles.tall + tiles.wide) <= 48 * 1024
    if outputs >= 64 and pixels < 10**4:
        assert tiles.tall * tiles.wide <= 64 * 64, "small ones are for more processors"


@pytest.mark.parametrize("by_kernel", BY)
def test_maps_and_sizes_may_lie_otherwise_in_memory(by_kernel):
    kernels = build_kernels() if by_kernel else None
    layer, x = fold(nn.Conv2d(4, 8, 3, 1, 1, device=DEVICE)), draw_maps(4, PADDED, SIZES)
    added, shift = torch.randn(3, 8, *PADDED, device=DEVICE), torch.randn(3, 8, device=DEVICE)
    expected = convolve(x, layer, make_frame(), added=added, shift=shift)
    transposed = Frame(torch.tensor(list(zip(*SIZES, strict=True)), device=DEVICE).T, PADDED)
    for given in (x.contiguous(memory_format=torch.channels_last), x.transpose(2, 3).contiguous().transpose(2, 3)):
        others = added.contiguous(memory_format=torch.channels_last), shift.T.contiguous().T
        found = convolve(given, layer, transposed, added=others[0], shift=others[1], kernels=kernels)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    small = draw_maps(8, (5, 6), halve(SIZES, 1))
    found = enlarge(small.transpose(2, 3).contiguous().transpose(2, 3), PADDED, transposed, kernels=kernels)
    torch.testing.assert_close(found, enlarge(small, PADDED, make_frame()), rtol=1e-5, atol=1e-5)


@NEEDS_TRITON
def test_nothing_beside_the_maps_is_read_or_written(monkeypatch):
    """A NaN that is read would show in the result even where its factor is 0."""
    buffers = []

    def surround(values):
        buffer = torch.full((values.numel() + 4096,), torch.nan, device=DEVICE)
        buffers.append((buffer, values.numel()))
        inside = buffer[2048 : 2048 + values.numel()]
        if values.ndim < 4:
            return inside.view(values.shape).copy_(values)
        count, channels, height, width = values.shape
        return inside.view(count, height, width, channels).permute(0, 3, 1, 2).copy_(values)

    monkeypatch.setattr(gpu_convolutions, "_new_map", lambda x, shape: surround(x.new_zeros(shape)))
    kernels, layer = build_kernels(), fold(nn.Conv2d(12, 20, 3, 1, 1, device=DEVICE))
    padded, sizes = (5, 6), [(2, 3), (5, 6)]  # the last picture ends where the maps do
    x, added, shift = draw_maps(12, padded, sizes), torch.randn(2, 20, 5, 6), torch.randn(2, 20)
    frame = make_frame(sizes, padded)
    around = replace(layer, packed=surround(layer.packed), bias=surround(layer.bias))
    found = convolve(surround(x), around, frame, added=surround(added), kernels=kernels)
    torch.testing.assert_close(found, convolve(x, layer, frame, added=added.to(DEVICE)), rtol=1e-5, atol=1e-5)
    found = convolve(surround(x), around, frame, shift=surround(shift), kernels=kernels)
    torch.testing.assert_close(found, convolve(x, layer, frame, shift=shift.to(DEVICE)), rtol=1e-5, atol=1e-5)
    small = draw_maps(20, (3, 3), halve(sizes, 1))
    found = enlarge(surround(small), padded, frame, added=surround(added), kernels=kernels)
    torch.testing.assert_close(found, enlarge(small, padded, frame, added=added.to(DEVICE)), rtol=1e-5, atol=1e-5)
    for buffer, count in buffers:
        assert buffer.isnan().sum() == len(buffer) - count


@pytest.fixture
def cut_off(monkeypatch):
    """The interpreter's products of TF32 as a tensor core computes them: 13 bits of every number are not read."""
    if DEVICE.type == "cuda":
        return
    interpreter = importlib.import_module("triton.runtime.interpreter")
    multiply = interpreter.InterpreterBuilder.create_dot

    def create_dot(self, left, right, total, precision, most):
        if str(precision).endswith(".TF32"):
            for one in (left, right):
                one.data = (one.data.view(np.int32) & -0x2000).view(np.float32)
        return multiply(self, left, right, total, precision, most)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", create_dot)


@NEEDS_TRITON
def test_operands_are_rounded_to_tf32_not_cut_off(cut_off):
    """Of random numbers the lengths of the errors differ by a factor of 2.5, and only cutting off makes all smaller."""
    layer, x = fold(nn.Conv2d(20, 36, 3, 1, 1, device=DEVICE)), draw_maps(20, PADDED, SIZES)
    wide = replace(layer, weight=layer.weight.double(), bias=layer.bias.double())
    exact = convolve(x.double(), wide, make_frame())
    found = convolve(x, layer, make_frame(), kernels=build_kernels(), rounds=True).double()
    error = found - exact
    assert 1e-4 < error.norm() / exact.norm() < 5e-4
    assert (error * exact).sum().abs() / exact.square().sum() < 1e-4


@NEEDS_TRITON
@pytest.mark.filterwarnings("ignore:invalid value")  # of numpy, in the interpreter
def test_rounded_numbers_are_the_nearest_of_tf32(cut_off):
    unit = 2.0**-10
    given = [1 + 0.49 * unit, 1 + 0.51 * unit, -1 - 0.51 * unit, 1 + 1.5 * unit, 0.0, torch.inf, -torch.inf, torch.nan]
    rounded = [1.0, 1 + unit, -1 - unit, 1 + 2 * unit, 0.0, torch.inf, -torch.inf, torch.nan]
    x = torch.tensor(given, device=DEVICE)
    x[-1:].view(torch.int32).fill_(0x7FFFFFFF)  # NaN as a GPU writes it
    plain = nn.Conv2d(4, 4, 1, device="meta")
    layer = pack(torch.ones(4, 1, 1, 1, device=DEVICE), torch.zeros(4, device=DEVICE), plain, 4)
    maps = torch.cat([x[None, None, None], torch.zeros(1, 3, 1, len(x), device=DEVICE)], 1)
    frame = make_frame([(1, len(x))], (1, len(x)))
    found = convolve(maps, layer, frame, kernels=build_kernels(), rounds=True)[0, 0, 0]
    torch.testing.assert_close(found.cpu(), torch.tensor(rounded), rtol=0, atol=0, equal_nan=True)
    weights = [one for one in given if abs(one) < 2]
    layer = pack(torch.tensor(weights[:4], device=DEVICE)[:, None, None, None], layer.bias, plain, 4)
    found = convolve(torch.ones_like(maps), layer, frame, kernels=build_kernels(), rounds=True)[0, :, 0, 0]
    assert found.tolist() == rounded[:4]


@NEEDS_TRITON
@pytest.mark.filterwarnings("ignore:invalid value")  # of numpy, in the interpreter
@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_activations_of_infinity_and_nan_are_torchs(slope):
    given = torch.tensor([torch.inf, -torch.inf, torch.nan, -2.0, 3.0], device=DEVICE)
    added = given[None, None, None].expand(1, 4, 1, 5)
    x, frame = torch.zeros(1, 4, 1, 5, device=DEVICE), make_frame([(1, 5)], (1, 5))
    expected = functional.leaky_relu(added, slope) if slope else functional.relu(added)
    layer = pack(torch.zeros(4, 4, 1, 1, device=DEVICE), torch.zeros(4, device=DEVICE), nn.Conv2d(4, 4, 1), 4)
    by_convolution = convolve(x, layer, frame, slope=slope, added=added, kernels=build_kernels())
    by_enlarging = enlarge(x, (1, 5), frame, slope=slope, added=added, kernels=build_kernels())
    for found in (by_convolution, by_enlarging):
        torch.testing.assert_close(found, expected, equal_nan=True)


NEWER = pytest.mark.skipif(not hasattr(torch.backends.cudnn, "conv"), reason="torch has no fp32_precision")


@contextmanager
def set_precision(owner, value):
    before = owner.fp32_precision
    owner.fp32_precision = value
    try:
        yield
    finally:
        owner.fp32_precision = before


@NEEDS_TRITON
@NEWER
def test_kernels_are_tried_and_used_where_torchs_older_names_are_errors(monkeypatch):
    rounds = []
    kernel = gpu_convolutions._convolve_by_kernel
    monkeypatch.setattr(
        gpu_convolutions, "_convolve_by_kernel", lambda *given: rounds.append(given[-2]) or kernel(*given)
    )
    monkeypatch.setattr(gpu_convolutions, "check_close", lambda *given: None)
    monkeypatch.setattr(gpu_convolutions, "build_kernels", lambda: NOTHING)
    with set_precision(torch.backends.cudnn.conv, "tf32"):
        assert gpu_convolutions._try_maps(DEVICE) is NOTHING
        convolve(torch.zeros(1, 4, 2, 2), fold(nn.Conv2d(4, 4, 1)), make_frame([(2, 2)], (2, 2)), kernels=NOTHING)
    assert rounds == [False, True] * len(gpu_convolutions.TILES) + [DEVICE.type == "cuda"]


@pytest.mark.parametrize("by_kernel", BY)
@pytest.mark.parametrize(
    ("channels", "times", "slope", "adds"),
    [(4, 1, 1.0, False), (36, 2, 0.0, True), (12, 3, 0.2, True), (8, 1, 0.0, False)],
)
def test_each_picture_is_enlarged_alone(by_kernel, channels, times, slope, adds):
    sizes, frame = halve(SIZES, times), make_frame()
    x = draw_maps(channels, halve([PADDED], times)[0], sizes)
    added = torch.randn(3, channels, *PADDED, device=DEVICE) if adds else None
    expected = []
    for place, (rows, columns) in enumerate(sizes):
        own = x[place : place + 1, :, :rows, :columns].double()
        one = functional.interpolate(own, SIZES[place], mode="bilinear", align_corners=True)[0]
        if adds:
            one = one + added[place, :, : SIZES[place][0], : SIZES[place][1]]
        expected.append(activate(one, slope))
    kernels = build_kernels() if by_kernel else None
    check(enlarge(x, PADDED, frame, slope=slope, added=added, kernels=kernels), expected, SIZES)


def test_without_a_frame_enlarging_is_torchs():
    x, added = torch.randn(2, 3, 4, 5, dtype=torch.float64), torch.randn(2, 3, 7, 9, dtype=torch.float64)
    plain = functional.interpolate(x, (7, 9), mode="bilinear", align_corners=True)
    assert torch.equal(enlarge(x, (7, 9), None, kernels=UNUSABLE), plain)
    assert torch.equal(enlarge(x, (7, 9), None, slope=0, added=added, kernels=UNUSABLE), (plain + added).relu())


@pytest.mark.parametrize("why", ["float64", "inputs", "outputs", "autocast", "large"])
def test_kernels_are_not_asked_for_what_they_cannot(monkeypatch, why):
    dtype = torch.float64 if why == "float64" else torch.float32
    inputs, outputs = 3 if why == "inputs" else 4, 3 if why == "outputs" else 4
    if why == "large":
        monkeypatch.setattr(gpu_convolutions, "MOST", 4)
    layer, x = nn.Conv2d(inputs, outputs, 1, dtype=dtype), torch.randn(1, inputs, 2, 3, dtype=dtype)
    frame, other = Frame(torch.tensor([[2, 3]]), (2, 3)), Frame(torch.tensor([[4, 6]]), (4, 6))
    with torch.autocast("cpu", torch.bfloat16, enabled=why == "autocast"):
        found = convolve(x, fold(layer), frame, kernels=UNUSABLE)
        if why in ("float64", "inputs", "large"):
            assert enlarge(x, (4, 6), other, kernels=UNUSABLE).shape == (1, inputs, 4, 6)
    torch.testing.assert_close(found.to(dtype), layer(x), rtol=0.02, atol=0.02)


def test_a_norm_and_a_factor_are_folded():
    layer, norm = nn.Conv2d(3, 5, 3, 2, 1, bias=False), nn.BatchNorm2d(5, eps=0.1)
    for values in (norm.weight, norm.bias, norm.running_mean):
        values.normal_()
    norm.running_var.uniform_(0.5, 2)
    layer, norm, factor = layer.double(), norm.double().eval(), torch.tensor([-1.5])
    x = torch.randn(2, 3, 6, 7, dtype=torch.float64)
    folded = fold(layer, norm, factor=factor)
    assert (folded.stride, folded.padding) == (2, 1)
    torch.testing.assert_close(convolve(x, folded, None), -1.5 * norm(layer(x)), rtol=1e-12, atol=1e-12)
    plain = nn.Conv2d(3, 5, 1, bias=True, dtype=torch.float64)
    torch.testing.assert_close(convolve(x, fold(plain, norm), None), norm(plain(x)), rtol=1e-12, atol=1e-12)
    assert not any(one.requires_grad for one in (folded.weight, folded.bias, folded.packed))


def test_weights_are_folded_in_float64_and_keep_their_type():
    layer, norm = nn.Conv2d(1, 1, 1, bias=False), nn.BatchNorm2d(1, eps=0)
    norm.running_mean.fill_(2.0**24 + 2)
    norm.bias.fill_(2.0**24 + 4)
    norm.running_var.fill_(1)
    folded = fold(layer, norm.eval())
    assert folded.bias.item() == 2
    assert folded.weight.dtype == folded.bias.dtype == torch.float32


def test_channels_are_filled_up_with_zeros():
    layer = nn.Conv2d(6, 5, 3, 1, 1)
    folded = pack(layer.weight, layer.bias, layer, 4)
    assert folded.weight.shape == (8, 8, 3, 3)
    assert torch.equal(folded.weight[:5, :6], layer.weight)
    assert folded.weight.count_nonzero() == layer.weight.count_nonzero()
    assert torch.equal(folded.bias, functional.pad(layer.bias, (0, 3)))
    assert folded.packed.shape == (9, 8, 8)
    # The taps row by row: of the third column in the second row it is the sixth.
    assert torch.equal(folded.packed[5], folded.weight[:, :, 1, 2])


@pytest.mark.skipif(DEVICE.type != "cuda", reason="no GPU here")
def test_the_kernels_are_loaded_on_a_gpu():
    assert load_kernels(torch.device("cuda", 0)) is not None


def test_a_processor_has_no_kernels():
    assert load_kernels(torch.device("cpu")) is None
