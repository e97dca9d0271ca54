"""FocalClick: crops by boxes, the refiner, S1 and S2, checkpoints' names, and the released code."""

import numpy as np
import pytest
import torch
from goldens import fill, read_golden
from interactive_goldens import check_array, multiply, read_facts

from hardlook.networks.interactive.checkpoints import Checkpoint, build_network
from hardlook.networks.interactive.click_maps import pack_clicks
from hardlook.networks.interactive.focalclick import SIZES, FocalClick, Refiner, crop_boxes

COURSES = [[(5, 7, True), (20, 30, False)], [(40, 50, True)], [(10, 10, False), (30, 60, True), (30, 3, True)]]
NOT_COMPARED = {"image", "prev_mask", "points", "refine.box", "refine.points"}


def is_stage_weight(name, value):
    return value.ndim == 1 and name.startswith("feature_extractor.stage") and name.endswith(".weight")


def make_filled(size):
    """The network with the parameters of the goldens."""
    network = fill(FocalClick.build(size)).eval().requires_grad_(False)
    if size == "hrnet18s":
        multiply(network, [(is_stage_weight, 0.3), (lambda name, _: name == "maps_transform.3.scale", 20)])
    return network


@pytest.fixture(scope="module", params=["hrnet18s", "segformerb0"])
def network(request):
    return make_filled(request.param)


def test_courses_of_a_batch_do_not_mix(network):
    inputs = torch.rand(3, 4, 64, 96)
    together = network(inputs, pack_clicks(COURSES))
    assert together["instances"].shape == (3, 1, 64, 96)
    assert together["feature"].shape[2:] == (16, 24)
    for place, course in enumerate(COURSES):
        alone = network(inputs[place : place + 1], pack_clicks([course]))["instances"]
        assert (together["instances"][place] - alone[0]).abs().max() < 2e-5 * alone.abs().max()


def test_clicks_and_the_last_mask_change_the_answer(network):
    inputs, points = torch.rand(1, 4, 64, 96), pack_clicks([[(20, 30, True)]])
    logits = network(inputs, points)["instances"]
    for other in (
        network(inputs, pack_clicks([[(20, 34, True)]])),
        network(inputs, pack_clicks([[(20, 30, False)]])),
        network(inputs * torch.tensor([1.0, 1, 1, 0])[:, None, None], points),
    ):
        assert (other["instances"] - logits).abs().max() > 1e-3 * logits.abs().max()


def test_regions_of_a_batch_do_not_mix(network):
    crops, points = torch.rand(2, 3, 32, 48), pack_clicks(COURSES[:2])
    found = network(torch.rand(2, 4, 64, 96), points)
    boxes = torch.tensor([[10.0, 5, 40, 30], [0, 0, 96, 64]])
    given = (crops, points, found["feature"], found["instances"], boxes)
    together = network.refine(*given)
    for place in range(2):
        alone = network.refine(*(one[place : place + 1] for one in given))
        for name, value in alone.items():
            assert value.shape == (1, 1, 32, 48)
            assert (together[name][place] - value[0]).abs().max() < 1e-5 * value.abs().max()


def test_runs_in_bfloat16(network):
    inputs, points = torch.rand(1, 4, 64, 96), pack_clicks(COURSES[:1])
    exact = network(inputs, points)["instances"]
    with torch.autocast("cpu", torch.bfloat16):
        found = network(inputs, points)
        box = torch.tensor([[0.0, 0, 96, 64]])
        refined = network.refine(inputs[:, :3], points, found["feature"], found["instances"], box)["refined"]
    assert (found["instances"] - exact).abs().max() < 0.1 * exact.abs().max()
    assert refined.isfinite().all()


def test_the_whole_map_cropped_to_its_size_is_itself_and_to_half_the_mean_of_four():
    maps = torch.rand(2, 3, 8, 12)
    boxes = torch.tensor([[0.0, 0, 12, 8]]).expand(2, -1)
    torch.testing.assert_close(crop_boxes(maps, boxes, (8, 12)), maps)
    torch.testing.assert_close(crop_boxes(maps, boxes, (4, 6)), torch.nn.functional.avg_pool2d(maps, 2))
    torch.testing.assert_close(crop_boxes(maps, 4 * boxes, (8, 12), (0.25, 0.25)), maps)


def test_a_crop_is_in_x_and_y_and_nothing_is_outside():
    maps = torch.zeros(1, 1, 8, 12)
    maps[0, 0, 2, 7] = 1
    cropped = crop_boxes(maps, torch.tensor([[6.0, 1, 10, 5]]), (4, 4))
    assert cropped[0, 0].nonzero().tolist() == [[1, 1]]
    # Half a pixel to the right: both cells lie between two pixels.
    assert crop_boxes(maps, torch.tensor([[6.5, 2, 8.5, 3]]), (1, 2))[0, 0].tolist() == [[0.5, 0.5]]
    ones = crop_boxes(torch.ones(1, 1, 4, 4), torch.tensor([[-4.0, 0, 4, 4]]), (1, 4))
    assert ones[0, 0].tolist() == [[0.0, 0.5, 1.0, 1.0]], "a pixel beyond the edge still counts, more do not"


