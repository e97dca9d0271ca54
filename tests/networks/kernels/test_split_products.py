"""Float32 products from three of half precision: the parts, the kernels, where they are used and the layer."""

import copy
import gc
import math
import pickle
import weakref

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

import numpy as np  # noqa: E402
import triton_loops  # noqa: E402, F401
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from triton_tests import DEVICE, NEEDS_TRITON  # noqa: E402

from hardlook.models.torch_inference import exact_inference  # noqa: E402
from hardlook.networks.gpu import copy_without_weights  # noqa: E402
from hardlook.networks.kernels import split_products  # noqa: E402
from hardlook.networks.kernels.split_products import (  # noqa: E402
    LEAST_ROWS,
    WIDEST,
    Block,
    SplitWeight,
    TritonKernels,
    build_split_linear,
    choose_block,
    find_kernels,
    replace_linear_layers,
    split,
    state_of,
)

NEEDS_GPU = pytest.mark.skipif(DEVICE.type != "cuda", reason="no GPU here")
ON_HOPPER = DEVICE.type == "cuda" and torch.cuda.get_device_capability(DEVICE)[0] == 9
# Host-made descriptors are Hopper's and later; older GPUs have neither them nor the memory for the blocks.
NEEDS_HOPPER_OR_NONE = pytest.mark.skipif(DEVICE.type == "cuda" and not ON_HOPPER, reason="the GPU is not a Hopper")
INFINITY, NAN, LARGEST = math.inf, math.nan, torch.finfo(torch.float32).max


class Emulation:
    """`Kernels` as the module describes them: sums of at most 64 terms from zero, added in float32."""

    def __init__(self, terms=("low high", "high low", "high high")):
        self.terms, self.calls = [term.split() for term in terms], []

    def split(self, rows):
        self.calls.append(tuple(rows.shape))
        return split(rows)

    def multiply(self, rows, parts, weight, weight_parts, bias, table):
        total = torch.zeros(len(rows), len(weight), device=rows.device)
        for start in range(0, rows.shape[1], 64):
            here = slice(start, start + 64)
            total += sum(
                getattr(parts, one)[:, here].double() @ getattr(weight_parts, other)[:, here].double().T
                for one, other in self.terms
            ).float()
        total = total * parts.scale[:, None] * weight_parts.scale
        plain = rows @ weight.T
        total = torch.where(total.isnan(), plain, total)
        total = total if bias is None else total + bias
        return total if table is None else total + table[torch.arange(len(rows)) % len(table)]


@pytest.fixture
def emulated(monkeypatch):
    """Products of few rows, too, on the processor, by the emulation."""
    kernels = Emulation()
    monkeypatch.setattr(split_products, "find_kernels", lambda where: kernels)
    monkeypatch.setattr(split_products, "LEAST_ROWS", 4)
    return kernels


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
OF_ANY_SIZE = st.builds(math.ldexp, st.floats(-1, 1, width=32), st.integers(-170, 127)) | FLOATS


@given(st.lists(OF_ANY_SIZE, min_size=1, max_size=9))
def test_parts_hold_a_row_to_the_23rd_bit(numbers):
    row = torch.tensor([numbers], dtype=torch.float32)
    parts, exact = split(row), row.double()
    largest = float(exact.abs().max())
    assert [one.dtype for one in parts] == [torch.float16, torch.float16, torch.float32]
    assert parts.high.shape == parts.low.shape == row.shape and parts.scale.shape == (1,)
    assert parts.high.isfinite().all() and parts.low.isfinite().all()
    if largest != 0 and not 2**-60 <= largest < 2**61:
        assert parts.scale.isnan() and not parts.high.any() and not parts.low.any()
        return
    scale = float(parts.scale)
    assert math.frexp(scale)[0] == 0.5  # a power of two
    if largest == 0:
        assert not parts.high.any() and not parts.low.any()
        return
    assert 2**14 <= largest / scale < 2**15
    rest = (exact / scale - parts.high.double() - parts.low.double()).abs()
    assert (rest <= torch.clamp(exact.abs() / scale * 2**-23, min=2**-25)).all()
    assert (parts.low.double().abs() <= torch.clamp(exact.abs() / scale * 2**-11, min=2**-25)).all()


