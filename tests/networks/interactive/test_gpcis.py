"""GPCIS: clicks have the last word, absent and equal ones do no harm; checkpoints' names, and the released code."""

import numpy as np
import pytest
import torch
from goldens import fill, read_golden
from interactive_goldens import check_array, multiply

from hardlook.networks.interactive.checkpoints import Checkpoint, build_network
from hardlook.networks.interactive.click_maps import pack_clicks
from hardlook.networks.interactive.gpcis import GPCIS, squared_distances, take_clicked

COURSES = [[(5, 7, True), (20, 30, False)], [(40, 50, True)], [(10, 10, False), (30, 60, True), (30, 3, True)]]


@pytest.fixture(scope="module")
def network():
    """GPCIS with the parameters of the goldens."""
    factors = [
        (lambda name, _: name.startswith("model.backbone.layer") and name.endswith("bn3.weight"), 0.5),
        (lambda name, _: name == "maps_transform.3.scale", 20),
    ]
    return multiply(fill(GPCIS.build("resnet50")), factors).eval().requires_grad_(False)


def test_each_click_has_its_value_at_its_pixel(network):
    inputs, points = torch.rand(3, 4, 48, 64), pack_clicks(COURSES)
    logits = network(inputs, points)["instances"]
    for place, course in enumerate(COURSES):
        for row, column, positive in course:
            assert (logits[place, 0, row, column] > 0) == positive
        alone = network(inputs[place : place + 1], pack_clicks([course]))["instances"]
        assert (logits[place] - alone[0]).abs().max() < 1e-5 * alone.abs().max(), "absent clicks do no harm"


def test_the_last_mask_changes_the_answer(network):
    inputs, points = torch.rand(1, 4, 48, 64), pack_clicks(COURSES[:1])
    logits = network(inputs, points)["instances"]
    without = network(inputs * torch.tensor([1.0, 1, 1, 0])[:, None, None], points)["instances"]
    assert (without - logits).abs().max() > 1e-3 * logits.abs().max()


def test_two_clicks_on_one_pixel_and_clicks_outside_are_answered(network):
    inputs = torch.rand(1, 4, 48, 64)

    def answer(*clicks):
        # The coordinate maps see all clicks: only the process is looked at.
        found = network.features(inputs, pack_clicks([[(20, 30, True)]]))
        pixels = torch.nn.functional.normalize(found["features"], dim=1)
        pixels = torch.nn.functional.interpolate(pixels, (48, 64), mode="bilinear", align_corners=True)
        return network._condition(torch.cat([pixels, inputs[:, :3]], 1), pack_clicks([clicks]))[1]

    once = answer((20, 30, True))
    assert (answer((20, 30, True), (20.7, 30.2, True)) - once).abs().max() < 1e-5, "coordinates are truncated"
    for outside in ((-3, 5, False), (5, -0.5, False), (48, 5, False), (5, 64, False)):
        assert torch.equal(answer((20, 30, True), outside), once)
    contradicted = answer((20, 30, True), (20, 30, False))
    assert contradicted.abs().max() < 10, "a click and its opposite cancel"


def test_runs_in_bfloat16(network):
    inputs, points = torch.rand(1, 4, 48, 64), pack_clicks(COURSES[:1])
    exact = network(inputs, points)["instances"]
    with torch.autocast("cpu", torch.bfloat16):
        rounded = network(inputs, points)["instances"]
    assert (rounded - exact).abs().max() < 0.3 * exact.abs().max()


def test_clicked_pixels_and_distances_are_as_counted_by_hand():
    pixels = torch.arange(12.0).reshape(1, 6, 2)
    taken, valid = take_clicked(pixels, torch.tensor([[[1.9, 0.0, 0], [0, 2, 1], [2, 0, 2], [-1, -1, -1]]]), (2, 3))
    assert valid.tolist() == [[True, True, False, False]]
    assert taken[0, :2].tolist() == [[6, 7], [4, 5]]
    assert squared_distances(pixels[:, :1], pixels[:, 1:3]).tolist() == [[[8, 32]]]


def test_a_checkpoint_tells_its_architecture(tmp_path):
    made = GPCIS(width=8)
    arguments = {"norm_radius": 260, "weight_dir": "/nowhere", "use_disks": False}
    again = build_network(Checkpoint(tmp_path / "x.pth", "", made.state_dict(), arguments=arguments), "gpcis")
    assert isinstance(again, GPCIS)
    assert (again.click_maps.norm_radius, again.click_maps.use_disks) == (5, True), "whatever the arguments say"


def test_equals_the_released_code(network):
    golden = read_golden("interactive", "gpcis_resnet50")
    assert [[name, list(value.shape)] for name, value in network.state_dict().items()] == golden.facts["parameters"]
    arrays, points = golden.arrays, torch.from_numpy(golden.arrays["points"])
    inputs = {"image", "prev_mask", "points", "relative_noise_names", "relative_noise_values"}
    stored = {name.partition("__")[0] for name in arrays.files} - inputs
    assert not stored - inputs or not arrays["u_loss"].any(), "a loss of training, which is nothing in evaluation"
    single = {name for name in stored if not name.endswith("_float64")} - {"u_loss"}
    assert stored - single - {"u_loss"} == {"instances_float64"}
    previous = torch.from_numpy(arrays["prev_mask"].astype(np.float32))
    for dtype, names in ((torch.float32, single), (torch.float64, {"instances_float64"})):
        image = torch.from_numpy(arrays["image"]).permute(2, 0, 1)[None].to(dtype) / 255
        found = network.to(dtype).features(torch.cat([image, previous.to(dtype)], 1), points)
        for name in names:
            tolerance = 1e-10 if dtype == torch.float64 else 2e-4
            check_array(golden, name, found[name.removesuffix("_float64")], tolerance=tolerance)
    network.float()