def test_features_of_an_uneven_picture_are_cut_out_in_both_readings(network):
    inputs, points = torch.rand(1, 4, 70, 90), pack_clicks(COURSES[:1])
    found = network(inputs, points)
    assert found["feature"].shape[2:] == (18, 23)
    box = torch.tensor([[10.0, 5, 60, 50]])
    released, ours = 23 / 90, 18 / 70
    for reading, scale in (("released", (released, released)), ("ours", (ours, released))):
        network.reading = reading
        seen = []
        hook = network.refiner.register_forward_pre_hook(lambda _, given, seen=seen: seen.append(given[3]))
        network.refine(inputs[:, :3], points, found["feature"], found["instances"], box)
        hook.remove()
        assert torch.equal(seen[0], crop_boxes(found["feature"], box, (18, 23), scale))
    network.reading = "released"


def test_where_no_edge_is_seen_the_coarse_logits_stay():
    refiner = Refiner(4).eval()
    with torch.no_grad():
        refiner.refine_trimap.bias.fill_(-100)
        coarse = torch.randn(1, 1, 16, 16)
        refined, _ = refiner(torch.rand(1, 3, 16, 16), torch.zeros(1, 2, 16, 16), coarse, torch.rand(1, 4, 4, 4))
    torch.testing.assert_close(refined, coarse)


def test_s1_sees_half_the_size_and_smaller_disks():
    network = FocalClick.build("hrnet18s-s1").eval()
    with torch.no_grad():
        found = network.features(torch.rand(1, 4, 64, 96), pack_clicks([[(20, 30, True)]]))
    assert found["feature"].shape[2:] == (8, 12)
    assert found["instances"].shape == (1, 1, 64, 96)
    assert found["click_map"].sum() == 13, "pixels of a disk of radius 2"


@pytest.mark.parametrize("size", SIZES)
def test_a_checkpoint_tells_its_architecture(size):
    with torch.device("meta"):
        network = FocalClick.build(size)
        told = {"norm_radius": 260, "use_disks": False, "pipeline_version": "s1" if network.halved else "s2"}
        again = FocalClick.from_checkpoint(told, network.state_dict())
    shapes = [{name: tuple(value.shape) for name, value in one.state_dict().items()} for one in (network, again)]
    assert shapes[0] == shapes[1]
    radius = 5 if not network.halved else 2 if network.is_hrnet else 3
    assert (again.halved, again.click_maps.norm_radius, again.click_maps.use_disks) == (network.halved, radius, True)


def test_a_file_of_ritms_class_with_a_refiner_is_focalclick(tmp_path):
    state = FocalClick.build("hrnet18s").state_dict()
    checkpoint = Checkpoint(tmp_path / "x.pth", "", state, "isegm.model.is_hrnet_model.HRNetModel")
    assert isinstance(build_network(checkpoint, "focalclick"), FocalClick)


@pytest.mark.parametrize("size", ["hrnet18s", "hrnet32", "segformerb0", "segformerb3"])
def test_names_and_shapes_are_those_of_the_released_code(size):
    with torch.device("meta"):
        state = FocalClick.build(size).state_dict()
    facts = read_facts(f"focalclick_{size}_s2")
    assert [[name, list(value.shape)] for name, value in state.items()] == facts["parameters"]


def test_equals_the_released_code(network):
    golden = read_golden("interactive", f"focalclick_{'hrnet18s' if network.is_hrnet else 'segformerb0'}_s2")
    names = {name.partition("__")[0] for name in golden.arrays.files}
    stored = {name for name in names if not name.startswith("relative_noise")} - NOT_COMPARED
    single = {name for name in stored if not name.endswith("_float64")}
    assert stored - single == {"instances_float64", "refine.refined_float64"}
    for dtype, names in ((torch.float32, single), (torch.float64, stored - single)):
        found = answer_golden(network.to(dtype), golden.arrays, dtype)
        for name in names:
            tolerance = 1e-10 if dtype == torch.float64 else 0 if name == "click_map" else 1e-4
            check_array(golden, name, found[name.removesuffix("_float64")], tolerance=tolerance)
    network.float()


def answer_golden(network, arrays, dtype):
    """All maps of the coarse network, and those of the refiner as `refine.NAME`."""
    image = torch.from_numpy(arrays["image"]).permute(2, 0, 1)[None].to(dtype) / 255
    previous = torch.from_numpy(arrays["prev_mask"].astype(np.float32)).to(dtype)
    found = network.features(torch.cat([image, previous], 1), torch.from_numpy(arrays["points"]))
    height, width = image.shape[2:]
    crop = image[:, :, int(0.1 * height) : int(0.8 * height), int(0.2 * width) : int(0.9 * width)]
    crop = torch.nn.functional.interpolate(crop, (height, width), mode="bilinear", align_corners=True)
    points, box = (torch.from_numpy(arrays[f"refine.{name}"]) for name in ("points", "box"))
    refined = network.refine(crop, points, found["feature"], found["instances"], box[:, 1:])
    return found | {f"refine.{name}": value for name, value in refined.items()}
