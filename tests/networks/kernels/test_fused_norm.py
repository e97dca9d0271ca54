"""Fused normalisation, activation and pooling against torch's layers in float64, of values and of all gradients."""

import copy
import math

import pytest
import torch
import triton_loops  # noqa: F401
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._python_dispatch import TorchDispatchMode
from triton_tests import DEVICE, NEEDS_TRITON

from hardlook.networks.kernels import fused_norm
from hardlook.networks.kernels.fused_norm import FusedNorm, Kernels, fuse_norms, is_plain

HALVES = (torch.float16, torch.bfloat16)


@pytest.fixture
def kernels(monkeypatch):
    """The kernels, also on a processor."""
    built = Kernels()
    monkeypatch.setattr(fused_norm, "find_kernels", lambda where: built)
    return built


def draw(*shape, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(DEVICE, dtype)


def make_norm(channels, seed=0, **options):
    norm = nn.BatchNorm2d(channels, device=DEVICE, **options)
    if norm.affine:
        norm.weight.data = 1 + 0.3 * draw(channels, seed=seed + 1)
        norm.weight.data[::5] *= -1
        norm.bias.data = 0.5 * draw(channels, seed=seed + 2)
    if norm.running_mean is not None:
        norm.running_mean += draw(channels, seed=seed + 3)
        norm.running_var += draw(channels, seed=seed + 4).abs()
        norm.num_batches_tracked += 4
    return norm


def by_layers(maps, norm, *, slope, pool, bias=None, other=None, other_norm=None):
    y = norm(maps if bias is None else maps + bias[:, None, None])
    y = y if other is None else y + other_norm(other)
    y = functional.leaky_relu(y, slope) if slope else functional.relu(y)
    return functional.max_pool2d(y, 2) if pool else y


def run(function, maps, norm, gradient=None, seed=9, **given):
    """The result and all gradients by name; the leaves that are not given stay out."""
    leaves = {"maps": maps, "bias": given.get("bias"), "other": given.get("other")}
    leaves = {name: one.detach().clone().requires_grad_() for name, one in leaves.items() if one is not None}
    result = function(leaves["maps"], norm, **{**given, **{n: one for n, one in leaves.items() if n != "maps"}})
    if gradient is None:
        gradient = draw(*result.shape, seed=seed)
    result.backward(gradient.to(result.dtype))
    found = {"result": result.detach()} | {name: one.grad for name, one in leaves.items()}
    norms = {"norm": norm, "other_norm": given.get("other_norm")}
    for name, one in norms.items():
        if one is not None:
            found |= {f"{name}.{part}.grad": value.grad for part, value in one.named_parameters()}
            found |= {f"{name}.{part}": value.clone() for part, value in one.named_buffers()}
    return found


def doubled(given):
    """The same for float64: copies of norms, and tensors of the same values."""
    kinds = (torch.Tensor, nn.Module)
    return {name: copy.deepcopy(one).double() if isinstance(one, kinds) else one for name, one in given.items()}


def compare(maps, norm, *, tolerance=1e-5, loose=None, gradient=None, but=(), **given):
    """Both ways give the same; `loose` is the tolerance of what is rounded to half precision."""
    exact = doubled({"maps": maps, "norm": norm, **given})
    wanted = run(by_layers, exact.pop("maps"), exact.pop("norm"), gradient, **exact)
    found = run(FusedNorm.apply, maps, norm, gradient, **given)
    assert found.keys() == wanted.keys()
    for name in wanted.keys() - set(but):
        value = wanted[name]
        rounded = loose is not None and name in ("result", "maps", "other")
        limit = loose if rounded else tolerance
        if name == "bias":
            assert not found[name].any() and float(value.abs().max()) < 1e-9
        elif name.endswith("num_batches_tracked"):
            assert torch.equal(found[name], value) and int(value) == 5
        else:
            wide = 1e-30 + float(value[value.isfinite()].abs().max()) if value.isfinite().any() else 1.0
            torch.testing.assert_close(
                found[name].double(),
                value,
                rtol=limit,
                atol=tolerance * wide,
                equal_nan=True,
                msg=lambda m, n=name: f"{n}: {m}",
            )
    return found


@NEEDS_TRITON
@pytest.mark.parametrize("pool", [True, False])
@pytest.mark.parametrize("slope", [0.0, 0.1])
@pytest.mark.parametrize("two", [False, True])
def test_values_and_gradients_are_those_of_the_layers(kernels, pool, slope, two):
    given = {"bias": draw(16, seed=5)}
    if two:
        given |= {"other": 0.7 * draw(2, 16, 5, 7, seed=6) + 1, "other_norm": make_norm(16, seed=20, eps=1e-3)}
    compare(draw(2, 16, 5, 7) - 0.5, make_norm(16), slope=slope, pool=pool, **given)


@NEEDS_TRITON
@pytest.mark.parametrize("shape", [(3, 48, 4, 4), (2, 64, 2, 3), (1, 160, 3, 2), (2, 16, 1, 1), (1, 16, 1, 5)])
def test_channels_and_sizes(kernels, shape):
    pools = (True, False) if min(shape[2:]) > 1 else (False,)
    for pool in pools:
        compare(draw(*shape), make_norm(shape[1]), slope=0.1, pool=pool, tolerance=3e-5)


@NEEDS_TRITON
@pytest.mark.parametrize("most", [fused_norm.PARTS, 2])
@pytest.mark.parametrize("size", [(15, 20), (16, 9), (8, 8)])
def test_rows_are_summed_in_parts(kernels, monkeypatch, most, size):
    """600 rows: parts of 192, 192, 192 and 24, or of 320 and 280; 128: one full and one empty part."""
    monkeypatch.setattr(fused_norm, "PARTS", most)
    other = {"other": draw(2, 16, *size, seed=3) * 2, "other_norm": make_norm(16, seed=7)}
    # The mean drifts from part to part.
    maps = draw(2, 16, *size) + torch.linspace(0, 5, size[0], device=DEVICE)[:, None]
    compare(maps, make_norm(16), slope=0.0, pool=True)
    compare(maps, make_norm(16), slope=0.1, pool=False, **other)


@pytest.mark.parametrize("rows", [2, 64, 65, 255, 256, 257, 600, 5_000, 300_000, 10**6, 2**30 - 1])
def test_parts_cover_all_rows(rows):
    parts, chunk = fused_norm._split(rows)
    assert parts <= fused_norm.PARTS and parts & (parts - 1) == 0 and chunk % fused_norm.ROWS == 0
    assert rows <= parts * chunk < 2**31 - chunk and (parts // 2) * chunk < rows + parts * fused_norm.ROWS


@NEEDS_TRITON
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("pool", [True, False])
def test_half_precision_is_rounded_once(kernels, dtype, pool):
    """Sums and statistics are those of float32; result and gradients of maps are rounded at the end only."""
    given = {"other": draw(2, 16, 4, 6, seed=6, dtype=dtype), "other_norm": make_norm(16, seed=20)}
    # Half a step, but the interpreter cuts off the bits of bfloat16.
    nearest = DEVICE.type == "cuda" or dtype == torch.float16
    found = compare(
        draw(2, 16, 4, 6, dtype=dtype) + 1,
        make_norm(16),
        gradient=draw(2, 16, *((2, 3) if pool else (4, 6)), seed=9, dtype=dtype),
        slope=0.1,
        pool=pool,
        bias=draw(16, seed=5),
        loose=torch.finfo(dtype).eps * (0.51 if nearest else 1.01),
        **given,
    )
    assert {found[name].dtype for name in ("result", "maps", "other")} == {dtype}
    assert found["norm.weight.grad"].dtype == found["bias"].dtype == torch.float32


@NEEDS_TRITON
def test_a_bias_may_be_of_half_precision(kernels):
    bias = draw(16, dtype=torch.bfloat16, seed=5)
    found = compare(draw(2, 16, 2, 2), make_norm(16), slope=0.1, pool=False, bias=bias)
    assert found["bias"].dtype == torch.bfloat16


@NEEDS_TRITON
@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_of_equal_pixels_the_first_gets_the_gradient(kernels, slope):
    few = torch.randint(0, 3, (2, 16, 6, 6), generator=torch.Generator().manual_seed(0)).float().to(DEVICE)
    norm = make_norm(16)
    norm.bias.data[:4] = 0  # in channels with values on both sides of 0
    compare(few, norm, slope=slope, pool=True)
    # Twice the same maps: sums of equal pairs are equal.
    compare(few, make_norm(16), slope=slope, pool=True, other=few, other_norm=make_norm(16, seed=3))
    norm = make_norm(16)
    maps = torch.zeros(1, 16, 2, 4, device=DEVICE)
    maps[..., 2:] = 1  # two squares of four equal pixels each
    norm.weight.data.fill_(1)
    norm.bias.data.fill_(2)
    gradient = torch.tensor([3.0, 5.0], device=DEVICE).expand(1, 16, 1, 2)
    found = run(FusedNorm.apply, maps, norm, gradient, slope=slope, pool=True)["maps"] * math.sqrt(0.25 + norm.eps)
    # Less the mean, 1, and the share of the normalised value: the mean of g x is (5 - 3) / 8.
    wanted = torch.tensor([[3.0, 0, 5, 0], [0, 0, 0, 0]], device=DEVICE) - 1
    wanted -= torch.tensor([-1.0, -1, 1, 1], device=DEVICE) * 0.25
    torch.testing.assert_close(found, wanted.expand(1, 16, 2, 4), rtol=0, atol=1e-3)


@NEEDS_TRITON
def test_nothing_cancels_around_a_large_mean(kernels):
    """Values in pairs around 4096, which is their mean exactly."""
    apart = (draw(1, 16, 6, 8) * 64).round() / 512
    maps = torch.cat([4096 + apart, 4096 - apart])
    compare(maps, make_norm(16), slope=0.1, pool=False, tolerance=1e-5)
    compare(maps, make_norm(16), slope=0.1, pool=True, tolerance=1e-5)


@NEEDS_TRITON
@pytest.mark.parametrize("size", [(3, 5), (12, 23)])
def test_constant_maps_become_the_bias(kernels, size):
    maps, norm = (draw(1, 16, 1, 1) * 100).expand(2, 16, *size), make_norm(16)
    compare(maps, norm, slope=0.0, pool=True, other=maps, other_norm=make_norm(16, seed=3))
    norm.bias.data[:3] = 0
    norm.zero_grad()
    found = run(FusedNorm.apply, maps, norm, slope=0.0, pool=True)
    assert torch.equal(found["result"][0, :, 0, 0], norm.bias.clamp(min=0))
    # Nought is inactive.
    assert not found["maps"][:, :3].any() and not found["norm.bias.grad"][:3].any()
    assert not found["norm.weight.grad"].any()


@NEEDS_TRITON
@pytest.mark.parametrize("pool", [True, False])
@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_nan_stays_in_its_channel(kernels, pool, slope):
    maps, norm = draw(2, 16, 4, 4), make_norm(16)
    maps[1, 3, 2, 1] = math.nan
    # Torch's ReLU hands on the gradient of NaN.
    found = compare(maps, norm, slope=slope, pool=pool, but=() if slope else ("norm.bias.grad",))
    for name in ("result", "maps"):
        assert found[name][:, 3].isnan().all() and found[name].isnan().sum() == found[name][:, 3].numel()
    assert found["norm.running_mean"].isnan().sum() == found["norm.running_var"].isnan().sum() == 1


@NEEDS_TRITON
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of the interpreter, for what is left out
@pytest.mark.parametrize("pool", [True, False])
def test_an_infinite_gradient_ends_at_what_is_inactive(kernels, pool):
    maps, norm = draw(2, 16, 4, 4), make_norm(16)
    norm.bias.data[2] = -100
    gradient = draw(2, 16, 2 if pool else 4, 2 if pool else 4)
    gradient[0, 2, 1, 1] = math.inf
    found = compare(maps, norm, slope=0.0, pool=pool, gradient=gradient)
    assert found["maps"].isfinite().all()


@NEEDS_TRITON
@pytest.mark.parametrize("pool", [True, False])
def test_memory_of_any_layout(kernels, pool):
    given = {"slope": 0.1, "pool": pool}
    wide, norm = draw(2, 32, 5, 4), make_norm(16)
    wanted = run(FusedNorm.apply, wide[:, ::2].contiguous(), copy.deepcopy(norm), **given)
    last = wide[:, ::2].contiguous(memory_format=torch.channels_last)
    for maps in (wide[:, ::2], last, wide[:, ::2].mT.contiguous().mT):
        found = run(FusedNorm.apply, maps, copy.deepcopy(norm), **given)
        for name, value in wanted.items():
            assert torch.equal(found[name], value), name
    # A sum's gradient is one number, expanded.
    plain, ours = last.double().requires_grad_(), last.clone().requires_grad_()
    by_layers(plain, copy.deepcopy(norm).double(), **given).sum().backward()
    FusedNorm.apply(ours, norm, **given).sum().backward()
    torch.testing.assert_close(ours.grad.double(), plain.grad, rtol=1e-5, atol=1e-5)


@NEEDS_TRITON
def test_the_same_numbers_at_each_run(kernels):
    maps = draw(2, 16, 15, 20)
    first, second = (run(FusedNorm.apply, maps, make_norm(16), slope=0.0, pool=True) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


@NEEDS_TRITON
@pytest.mark.parametrize("options", [{"momentum": 1.0}, {"momentum": 0.0}, {"momentum": 0.37, "eps": 0.5}])
def test_running_statistics_move_by_the_momentum(kernels, options):
    compare(draw(2, 16, 3, 3), make_norm(16, **options), slope=0.1, pool=False, bias=draw(16, seed=5))


@NEEDS_TRITON
def test_running_statistics_that_are_not_tracked_stay(kernels):
    found = compare(draw(2, 16, 3, 3), make_norm(16, track_running_stats=False), slope=0.1, pool=False)
    assert not any("running" in name for name in found)
    norm = make_norm(16, momentum=None)
    norm.track_running_stats = False  # afterwards: the layer has buffers, and torch leaves them
    before = copy.deepcopy(norm.state_dict())
    run(FusedNorm.apply, draw(2, 16, 3, 3), norm, slope=0.1, pool=False)
    assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())


@NEEDS_TRITON
def test_gradients_of_two_norms_do_not_share_memory(kernels):
    """Clipping multiplies every gradient in place."""
    norm, other_norm = make_norm(16), make_norm(16, seed=3)
    run(FusedNorm.apply, draw(2, 16, 2, 2), norm, slope=0.1, pool=False, other=draw(2, 16, 2, 2), other_norm=other_norm)
    before = norm.bias.grad.clone()
    assert torch.equal(before, other_norm.bias.grad)
    parameters = [*norm.parameters(), *other_norm.parameters()]
    total = torch.nn.utils.clip_grad_norm_(parameters, 0.01)
    assert total > 0.1
    torch.testing.assert_close(norm.bias.grad, before * 0.01 / total, rtol=1e-4, atol=0)
    assert torch.equal(norm.bias.grad, other_norm.bias.grad)


@NEEDS_TRITON
def test_a_second_derivative_is_refused(kernels):
    maps, norm = draw(2, 16, 2, 2).requires_grad_(), make_norm(16)
    result = FusedNorm.apply(maps, norm, slope=0.1, pool=True)
    (first,) = torch.autograd.grad(result.square().sum(), maps, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


@NEEDS_TRITON
def test_what_is_frozen_has_no_gradient(kernels):
    maps, norm = draw(2, 16, 2, 2), make_norm(16)
    norm.weight.requires_grad_(False)
    wanted = by_layers(maps.double(), copy.deepcopy(norm).double(), slope=0.1, pool=True)
    result = FusedNorm.apply(maps, norm, slope=0.1, pool=True)
    torch.testing.assert_close(result.double(), wanted, rtol=1e-5, atol=1e-5)
    result.sum().backward()
    assert norm.weight.grad is None and maps.grad is None and norm.bias.grad is not None
    norm.bias.requires_grad_(False)
    assert not FusedNorm.apply(maps, norm, slope=0.1, pool=True).requires_grad


@NEEDS_TRITON
@pytest.mark.parametrize("pool", [True, False])
def test_saved_maps_may_come_back_in_another_layout(kernels, pool):
    """As from pinned memory of the processor."""
    given = {"slope": 0.1, "pool": pool, "other": draw(2, 16, 5, 4, seed=4)}
    wanted = run(FusedNorm.apply, draw(2, 16, 5, 4), make_norm(16), other_norm=make_norm(16, seed=3), **given)
    with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one.contiguous()):
        found = run(FusedNorm.apply, draw(2, 16, 5, 4), make_norm(16), other_norm=make_norm(16, seed=3), **given)
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


@NEEDS_TRITON
def test_a_weight_may_change_before_the_way_back(kernels):
    """Torch's layer would refuse it; here the gradients are those of the weight that was used."""
    wanted = run(FusedNorm.apply, draw(2, 16, 2, 2), make_norm(16), slope=0.1, pool=False)["maps"]
    maps, norm = draw(2, 16, 2, 2).requires_grad_(), make_norm(16)
    result = FusedNorm.apply(maps, norm, slope=0.1, pool=False)
    norm.weight.data.zero_()
    result.backward(draw(2, 16, 2, 2, seed=9))
    assert torch.equal(maps.grad, wanted)


@pytest.mark.parametrize(
    ("shape", "options", "error", "words"),
    [
        ((1, 16, 1, 1), {}, ValueError, "more than 1 value per channel"),
        ((0, 16, 2, 2), {}, ValueError, "more than 1 value per channel"),
        ((2, 16, 1, 4), {"pool": True}, RuntimeError, "1 x 4 leaves nothing"),
        ((2, 16, 4, 1), {"pool": True}, RuntimeError, "4 x 1 leaves nothing"),
        ((2, 16, 2, 2), {"slope": -0.1}, ValueError, "slope"),
        ((2, 32, 2, 2), {}, ValueError, "32 channels, their normalisation 16"),
        ((2, 16, 2, 2), {"other": torch.zeros(2, 16, 1, 1)}, ValueError, "the shape of the first"),
        ((2, 16, 2, 2), {"other": torch.zeros(2, 16, 1, 1), "other_norm": nn.BatchNorm2d(16)}, ValueError, "the shape"),
        ((2, 16, 2, 2), {"other_norm": nn.BatchNorm2d(16)}, ValueError, "the shape of the first"),
        (
            (2, 16, 2, 2),
            {"other": torch.zeros(2, 16, 2, 2), "other_norm": nn.BatchNorm2d(8)},
            ValueError,
            "16 channels, their normalisation 8",
        ),
    ],
)
def test_what_cannot_be_is_refused(shape, options, error, words):
    with pytest.raises(error, match=words):
        FusedNorm.apply(torch.zeros(shape), nn.BatchNorm2d(16), **{"slope": 0.1, "pool": False, **options})


# Where layers are used.


class OtherNorm(nn.BatchNorm2d):
    pass


class OtherTensor(torch.Tensor):
    pass


class Watcher(TorchDispatchMode):
    def __torch_dispatch__(self, function, kinds, given=(), options=None):
        return function(*given, **(options or {}))


def changed(**attributes):
    norm = nn.BatchNorm2d(16)
    for name, value in attributes.items():
        setattr(norm, name, value)
    return norm


def hooked(register):
    norm = nn.BatchNorm2d(16)
    getattr(norm, register)(lambda *given: None)
    return norm


MAPS = torch.zeros(2, 16, 4, 4)


@pytest.fixture
def anywhere(monkeypatch):
    """As if this machine had the kernels."""
    monkeypatch.setattr(fused_norm, "find_kernels", lambda where: object())


@pytest.mark.parametrize(
    ("norm", "fits"),
    [
        (nn.BatchNorm2d(16), True),
        (nn.BatchNorm2d(160), True),
        (nn.BatchNorm2d(24), False),
        (nn.BatchNorm2d(16).eval(), False),
        (nn.BatchNorm2d(16, affine=False), False),
        (nn.BatchNorm2d(16, momentum=None), False),
        (nn.BatchNorm2d(16, track_running_stats=False), True),
        (nn.BatchNorm2d(16, track_running_stats=False, momentum=None), True),
        (nn.BatchNorm2d(16, track_running_stats=False).eval(), False),
        (changed(num_batches_tracked=None), False),
        (changed(running_mean=None), False),
        (changed(running_var=torch.ones(16, dtype=torch.float64)), False),
        (changed(running_mean=torch.zeros(16, device="meta")), False),
        (changed(num_batches_tracked=torch.tensor(0, device="meta")), False),
        (changed(weight=nn.Parameter(torch.ones(32)[::2])), False),
        (changed(forward=lambda maps: maps), False),
        (nn.BatchNorm2d(16).half(), False),
        (nn.BatchNorm2d(16, device="meta"), False),
        (nn.SyncBatchNorm(16), False),
        (nn.GroupNorm(1, 16), False),
        (nn.Identity(), False),
        (OtherNorm(16), False),
        (hooked("register_forward_hook"), False),
        (hooked("register_forward_pre_hook"), False),
        (hooked("register_full_backward_hook"), False),
        (hooked("register_full_backward_pre_hook"), False),
    ],
)
def test_only_plain_norms_by_the_statistics_of_the_batch_fit(anywhere, norm, fits):
    assert FusedNorm.fits(MAPS, norm) == fits
    assert FusedNorm.fits(MAPS, nn.BatchNorm2d(64), norm) == fits


@pytest.mark.parametrize(
    ("maps", "fits"),
    [
        (nn.Parameter(MAPS), True),
        (MAPS.half(), True),
        (MAPS.bfloat16(), True),
        (MAPS.double(), False),
        (MAPS.to(torch.uint8), False),
        (MAPS[:0], False),
        (MAPS[:, :, :0], False),
        (MAPS[:, :, :, :0], False),
        (MAPS[0], False),
        (MAPS.as_subclass(OtherTensor), False),
        (torch.zeros(1, 3, 1, 1).expand(2**10, 3, 2**10, 2**10), False),
    ],
)
def test_only_maps_that_the_kernels_can_read_fit(anywhere, maps, fits):
    assert FusedNorm.fits(maps, nn.BatchNorm2d(16)) == fits


def test_nothing_fits_where_steps_are_watched_or_transformed(anywhere):
    from torch.utils.flop_counter import FlopCounterMode  # imports Triton

    norm, found = nn.BatchNorm2d(16), []

    def note(maps):
        found.append(FusedNorm.fits(MAPS, norm))
        return maps.sum()

    for transform in (vmap, grad):
        transform(note)(torch.zeros(2) if transform is vmap else torch.zeros(()))
    with torch.no_grad():
        note(MAPS)
    with torch.inference_mode():
        note(MAPS)
    with FlopCounterMode(display=False):
        note(MAPS)
    with Watcher():
        note(MAPS)
    handle = register_module_forward_hook(lambda *given: None)
    try:
        note(MAPS)
    finally:
        handle.remove()
    assert found == [False] * 7 and FusedNorm.fits(MAPS, norm)


def test_without_the_kernels_nothing_fits():
    assert fused_norm.find_kernels(torch.device("cpu")) is None
    assert not FusedNorm.fits(MAPS, nn.BatchNorm2d(16))


def test_a_layer_is_plain_where_nothing_listens():
    assert is_plain(nn.ReLU(), nn.ReLU) and is_plain(nn.LeakyReLU(), nn.ReLU, nn.LeakyReLU)
    assert not is_plain(nn.ReLU6(), nn.ReLU) and not is_plain(nn.ReLU())


def test_only_blocks_that_can_are_told_to_fuse():
    class Block(nn.Module):
        fused_norms = False

    network = nn.Sequential(Block(), nn.Sequential(nn.ReLU(), Block()))
    assert fuse_norms(network) == 2
    assert network[0].fused_norms and network[1][1].fused_norms and not Block.fused_norms
    assert not hasattr(network[1][0], "fused_norms") and fuse_norms(nn.ReLU()) == 0


@NEEDS_TRITON
def test_functional_calls_take_the_given_parameters(kernels):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = make_norm(16)

        def forward(self, maps):
            assert FusedNorm.fits(maps, self.norm)
            return FusedNorm.apply(maps, self.norm, slope=0.1, pool=True)

    maps, layer, weight = draw(2, 16, 4, 4), Layer(), draw(16, seed=11).requires_grad_()
    functional_call(layer, {"norm.weight": 2 * weight}, (maps,)).square().sum().backward()
    assert layer.norm.weight.grad is None
    exact = weight.detach().double().requires_grad_()
    norm = copy.deepcopy(layer.norm).double()
    y = functional.batch_norm(maps.double(), None, None, 2 * exact, norm.bias, True)
    functional.max_pool2d(functional.leaky_relu(y, 0.1), 2).square().sum().backward()
    torch.testing.assert_close(weight.grad.double(), exact.grad, rtol=1e-5, atol=1e-5)
