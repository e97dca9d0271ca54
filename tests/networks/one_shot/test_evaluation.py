"""Sizes, votes and scores of published evaluations of one-shot networks."""

import numpy as np
import pytest
import torch
from goldens import goldens_folder, read_golden
from one_shot_goldens import find_classes
from PIL import Image

from hardlook.metrics.one_shot import class_iou, fb_iou, mean_of_defined
from hardlook.networks.one_shot.evaluation import INPUT_RULES, InputRule, choose_nearest, vote


@pytest.fixture(scope="module")
def arrays():
    return np.load(goldens_folder("one_shot") / "metrics.npz")


def count(arrays, ignored):
    """Per class of the fold: intersections, unions and pixels of the class, summed over its episodes."""
    counts = np.zeros((5, 3))
    for predicted, label, number in zip(arrays["pred"], arrays["label"], find_classes(arrays), strict=True):
        kept = label != 255 if ignored else np.ones(label.shape, bool)
        found, true = (predicted == 1) & kept, (label == 1) & kept
        counts[number] += (found & true).sum(), (found | true).sum(), kept.sum()
    return counts


def test_our_metrics_are_those_of_three_repositories(arrays):
    counts = count(arrays, ignored=True)
    per_class = class_iou(counts[:, 0], counts[:, 1])
    miou = np.nan_to_num(per_class).mean()  # theirs counts a class without a pixel as 0, ours leaves it out
    both = fb_iou(*counts.sum(0))
    if not np.isnan(per_class).any():
        assert mean_of_defined(per_class) == miou
    np.testing.assert_allclose([miou, both], [arrays["pfenet_miou"], arrays["pfenet_fb_iou"]], rtol=1e-6)
    np.testing.assert_allclose([100 * miou, 100 * both], [arrays["hsnet_miou"], arrays["hsnet_fb_iou"]], rtol=1e-6)
    counts = count(arrays, ignored=False)
    per_class = np.nan_to_num(class_iou(counts[:, 0], counts[:, 1]))
    np.testing.assert_allclose(per_class.mean(), arrays["pmm_miou"], rtol=1e-9)


def test_counts_per_episode_are_those_of_hsnet(arrays):
    kept = arrays["label"] != 255
    for name, joined in (("intersection", np.logical_and), ("union", np.logical_or)):
        of_class = [(joined(arrays["pred"] == value, arrays["label"] == value) & kept).sum((1, 2)) for value in (0, 1)]
        np.testing.assert_array_equal(np.stack(of_class, 1), arrays[f"hsnet_{name}"])


def test_votes_as_released(arrays):
    votes = torch.from_numpy(arrays["hsnet_vote.votes"])
    np.testing.assert_array_equal(vote(votes, released=True).numpy(), arrays["hsnet_vote.pred"].astype(bool))
    assert not torch.equal(vote(votes), vote(votes, released=True))


def test_a_majority_is_more_than_half_and_no_vote_is_no_class():
    votes = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0]]).view(1, 2, 1, 4)
    assert vote(votes).tolist() == [[[True, False, False, False]]]
    for released in (False, True):
        assert not vote(torch.zeros(2, 5, 3, 3), released=released).any()
    one = (torch.rand(3, 1, 4, 4, generator=torch.Generator().manual_seed(0)) > 0.5).long()
    assert torch.equal(vote(one), one[:, 0].bool()) and torch.equal(vote(one, released=True), one[:, 0].bool())


def test_the_original_size_as_released(arrays):
    """Logits of a square in a square of the longer side, the label in its corner and 255 around it."""
    (name,) = (name for name in arrays if name.startswith("orisize.logits"))
    logits, label = torch.from_numpy(arrays[name]), arrays["orisize.label"]
    rule, (height, width) = InputRule(logits.shape[-1], padded=True, nearest="opencv"), label.shape
    longer = max(height, width)
    square = rule.restore(logits, longer, longer, released=True).argmax(1)[0].numpy()
    np.testing.assert_array_equal(square, arrays["orisize.pred_square"])
    found = rule.restore(logits, height, width, released=True).argmax(1)[0].numpy()
    np.testing.assert_array_equal(found, square[:height, :width])
    kept = label != 255
    for name, joined in (("intersection", np.logical_and), ("union", np.logical_or)):
        counts = [(joined(found == value, label == value) & kept).sum() for value in (0, 1)]
        assert counts == arrays[f"orisize.{name}"].tolist()


def test_images_are_prepared_as_released():
    golden = read_golden("one_shot", "pfenet_r50")
    rule = InputRule(int(golden.arrays["prep.size"]), padded=True, nearest="opencv")
    image = torch.from_numpy(golden.arrays["prep.image_rgb_u8"]).permute(2, 0, 1)
    expected = golden.arrays["prep.out"]
    np.testing.assert_allclose(rule.prepare(image), expected, atol=1e-5 * np.abs(expected).max())
    mask = rule.prepare_mask(torch.from_numpy(golden.arrays["prep.label_u8"]))
    np.testing.assert_array_equal(mask, golden.arrays["prep.out_label"])


