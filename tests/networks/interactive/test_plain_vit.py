"""The plain ViT: which blocks see everything, how windows tile the grid, positions for other sizes, large networks."""

import math

import numpy as np
import pytest
import torch

from hardlook.networks.interactive.adaptiveclick import AdaptiveClick
from hardlook.networks.interactive.click_maps import pack_clicks
from hardlook.networks.interactive.plain_vit import (
    PlainViT,
    SimplePyramid,
    count_windows,
    global_blocks,
    join_windows,
    split_windows,
)
from hardlook.networks.interactive.simpleclick import SimpleClick


def test_global_blocks_of_the_published_depths():
    found = {depth: sorted(global_blocks(depth)) for depth in (8, 12, 24, 32)}
    assert found == {8: [2, 4, 6, 8], 12: [6, 12], 24: [6, 12, 18, 24], 32: [8, 16, 24, 32]}


def test_as_many_windows_as_fit():
    assert count_windows((28, 28), 14) == (2, 2)
    assert count_windows((42, 42), 14) == (3, 3)
    assert count_windows((32, 48), 16) == (2, 3)
    assert count_windows((27, 4), 14) == (1, 1), "a grid smaller than two windows is one"
    assert count_windows((30, 28), 14) == (2, 2), "windows of 15 x 14"
    with pytest.raises(ValueError, match="29 x 28 tokens cannot be cut into 2 x 2 equal windows"):
        count_windows((29, 28), 14)


def test_windows_are_cut_row_by_row_and_joined_again():
    grid, windows = (4, 6), (2, 3)
    tokens = torch.arange(2 * 24.0).reshape(2, 24, 1)
    cut = split_windows(tokens, grid, windows)
    assert cut.shape == (12, 4, 1)
    assert cut[0, :, 0].tolist() == [0, 1, 6, 7]
    assert cut[1, :, 0].tolist() == [2, 3, 8, 9]
    assert cut[3, :, 0].tolist() == [12, 13, 18, 19]
    assert cut[6, :, 0].tolist() == [24, 25, 30, 31], "then those of the second picture"
    assert torch.equal(join_windows(cut, grid, windows), tokens)


def test_windowed_blocks_see_their_window_only_and_global_ones_everything():
    torch.manual_seed(0)
    network = PlainViT(16, 16, 8, 2, side=448).eval()
    pictures = torch.rand(1, 3, 448, 448)
    changed = pictures.clone()
    changed[..., :224, :224] += 1
    none = torch.zeros(1, 784, 16)
    with torch.no_grad():
        one, other = (network.features(each, none) for each in (pictures, changed))
    differs = (one["block1_windowed"] != other["block1_windowed"]).flatten(1).any(1)
    assert differs.tolist() == [True, False, False, False]
    assert (one["block4"] != other["block4"]).any(2).all(), "block 2 is global"
    assert torch.equal(one["block8"].transpose(1, 2).reshape(1, 16, 28, 28), one["backbone_map"])


def test_positions_are_resized_from_the_trained_ones():
    network = PlainViT(16, 4, 4, 2, side=64)
    assert torch.equal(network.positions((4, 4)), network.pos_embed[:, 1:])
    with torch.no_grad():
        network.pos_embed[:, 1:] = torch.arange(4.0).repeat_interleave(4)[None, :, None]
    larger = network.positions((8, 12))
    assert larger.shape == (1, 96, 4)
    rows = larger.detach().reshape(8, 12, 4)
    assert (rows - rows[:, :1]).abs().max() < 1e-5, "nothing changes along a row"
    np.testing.assert_allclose(rows.mean((1, 2)).mean(), 1.5, atol=1e-6)
    assert (rows[1:, 0, 0] > rows[:-1, 0, 0]).all()


def test_the_pyramid_has_four_sizes():
    levels = SimplePyramid(8, (3, 5, 7, 9))(torch.rand(2, 8, 6, 10))
    assert [tuple(level.shape) for level in levels] == [(2, 3, 24, 40), (2, 5, 12, 20), (2, 7, 6, 10), (2, 9, 3, 5)]


def fill_with_noise(network):
    """Parameters of a seed, drawn a million at a time: drawing them all would take longer than the forward pass."""
    noise = torch.randn(1 << 20, generator=torch.Generator().manual_seed(7))
    for name, value in network.state_dict().items():
        flat = value.view(-1)
        spread = math.prod(value.shape[1:]) ** -0.5 if value.ndim > 1 else 0.1
        centre = 1.0 if value.ndim < 2 and name.endswith("weight") else 0.0
        for start in range(0, len(flat), len(noise)):
            part = flat[start : start + len(noise)]
            part.copy_(noise[: len(part)] * spread + centre)
    return network


@pytest.mark.parametrize(
    ("family", "size"), [(SimpleClick, "vit_large"), (SimpleClick, "vit_huge"), (AdaptiveClick, "vit_huge")]
)
def test_the_largest_networks_answer_two_courses_as_each_alone(family, size, request):
    # 324, 662 and 708 million parameters, of which released code gives names and shapes but no answers.
    if not request.config.getoption("--goldens", default=False):
        pytest.skip("takes 5 to 15 seconds and 3.4 GB of memory each: pass --goldens")
    with torch.inference_mode():
        with torch.device("meta"):
            network = family.build(size).eval()
        network = fill_with_noise(network.to_empty(device="cpu"))
        network.reading = "ours"  # AdaptiveClick's released code swaps height and width
        patch = network.backbone.patch
        inputs = torch.rand(2, 4, 448, 4 * patch, generator=torch.Generator().manual_seed(8))
        courses = [[(5, 7, True)], [(440, 50, True), (100, 20, False)]]
        found = network.features(inputs, pack_clicks(courses))
        together = found["instances"]
        assert found["block1_windowed"].shape[:2] == (4, 224 // patch * 4), "two windows in each picture"
        assert together.shape == (2, 1, 448, 4 * patch)
        assert together.isfinite().all() and together.std((1, 2, 3)).min() > 1e-3
        for place, course in enumerate(courses):
            alone = network(inputs[place : place + 1], pack_clicks([course]))["instances"]
            assert (together[place] - alone[0]).abs().max() < 1e-5 * alone.abs().max()
        moved = network(inputs[:1], pack_clicks([[(300, 7, True)]]))["instances"]
        assert (moved[0] - together[0]).abs().max() > 1e-3 * moved.abs().max(), "clicks matter"
