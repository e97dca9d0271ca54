"""The kernels of tasks with weights of their own, beside the same operations in torch in float64."""

import pytest
import torch
import triton_loops  # noqa: F401 (before Triton is imported)
from triton_tests import DEVICE, NEEDS_TRITON

from hardlook.networks.kernels import task_kernels
from hardlook.networks.kernels.task_convolutions import PATCH, TorchOperations

pytestmark = NEEDS_TRITON
TASKS, SLOPE, EPSILON = 2, 0.1, 1e-3
# Several tiles of rows, parts of sums and parts of gradients of weights; sides that 2 does not divide.
SIZES = [(1, (3, 7, 10), 32), (9, (3, 7, 8), 16), (9, (1, 2, 3), 16)]


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def widen(block):
    """Double what is a float of a block or a tangent."""
    wide = {name: one.double() for name, one in vars(block).items() if one is not None and one.is_floating_point()}
    return type(block)(**{**vars(block), **wide})


def check(ours, theirs, rtol=2e-6):
    """Within a share of the largest number."""
    difference = (ours.double() - theirs.double()).abs().max()
    assert ours.shape == theirs.shape and difference <= rtol * theirs.abs().max()


@pytest.fixture(params=SIZES, ids=str)
def case(request):
    """Weights and norms as parts of longer rows, inputs, and two directions of everything."""
    taps, (count, height, width), channels = request.param
    inputs = PATCH if taps == 1 else channels
    long = taps * inputs * channels
    rows = [draw(seed, TASKS, long + 2 * channels + 16) for seed in range(2)]
    maps = [draw(seed, TASKS, count, height, width, inputs) for seed in (2, 3)]
    gradients = [draw(seed, TASKS, count, height // 2, width // 2, channels) for seed in (4, 5)]

    def view(one):
        norm = one[:, long : long + 2 * channels].view(TASKS, 2, channels)
        return one[:, :long].view(TASKS, taps, inputs, channels), norm

    return rows, view, maps if taps == 9 else [maps[0], None], gradients


def test_every_operation_is_that_of_torch(case, monkeypatch):
    rows, view, (maps, moves), (gradient, gradient_along) = case
    monkeypatch.setattr(task_kernels, "LEAST_ROWS", 64)
    monkeypatch.setattr(task_kernels, "PARTS", {1: 9, 9: 3})
    monkeypatch.setattr(task_kernels, "CELLS", 32)
    monkeypatch.setattr(task_kernels, "SPANS", {"statistics": 2, "sums": 2, "weights": 2})
    operations, plain = task_kernels.TritonOperations(torch.float32), TorchOperations()
    ((weight, norm), (weight_along, norm_along)) = pairs = [view(one) for one in rows]
    (wide_weight, wide_norm), (wide_along, wide_norm_along) = ([part.double() for part in pair] for pair in pairs)
    wide_moves = None if moves is None else moves.double()

    block = operations.run(maps, weight, norm, EPSILON, SLOPE)
    expected = plain.run(maps.double(), wide_weight, wide_norm, EPSILON, SLOPE)
    assert torch.equal(block.chosen, expected.chosen)
    for name in ("y", "statistics", "pooled", "kept"):
        check(getattr(block, name), getattr(expected, name))

    results = [torch.full_like(rows[0], torch.nan) for _ in range(2)]
    (product, sums), (product_along, sums_along) = (view(one) for one in results)
    wide_product, wide_sums = product.double(), sums.double()
    moved = operations.go_back(block, gradient, SLOPE, sums)
    known = widen(block)
    check(moved, plain.go_back(known, gradient.double(), SLOPE, wide_sums))
    check(sums, wide_sums)
    operations.weigh(maps, moved, product)
    plain.weigh(maps.double(), moved.double(), wide_product)
    check(product, wide_product)
    if moves is not None:
        check(operations.transpose(moved, weight), plain.transpose(moved.double(), wide_weight))

    tangent = operations.run_tangent(block, moves, weight, weight_along, norm_along, SLOPE)
    expected = plain.run_tangent(known, wide_moves, wide_weight, wide_along, wide_norm_along, SLOPE)
    for name in ("y", "moments", "pooled", "kept"):
        check(getattr(tangent, name), getattr(expected, name), 1e-5)
    moved_along = operations.go_back_tangent(block, tangent, gradient_along, norm_along, SLOPE, sums, sums_along)
    given = known, widen(tangent), gradient_along.double(), wide_norm_along, SLOPE, wide_sums
    wide_sums_along = torch.empty_like(wide_sums)
    check(moved_along, plain.go_back_tangent(*given, wide_sums_along), 1e-5)
    check(sums_along, wide_sums_along, 1e-5)
    operations.weigh_tangent(block, moves, moved_along, product_along)
    plain.weigh_tangent(widen(block), wide_moves, moved_along.double(), wide_product)
    check(product_along, wide_product)
    if moves is not None:
        back = operations.transpose_tangent(block, moved_along, weight, weight_along)
        check(back, plain.transpose_tangent(widen(block), moved_along.double(), wide_weight, wide_along))
    # Nothing is written beside the weights and norms.
    used = product[0].numel() + sums[0].numel()
    assert all(one[:, used:].isnan().all() and not one[:, :used].isnan().any() for one in results)


def test_of_equal_values_the_first_is_chosen():
    """As in torch's pooling."""
    y = draw(0, 1, 1, 4, 5, PATCH).zero_()
    y[0, 0, 1, 1] = y[0, 0, 1, 2:] = 1
    weight, norm = torch.eye(PATCH, 16, device=DEVICE)[None, None], torch.ones(1, 2, 16, device=DEVICE)
    found = task_kernels.TritonOperations(torch.float32).run(y, weight, norm, EPSILON, 0.0)
    assert found.chosen[0, 0, :, :, 0].tolist() == [[3, 2], [0, 0]]


def test_patches_are_those_of_torch():
    images = draw(0, TASKS, 3, 3, 5, 6)
    operations = task_kernels.TritonOperations(torch.float32)
    for given in (images, images.transpose(-1, -2)):
        assert torch.equal(operations.cut_patches(given), TorchOperations().cut_patches(given))


def test_a_processor_has_no_operations():
    assert task_kernels.find_operations(torch.device("cpu"), torch.float32, 16, False) is None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of NaN and infinity
def test_factors_of_tf32_are_rounded_to_its_digits():
    """To the nearest number with 11 digits, as conversions round; NaN and infinity stay."""
    ones = torch.ones(1, 1, 1, 16, PATCH, device=DEVICE)
    exact = 1 + torch.arange(16, device=DEVICE) * 2.0**-12  # of 2 ** -10 each, four quarters
    weight = torch.zeros(1, 1, PATCH, 16, device=DEVICE)
    weight[0, 0, 0] = exact
    norm = torch.ones(1, 2, 16, device=DEVICE)
    operations = task_kernels.TritonOperations(torch.float32, "tf32")
    found = operations.run(ones, weight, norm, EPSILON, 0.0).y[0, 0, 0, 0]
    assert torch.equal(found, torch.floor(exact * 2**10 + 0.5) / 2**10)
    weight[0, 0, 0, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf], device=DEVICE)
    weight[0, 0, 0, 3] = torch.tensor(0x7FFFFFFF, dtype=torch.int32, device=DEVICE).view(torch.float32)
    found = operations.run(ones, weight, norm, EPSILON, 0.0).y[0, 0, 0, 0]
    assert found[0].isnan() and found[3].isnan() and found[1:3].tolist() == [torch.inf, -torch.inf]


def test_sums_have_float32_whatever_torch_makes_by_default():
    """Means of float16 would have three digits, and sums of squares no place in it."""
    operations, inputs = task_kernels.TritonOperations(torch.float32), 300 + draw(0, 1, 2, 4, 4, 16)
    weight, norm = draw(1, 1, 9, 16, 16), draw(2, 1, 2, 16)
    expected = operations.run(inputs, weight, norm, EPSILON, SLOPE)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    try:
        found = operations.run(inputs, weight, norm, EPSILON, SLOPE)
    finally:
        torch.set_default_dtype(before)
    assert torch.equal(found.statistics, expected.statistics) and torch.equal(found.pooled, expected.pooled)
