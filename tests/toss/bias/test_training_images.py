"""Folds, shares with Wilson intervals, saliency coverage, and the SGTSS selection."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.stats import binomtest

from hardlook.data.class_masks import open_class_mask_folders
from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import OptionError
from hardlook.models.registry import build
from hardlook.toss.bias.selection import summarise_selection
from hardlook.toss.bias.training_images import (
    ClassSplit,
    Coverage,
    assign_folds,
    count_coverage,
    estimate_mask_share,
    estimate_share,
    leave_out_classes,
    list_labelled_images,
    measure_coverage,
    read_training_mask,
    select_images,
    select_training_images,
    split_of_fold,
    split_of_training,
)
from hardlook.toss.saliency_cache import SaliencyMaskCache
from hardlook.world.layouts import write_world
from hardlook.world.planted import PlantedWorld


def test_folds_of_voc_are_those_of_pascal_5i():
    assert split_of_fold(VOC_CLASSES, 0).test == ("aeroplane", "bicycle", "bird", "boat", "bottle")
    assert split_of_fold(VOC_CLASSES, 2).test == ("diningtable", "dog", "horse", "motorbike", "person")
    assert len(split_of_fold(VOC_CLASSES, 3).training) == 15
    assert assign_folds(VOC_CLASSES)["tvmonitor"] == 3


def test_every_class_is_tested_once_and_trained_elsewhere():
    splits = [split_of_fold(VOC_CLASSES, fold, 5) for fold in range(5)]
    assert sorted(name for split in splits for name in split.test) == sorted(VOC_CLASSES)
    assert all(set(split.test).isdisjoint(split.training) for split in splits)


def test_training_classes_by_name_keep_the_order_of_the_data():
    split = split_of_training(("cat", "dog", "car"), ["car", "cat"])
    assert split.training == ("cat", "car") and split.test == ("dog",)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split_of_fold(VOC_CLASSES, 4), "no such fold"),
        (lambda: split_of_fold(VOC_CLASSES, -1), "no such fold"),
        (lambda: split_of_fold(("a", "b"), 0, 1), "from 2 to 2"),
        (lambda: assign_folds(("a", "b"), 3), "from 2 to 2"),
        (lambda: split_of_training(("cat",), ["cow"]), "no class 'cow'"),
        (lambda: split_of_training(("cat",), []), "no training class"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(OptionError, match=message):
        call()


counts = st.lists(st.integers(0, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), max_size=25)


def rows_of(pairs):
    return [Coverage(f"i{place:03d}", salient, covered) for place, (salient, covered) in enumerate(pairs)]


@given(counts)
def test_the_rule_word_for_word(pairs):
    rows = rows_of(pairs)
    chosen = select_images(rows)
    shares = {row.image: row.covered / row.salient for row in rows if row.salient}
    if shares:
        assert chosen.median == pytest.approx(statistics.median(shares.values()), abs=1e-15)
    else:
        assert math.isnan(chosen.median)
    below = {image for image, share in shares.items() if share < chosen.median}
    assert set(chosen.dropped) == below and set(chosen.kept) == {row.image for row in rows} - below
    assert set(chosen.without_salience) == {row.image for row in rows if row.salient == 0}
    assert len(chosen.dropped) <= len(shares) / 2


@given(counts, st.randoms())
def test_the_order_of_images_changes_nothing(pairs, random):
    rows = rows_of(pairs)
    shuffled = random.sample(rows, len(rows))
    assert set(select_images(rows).kept) == set(select_images(shuffled).kept)


def test_equal_to_the_median_is_kept_and_no_salience_too():
    chosen = select_images([Coverage("a", 2, 1), Coverage("b", 4, 2), Coverage("c", 6, 3), Coverage("d", 0, 0)])
    assert chosen.kept == ("a", "b", "c", "d") and chosen.dropped == () and chosen.without_salience == ("d",)


def test_coverage_counts_are_pixel_counts():
    rng = np.random.default_rng(0)
    training, salient = rng.random((2, 7, 9)) < 0.4
    by_hand = [(bool(t), bool(s)) for t, s in zip(training.ravel(), salient.ravel(), strict=True)]
    assert count_coverage(training, salient) == (sum(s for _, s in by_hand), sum(t and s for t, s in by_hand))
    with pytest.raises(ValueError, match="one shape"):
        count_coverage(training, salient[:3])


def test_leave_out_drops_every_image_with_a_test_class():
    rows = [Coverage("a", 1, 1, ("cat", "dog")), Coverage("b", 1, 1, ("cat", "car")), Coverage("c", 1, 1, ("dog",))]
    assert leave_out_classes(rows, ("car", "bus")) == ("a", "c")
    assert leave_out_classes(rows, ()) == ("a", "b", "c")


def test_the_summary_counts_classes_and_test_classes_by_part():
    rows = [
        Coverage("a", 10, 10, ("cat",)),
        Coverage("b", 10, 9, ("cat", "dog")),
        Coverage("c", 10, 1, ("dog", "car")),
        Coverage("d", 10, 0, ("dog", "car")),
    ]
    split = ClassSplit(("cat", "dog"), ("car", "bus"), "by hand")
    summary = summarise_selection(rows, select_images(rows), split, resamples=200)
    assert summary.median is not None and summary.median.value == pytest.approx(0.5)
    assert {one.name: (one.tested, one.images, one.kept.value) for one in summary.classes} == {
        "cat": (False, 2, 1.0),
        "dog": (False, 3, pytest.approx(1 / 3)),
        "car": (True, 2, 0.0),
    }
    shares = {name: estimate.value for name, estimate in summary.holding_test.items()}
    assert shares == {"all training images": 0.5, "kept": 0.0, "dropped": 1.0}
    assert summary.dropped_more.value == 1.0


def test_a_summary_without_any_salience_has_no_median():
    rows = [Coverage("a", 0, 0, ("cat",)), Coverage("b", 0, 0, ("cat",))]
    summary = summarise_selection(rows, select_images(rows), ClassSplit(("cat",), ("car",), ""), resamples=50)
    assert summary.median is None and "dropped" not in summary.holding_test


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_scipys_wilson_interval(counts):
    having, images = counts
    ours, theirs = estimate_share(having, images), binomtest(having, images).proportion_ci(method="wilson")
    assert ours.value == having / images
    assert (ours.interval.low, ours.interval.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_no_image_has_no_share_and_impossible_counts_are_refused():
    assert math.isnan(estimate_share(0, 0).value) and not estimate_share(0, 0).interval.defined
    with pytest.raises(ValueError, match="from 0 to 3"):
        estimate_share(4, 3)


def test_masks_are_counted_and_their_images_resampled():
    share = estimate_mask_share([1, 3, 2, 2], [True, False, True, False], rng=np.random.default_rng(0))
    assert share.value == 3 / 8 and share.interval.n == 4
    assert share.interval.low < 3 / 8 < share.interval.high


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world") / "voc"
    write_world(folder, layout="voc", seed=0, count=16, size=(96, 72))
    return folder


def stored(world, image):
    return np.array(Image.open(world / "SegmentationClass" / f"{image}.png"))


def test_images_have_the_classes_of_their_masks(world):
    source = open_class_mask_folders({"voc": world})
    images = list_labelled_images(source)
    assert [one.image for one in images] == sorted(one.image for one in images)
    for one in images:
        numbers = sorted(set(np.unique(stored(world, one.image)).tolist()) - {0, 255})
        assert sorted(one.classes) == sorted(source.classes[number - 1] for number in numbers)


def test_named_images_only_also_one_without_classes(world):
    source = open_class_mask_folders({"voc": world})
    first, empty = list_labelled_images(source, ["2026_000001", "nowhere"])
    assert first.image == "2026_000001" and first.tokens and empty.tokens == ()
    assert select_training_images([empty], split_of_fold(source.classes, 0)) == []


def test_coverage_equals_the_planted_truth(world, tmp_path):
    source = open_class_mask_folders({"voc": world})
    split = split_of_fold(source.classes, 1)
    images = select_training_images(list_labelled_images(source), split)
    calls = []
    salient = SaliencyMaskCache(build("planted-saliency", role="saliency"), "planted", tmp_path)
    rows, unread = measure_coverage(source, images, split, salient, lambda done, failed: calls.append((done, failed)))
    assert not unread and sum(done for done, _ in calls) == len(images) == len(rows)
    numbers = [source.classes.index(name) + 1 for name in split.training]
    scenes = {f"2026_{place + 1:06d}": scene for place, scene in enumerate(PlantedWorld(0, 16, (96, 72)))}
    for row in rows:
        (seen,) = build("planted-saliency", role="saliency").saliency([scenes[row.image].image])
        truth = np.isin(stored(world, row.image), numbers)
        assert (row.salient, row.covered) == (int((seen > 0.5).sum()), int((truth & (seen > 0.5)).sum()))


def test_the_training_mask_is_the_union_without_test_classes(world):
    source = open_class_mask_folders({"voc": world})
    one = max(list_labelled_images(source), key=lambda image: len(image.classes))
    split = ClassSplit(one.classes[:-1], one.classes[-1:], "by hand")
    numbers = [source.classes.index(name) + 1 for name in split.training]
    assert (read_training_mask(source, one, split) == np.isin(stored(world, one.image), numbers)).all()


def test_an_image_that_cannot_be_read_is_named_and_stops_nothing(world, tmp_path):
    source = open_class_mask_folders({"voc": world})
    split = split_of_fold(source.classes, 0)
    images = select_training_images(list_labelled_images(source), split)
    path = world / "JPEGImages" / f"{images[0].image}.png"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    try:
        salient = SaliencyMaskCache(build("planted-saliency", role="saliency"), "planted", tmp_path)
        calls = []
        rows, unread = measure_coverage(source, images, split, salient, lambda done, failed: calls.append(failed))
    finally:
        path.write_bytes(content)
    assert [one.image for one in unread] == [images[0].image] and unread[0].error
    assert len(rows) == len(images) - 1 and sum(calls) == 1
