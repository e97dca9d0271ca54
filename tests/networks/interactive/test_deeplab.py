"""DeepLabV3+: sizes of maps, dilations, and where maps of clicks enter. The released code: CDNet, GPCIS."""

import pytest
import torch

from hardlook.networks.interactive.deeplab import RESNETS, DeepLab, DilatedResNet


@pytest.mark.parametrize(("name", "widths"), [("resnet34", (64, 128, 256, 512)), ("resnet50", (256, 512, 1024, 2048))])
def test_the_last_stages_stay_at_an_eighth_rounded_up(name, widths):
    with torch.device("meta"):
        network = DeepLab(name, 8, 5, dropout=0).eval()
        found = network.encode(torch.zeros(2, 3, 97, 61), torch.zeros(2, network.backbone.stem_width, 49, 31))
        assert network.decode(found["aspp"], found["backbone_0"]).shape == (2, 5, 25, 16)
    shapes = [tuple(found[f"backbone_{place}"].shape) for place in range(4)]
    assert shapes == [(2, width, *size) for width, size in zip(widths, ((25, 16), *[(13, 8)] * 3), strict=True)]
    assert found["aspp"].shape == (2, 8, 13, 8)


def test_the_first_block_of_a_dilated_stage_has_half_the_dilation():
    with torch.device("meta"):
        basic, deep = (DilatedResNet(**RESNETS[name]) for name in ("resnet34", "resnet50"))
    assert [layer.dilation[0] for layer in (basic.layer3[0].conv1, basic.layer3[0].conv2)] == [1, 2]
    assert [layer.dilation[0] for layer in (basic.layer4[0].conv1, basic.layer4[0].conv2)] == [2, 4]
    assert [layer.dilation[0] for layer in (basic.layer4[1].conv1, basic.layer4[1].conv2)] == [4, 4]
    assert [block.conv2.dilation[0] for block in deep.layer4] == [2, 4, 4]


def test_maps_for_the_stem_are_added_before_the_pooling():
    torch.manual_seed(0)
    network = DilatedResNet((1, 1, 1, 1), RESNETS["resnet34"]["block"]).eval()
    seen = []
    network.layer1.register_forward_hook(lambda _, given, __: seen.append(given[0]))
    added = torch.zeros(1, 64, 16, 16)
    added[:, :, 8, 8] = 100
    with torch.no_grad():
        network(torch.rand(1, 3, 32, 32), torch.zeros(1, 64, 16, 16))
        network(torch.rand(1, 3, 32, 32), added)
    assert seen[0].min() >= 0
    assert seen[0].max() < 50
    assert seen[1][0, 0, 4, 4] > 99, "the largest of nine neighbours"
