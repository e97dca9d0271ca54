"""Operations on tasks with weights of their own, beside torch's layers and their derivatives, in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from hardlook.networks.kernels.task_convolutions import PATCH, TorchOperations

EPSILON = 1e-3
NEAR = {"rtol": 1e-9, "atol": 1e-10}


def run_block(x, weight, offset, scale, slope):
    """One task's block of torch's layers: x (n, inputs, h, w), weight (C, inputs, 3, 3)."""
    y = functional.conv2d(x, weight, padding=1)
    variance, mean = torch.var_mean(y, (0, 2, 3), correction=0, keepdim=True)
    z = (y - mean) / (variance + EPSILON).sqrt() * scale[:, None, None] + offset[:, None, None]
    return functional.max_pool2d(functional.leaky_relu(z, slope) if slope else functional.relu(z), 2)


def differentiate_block(x, weight, offset, scale, gradient, slope):
    """Output and gradients of x, weight, offset and scale."""
    output, back = torch.func.vjp(lambda *given: run_block(*given, slope), x, weight, offset, scale)
    return output, *back(gradient)


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def last(maps):
    """Maps (..., C, h, w) with their channels last."""
    return maps.movedim(-3, -1)


def flat(weight):
    """(tasks, C, inputs, 3, 3) as (tasks, taps, inputs, C)."""
    return weight.permute(0, 3, 4, 2, 1).flatten(1, 2)


@given(
    tasks=st.integers(1, 3),
    count=st.integers(1, 3),
    height=st.integers(2, 7),
    width=st.integers(2, 7),
    inputs=st.integers(1, 3),
    channels=st.integers(1, 3),
    slope=st.sampled_from([0.0, 0.2]),
    still=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_values_gradients_and_tangents_are_those_of_torchs_layers(
    tasks, count, height, width, inputs, channels, slope, still
):
    shapes = [(count, inputs, height, width), (channels, inputs, 3, 3), (channels,), (channels,)]
    shapes.append((count, channels, height // 2, width // 2))
    places = [draw(number, tasks, *shape) for number, shape in enumerate(shapes)]
    directions = [draw(10 + number, tasks, *shape) for number, shape in enumerate(shapes)]
    if still:
        directions[0].zero_()
    expected, expected_tangents = torch.func.vmap(
        lambda *given: torch.func.jvp(lambda *one: differentiate_block(*one, slope), given[:5], given[5:])
    )(*places, *directions)

    operations = TorchOperations()
    (x, weight, *norm, gradient), (x_along, weight_along, *norm_along, gradient_along) = places, directions
    weight, weight_along = flat(weight), flat(weight_along)
    norm, norm_along = torch.stack(norm, 1), torch.stack(norm_along, 1)
    moves = None if still else last(x_along).contiguous()
    block = operations.run(last(x).contiguous(), weight, norm, EPSILON, slope)
    sums, product = torch.empty_like(norm), torch.empty_like(weight)
    moved = operations.go_back(block, last(gradient).contiguous(), slope, sums)
    operations.weigh(block.inputs, moved, product)
    found = block.pooled, operations.transpose(moved, weight), product, sums[:, 0], sums[:, 1]
    for ours, theirs in zip(found, rearrange(expected), strict=True):
        torch.testing.assert_close(ours, theirs, **NEAR)

    tangent = operations.run_tangent(block, moves, weight, weight_along, norm_along, slope)
    sums_along, product_along = torch.empty_like(sums), torch.empty_like(product)
    moved_along = operations.go_back_tangent(
        block, tangent, last(gradient_along).contiguous(), norm_along, slope, sums, sums_along
    )
    operations.weigh_tangent(block, moves, moved_along, product_along)
    back = operations.transpose_tangent(block, moved_along, weight, weight_along)
    found = tangent.pooled, back, product_along, sums_along[:, 0], sums_along[:, 1]
    for ours, theirs in zip(found, rearrange(expected_tangents), strict=True):
        torch.testing.assert_close(ours, theirs, **NEAR)


def rearrange(found):
    """Output, gradients of x, weight, offset, scale in our layout."""
    return last(found[0]), last(found[1]), flat(found[2]), found[3], found[4]


def test_patches_times_a_flat_weight_are_a_convolution():
    images, weight = draw(0, 2, 3, 3, 4, 5), draw(1, 2, 6, 3, 3, 3)
    patches = TorchOperations().cut_patches(images)
    assert patches.shape == (2, 3, 4, 5, PATCH) and not patches[..., 27:].any()
    norm = draw(2, 2, 2, 6)
    y = (
        TorchOperations()
        .run(patches, functional.pad(flat(weight).flatten(1, 2), (0, 0, 0, 5))[:, None], norm, 0.1, 0)
        .y
    )
    for task in range(2):
        expected = functional.conv2d(images[task], weight[task], padding=1)
        torch.testing.assert_close(y[task], last(expected), **NEAR)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_maps_have_the_type_that_is_asked_for_and_statistics_float32(dtype):
    operations = TorchOperations(dtype)
    patches = operations.cut_patches(torch.randn(1, 2, 3, 4, 4))
    norm, sums = torch.ones(1, 2, 4), torch.zeros(1, 2, 4)
    weight = torch.randn(1, 1, PATCH, 4).to(dtype)
    block = operations.run(patches, weight, norm, EPSILON, 0.0)
    moved = operations.go_back(block, block.pooled, 0.0, sums)
    tangent = operations.run_tangent(block, None, weight, weight, norm, 0.0)
    maps = [patches, block.y, block.pooled, block.kept, moved, tangent.y, tangent.pooled, tangent.kept]
    assert {one.dtype for one in maps} == {dtype}
    assert {one.dtype for one in (block.statistics, tangent.moments)} == {torch.float32}
