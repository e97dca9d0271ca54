"""CLIP on ConvNeXt: shapes and laws; its numbers are compared with FC-CLIP's in test_fc_clip.py."""

import pytest
import torch

from hardlook.networks.open_vocabulary.clip_convnext import CLIPConvNeXt, ConvNeXtSize, pool_regions


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    network = CLIPConvNeXt(ConvNeXtSize((1, 1, 2, 1), (8, 16, 32, 64), 24)).eval()
    for name, value in network.named_parameters():
        if name.endswith("gamma"):
            value.data.fill_(1)
    return network


def test_maps_have_the_strides_of_detectron2(network):
    images = torch.randn(2, 3, 64, 96)
    with torch.no_grad():
        maps = network(images)
        alone = network(images[1:])
    shapes = {name: tuple(one.shape[1:]) for name, one in maps.items()}
    assert shapes == {
        "stem": (8, 16, 24), "res2": (8, 16, 24), "res3": (16, 8, 12), "res4": (32, 4, 6), "res5": (64, 2, 3),
    }  # fmt: skip
    for name, one in alone.items():
        torch.testing.assert_close(one, maps[name][1:])


def test_a_region_is_its_mean_and_an_empty_one_zero(network):
    features = torch.randn(1, 64, 2, 3)
    regions = torch.zeros(1, 3, 2, 3, dtype=torch.bool)
    regions[0, 0] = True
    regions[0, 1, 1, 2] = True
    pooled = pool_regions(features, regions)[0]
    torch.testing.assert_close(pooled, torch.stack([features[0].mean((1, 2)), features[0, :, 1, 2], torch.zeros(64)]))
    with torch.no_grad():
        torch.testing.assert_close(network.embed_regions(features, regions)[0], network.embed_pooled(pooled))
        assert network.embed_pooled(pooled).shape == (3, 24)