@pytest.mark.parametrize("bad", [INFINITY, -INFINITY, NAN, LARGEST, 2.0**61, 2.0**-60.5, 1e-40])
def test_only_rows_that_cannot_be_split_are_left_out(bad):
    rows = torch.tensor([[1.0, -3.0], [bad, 0.0], [0.0, 0.0], [2.0**-60, 0.0], [-(2.0**60), 2.0**40]])
    parts = split(rows)
    assert parts.scale.isnan().tolist() == [False, True, False, False, False]
    assert not parts.high[1:3].any() and not parts.low[1:3].any()
    known = [0, 3, 4]
    back = (parts.high.double() + parts.low.double()) * parts.scale.double()[:, None]
    assert torch.equal(back[known], rows.double()[known])


def test_numbers_of_22_bits_are_split_exactly():
    row = torch.tensor([[1 + 2**-21, -1 + 2**-22, 1 - 2**-11, 1.5, 2**-16 + 2**-25]])
    parts = split(row)
    assert float(parts.scale) == 2**-14
    assert torch.equal((parts.high.double() + parts.low.double()) * 2**-14, row.double())
    assert parts.high[0, :2].tolist() == [2**14, -(2**14)] and parts.low[0, :2].tolist() == [2**-7, 2**-8]
    # Of 24 bits the last is lost where the rest has 12.
    parts = split(torch.tensor([[1 + 2**-12 + 2**-23]]))
    assert float(parts.high) == 2**14 and float(parts.low) == 4


@pytest.mark.parametrize("sizes", ["normal", "of rows", "within rows"])
def test_the_error_is_that_of_float32(one_thread, sizes):
    rows, weight = torch.randn(40, 1280), torch.randn(96, 1280)
    if sizes == "of rows":
        rows, weight = rows * torch.randn(40, 1).mul(8).exp(), weight * torch.randn(96, 1).mul(8).exp()
    elif sizes == "within rows":
        rows = rows * torch.randn(40, 1280).mul(2).exp()
    exact = rows.double() @ weight.double().T
    whole, cut = Emulation(), Emulation(("high low", "high high"))
    found = [one.multiply(rows, split(rows), weight, split(weight), None, None) for one in (whole, cut)]
    norms = rows.double().norm(dim=1)[:, None] * weight.double().norm(dim=1)
    errors = [float(((one.double() - exact) / norms).norm()) for one in (*found, rows @ weight.T)]
    assert errors[0] < 1.2 * errors[2] and errors[1] > 100 * errors[0], errors


