"""RITM for a GPU: the plain network's logits, of torch and of kernels, alone, in batches and in padded batches."""

import pytest
import torch
from random_click_networks import make_ritm
from triton_tests import DEVICE

from hardlook.networks.interactive.click_maps import pack_clicks
from hardlook.networks.interactive.gpu import convolutions as gpu_convolutions
from hardlook.networks.interactive.gpu import ritm as gpu_ritm
from hardlook.networks.interactive.gpu.convolutions import ConvolutionKernels
from hardlook.networks.interactive.gpu.ritm import FoldedRITM

COURSES = [[(5, 7, True), (20, 30, False)], [(9, 15, True)], [(10, 10, False), (3, 16, True), (30, 3, True)]]
SIZES = [(33, 45), (21, 40), (32, 17)]


@pytest.fixture(autouse=True)
def all_digits():
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False), torch.no_grad():
        yield


def answer(network, form, inputs, courses, sizes=None):
    """Logits of the network and of its form."""
    points = pack_clicks(courses, device=inputs.device)
    maps = network.click_maps(points, tuple(inputs.shape[2:]), inputs.dtype)
    return network(inputs, points, sizes)["instances"], form(inputs, maps, sizes)


def check(plain, found, tolerance):
    assert found.shape == plain.shape
    assert found.dtype == plain.dtype
    assert (found - plain).abs().max() <= tolerance * plain.abs().max()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_leaky_relu": False},
        {"with_prev_mask": False, "use_disks": False},
        {"width": 4, "ocr_width": 2, "small": False},
    ],
    ids=["leaky", "ReLU", "baseline", "deep"],
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
def test_logits_are_those_of_the_network(options, dtype, tolerance):
    network = make_ritm(**options).to(DEVICE, dtype)
    form = FoldedRITM(network, kernels=False)
    channels = 4 if network.with_prev_mask else 3
    for count, (height, width) in ((1, (33, 45)), (3, (32, 64))):
        inputs = torch.rand(count, channels, height, width, dtype=dtype, device=DEVICE)
        check(*answer(network, form, inputs, COURSES[:count]), tolerance)
    batch = torch.rand(3, channels, 33, 45, dtype=dtype, device=DEVICE)
    sizes = torch.tensor(SIZES, device=DEVICE)
    plain, found = answer(network, form, batch, COURSES, sizes)
    for place, (rows, columns) in enumerate(SIZES):
        check(plain[place, :, :rows, :columns], found[place, :, :rows, :columns], tolerance)


def test_clicks_and_the_last_mask_matter_to_these_logits():
    network = make_ritm().double()
    form, inputs = FoldedRITM(network), torch.rand(1, 4, 33, 45, dtype=torch.float64)
    logits = answer(network, form, inputs, COURSES[:1])[1]
    emptied = inputs * torch.tensor([1.0, 1, 1, 0])[:, None, None]
    for other in (answer(network, form, inputs, COURSES[1:2])[1], answer(network, form, emptied, COURSES[:1])[1]):
        assert (other - logits).abs().max() > 0.01 * logits.abs().max()


@pytest.mark.parametrize("padded", [False, True])
def test_bfloat16_is_as_near_as_the_network_comes(padded):
    """Of several networks together: of one the error is up to three times as large by chance."""
    pictures, errors = SIZES if padded else [(33, 45)] * 3, []
    for _ in range(5):
        network = make_ritm()
        inputs, sizes = torch.rand(3, 4, 33, 45), torch.tensor(SIZES) if padded else None
        form = FoldedRITM(network)
        exact, _ = answer(network, form, inputs, COURSES, sizes)
        with torch.autocast("cpu", torch.bfloat16):
            rounded = answer(network, form, inputs, COURSES, sizes)
        for place, (rows, columns) in enumerate(pictures):
            shown = place, 0, slice(rows), slice(columns)
            errors.append([(one[shown] - exact[shown]).abs().mean() / exact[shown].std() for one in rounded])
    plain, found = torch.tensor(errors).log().mean(0).exp()
    assert found < 2 * plain < 1


def check_on_device(monkeypatch, kernels, padded):
    monkeypatch.setattr(gpu_ritm, "load_kernels", lambda where: kernels)
    network = make_ritm().to(DEVICE)
    form, inputs = FoldedRITM(network), torch.rand(3, 4, 33, 45, device=DEVICE)
    sizes = torch.tensor(SIZES, device=DEVICE) if padded else None
    found = answer(network, form, inputs, COURSES, sizes)[1]
    plain, _ = answer(network.double(), lambda *_: None, inputs.double(), COURSES, sizes)
    for place, (rows, columns) in enumerate(SIZES if padded else [(33, 45)] * 3):
        check(plain[place, :, :rows, :columns], found[place, :, :rows, :columns].double(), 1e-4)


@pytest.mark.parametrize("padded", [False, True])
def test_kernels_are_asked_for_all_convolutions(monkeypatch, padded):
    """Channels are filled up for them; here no kernel answers, and torch does."""
    asked, called = [], []
    convolve = gpu_ritm.convolve
    monkeypatch.setattr(gpu_ritm, "convolve", lambda *args, **options: called.append(1) or convolve(*args, **options))
    monkeypatch.setattr(gpu_convolutions, "_convolve_by_kernel", lambda *_: asked.append(1))
    monkeypatch.setattr(gpu_convolutions, "MOST", 0)  # every map is too large to be enlarged
    check_on_device(monkeypatch, ConvolutionKernels(None, None), padded)
    assert len(asked) == len(called) > 100


@pytest.mark.skipif(DEVICE.type == "cpu", reason="no GPU here; Triton's interpreter takes a minute")
@pytest.mark.parametrize("padded", [False, True])
def test_kernels_give_the_logits_of_the_network(monkeypatch, padded):
    check_on_device(monkeypatch, gpu_convolutions.build_kernels(), padded)


@pytest.mark.parametrize("sizes", [None, torch.tensor(SIZES)], ids=["alone", "padded"])
def test_rounded_maps_have_their_channels_last(monkeypatch, sizes):
    """As tensor cores want them; otherwise they are copied at every convolution."""
    given, convolve = [], gpu_ritm.convolve

    def watch(x, *args, **options):
        given.append(x)
        return convolve(x, *args, **options)

    monkeypatch.setattr(gpu_ritm, "convolve", watch)
    network = make_ritm()
    with torch.autocast("cpu", torch.bfloat16):
        answer(network, FoldedRITM(network), torch.rand(3, 4, 33, 45), COURSES, sizes)
    assert all(x.is_contiguous(memory_format=torch.channels_last) for x in given)


def test_kernels_are_for_float32_only_and_may_be_left_out(monkeypatch):
    asked = []
    monkeypatch.setattr(gpu_ritm, "load_kernels", asked.append)
    network = make_ritm()
    FoldedRITM(network, kernels=False), FoldedRITM(network.double())
    assert not asked
    FoldedRITM(network.float())
    assert asked == [torch.device("cpu")]
