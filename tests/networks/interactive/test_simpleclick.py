"""SimpleClick: windows, sizes and batches, checkpoints' names, and the released code."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from goldens import fill, read_golden
from interactive_goldens import check_array, check_trajectory, multiply, read_arrays, read_facts

from hardlook.networks.interactive.click_maps import pack_clicks
from hardlook.networks.interactive.plain_vit import PlainViT
from hardlook.networks.interactive.predictor_settings import PUBLISHED
from hardlook.networks.interactive.simpleclick import SIZES, SimpleClick

COURSES = [[(5, 7, True), (20, 30, False)], [(40, 50, True)], [(10, 10, False), (30, 60, True), (30, 3, True)]]
NOT_COMPARED = {"image", "prev_mask", "points", "relative_noise_names", "relative_noise_values"}


@pytest.fixture(scope="module")
def small():
    """ViT-XT with parameters that let clicks matter."""
    with torch.inference_mode():
        yield fill(SimpleClick.build("vit_xtiny")).eval()


def answer(network, inputs, courses):
    return network(inputs, pack_clicks(courses))["instances"]


def test_courses_of_a_batch_do_not_mix(small):
    inputs = torch.rand(3, 4, 64, 96)
    together = answer(small, inputs, COURSES)
    assert together.shape == (3, 1, 64, 96)
    for place, course in enumerate(COURSES):
        alone = answer(small, inputs[place : place + 1], [course])
        assert (together[place] - alone[0]).abs().max() < 5e-6 * alone.abs().max()


def test_clicks_and_the_last_mask_change_the_answer(small):
    inputs, clicks = torch.rand(1, 4, 64, 96), [[(20, 30, True)]]
    logits = answer(small, inputs, clicks)
    for other in (
        answer(small, inputs, [[(20, 31, True)]]),
        answer(small, inputs, [[(20, 30, False)]]),
        answer(small, inputs * torch.tensor([1.0, 1, 1, 0])[:, None, None], clicks),
    ):
        assert (other - logits).abs().max() > 1e-3 * logits.abs().max()


def test_runs_in_bfloat16(small):
    inputs = torch.rand(2, 4, 64, 96)
    exact = answer(small, inputs, COURSES[:2])
    with torch.autocast("cpu", torch.bfloat16):
        rounded = answer(small, inputs, COURSES[:2])
    assert (rounded - exact).abs().max() < 0.05 * exact.abs().max()


def test_without_the_previous_mask_there_are_two_coordinate_channels():
    network = SimpleClick.build("vit_xtiny", with_prev_mask=False).eval()
    assert network.patch_embed_coords.proj.weight.shape == (160, 2, 16, 16)
    with torch.no_grad():
        assert answer(network, torch.rand(1, 3, 32, 48), [[]]).shape == (1, 1, 32, 48)


@pytest.mark.parametrize("size", SIZES)
def test_a_checkpoint_tells_its_architecture(size):
    with torch.device("meta"):
        network = SimpleClick.build(size)
        again = SimpleClick.from_checkpoint({}, network.state_dict())
    shapes = [{name: tuple(value.shape) for name, value in one.state_dict().items()} for one in (network, again)]
    assert shapes[0] == shapes[1]
    assert again.backbone.blocks[0].attn.heads == SIZES[size]["heads"]
    assert (again.backbone.patch, again.backbone.grid) == (network.backbone.patch, network.backbone.grid)


def test_settings_of_a_checkpoint_are_used():
    with torch.device("meta"):
        state = SimpleClick.build("vit_xtiny", side=224).state_dict()
        told = {"norm_radius": 3, "use_disks": False, "backbone_params": {"num_heads": 5}}
        network = SimpleClick.from_checkpoint(told, state)
        unusable = SimpleClick.from_checkpoint({"backbone_params": {"num_heads": 7}, "norm_radius": None}, state)
    assert (network.click_maps.norm_radius, network.click_maps.use_disks) == (3, False)
    assert network.backbone.blocks[7].attn.heads == 5
    assert network.backbone.grid == 14
    assert unusable.backbone.blocks[0].attn.heads == 4, "160 channels have no 7 heads"
    assert unusable.click_maps.norm_radius == 5


def test_a_damaged_checkpoint_is_refused():
    with torch.device("meta"):
        state = SimpleClick.build("vit_xtiny").state_dict()
    empty = {name: value for name, value in state.items() if "blocks" not in name}
    with pytest.raises(ValueError, match="no blocks"):
        SimpleClick.from_checkpoint({}, empty)
    patches = {**state, "backbone.patch_embed.proj.weight": torch.zeros(160, 3, 0, 0)}
    with pytest.raises(ValueError, match="patches of no pixels"):
        SimpleClick.from_checkpoint({}, patches)
    for radius in ("five", [1], 0, -1, float("nan")):
        with pytest.raises(ValueError, match="the radius of clicks is"):
            SimpleClick.from_checkpoint({"norm_radius": radius}, state)


@pytest.mark.parametrize("size", SIZES)
def test_names_and_shapes_are_those_of_the_released_code(size):
    with torch.device("meta"):
        state = SimpleClick.build(size).state_dict()
    facts = read_facts(f"simpleclick_{size}")
    assert [[name, list(value.shape)] for name, value in state.items()] == facts["parameters"]


@pytest.mark.parametrize("size", SIZES)
def test_equals_the_released_code(size):
    read_arrays(f"simpleclick_{size}")  # skips sizes of which there is a table only
    golden = read_golden("interactive", f"simpleclick_{size}")
    network = fill(SimpleClick.build(size)).eval()
    stored = {name.partition("__")[0] for name in golden.arrays.files}
    pictures = {name.partition(".")[0] for name in stored}
    with torch.inference_mode():
        for picture in sorted(pictures):
            check_picture(golden, picture, network, {name for name in stored if name.startswith(f"{picture}.")})
        resize_in_float32(network.double().backbone)
        for picture in sorted(pictures):
            logits = network.features(*read_inputs(golden, picture, torch.float64))["instances"]
            check_array(golden, f"{picture}.instances_float64_stride8", logits[..., ::8, ::8], tolerance=1e-12)


def resize_in_float32(backbone):
    """Let a float64 backbone resize its positions in float32.

    The released evaluation resizes them once, when it starts, before the network becomes float64. Ours resizes them as
    exactly as it computes all else, which moves the logits by 1e-10 of the largest; at 448 x 448 nothing is resized.
    """
    trained = SimpleNamespace(pos_embed=backbone.pos_embed.float(), grid=backbone.grid)
    backbone.positions = lambda grid: PlainViT.positions(trained, grid).double()


def check_picture(golden, picture, network, stored):
    """All arrays of one picture in float32."""
    found = network.features(*read_inputs(golden, picture, torch.float32))
    packed = np.packbits(found.pop("click_maps").numpy().astype(bool))
    np.testing.assert_array_equal(packed, golden.arrays[f"{picture}.click_maps"])
    found["instances_stride8"] = found["instances"][..., ::8, ::8]
    compared = {f"{picture}.{name}" for name in found}
    others = {f"{picture}.{name}" for name in (*NOT_COMPARED, "click_maps", "instances_float64_stride8")}
    assert stored - others == compared, "every array is compared"
    for name in found:
        check_array(golden, f"{picture}.{name}", found[name], tolerance=1e-4)


def read_inputs(golden, picture, dtype):
    """Four channels and points of a stored picture."""
    arrays = golden.arrays
    image = torch.from_numpy(arrays[f"{picture}.image"]).permute(2, 0, 1)[None].to(dtype) / 255
    previous = torch.from_numpy(arrays[f"{picture}.prev_mask"].astype(np.float32)).to(dtype)
    return torch.cat([image, previous], 1), torch.from_numpy(arrays[f"{picture}.points"])


@pytest.mark.parametrize("name", ["simpleclick_default", "simpleclick_small_crop"])
def test_a_course_of_six_clicks_equals_the_released_code(name):
    arrays = read_arrays("simpleclick_vit_xtiny_trajectory")
    network = fill(SimpleClick.build("vit_xtiny")).eval()
    multiply(network, [(lambda entry, _: entry == "head.conv_seg.weight", 8)])
    with torch.no_grad():
        network.logit_layer.bias += float(arrays["conv_seg_bias_added"])
    settings = PUBLISHED["simpleclick"]
    if name == "simpleclick_small_crop":
        settings = replace(settings, zoom=replace(settings.zoom, min_crop=40))
    check_trajectory(arrays, name, arrays["image"], network, settings)