def special_rows(count, width):
    """Rows of many sizes; from the second on one each has infinity, NaN, or is too large, too small or nought."""
    rows = torch.randn(count, width) * torch.randn(count, 1).mul(4).exp() * torch.randn(count, width).exp()
    changes = [
        lambda row: row[width // 2 :].fill_(-INFINITY),
        lambda row: row[:1].fill_(NAN),
        lambda row: row.mul_(2.0**70 / row.abs().max()),
        lambda row: row.mul_(2.0**-70 / row.abs().max()),
        lambda row: row.zero_(),
        lambda row: row.mul_(2.0**-140 / row.abs().max()),
        lambda row: row[1:].mul_(2.0**-20),
    ]
    for row, change in zip(rows[1:], changes, strict=False):
        change(row)
    return rows.to(DEVICE)


@NEEDS_TRITON
@pytest.mark.parametrize(("count", "width"), [(1, 8), (9, 16), (35, 72), (8, 1280), (3, 2056), (2, 5120)])
def test_the_kernel_splits_as_torch_does(count, width):
    rows = special_rows(count, width)
    found, expected = TritonKernels().split(rows), split(rows)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert torch.equal(one.isnan(), other.isnan())
        assert torch.equal(one.nan_to_num(), other.nan_to_num())


def choose_small_block(halves):
    """A block that the interpreter is quick with; a GPU is given its own."""
    if DEVICE.type == "cuda":
        return Block(halves=halves, stages=4 - halves, group=2)
    return Block(rows=16, columns=16, depth=32, halves=halves, group=2)


def multiply(rows, weight, bias=None, table=None, block=None):
    kernels = TritonKernels()
    return kernels.multiply(rows, kernels.split(rows), weight, split(weight), bias, table, block)


def check_product(found, rows, weight, bias=None, table=None):
    """Every number has the error that a sum of float32 may have."""
    exact, size = rows.double() @ weight.double().T, rows.double().abs() @ weight.double().abs().T
    if bias is not None:
        exact, size = exact + bias.double(), size + bias.double().abs()
    if table is not None:
        turned = table.double()[torch.arange(len(rows), device=rows.device) % len(table)]
        exact, size = exact + turned, size + turned.abs()
    assert found.shape == exact.shape and found.dtype == torch.float32
    fits = ~(size.isfinite() & (size > LARGEST / 2))  # else float32 may be infinite
    assert torch.equal(found.isnan() & fits, exact.isnan() & fits)
    infinite = exact.isinf()
    assert torch.equal(found[infinite].double(), exact[infinite])
    known = exact.isfinite() & fits
    assert ((found.double() - exact).abs() <= 1e-6 * size + 1e-44)[known].all()


@NEEDS_TRITON
@NEEDS_HOPPER_OR_NONE
@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize(
    ("count", "features", "width", "has_bias", "period"),
    [
        (1, 1, 8, False, 0),
        (16, 32, 32, True, 0),
        (37, 50, 72, True, 7),
        (50, 33, 40, False, 50),
        (33, 17, 24, True, 1),
        (65, 100, 8, False, 0),
    ],
)
def test_the_kernel_s_products(halves, count, features, width, has_bias, period):
    rows = (torch.randn(count, width) * torch.randn(count, 1).exp()).to(DEVICE)
    weight = (torch.randn(features, width) * torch.randn(features, 1).exp()).to(DEVICE)
    bias = torch.randn(features, device=DEVICE) if has_bias else None
    table = torch.randn(period, features, device=DEVICE) if period else None
    found = multiply(rows, weight, bias, table, choose_small_block(halves))
    check_product(found, rows, weight, bias, table)


@NEEDS_TRITON
@NEEDS_HOPPER_OR_NONE
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of infinity times nought
@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("whose", ["rows", "weights", "both"])
def test_rows_that_cannot_be_split_are_multiplied_in_float32(halves, whose):
    plain = torch.randn(20, 24), torch.randn(37, 24)
    rows = special_rows(20, 24) if whose != "weights" else plain[0].to(DEVICE)
    weight = special_rows(37, 24) if whose != "rows" else plain[1].to(DEVICE)
    bias, table = torch.randn(37, device=DEVICE), torch.randn(3, 37, device=DEVICE)
    check_product(multiply(rows, weight, bias, table, choose_small_block(halves)), rows, weight, bias, table)
    check_product(multiply(rows, weight, block=choose_small_block(halves)), rows, weight)


@NEEDS_TRITON
@NEEDS_HOPPER_OR_NONE
@pytest.mark.parametrize("features", [128, 256])
def test_the_blocks_that_are_chosen(features):
    assert choose_block(features).columns * choose_block(features).halves == features
    rows, weight = torch.randn(3, 72, device=DEVICE), torch.randn(features, 72, device=DEVICE)
    bias = torch.randn(2 * features, device=DEVICE)[::2]
    table = torch.randn(features, 2, device=DEVICE).T
    check_product(multiply(rows, weight, bias, table), rows, weight, bias, table)


def test_products_are_tried_before_they_are_used(monkeypatch):
    assert find_kernels(torch.device("cpu")) is None
    monkeypatch.setattr(split_products, "TritonKernels", Emulation)
    assert isinstance(split_products._try_products(torch.device("cpu")), Emulation)
    for wrong in (("high low", "high high"), ("low high", "high high"), ("high high",)):
        monkeypatch.setattr(split_products, "TritonKernels", lambda wrong=wrong: Emulation(wrong))
        with pytest.raises(ArithmeticError, match="a product is off by"):
            split_products._try_products(torch.device("cpu"))


def test_a_product_has_the_input_s_shape_bias_and_table(emulated):
    weight, bias, table = torch.randn(5, 16), torch.randn(5), torch.randn(6, 5)
    input = torch.randn(16, 2, 6).permute(1, 2, 0)
    with torch.inference_mode():
        found = SplitWeight().multiply(input, weight, bias, table)
        plain = functional.linear(input, weight, bias) + table
    assert emulated.calls == [(12, 16)]
    assert found.shape == (2, 6, 5) and torch.allclose(found, plain, atol=1e-5)


def is_multiplied(input, weight, *added):
    return SplitWeight().multiply(input, weight, *added) is not None


def test_where_products_are_left_to_torch(emulated):
    from hardlook.rclicks.cost import count_flops

    rows, weight, bias, table = torch.randn(4, 8), torch.randn(3, 8), torch.randn(3), torch.randn(4, 3)
    with torch.inference_mode():
        assert is_multiplied(rows, weight) and is_multiplied(rows, weight, bias, table)
        done = len(emulated.calls)
        for kind in (torch.float64, torch.float16, torch.bfloat16):
            assert not is_multiplied(rows.to(kind), weight)
            assert not is_multiplied(rows, weight.to(kind))
            assert not is_multiplied(rows, weight, bias.to(kind))
            assert not is_multiplied(rows, weight, bias, table.to(kind))
        for other in (rows.to("meta"), rows[:3], rows[:0], torch.randn(4, 12), torch.randn(4, 0)):
            assert not is_multiplied(other, weight)
        for count in (1, 2, 3, 8):
            assert not is_multiplied(rows, weight, bias, torch.randn(count, 3))
        assert not is_multiplied(rows[0], weight, bias, table)
        assert not is_multiplied(rows.to("meta"), weight.to("meta"))
        for other in (torch.randn(8, 3).T, torch.randn(3, 9)[:, :8], torch.randn(0, 8), weight.to("meta")):
            assert not is_multiplied(rows, other)
        assert not is_multiplied(torch.randn(4, 12), torch.randn(3, 12))
        assert not is_multiplied(torch.randn(4, 0), torch.randn(3, 0))
        assert not is_multiplied(torch.zeros(4, WIDEST + 8), torch.zeros(3, WIDEST + 8))
        with torch.autocast("cpu", torch.bfloat16):
            assert not is_multiplied(rows, weight)
        with exact_inference("tf32"):
            assert not is_multiplied(rows, weight)
        assert count_flops(lambda: is_multiplied(rows, weight)) == 0
    assert not is_multiplied(rows, weight)
    with torch.no_grad():
        torch.func.vmap(lambda one: rows if is_multiplied(one, weight) else one)(torch.randn(2, 4, 8))
        assert len(emulated.calls) == done
        assert is_multiplied(rows, weight)


def test_few_rows_are_left_to_torch(monkeypatch):
    kernels = Emulation()
    monkeypatch.setattr(split_products, "find_kernels", lambda where: kernels)
    with torch.inference_mode():
        assert not is_multiplied(torch.randn(LEAST_ROWS - 1, 8), torch.randn(3, 8))
        assert is_multiplied(torch.randn(2, LEAST_ROWS // 2, 8), torch.randn(3, 8))


def test_without_kernels_the_layer_is_the_plain_one():
    plain, rows = nn.Linear(8, 3), torch.randn(LEAST_ROWS, 8)
    with torch.inference_mode():
        assert torch.equal(build_split_linear(plain)(rows), plain(rows))


def test_shapes_are_found_without_numbers():
    layer = build_split_linear(nn.Linear(8, 3, device="meta"))
    with torch.no_grad():
        assert layer(torch.zeros(LEAST_ROWS, 8, device="meta")).shape == (LEAST_ROWS, 3)


def test_a_layer_that_is_dropped_leaves_no_weights(emulated):
    layer, rows = build_split_linear(nn.Linear(8, 3)), torch.randn(4, 8)
    with torch.no_grad():
        layer(rows)
    left = [weakref.ref(one) for one in (layer, layer.weight, layer._split._known[2].high)]
    gc.disable()
    try:
        del layer
        assert [one() for one in left] == [None, None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(8,), (1, 8), (5, 8), (2, 3, 4, 8), (0, 8)])
def test_the_layer_takes_what_a_linear_layer_takes(emulated, bias, shape):
    plain = nn.Linear(8, 3, bias=bias)
    layer = build_split_linear(plain)
    turned = torch.randn(shape[::-1]).permute(*reversed(range(len(shape))))
    for inputs in (torch.randn(shape), torch.randn(*shape[:-1], 16)[..., ::2], turned):
        with torch.no_grad():
            assert layer(inputs).shape == plain(inputs).shape
            assert torch.allclose(layer(inputs), plain(inputs), rtol=1e-6, atol=1e-6)
    assert len(emulated.calls) == 6 * (math.prod(shape[:-1]) > 4)


def test_elsewhere_the_layer_is_the_plain_one(emulated):
    from hardlook.rclicks.cost import count_flops

    plain, rows = nn.Linear(8, 3), torch.randn(4, 8)
    layer = build_split_linear(plain)
    layer(rows).sum().backward()
    assert plain.weight.grad is not None and layer.weight is plain.weight
    with torch.inference_mode():
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(layer(rows), plain(rows)) and layer(rows).dtype == torch.bfloat16
        with exact_inference("tf32"):
            assert torch.equal(layer(rows), plain(rows))
        assert count_flops(lambda: layer(rows)) == 2 * 4 * 8 * 3
    assert not emulated.calls


@pytest.fixture
def splits(monkeypatch):
    """A list that grows with every weight that is split."""
    calls = []
    monkeypatch.setattr(split_products, "split", lambda weight: calls.append(weight.shape) or split(weight))
    return calls


def test_weights_are_split_once_and_again_when_they_change(emulated, splits):
    emulated.split = split
    plain, rows = nn.Linear(8, 3), torch.randn(4, 8)
    layer = build_split_linear(plain)

    def check(count):
        with torch.no_grad():
            assert torch.allclose(layer(rows), plain(rows), atol=1e-5)
            layer(rows)
        assert len(splits) == count

    check(1)
    with torch.no_grad():
        plain.weight.mul_(2)
        check(2)
        plain.weight = nn.Parameter(plain.weight + 1)
        check(3)
    layer.double()
    with torch.no_grad():
        assert layer(rows.double()).dtype == torch.float64
    layer.weight.data += 1
    layer.float()
    check(4)
    layer.load_state_dict(nn.Linear(8, 3).state_dict())
    check(5)


def test_other_memory_of_a_weight_at_the_same_place_is_split_anew(emulated, splits):
    """`double` and `float` replace it, and an allocator may give the place again, which is not counted as a change."""
    emulated.split = split
    memory, rows = np.ones((3, 8), np.float32), torch.ones(4, 8)
    layer, states = build_split_linear(nn.Linear(8, 3, bias=False)), []
    layer.weight.data = torch.from_numpy(memory)
    with torch.no_grad():
        for value in (1.0, 2.0):
            memory[:] = value  # unseen by torch
            layer.weight.data = torch.from_numpy(memory)
            states.append(state_of(layer.weight))
            assert torch.equal(layer(rows), torch.full((4, 3), 8 * value))
    assert states[0] == states[1] and len(splits) == 2


def test_another_weight_at_the_same_place_is_split_anew(emulated, splits):
    memory, rows = np.ones((3, 8), np.float32), torch.ones(4, 8)
    layer = build_split_linear(nn.Linear(8, 3, bias=False))
    emulated.split = split
    states = []
    with torch.inference_mode():
        for value in (1.0, 2.0):
            memory[:] = value  # unseen by torch
            layer.weight = None
            gc.collect()
            layer.weight = nn.Parameter(torch.from_numpy(memory), requires_grad=False)
            states.append(state_of(layer.weight))
            assert torch.equal(layer(rows), torch.full((4, 3), 8 * value))
    assert states[0] == states[1] and len(splits) == 2


def test_a_state_is_known_for_tensors_of_inference_too():
    with torch.inference_mode():
        made = torch.zeros(3)
    assert state_of(made) == state_of(made) != state_of(torch.zeros(3))


def test_wide_layers_are_replaced_and_keep_their_parameters_and_hooks(emulated):
    from hardlook.rclicks.cost import count_parameters

    class Other(nn.Linear):
        pass

    network = nn.Sequential(nn.Linear(8, 128), nn.Sequential(nn.Linear(128, 512)), Other(512, 512), nn.Linear(512, 1))
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
        network(torch.randn(4, 8))
    assert seen == [1] and emulated.calls == [(4, 128), (4, 512)]
    assert list(network.state_dict()) == names  # the weights' parts are no part of it


def test_copies_of_a_layer_have_weights_and_parts_of_their_own(emulated):
    layer, rows = build_split_linear(nn.Linear(8, 3).requires_grad_(False)), torch.randn(4, 8)
    layer.eval()
    with torch.no_grad():
        expected = layer(rows)
        for made in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), copy.deepcopy(nn.Sequential(layer))[0]):
            assert type(made).__name__ == "SplitLinear" and not made.training and "_split" in vars(made)
            assert made.weight is not layer.weight and not made.weight.requires_grad
            assert made._split is not layer._split and made._split._known is None
            assert list(made.state_dict()) == ["weight", "bias"]
            assert torch.equal(made(rows), expected)
        made.weight.zero_()
        assert torch.equal(layer(rows), expected) and torch.equal(made(rows), made.bias.expand(4, 3))
    twin = copy_without_weights(layer)
    assert twin.weight is layer.weight and twin._split is not layer._split
    for made in (copy.deepcopy(layer._split), pickle.loads(pickle.dumps(layer._split))):
        assert made._known is None and layer._split._known is not None


