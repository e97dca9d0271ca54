"""The regions of OVSeg and SimSeg: laws, and the released code."""

import copy

import numpy as np
import pytest
import torch
from clip_vit_goldens import Watch, check_array
from goldens import fill, read_golden

from hardlook.networks.open_vocabulary.clip_vit import VIT_SIZES, ViTSize
from hardlook.networks.open_vocabulary.regions import MEAN, STD, RegionClassifier, cut_regions, mix_scores

VISUAL = "clip_adapter.clip_model.visual"


@pytest.fixture(scope="module")
def small():
    """A tower of 3 blocks on 4 x 4 patches of 8 pixels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(VIT_SIZES, "small", ViTSize(8, 64, 3, 4, 16))
        torch.manual_seed(0)
        return RegionClassifier("small", prompts=2).eval().requires_grad_(False)


def test_a_region_is_the_tight_box_of_its_mask_on_the_mean_colour():
    image = 255 * torch.rand(3, 12, 10, generator=torch.Generator().manual_seed(0))
    masks = torch.zeros(3, 12, 10)
    masks[0, 2:6, 3:7] = 0.9
    masks[0, 2, 3] = 0.4  # not above the threshold
    masks[2, 11, 9] = 0.5
    regions, cut, kept = cut_regions(image, masks, side=4, threshold=0.4)
    assert kept.tolist() == [True, False, True] and regions.shape == (2, 3, 4, 4) and cut.shape == (2, 1, 4, 4)
    colours = regions * 255 * torch.tensor(STD)[:, None, None] + 255 * torch.tensor(MEAN)[:, None, None]
    expected = image[:, 2:6, 3:7].clone()
    expected[:, 0, 0] = 255 * torch.tensor(MEAN)
    torch.testing.assert_close(colours[0], expected, atol=1e-3, rtol=0)
    torch.testing.assert_close(colours[1], image[:, 11:, 9:].expand(3, 4, 4), atol=1e-3, rtol=0)
    assert cut[0, 0].sum() == 15 and cut[0, 0, 0, 0] == 0 and cut[1].eq(1).all()


def test_what_lies_in_patches_outside_of_the_mask_is_replaced_by_the_prompt(small):
    visual = small.clip_adapter.clip_model.visual
    images, masks = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(1)), torch.zeros(1, 1, 32, 32)
    masks[..., :9, :16] = 1  # one row of pixels in the second row of patches
    moved = images.clone()
    moved[..., 16:, :] += 1
    torch.testing.assert_close(visual(images, masks), visual(moved, masks))
    moved = images.clone()
    moved[..., 15, 3] += 9
    assert not torch.allclose(visual(images, masks), visual(moved, masks), atol=1e-4), "within a patch that is inside"
    torch.testing.assert_close(visual(images, torch.ones_like(masks)), visual(images))
    for depth in range(2):
        changed = copy.deepcopy(visual)
        changed.mask_embedding[depth] += torch.randn(16, 64)
        assert not torch.allclose(changed(images, masks), visual(images, masks), atol=1e-4), depth


def test_queries_without_a_region_keep_their_own_scores(small):
    rng = torch.Generator().manual_seed(2)
    image, classes = 255 * torch.rand(3, 20, 24, generator=rng), torch.randn(2, 4, generator=rng)
    text = torch.nn.functional.normalize(torch.randn(3, 16, generator=rng), dim=1)
    masks = torch.full((2, 20, 24), -4.0)
    scores = small.segment(image, masks, classes, text)
    alone = (classes.softmax(1)[:, :3] ** 0.3).sum(0) * torch.tensor(-4.0).sigmoid()
    torch.testing.assert_close(scores, alone[:, None, None].expand(3, 20, 24))
    masks[1, 5:9, 5:9] = 4
    scores = small.segment(image, masks, classes, text)
    regions, cut, _ = cut_regions(image, masks.sigmoid(), side=32, threshold=0.4)
    seen = small.classify(regions, cut, text)[:, :3].softmax(1)[0]
    own = mix_scores(classes.softmax(1)[:, :3], torch.stack((torch.ones(3), seen)), 0.7)
    torch.testing.assert_close(scores[:, 6, 6], own.T @ masks[:, 6, 6].sigmoid())


def test_a_large_region_is_made_smaller_through_a_filter_or_not():
    stripes = 255.0 * (torch.arange(64) % 4 == 1).expand(3, 64, 64)
    for smooth, expected in ((True, 255 / 4), (False, 255 * 0.59375)):  # the mean; what is between two pixels of four
        regions, _, _ = cut_regions(stripes, torch.ones(1, 64, 64), side=16, threshold=0.4, smooth=smooth)
        colours = regions * 255 * torch.tensor(STD)[:, None, None] + 255 * torch.tensor(MEAN)[:, None, None]
        torch.testing.assert_close(colours[..., 4:12], torch.full((1, 3, 16, 8), expected), atol=1, rtol=0)


def test_scores_of_some_regions_at_a_time_and_of_several_names(small):
    rng = torch.Generator().manual_seed(3)
    image, proposed = 255 * torch.rand(3, 20, 24, generator=rng), torch.rand(4, 2, generator=rng)
    text = torch.nn.functional.normalize(torch.randn(3, 16, generator=rng), dim=1)
    masks = torch.rand(4, 20, 24, generator=rng) > 0.6
    masks[2] = False
    scores = small.score(image, masks, proposed, text, counts=(2, 1))
    torch.testing.assert_close(small.score(image, masks, proposed, text, counts=(2, 1), batch=2), scores)
    torch.testing.assert_close(scores[2], proposed[2] ** 0.3)
    regions, cut, _ = cut_regions(image, masks, side=32, threshold=0.4)
    logits = small.classify(regions, cut, text)[:, :3]
    best = torch.stack((logits[:, :2].amax(1), logits[:, 2]), 1).softmax(1)
    torch.testing.assert_close(scores[[0, 1, 3]], mix_scores(proposed[[0, 1, 3]], best, 0.7))
    assert small.score(image, masks[:0], proposed[:0], text, counts=(2, 1)).shape == (0, 2)


def test_trained_classes_exchange_the_shares():
    proposed, seen = torch.tensor([[0.2, 0.2]]), torch.tensor([[0.9, 0.9]])
    mixed = mix_scores(proposed, seen, 0.8, torch.tensor([0.0, 1.0]))
    np.testing.assert_allclose(mixed, [[0.2**0.2 * 0.9**0.8, 0.2**0.8 * 0.9**0.2]], rtol=1e-6)


@pytest.fixture(scope="module")
def filled():
    golden = read_golden("open_vocabulary", "ovseg_regions")
    case = golden.facts["case"]
    network = RegionClassifier("ViT-B-16", weight=case["clip_weight"], threshold=case["mask_threshold"])
    # The table has the vector of no object behind the tower, a state dict before it.
    golden.check_names(network)
    return golden, fill(network).eval().requires_grad_(False)


def compute(network, golden, dtype):
    """All arrays that the goldens have."""
    names = ("image", "mask_logits", "class_logits", "text", "trained_flag")
    image, masks, classes, text, trained = (torch.from_numpy(golden.arrays[name]).to(dtype) for name in names)
    regions, cut, kept = cut_regions(image, masks.sigmoid(), side=224, threshold=network.threshold)
    got = {"regions": regions, "region_masks": cut, "valid": kept}
    visual = network.get_submodule(VISUAL)
    for kind, prompts in (("ovseg", 3), ("simseg", 0)):
        visual.prompts = prompts
        with Watch(network, [VISUAL, *(f"{VISUAL}.transformer.resblocks.{n}" for n in (0, 2))]) as found:
            logits = network.classify(regions, cut, text)
        scores = {"clip_feature": found[VISUAL][0], "clip_logits": logits}
        # The tower runs once for each kind, for speed.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(network, "classify", lambda *given, logits=logits: logits)
            flags = {"sem_seg": None} if prompts else {"sem_seg_no_flag": None, "sem_seg_trained_flag": trained}
            scores |= {key: network.segment(image, masks, classes, text, flag) for key, flag in flags.items()}
        for block in (1, 3):
            scores[f"clip_block{block}"] = found[f"{VISUAL}.transformer.resblocks.{block - 1}"][0].transpose(0, 1)
        got |= {f"{kind}/{key}": value for key, value in scores.items()}
    visual.prompts = 3
    return got


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_goldens(filled, dtype):
    golden, network = filled
    got = compute(copy.deepcopy(network).to(dtype), golden, dtype)
    inputs = ("image", "mask_logits", "class_logits", "text", "trained_flag")
    keys = [name for name in golden.arrays if name not in inputs and not name.endswith("_f64")]
    for key in keys:
        # Bicubic weights in float32 leave 2e-5 in regions and 3e-4 after blocks.
        absolute = 3e-4 if "block" in key else 1e-4 if "logits" in key else 2e-5
        check_array(golden, key, got[key], absolute=absolute)
