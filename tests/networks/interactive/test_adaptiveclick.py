"""AdaptiveClick: what queries may look at, positions, checkpoints' names, and the released code."""

import math

import numpy as np
import pytest
import torch
from goldens import fill, read_golden
from interactive_goldens import check_array, read_facts

from hardlook.networks.interactive import adaptiveclick
from hardlook.networks.interactive.adaptiveclick import SIZES, AdaptiveClick, hide_pixels, pool_clicks
from hardlook.networks.interactive.click_maps import disk_maps, pack_clicks
from hardlook.networks.mask_transformer import (
    HEADS,
    LEVELS,
    POINTS,
    WIDTH,
    DeformableAttention,
    centres,
    sine_positions,
)

PLACE = {"device": torch.device("cpu"), "dtype": torch.float64}


@pytest.fixture(scope="module")
def base():
    """ViT-B with the parameters of the goldens."""
    with torch.inference_mode():
        yield fill(AdaptiveClick.build("vit_base")).eval()


@pytest.fixture(scope="module")
def small():
    """A network with a narrow backbone."""
    with torch.inference_mode():
        yield fill(AdaptiveClick(16, 32, 4, 2, (16, 16, 16, 16), side=64)).eval()


def test_positions_count_rows_and_columns_to_a_full_turn():
    found = sine_positions((2, 4), **PLACE)
    assert found.shape == (1, 8, WIDTH)
    angle = 2 * math.pi * 3 / 4  # of the third column; the first wavelength is 1
    np.testing.assert_allclose(found[0, 2, 128:130], [math.sin(angle), math.cos(angle)], atol=1e-5)
    np.testing.assert_allclose(found[0, 2, :2], [math.sin(math.pi), math.cos(math.pi)], atol=1e-5)
    second = angle / 10000 ** (2 / 128)
    np.testing.assert_allclose(found[0, 2, 130:132], [math.sin(second), math.cos(second)], atol=1e-5)


def test_centres_are_x_and_y_of_all_levels():
    found = centres([(1, 2), (2, 1)], **PLACE)[0]
    assert found.tolist() == [[0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75]]


def look_at(level, shift):
    """An attention that copies what lies `shift` pixels (x, y) of a level away from each pixel."""
    attention = DeformableAttention()
    weights = torch.full((HEADS, LEVELS, POINTS), -1e4)
    weights[:, level] = 0
    with torch.no_grad():
        for layer in (attention.value_proj, attention.output_proj):
            layer.weight.copy_(torch.eye(WIDTH))
            layer.bias.zero_()
        for layer in (attention.sampling_offsets, attention.attention_weights):
            layer.weight.zero_()
        attention.sampling_offsets.bias.copy_(torch.tensor(shift).repeat(HEADS * LEVELS * POINTS))
        attention.attention_weights.bias.copy_(weights.flatten())
    return attention


def test_deformable_attention_looks_beside_a_pixel_of_any_level():
    sizes = [(1, 2), (2, 3), (4, 4)]
    count = 2 + 6 + 16
    x = torch.rand(2, count, WIDTH)
    places = centres(sizes, device=x.device, dtype=x.dtype)
    with torch.no_grad():
        same = look_at(1, (0.0, 0.0))(x, places, x, sizes)
        beside = look_at(1, (1.0, 0.0))(x, places, x, sizes)
        below = look_at(1, (0.0, 1.0))(x, places, x, sizes)
    own = slice(2, 8)
    torch.testing.assert_close(same[:, own], x[:, own], atol=1e-5, rtol=0)
    torch.testing.assert_close(beside[:, 2:4], x[:, 3:5], atol=1e-5, rtol=0)
    assert beside[:, 4].abs().max() < 1e-5, "there is nothing beyond the last column"
    torch.testing.assert_close(below[:, 2:5], x[:, 5:8], atol=1e-5, rtol=0)
    # The two pixels of the first level have centres x = 1/4, 3/4, y = 1/2: between columns and rows of level 1.
    rows = x[:, own].reshape(2, 2, 3, WIDTH).mean(1)
    torch.testing.assert_close(same[:, 0], 0.75 * rows[:, 0] + 0.25 * rows[:, 1], atol=1e-5, rtol=0)


