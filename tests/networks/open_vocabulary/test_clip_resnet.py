"""CLIP on ResNet: shapes and laws; its numbers are compared with FC-CLIP's in test_fc_clip.py."""

import pytest
import torch

from hardlook.networks.open_vocabulary.clip_resnet import RESNET_SIZES, AttentionPool, CLIPResNet, ResNetSize


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return CLIPResNet(ResNetSize((1, 2, 1, 1), 16, 24, 96)).eval()


def test_maps_have_the_strides_of_detectron2(network):
    with torch.no_grad():
        maps = network(torch.randn(1, 3, 64, 96))
    assert {name: tuple(one.shape[1:]) for name, one in maps.items()} == {
        "stem": (16, 32, 48), "res2": (64, 16, 24), "res3": (128, 8, 12), "res4": (256, 4, 6), "res5": (512, 2, 3),
    }  # fmt: skip
    assert network.channels == (64, 128, 256, 512)


def test_pixels_outside_a_region_do_not_count_but_in_the_query():
    torch.manual_seed(0)
    pool = AttentionPool(3, 128, 24).eval()
    features = torch.randn(1, 128, 3, 4)
    regions = torch.zeros(1, 3, 3, 4, dtype=torch.bool)
    regions[0, 0, 1, :2] = True
    regions[0, 1] = True
    moved = features.clone()
    # The mean, of which the query is made, stays as it is.
    moved[0, :, 0, 0] += 3
    moved[0, :, 2, 3] -= 3
    with torch.no_grad():
        found, other = pool(features, regions)[0], pool(moved, regions)[0]
    torch.testing.assert_close(found[0], other[0], atol=1e-5, rtol=1e-4)
    assert (found[1] - other[1]).abs().max() > 1e-3
    torch.testing.assert_close(found[2], found[1])  # an empty region has all pixels


def test_a_region_of_one_pixel_is_that_pixels_value():
    torch.manual_seed(0)
    pool = AttentionPool(2, 128, 24).eval()
    features = torch.randn(1, 128, 2, 2)
    regions = torch.zeros(1, 1, 2, 2, dtype=torch.bool)
    regions[0, 0, 1, 0] = True
    with torch.no_grad():
        expected = pool.c_proj(pool.v_proj(features[0, :, 1, 0] + pool.positional_embedding[3]))
        torch.testing.assert_close(pool(features, regions)[0, 0], expected)


@pytest.mark.parametrize(
    "name, channels", [("RN101", (256, 512, 1024, 2048)), ("RN50x4", (320, 640, 1280, 2560)),
                       ("RN50x16", (384, 768, 1536, 3072)), ("RN50x64", (512, 1024, 2048, 4096))]
)  # fmt: skip
def test_the_other_published_sizes(name, channels):
    with torch.device("meta"):
        assert CLIPResNet(RESNET_SIZES[name]).channels == channels
