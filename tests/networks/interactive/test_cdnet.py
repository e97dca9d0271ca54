"""CDNet: what spreads from the clicks and how far, batches, checkpoints' names, and the released code."""

import pytest
import torch
from goldens import fill, read_golden
from interactive_goldens import check_array, multiply

from hardlook.networks.interactive.cdnet import CDNet, FeatureDiffusion, PixelDiffusion
from hardlook.networks.interactive.checkpoints import Checkpoint, build_network
from hardlook.networks.interactive.click_maps import pack_clicks

COURSES = [[(5, 7, True), (20, 30, False)], [(40, 50, True)], [(10, 10, False), (30, 60, True), (30, 3, True)]]


@pytest.fixture(scope="module")
def network():
    """CDNet with the parameters of the goldens."""
    made = CDNet.build("resnet34")
    constants = {name: value.clone() for name, value in made.state_dict().items() if name.startswith("PDM.")}
    fill(made)
    made.load_state_dict({**made.state_dict(), **constants})
    factors = [
        (lambda name, _: name.startswith("feature_extractor.backbone.layer") and name.endswith("bn2.weight"), 0.5),
        (lambda name, _: name == "maps_transform.3.scale", 20),
        (lambda name, _: name in {f"feature_extractor.FDM.{part}.weight" for part in "tp"}, 0.1),
        (lambda name, _: name == "head.layers.2.weight", 0.01),
    ]
    return multiply(made, factors).eval().requires_grad_(False)


def test_courses_of_a_batch_do_not_mix(network):
    inputs = torch.rand(3, 3, 48, 64)
    together = network(inputs, pack_clicks(COURSES))["instances"]
    assert together.shape == (3, 1, 48, 64)
    for place, course in enumerate(COURSES):
        alone = network(inputs[place : place + 1], pack_clicks([course]))["instances"]
        assert (together[place] - alone[0]).abs().max() < 1e-4 * alone.abs().max()


def test_clicks_change_the_answer_and_the_answer_spreads(network):
    inputs, points = torch.rand(1, 3, 48, 64), pack_clicks([[(20, 30, True)]])
    logits = network(inputs, points)["instances"]
    for other in ([(20, 33, True)], [(20, 30, False)]):
        assert (network(inputs, pack_clicks([other]))["instances"] - logits).abs().max() > 1e-3 * logits.abs().max()
    finished = network.finish_logits(logits, inputs, points)
    assert finished.shape == logits.shape
    assert finished[0, 0, 20, 30] > 1, "a click is not overruled"


def test_runs_in_bfloat16(network):
    inputs, points = torch.rand(1, 3, 48, 64), pack_clicks(COURSES[:1])
    with torch.autocast("cpu", torch.bfloat16):
        rounded = network(inputs, points)["instances"]
        finished = network.finish_logits(rounded.float(), inputs, points)
    assert rounded.isfinite().all()
    assert finished.isfinite().all()


def test_on_one_colour_a_pixel_gets_the_mean_of_its_32_neighbours():
    clicks = torch.zeros(1, 2, 40, 40)
    clicks[0, 0, 20, 20] = clicks[0, 1, 20, 22] = 1
    spread = PixelDiffusion(rounds=1)(torch.full((1, 3, 40, 40), 0.5), torch.zeros(1, 1, 40, 40), clicks)[0, 0]
    expected = torch.zeros(40, 40)
    for column, value in ((20, 10), (22, -10)):
        for distance in (1, 2, 4, 8):
            for down, across in ((a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)):
                expected[20 + down * distance, column + across * distance] += value / 32
    torch.testing.assert_close(spread, expected)


def test_unsure_answers_do_not_spread_but_stay():
    answer = torch.tensor([0.2, 0.3])
    logits = torch.logit(answer / 2 + 0.5)[:, None, None, None].expand(2, 1, 20, 20)
    spread = PixelDiffusion()(torch.rand(2, 3, 20, 20), logits, torch.zeros(2, 2, 20, 20))
    torch.testing.assert_close(spread[:, 0, 9, 9], torch.tensor([0.2, 0.6]))


def test_answers_do_not_cross_an_edge():
    pictures, clicks = torch.zeros(1, 3, 40, 40), torch.zeros(1, 2, 40, 40)
    pictures[..., 20:] = 1
    clicks[0, 0, 18:23, 15:20] = 1
    spread = PixelDiffusion()(pictures, torch.zeros(1, 1, 40, 40), clicks)[0, 0]
    assert spread[20, 21] < 0.2 * spread[20, 18]


def test_features_spread_as_written_out():
    torch.manual_seed(0)
    layer = FeatureDiffusion(4).double().eval()
    x, clicks = torch.randn(1, 4, 2, 3).double(), torch.rand(1, 2, 2, 3).double()
    with torch.no_grad():
        layer.gate_head_pos.layers[1].bias.fill_(1.3)
        layer.gate_head_pos.layers[1].weight.mul_(10)
        found, positive, negative = layer(x, clicks)
        assert (positive > 0.8).any()
        assert (positive < 0.8).any()
        pixels = x.flatten(2)[0].T
        query, key, value = (pixels @ getattr(layer, name).weight[:, :, 0, 0].T for name in "tpg")
        total = pixels.clone()
        for gate, click, last in ((positive, clicks[0, 0], layer.z), (negative, clicks[0, 1], layer.z2)):
            gate, counts = gate.flatten(), click.flatten() + (gate.flatten() > 0.8)
            for one in range(6):
                weights = torch.stack([(query[one] @ key[other]) * counts[other] for other in range(6)]).softmax(0)
                mixed = gate[one] * sum(weights[other] * value[other] for other in range(6))
                total[one] += last.weight[:, :, 0, 0] @ mixed / (1 + 1e-5) ** 0.5
    torch.testing.assert_close(positive + negative, torch.ones_like(positive))
    torch.testing.assert_close(found.flatten(2)[0].T, total)


def test_a_checkpoint_tells_its_architecture(tmp_path):
    state = CDNet(width=16).state_dict()
    arguments = {"norm_radius": 260, "use_disks": False, "use_leaky_relu": False}
    made = build_network(Checkpoint(tmp_path / "x.pth", "", state, arguments=arguments), "cdnet")
    assert isinstance(made, CDNet)
    assert isinstance(made.maps_transform[1], torch.nn.ReLU)
    assert (made.click_maps.norm_radius, made.click_maps.use_disks) == (5, True), "whatever the arguments say"
    assert torch.equal(made.head.layers[2].bias, state["head.layers.2.bias"])


def test_equals_the_released_code(network):
    golden = read_golden("interactive", "cdnet_resnet34")
    assert [[name, list(value.shape)] for name, value in network.state_dict().items()] == golden.facts["parameters"]
    points, arrays = torch.from_numpy(golden.arrays["points"]), golden.arrays
    inputs = {"image", "points", "relative_noise_names", "relative_noise_values"}
    stored = {name.partition("__")[0] for name in arrays.files} - inputs
    single = {name for name in stored if not name.endswith("_float64")}
    for dtype, names in ((torch.float32, single), (torch.float64, stored - single)):
        image = torch.from_numpy(arrays["image"]).permute(2, 0, 1)[None].to(dtype) / 255
        found = network.to(dtype).features(image, points)
        found["pixel_diffusion"] = network.finish_logits(found["instances"], image, points)
        for name in names:
            exact, tolerance = name.removesuffix("_float64"), 1e-10 if dtype == torch.float64 else 2e-4
            check_array(golden, name, found[exact], tolerance=0 if name == "click_map" else tolerance)
    network.float()
    assert stored - single == {"instances_float64", "pixel_diffusion_float64"}
