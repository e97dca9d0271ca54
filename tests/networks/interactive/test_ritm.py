"""RITM: what its inputs do, padded batches, checkpoints' names, and the released code."""

import numpy as np
import pytest
import torch
from goldens import fill, read_golden
from interactive_goldens import check_array, check_trajectory, multiply, read_arrays

from hardlook.networks.interactive.click_maps import pack_clicks
from hardlook.networks.interactive.predictor_settings import PredictorSettings, ZoomIn
from hardlook.networks.interactive.predictors import stack_padded
from hardlook.networks.interactive.ritm import RITM, SIZES

COURSES = [[(5, 7, True), (20, 30, False)], [(40, 50, True)], [(10, 10, False), (30, 60, True), (30, 3, True)]]


def is_stage_weight(name, value):
    return value.ndim == 1 and name.startswith("feature_extractor.stage") and name.endswith(".weight")


def make_filled(size):
    """The network with the parameters of the goldens."""
    stages = 0.3 if size == "hrnet18s" else 0.2
    scale = (lambda name, _: name == "maps_transform.3.scale", 20)
    return multiply(fill(RITM.build(size)), [(is_stage_weight, stages), scale]).eval()


@pytest.fixture(scope="module")
def small():
    """HRNet-18s with parameters that let clicks matter."""
    with torch.inference_mode():
        yield make_filled("hrnet18s")


def test_pictures_of_a_padded_batch_have_their_own_logits(small):
    pictures = [torch.rand(4, *size) for size in ((61, 97), (64, 72), (48, 90))]
    batch, padded = stack_padded(pictures)
    assert padded
    assert batch.shape == (3, 4, 64, 97)
    sizes = torch.tensor([picture.shape[1:] for picture in pictures])
    together = small(batch, pack_clicks(COURSES), sizes)["instances"]
    for place, picture in enumerate(pictures):
        alone = small(picture[None], pack_clicks([COURSES[place]]))["instances"][0]
        rows, columns = picture.shape[1:]
        difference = (together[place, :, :rows, :columns] - alone).abs().max() / alone.abs().max()
        assert difference < 5e-6, "float32 rounds; in float64 it is 3e-15 (test_hrnet)"


def test_courses_of_a_batch_do_not_mix(small):
    inputs = torch.rand(3, 4, 40, 64)
    together = small(inputs, pack_clicks(COURSES))["instances"]
    for place in range(3):
        alone = small(inputs[place : place + 1], pack_clicks([COURSES[place]]))["instances"]
        assert (together[place] - alone[0]).abs().max() < 5e-6 * alone.abs().max()


def test_clicks_and_the_last_mask_change_the_answer(small):
    inputs, points = torch.rand(1, 4, 40, 64), pack_clicks([[(20, 30, True)]])
    logits = small(inputs, points)["instances"]
    for other in (
        small(inputs, pack_clicks([[(20, 31, True)]])),
        small(inputs, pack_clicks([[(20, 30, False)]])),
        small(inputs * torch.tensor([1.0, 1, 1, 0])[:, None, None], points),
    ):
        assert (other["instances"] - logits).abs().max() > 1e-3 * logits.abs().max()


def test_the_baseline_has_two_coordinate_channels_and_else_the_same_parameters():
    shapes = [
        {
            name: tuple(value.shape)
            for name, value in RITM.build("hrnet18", with_prev_mask=with_mask).state_dict().items()
        }
        for with_mask in (True, False)
    ]
    assert list(shapes[0]) == list(shapes[1])
    assert {name for name in shapes[0] if shapes[0][name] != shapes[1][name]} == {"maps_transform.0.weight"}
    assert shapes[1]["maps_transform.0.weight"] == (16, 2, 1, 1)
    baseline = RITM.build("hrnet18s", with_prev_mask=False).eval()
    with torch.no_grad():
        assert baseline(torch.rand(1, 3, 32, 40), pack_clicks([[]]))["instances"].shape == (1, 1, 32, 40)


def test_options_of_a_checkpoint_change_the_network():
    network = RITM(18, 48, small=True, norm_radius=3, use_disks=False, use_leaky_relu=False)
    assert isinstance(network.maps_transform[1], torch.nn.ReLU)
    assert (network.click_maps.norm_radius, network.click_maps.use_disks) == (3, False)


def test_padded_batches_are_refused_in_training():
    network = RITM.build("hrnet18s").train()
    with pytest.raises(ValueError, match="for inference"):
        network(torch.rand(2, 4, 32, 32), pack_clicks([[], []]), torch.tensor([[32, 32], [30, 20]]))


def test_runs_in_bfloat16(small):
    inputs, points = torch.rand(2, 4, 48, 64), pack_clicks(COURSES[:2])
    exact = small(inputs, points)["instances"]
    with torch.autocast("cpu", torch.bfloat16):
        rounded = small(inputs, points, torch.tensor([[48, 64], [48, 64]]))["instances"]
    assert (rounded - exact).abs().max() < 0.05 * exact.abs().max()


@pytest.mark.parametrize("size", SIZES)
def test_equals_the_released_code(size):
    golden = read_golden("interactive", f"ritm_{size}")
    network = make_filled(size)
    assert [[name, list(value.shape)] for name, value in network.state_dict().items()] == golden.facts["parameters"]
    arrays, points = golden.arrays, torch.from_numpy(golden.arrays["points"])
    image = torch.from_numpy(arrays["image"]).permute(2, 0, 1)[None]
    previous = torch.from_numpy(arrays["prev_mask"].astype(np.float32))
    with torch.inference_mode():
        found = network.features(torch.cat([image.float() / 255, previous], 1), points)
        np.testing.assert_array_equal(found["click_maps"], arrays["click_maps"])
        inputs = {"image", "prev_mask", "points", "relative_noise_names", "relative_noise_values"}
        stored = {name.partition("__")[0] for name in arrays.files} - inputs
        single = {name for name in stored if not name.endswith("_float64")}
        assert single <= found.keys(), "every array is compared"
        assert stored - single == {"instances_float64", "aux_quarter_float64"}
        for name in single - {"click_maps"}:
            check_array(golden, name, found[name], tolerance=1e-4)
        found = network.double().features(torch.cat([image.double() / 255, previous.double()], 1), points)
    for name in stored - single:
        check_array(golden, name, found[name.removesuffix("_float64")], tolerance=1e-10)


def test_a_course_of_six_clicks_equals_the_released_code():
    arrays = read_arrays("ritm_hrnet18s_trajectory")
    network = make_filled("hrnet18s")
    with torch.no_grad():
        network.feature_extractor.cls_head.bias += float(arrays["cls_head_bias_added"])
    settings = PredictorSettings(ZoomIn(160, min_crop=40))
    check_trajectory(arrays, "ritm_small_crop", arrays["image"], network, settings)
