"""RITM's design on Keras's ResNet: the backbone is that of the one-shot networks, clicks matter, statistics stay."""

import doctest

import pytest

torch = pytest.importorskip("torch")

from hardlook.networks.interactive import ritm_deeplab  # noqa: E402
from hardlook.networks.interactive.click_maps import pack_clicks  # noqa: E402
from hardlook.networks.interactive.ritm import normalise  # noqa: E402
from hardlook.networks.interactive.ritm_deeplab import DILATIONS, RITMDeepLab, StemmedResNet  # noqa: E402
from hardlook.networks.one_shot.backbones import build_backbone  # noqa: E402


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return RITMDeepLab(stages=2, width=8, first_scale=1)


def test_doctest():
    assert doctest.testmod(ritm_deeplab).failed == 0


def test_without_clicks_the_backbone_is_that_of_the_one_shot_networks():
    own, other = StemmedResNet(3).eval(), build_backbone("resnet50-keras", stages=3, dilations=DILATIONS).eval()
    other.load_state_dict(own.state_dict())
    images = normalise(torch.rand(1, 3, 40, 48, generator=torch.Generator().manual_seed(0)))
    with torch.no_grad():
        found, wanted = own(images, torch.zeros(1, 64, 20, 24)), other(images)[1:]
    assert all(torch.equal(one, two) for one, two in zip(found, wanted, strict=True))
    assert [tuple(one.shape[2:]) for one in found] == [(10, 12), (5, 6), (5, 6)]


def test_clicks_of_either_sign_and_the_last_mask_change_the_answer(network):
    network.eval()
    inputs = torch.rand(1, 4, 32, 32, generator=torch.Generator().manual_seed(1))
    given = {
        "positive": (inputs, pack_clicks([[(9, 9, True)]])),
        "elsewhere": (inputs, pack_clicks([[(20, 9, True)]])),
        "negative": (inputs, pack_clicks([[(9, 9, False)]])),
        "other mask": (torch.cat([inputs[:, :3], 1 - inputs[:, 3:]], 1), pack_clicks([[(9, 9, True)]])),
    }
    with torch.no_grad():
        answers = [network(*one)["instances"] for one in given.values()]
    assert all(one.shape == (1, 1, 32, 32) for one in answers)
    assert all(not torch.allclose(answers[0], one, atol=1e-5) for one in answers[1:])


@pytest.mark.parametrize("frozen", [True, False])
def test_frozen_statistics_stay_in_training(frozen):
    network = RITMDeepLab(stages=1, width=8, frozen_norm=frozen).train()
    before = network.feature_extractor.backbone.bn1.running_mean.clone()
    network(torch.rand(2, 4, 32, 32), pack_clicks([[(1, 1, True)], [(2, 2, True)]]))
    assert torch.equal(network.feature_extractor.backbone.bn1.running_mean, before) is frozen
    assert network.feature_extractor.aspp.project[1].training


def test_gradients_reach_the_clicks(network):
    network.train()
    answer = network(torch.rand(2, 4, 32, 32), pack_clicks([[(9, 9, True)], [(3, 3, True)]]))
    answer["instances"].square().mean().backward()
    assert network.maps_transform[0].weight.grad.abs().sum() > 0
    assert network.maps_transform[3].scale.grad.abs().sum() > 0
