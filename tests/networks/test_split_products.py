"""Float32 products from three in TF32, whose rounding is done here by hand: the parts, their order and the layer."""

import math

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from hardlook.models.torch_inference import exact_inference  # noqa: E402
from hardlook.networks import split_products  # noqa: E402
from hardlook.networks.split_products import (  # noqa: E402
    build_split_linear,
    replace_linear_layers,
    split,
    split_rows,
    split_weight,
    state_of,
)
from hardlook.rclicks.cost import count_parameters  # noqa: E402

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
INFINITY, NAN, LARGEST = math.inf, math.nan, torch.finfo(torch.float32).max
# Values near the largest, the smallest and nought, and every kind of NaN.
SPECIAL = [0.0, -0.0, INFINITY, -INFINITY, NAN, LARGEST, -LARGEST, LARGEST * 0.9999, 1e-45, -1e-40, 1.2e-38, 1 + 2**-11]
NAN_BITS = [0x7F800001, 0x7FFFFFFF, -1, -0x7FFFFF]


def cut(values):
    """What a tensor core reads of float32 in TF32 where it leaves the last bits out."""
    return (values.view(torch.int32) & ~0x1FFF).view(torch.float32)


def nearest(values):
    return ((values.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def special_rows(count, width):
    random = torch.Generator().manual_seed(count)
    rows = torch.randn(count, width, generator=random) * torch.randn(count, width, generator=random).mul(20).exp()
    pool = torch.cat([torch.tensor(SPECIAL), torch.tensor(NAN_BITS, dtype=torch.int32).view(torch.float32)])
    rows.view(-1)[: len(pool)] = pool[: rows.numel()]
    return rows


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_the_parts_of_a_number_are_exact(numbers):
    values = torch.tensor(numbers, dtype=torch.float32)
    low, finite, high = split(values)
    assert torch.equal(high.double() + low.double(), values.double())
    assert torch.equal(high + low, values)
    assert not (high.view(torch.int32) & 0x1FFF).any()
    assert torch.equal(finite, high) and high.isfinite().all()
    # Rounded to the nearest, but for the numbers that would become infinite.
    inside = values.abs() < LARGEST * 0.9995
    assert torch.equal(high[inside], nearest(values)[inside])


def test_parts_meet_the_parts_that_they_are_multiplied_with():
    rows, weight = torch.tensor([[1 + 2**-12, 3.0]]), torch.tensor([[1 - 2**-14, 5.0]])
    assert split_rows(rows).tolist() == [[2**-12, 0, 1, 3, 1, 3]]
    assert split_weight(weight).tolist() == [[1, 5, -(2**-14), 0, 1, 5]]


@pytest.mark.parametrize("read", [cut, nearest])
@pytest.mark.parametrize("wide", [False, True], ids=["normal", "of many sizes"])
def test_the_error_is_that_of_float32(monkeypatch, one_thread, read, wide):
    torch.manual_seed(0)
    plain = nn.Linear(1280, 96)
    rows = torch.randn(7, 3, 1280) * (torch.randn(7, 3, 1280).mul(2).exp() if wide else 1)
    exact = functional.linear(rows.double(), plain.weight.double(), plain.bias.double()).detach()
    layer = build_split_linear(plain)
    product = functional.linear

    def multiply(values, weight, bias):
        assert torch.backends.cuda.matmul.allow_tf32
        return product(read(values), read(weight), bias)

    with torch.inference_mode():
        ours, rounded = plain(rows), product(read(rows), read(plain.weight), plain.bias)
        monkeypatch.setattr(functional, "linear", multiply)
        split_in_three = layer(rows)
    assert not torch.backends.cuda.matmul.allow_tf32
    errors = [float((one.double() - exact).norm() / exact.norm()) for one in (split_in_three, ours, rounded)]
    assert errors[0] < 2 * errors[1] and errors[2] > 100 * errors[0], errors


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(8,), (1, 8), (5, 8), (2, 3, 4, 8), (0, 8)])
def test_the_layer_takes_what_a_linear_layer_takes(bias, shape):
    torch.manual_seed(1)
    plain = nn.Linear(8, 3, bias=bias)
    layer = build_split_linear(plain)
    turned = torch.randn(shape[::-1]).permute(*reversed(range(len(shape))))
    for inputs in (torch.randn(shape), torch.randn(*shape[:-1], 16)[..., ::2], turned):
        with torch.no_grad():
            assert layer(inputs).shape == plain(inputs).shape
            assert torch.allclose(layer(inputs), plain(inputs), rtol=1e-6, atol=1e-6)


