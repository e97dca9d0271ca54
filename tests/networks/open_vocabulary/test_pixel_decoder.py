"""The pixel decoder: shapes and reach; its numbers are compared with FC-CLIP's in test_fc_clip.py."""

import torch

from hardlook.networks.open_vocabulary.pixel_decoder import PixelDecoder


def test_levels_come_coarsest_first_and_each_sees_the_others():
    torch.manual_seed(0)
    decoder = PixelDecoder((8, 16, 32, 64), layers=1).eval()
    sizes = {"res2": (8, 32, 24), "res3": (16, 16, 12), "res4": (32, 8, 6), "res5": (64, 4, 3)}
    maps = {name: torch.randn(2, *shape) for name, shape in sizes.items()}
    with torch.no_grad():
        levels, features = decoder(maps)
        moved, _ = decoder(maps | {"res3": maps["res3"] + torch.randn(2, 16, 16, 12)})
        finer, changed = decoder(maps | {"res2": maps["res2"] + torch.randn(2, 8, 32, 24)})
    assert [tuple(level.shape) for level in levels] == [(2, 256, 4, 3), (2, 256, 8, 6), (2, 256, 16, 12)]
    assert features.shape == (2, 256, 32, 24)
    for level, other, same in zip(levels, moved, finer, strict=True):
        assert (level - other).abs().max() > 1e-3
        torch.testing.assert_close(level, same)
    assert (features - changed).abs().max() > 1e-3, "the finest map is seen in the features of masks alone"
