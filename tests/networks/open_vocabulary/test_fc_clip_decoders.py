"""The decoders of FC-CLIP: shapes, reach, which pixels a query sees; numbers are compared in test_fc_clip.py."""

from itertools import pairwise

import pytest
import torch

from hardlook.networks.open_vocabulary.fc_clip_decoders import MaskDecoder, PixelDecoder, block_pixels, compare


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


def test_a_query_sees_the_pixels_of_its_mask_and_all_if_there_are_none():
    masks = torch.full((1, 2, 4, 4), -3.0)
    masks[0, 0, :2, :2] = 3
    assert block_pixels(masks, (2, 2)).tolist() == [[[False, True, True, True], [False] * 4]]
    assert block_pixels(torch.zeros(1, 1, 2, 2), (2, 2)).eq(False).all(), "a probability of a half is within"


def test_a_class_has_its_best_name_and_the_scale_an_end():
    text = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-1.0, 0.0]])
    vectors = torch.tensor([[[0.0, 3.0], [2.0, 0.0]]])
    expected = torch.tensor([[[0.8, 1.0, 0.0], [1.0, 0.0, -1.0]]])
    torch.testing.assert_close(compare(vectors, text, [2, 1], torch.tensor(0.0)), expected)
    torch.testing.assert_close(compare(vectors, text, [2, 1], torch.tensor(9.0)), 100 * expected)
    with pytest.raises(ValueError, match="4 rows of text for 4 names"):
        compare(vectors, text, [2, 2], torch.tensor(0.0))


def test_there_is_a_prediction_before_the_first_layer_and_after_each_and_the_last_counts():
    torch.manual_seed(0)
    decoder = MaskDecoder(24, queries=7, layers=4).eval()
    levels = [torch.randn(2, 256, side, side + 1) for side in (2, 4, 8)]
    features, text = torch.randn(2, 256, 16, 18), torch.randn(4, 24)
    with torch.no_grad():
        steps = list(decoder.draw(levels, features))
        logits, masks = decoder(levels, features, text, [2, 1])
    assert steps[0].blocked is None and [step.blocked.shape[2] for step in steps[1:]] == [6, 20, 72, 6]
    assert torch.equal(masks, steps[-1].masks) and masks.shape == (2, 7, 16, 18) and logits.shape == (2, 7, 3)
    for before, after in pairwise(steps):
        assert (before.masks - after.masks).abs().max() > 1e-3