def test_infinity_and_nan_come_out_as_from_the_plain_layer():
    values = torch.tensor([0.4, -1 / 3, INFINITY, -INFINITY, NAN, 0.0])
    large = torch.cat([values, torch.tensor([LARGEST, -LARGEST])])
    rows, plain = torch.cartesian_prod(large, large), nn.Linear(2, 36, bias=False)
    plain.weight.data[:] = torch.cartesian_prod(values, values)
    with torch.inference_mode():
        expected, found = plain(rows), build_split_linear(plain)(rows)
    assert torch.equal(expected.isnan(), found.isnan())
    infinite = expected.isinf()
    assert torch.equal(infinite, found.isinf()) and infinite.any()
    assert torch.equal(expected[infinite], found[infinite])


def test_elsewhere_it_is_the_plain_layer(monkeypatch):
    torch.manual_seed(3)
    plain, rows = nn.Linear(8, 3), torch.randn(4, 8)
    layer = build_split_linear(plain)
    monkeypatch.setattr(split_products, "split_rows", None)
    layer(rows).sum().backward()
    assert plain.weight.grad is not None and layer.weight is plain.weight
    with torch.inference_mode():
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(layer(rows), plain(rows)) and layer(rows).dtype == torch.bfloat16
        with exact_inference("tf32"):
            assert torch.equal(layer(rows), plain(rows))
        assert layer(rows[:0]).shape == (0, 3)
        with pytest.raises(TypeError):
            layer(rows)
        assert torch.equal(layer.double()(rows.double()), plain(rows.double()))


def test_the_switch_is_set_back_after_an_error(monkeypatch):
    def fail(*_):
        raise MemoryError

    layer = build_split_linear(nn.Linear(8, 3))
    monkeypatch.setattr(functional, "linear", fail)
    with torch.inference_mode(), pytest.raises(MemoryError):
        layer(torch.randn(4, 8))
    assert not torch.backends.cuda.matmul.allow_tf32


def test_weights_are_split_once_and_again_when_they_change(monkeypatch):
    torch.manual_seed(4)
    calls = []
    plain, rows = nn.Linear(8, 3), torch.randn(4, 8)
    layer = build_split_linear(plain)
    monkeypatch.setattr(split_products, "split_weight", lambda weight: calls.append(1) or split_weight(weight))
    with torch.inference_mode():
        layer(rows), layer(rows)
    assert len(calls) == 1
    with torch.no_grad():
        plain.weight.mul_(2)
        assert torch.allclose(layer(rows), plain(rows), atol=1e-6)
        plain.weight = nn.Parameter(plain.weight + 1)
        assert torch.allclose(layer(rows), plain(rows), atol=1e-6)
    assert len(calls) == 3


def test_a_state_is_known_for_tensors_of_inference_too():
    with torch.inference_mode():
        made = torch.zeros(3)
    assert state_of(made) == state_of(made) != state_of(torch.zeros(3))


def test_wide_layers_are_replaced_and_keep_their_parameters_and_hooks():
    class Other(nn.Linear):
        pass

    network = nn.Sequential(nn.Linear(8, 600), nn.Sequential(nn.Linear(600, 512)), Other(512, 512), nn.Linear(512, 1))
    seen, names, before = [], list(network.state_dict()), count_parameters([network])
    network[3].register_forward_hook(lambda *_: seen.append(1))
    kept = list(network.parameters())
    assert replace_linear_layers(network) == 2 and replace_linear_layers(network) == 0
    assert [type(one).__name__ for one in (network[0], network[1][0], *network[2:])] == [
        "Linear", "SplitLinear", "Other", "SplitLinear",
    ]  # fmt: skip
    assert all(one is other for one, other in zip(network.parameters(), kept, strict=True))
    assert list(network.state_dict()) == names and count_parameters([network]) == before
    with torch.inference_mode():
        network(torch.randn(2, 8))
    assert seen == [1]


def test_without_triton_torch_splits(monkeypatch):
    split_products._load_kernel.cache_clear()
    monkeypatch.setattr(split_products, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    assert split_products._load_kernel() is None
    split_products._load_kernel.cache_clear()


@NEEDS_GPU
@pytest.mark.parametrize(("count", "width"), [(1, 1), (3, 7), (5, 16), (4, 1280), (7, 513), (2, 5120)])
def test_the_kernel_gives_torch_s_bits(count, width):
    rows = special_rows(count, width)
    expected, found = split_rows(rows), split_rows(rows.cuda()).cpu()
    known = ~expected.isnan()
    assert torch.equal(found.isnan(), ~known)
    assert torch.equal(found.view(torch.int32)[known], expected.view(torch.int32)[known])