def test_a_click_is_seen_at_every_level():
    clicked = torch.zeros(1, 64, 64)
    clicked[0, 20, 41] = 1
    for side in (16, 8, 4):
        seen = pool_clicks(clicked, (side, side)).reshape(side, side)
        assert seen[20 * side // 64, 41 * side // 64]
        assert 1 <= seen.sum() <= 4
    assert pool_clicks(clicked, (12, 12)).shape == (1, 144), "no power of two: as many halvings as fit, then resized"


def test_a_query_of_the_object_sees_the_clicks_and_no_query_sees_nothing():
    masks = torch.full((1, 4, 2, 2), -5.0)
    masks[0, 0, 0, 0] = masks[0, 1, 0, 0] = 5
    classes = torch.tensor([[[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]])
    at_clicks = torch.tensor([[False, False, False, True]])
    hidden = hide_pixels(classes, masks, at_clicks, (2, 2))[0]
    assert hidden[0].tolist() == [False, True, True, False], "its mask and the click"
    assert hidden[1].tolist() == [False, True, True, True], "not of the object: its mask alone"
    assert hidden[2].tolist() == [True, True, True, False], "an empty mask: the click"
    assert not hidden[3].any(), "an empty mask and no click: everything"


def test_queries_see_positive_clicks_on_all_levels(small, monkeypatch):
    # The goldens have queries whose masks cover the clicks, so they would not show this.
    seen = []
    monkeypatch.setattr(adaptiveclick, "pool_clicks", lambda *given: seen.append(given) or pool_clicks(*given))
    course = [(5, 7, True), (50, 30, False)]
    small(torch.rand(1, 4, 64, 64), pack_clicks([course]))
    positive = disk_maps(pack_clicks([course]), (64, 64), radius=5)[:, 0]
    assert [size for _, size in seen] == [(2, 2), (4, 4), (8, 8)]
    assert all(torch.equal(clicked, positive) for clicked, _ in seen)


def test_hidden_pixels_do_not_matter_to_the_queries(small):
    torch.manual_seed(0)
    decoder = small.click_aware_decoder
    layer, x, positions = decoder.transformer_cross_attention_layers[0], torch.rand(1, 10, WIDTH), torch.zeros(1, 1, 1)
    keys = torch.rand(1, 6, WIDTH)
    hidden = torch.zeros(1, 10, 6, dtype=torch.bool)
    hidden[0, 2, 1] = True
    changed = keys.clone()
    changed[0, 1] += 1
    before, after = (layer(x, positions, each, each, hidden) for each in (keys, changed))
    assert (before != after).any(2)[0].tolist() == [query != 2 for query in range(10)]


def test_courses_of_a_batch_do_not_mix(small):
    torch.manual_seed(0)
    inputs = torch.rand(2, 4, 64, 64)
    courses = [[(5, 7, True), (20, 30, False)], [(40, 50, True)]]
    together = small(inputs, pack_clicks(courses))["instances"]
    for place, course in enumerate(courses):
        alone = small(inputs[place : place + 1], pack_clicks([course]))["instances"]
        assert (together[place] - alone[0]).abs().max() < 2e-5 * alone.abs().max()


def test_height_and_width_are_swapped_in_the_released_reading_only(small):
    inputs, points = torch.rand(1, 4, 64, 96), pack_clicks([[(20, 30, True)]])
    assert small(inputs, points)["instances"].shape == (1, 1, 96, 64)
    sound = AdaptiveClick(16, 32, 4, 2, (16, 16, 16, 16), side=64, reading="ours").eval()
    sound.load_state_dict(small.state_dict())
    assert sound(inputs, points)["instances"].shape == (1, 1, 64, 96)
    square = inputs[..., :64]
    assert torch.equal(sound(square, points)["instances"], small(square, points)["instances"])


def test_runs_in_bfloat16_and_float64(small):
    inputs, points = torch.rand(1, 4, 64, 64), pack_clicks([[(20, 30, True)]])
    exact = small(inputs, points)["instances"]
    with torch.autocast("cpu", torch.bfloat16):
        rounded = small(inputs, points)["instances"]
    assert rounded.shape == exact.shape
    assert (rounded - exact).abs().mean() < 0.1 * exact.abs().max()
    double = AdaptiveClick(16, 32, 4, 2, (16, 16, 16, 16), side=64).eval().double()
    double.load_state_dict(small.state_dict())
    logits = double(inputs.double(), points)["instances"]
    assert logits.dtype == torch.float64
    assert (logits - exact).abs().max() < 1e-4 * exact.abs().max()


@pytest.mark.parametrize("size", SIZES)
def test_a_checkpoint_tells_its_architecture(size):
    with torch.device("meta"):
        network = AdaptiveClick.build(size)
        again = AdaptiveClick.from_checkpoint({"norm_radius": 3}, network.state_dict())
    shapes = [{name: tuple(value.shape) for name, value in one.state_dict().items()} for one in (network, again)]
    assert shapes[0] == shapes[1]
    assert again.backbone.blocks[0].attn.heads == SIZES[size]["heads"]
    assert again.click_maps.norm_radius == 3


@pytest.mark.parametrize("size", SIZES)
def test_names_and_shapes_are_those_of_the_released_code(size):
    with torch.device("meta"):
        state = AdaptiveClick.build(size).state_dict()
    facts = read_facts(f"adaptiveclick_{size}")
    assert [[name, list(value.shape)] for name, value in state.items()] == facts["parameters"]


def test_equals_the_released_code(base):
    golden = read_golden("interactive", "adaptiveclick_vit_base")
    arrays = golden.arrays
    image = torch.from_numpy(arrays["image"]).permute(2, 0, 1)[None].float() / 255
    previous = torch.from_numpy(arrays["prev_mask"].astype(np.float32))
    found = base.features(torch.cat([image, previous], 1), torch.from_numpy(arrays["points"]))
    found["instances_stride8"] = found["instances"][..., ::8, ::8]
    stored = {name.partition("__")[0] for name in arrays.files} - {"image", "prev_mask", "points"}
    assert stored <= found.keys(), "every array is compared"
    for name in sorted(stored):
        # A pixel of a query's mask that rounding hides or shows changes its logits by 6e-5.
        check_array(golden, name, found[name], tolerance=2e-4)