@NEEDS_GPU
def test_a_graph_that_comes_before_the_parts_has_the_plain_product():
    rows, plain = torch.randn(LEAST_ROWS, 64, device=DEVICE), nn.Linear(64, 128).to(DEVICE)
    layers = [build_split_linear(plain) for _ in range(2)]
    with exact_inference():
        expected = [plain(rows), layers[1](rows)]
        for layer, product in zip(layers, expected, strict=True):
            graph = torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                found = layer(rows)
            graph.replay()
            assert torch.equal(found, product)
    assert layers[0]._split._known is None


@NEEDS_GPU
def test_a_hopper_has_the_kernels():
    assert (find_kernels(torch.empty(0, device=DEVICE).device) is not None) == ON_HOPPER


@pytest.mark.parametrize("features", [192, 512])
@pytest.mark.parametrize("has_table", [False, True])
def test_every_block_is_tried(monkeypatch, features, has_table):
    class Wrong(Emulation):
        def multiply(self, rows, parts, weight, weight_parts, bias, table):
            found = super().multiply(rows, parts, weight, weight_parts, bias, table)
            return found * (1.01 if (len(weight), table is not None) == (features, has_table) else 1)

    monkeypatch.setattr(split_products, "TritonKernels", Wrong)
    monkeypatch.setattr(split_products, "TRIED", (20, 72))
    with pytest.raises(ArithmeticError, match="a product is off by"):
        split_products._try_products(torch.device("cpu"))


@pytest.mark.parametrize(("capability", "found"), [((8, 9), None), ((9, 0), "kernels"), ((10, 0), None)])
def test_only_a_hopper_is_asked(monkeypatch, capability, found):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda where: capability)
    monkeypatch.setattr(split_products, "try_kernels", lambda *given: "kernels")
    assert find_kernels.__wrapped__(torch.device("cuda", 0)) == found


class OnGpu(torch.Tensor):
    """Rows that say they are on a GPU."""

    is_cuda = True


def test_parts_are_not_made_while_a_graph_is_recorded(emulated, monkeypatch):
    rows, weight, product = torch.randn(4, 8).as_subclass(OnGpu), torch.randn(3, 8), SplitWeight()
    found = []
    with torch.inference_mode():
        for records in (True, False, True):
            monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda records=records: records)
            found.append(product.multiply(rows, weight) is not None)
    assert found == [False, True, True]
