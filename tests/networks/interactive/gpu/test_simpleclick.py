"""SimpleClick for a GPU: the plain network's logits, of torch and of kernels, at all sizes and in all its variants."""

import pytest
import torch
import triton_loops  # noqa: F401
from random_click_networks import make_simpleclick
from triton_tests import DEVICE, NEEDS_TRITON

from hardlook.networks.interactive.click_maps import pack_clicks
from hardlook.networks.interactive.gpu import norms as gpu_norms
from hardlook.networks.interactive.gpu import simpleclick as gpu_simpleclick
from hardlook.networks.interactive.gpu.simpleclick import RowsSimpleClick

COURSES = [[(5, 7, True), (20, 20, False)], [(9, 15, True)], [(10, 10, False), (3, 16, True), (21, 3, True)]]


@pytest.fixture(autouse=True)
def all_digits():
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False), torch.no_grad():
        yield


def answer(network, form, inputs, courses=COURSES):
    """Logits of the network and of its form."""
    points = pack_clicks(courses[: len(inputs)], device=inputs.device)
    maps = network.click_maps(points, tuple(inputs.shape[2:]), inputs.dtype)
    return network(inputs, points)["instances"], form(inputs, maps)


def check(plain, found, tolerance):
    assert found.shape == plain.shape
    assert found.dtype == plain.dtype
    assert (found - plain).abs().max() <= tolerance * plain.abs().max()


@pytest.mark.parametrize(
    "options",
    [{}, {"with_prev_mask": False, "use_disks": False}, {"window": 28, "depth": 4}],
    ids=["windows", "baseline", "global"],
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
@pytest.mark.parametrize("size", [(24, 24), (26, 39), (12, 24)], ids=["trained", "other", "wide"])
def test_logits_are_those_of_the_network(options, dtype, tolerance, size):
    """Also where sizes are no multiple of a patch or of two patches."""
    network = make_simpleclick(**options).to(DEVICE, dtype)
    form = RowsSimpleClick(network, kernels=False)
    for count in (1, 3):
        inputs = torch.rand(count, 4 if network.with_prev_mask else 3, *size, dtype=dtype, device=DEVICE)
        check(*answer(network, form, inputs), tolerance)


@pytest.mark.parametrize("size", [(28, 20), (37, 12)])
def test_an_odd_number_of_tokens(size):
    network = make_simpleclick(window=28).double()
    inputs = torch.rand(1, 4, *size, dtype=torch.float64)
    check(*answer(network, RowsSimpleClick(network), inputs), 1e-10)


def test_a_grid_that_windows_do_not_fill_is_refused_as_by_the_network():
    network = make_simpleclick(window=2)
    with pytest.raises(ValueError, match="equal windows"):
        RowsSimpleClick(network)(torch.rand(1, 4, 20, 28), torch.zeros(1, 2, 20, 28))


def test_clicks_and_the_last_mask_matter_to_these_logits():
    network = make_simpleclick().double()
    form, inputs = RowsSimpleClick(network), torch.rand(1, 4, 24, 24, dtype=torch.float64)
    logits = answer(network, form, inputs)[1]
    emptied = inputs * torch.tensor([1.0, 1, 1, 0])[:, None, None]
    for other in (answer(network, form, inputs, COURSES[1:])[1], answer(network, form, emptied)[1]):
        assert (other - logits).abs().max() > 0.01 * logits.abs().max()


def test_bfloat16_is_as_near_as_the_network_comes():
    errors = []
    for _ in range(4):
        network = make_simpleclick()
        form, inputs = RowsSimpleClick(network), torch.rand(3, 4, 24, 24)
        exact, _ = answer(network, form, inputs)
        with torch.autocast("cpu", torch.bfloat16):
            rounded = answer(network, form, inputs)
        errors.append([(one - exact).abs().mean() / exact.std() for one in rounded])
    plain, found = torch.tensor(errors).log().mean(0).exp()
    assert found < 2 * plain < 0.1


def test_rounded_rows_are_read_by_the_norms_as_products_write_them(monkeypatch):
    """Not through float32 in memory, as torch's autocast has it."""
    groups, layers = [], []
    normalise_group, add_and_normalise = gpu_simpleclick.normalise_group, gpu_simpleclick.add_and_normalise

    def watch_groups(x, *args, **options):
        found = normalise_group(x, *args, **options)
        groups.append((x.dtype, found.dtype))
        return found

    def watch_layers(*args, **options):
        found = add_and_normalise(*args, **options)
        layers.append((found[0].dtype, found[1].dtype))
        return found

    monkeypatch.setattr(gpu_simpleclick, "normalise_group", watch_groups)
    monkeypatch.setattr(gpu_simpleclick, "add_and_normalise", watch_layers)
    network = make_simpleclick()
    with torch.autocast("cpu", torch.bfloat16):
        answer(network, RowsSimpleClick(network), torch.rand(1, 4, 24, 24))
    assert set(groups) == {(torch.bfloat16, torch.bfloat16)}
    assert set(layers) == {(torch.float32, torch.bfloat16)}


@NEEDS_TRITON
@pytest.mark.parametrize("rounded", [False, True])
def test_kernels_give_the_logits_of_the_network(monkeypatch, rounded):
    kernels = gpu_norms.build_kernels()
    monkeypatch.setattr(gpu_simpleclick, "load_kernels", lambda where: kernels)
    network = make_simpleclick(depth=4, patch=4, grid=2, window=1).to(DEVICE)
    form, inputs = RowsSimpleClick(network), torch.rand(1, 4, 8, 8, device=DEVICE)
    plain, _ = answer(network, lambda *_: None, inputs)
    with torch.autocast(DEVICE.type, torch.bfloat16, enabled=rounded):
        found = answer(network, form, inputs)[1]
    check(plain, found, 0.1 if rounded else 1e-4)


def test_kernels_may_be_left_out(monkeypatch):
    asked = []
    monkeypatch.setattr(gpu_simpleclick, "load_kernels", asked.append)
    network = make_simpleclick()
    RowsSimpleClick(network, kernels=False)
    assert not asked
    RowsSimpleClick(network)
    assert asked == [torch.device("cpu")]


@pytest.mark.parametrize("other", [torch.nn.GroupNorm(2, 4), torch.nn.ReLU()])
def test_a_level_with_other_layers_is_refused(other):
    network = make_simpleclick()
    network.neck.down_16[1] = other
    with pytest.raises(TypeError, match="unknown layer"):
        RowsSimpleClick(network)