def test_the_shorter_side_is_cut_before_the_multiple_of_8():
    """169 x 473 / 500 = 159.87, so 159 and then 152; rounded it would be 160."""
    assert INPUT_RULES["pfenet"].find_inner_size(169, 500) == (152, 472)
    assert INPUT_RULES["pfenet"].find_inner_size(500, 170) == (472, 160)


def test_a_padded_image_lies_in_the_corner_and_comes_back_where_it_was():
    rule = InputRule(97, padded=True, nearest="opencv")
    assert rule.find_inner_size(60, 90) == (64, 96) and rule.find_inner_size(3, 900) == (8, 96)
    mask = torch.zeros(60, 90, dtype=torch.uint8)
    mask[10:50, 30:80] = 1
    prepared = rule.prepare_mask(mask)
    assert prepared.shape == (97, 97) and (prepared[64:] == 255).all() and (prepared[:, 96:] == 255).all()
    assert (prepared[:64, :96] != 255).all()


def test_restoring_undoes_the_preparation_which_the_released_rule_does_not():
    """An image whose values are the columns of its pixels, sent through the square and back."""
    rule = InputRule(473, padded=True, nearest="opencv")
    columns = torch.arange(200.0).expand(3, 150, 200)
    levels = rule.prepare(columns)[None, :1] * 0.229 * 255 + 0.485 * 255
    own, released = (rule.restore(levels, 150, 200, released=given)[0, 0, 75] for given in (False, True))
    torch.testing.assert_close(own[1:-1], columns[0, 75, 1:-1], atol=0.05, rtol=0)
    assert 0.3 < (released[190] - 190).abs() < 1, "the last of 473 columns is not part of the image"


def test_corners_are_aligned_where_the_released_code_aligns_them():
    """From 6 to 11 rows: with aligned corners every second row is one that was given."""
    logits = torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    for aligned in (True, False):
        rule = InputRule(6, padded=False, nearest="torch", aligned=aligned)
        released, own = (rule.restore(logits, 11, 6, released=given) for given in (True, False))
        assert torch.allclose(released[..., ::2, :], logits, atol=1e-6) == aligned
        assert not torch.allclose(own[..., ::2, :], logits, atol=1e-6)


@pytest.mark.parametrize("name", INPUT_RULES)
def test_black_stays_black_and_sizes_are_those_published(name):
    rule = INPUT_RULES[name]
    prepared = rule.prepare(torch.zeros(3, 30, 50, dtype=torch.uint8))
    assert prepared.shape == (3, rule.size, rule.size)
    black = -np.array([0.485, 0.456, 0.406]) / np.array([0.229, 0.224, 0.225])
    np.testing.assert_allclose(prepared.mean((1, 2)), black, rtol=1e-5)
    assert rule.restore(prepared[None, :2], 30, 50).shape == (1, 2, 30, 50)


def test_stretched_images_are_those_of_pillow():
    image = np.random.default_rng(0).integers(0, 256, (57, 83, 3), dtype=np.uint8)
    rule = InputRule(40, padded=False, nearest="torch")
    expected = np.asarray(Image.fromarray(image).resize((40, 40), Image.Resampling.BILINEAR)).astype(float)
    std, mean = np.array([0.229, 0.224, 0.225]), np.array([0.485, 0.456, 0.406])
    found = rule.prepare(torch.from_numpy(image).permute(2, 0, 1)).permute(1, 2, 0).numpy()
    levels = (found * std + mean) * 255
    assert np.abs(levels - expected).max() < 1.01 and (np.abs(levels - expected) < 0.01).mean() > 0.98


@pytest.mark.parametrize(("source", "target"), [(500, 400), (366, 400), (333, 481), (13, 97), (97, 13)])
def test_nearest_positions_are_those_of_the_libraries(source, target):
    import cv2

    values = np.arange(source, dtype=np.uint16)
    of_pillow = np.asarray(
        Image.fromarray(values[None].astype(np.int32)).resize((target, 1), Image.Resampling.NEAREST)
    )[0]
    np.testing.assert_array_equal(choose_nearest(source, target, "pillow"), of_pillow)
    of_opencv = cv2.resize(values[None], (target, 1), interpolation=cv2.INTER_NEAREST)[0]
    np.testing.assert_array_equal(choose_nearest(source, target, "opencv"), of_opencv)
    given = torch.from_numpy(values.astype(np.float32))[None, None, None]
    of_torch = torch.nn.functional.interpolate(given, (1, target), mode="nearest")[0, 0, 0]
    np.testing.assert_array_equal(choose_nearest(source, target, "torch"), of_torch)
