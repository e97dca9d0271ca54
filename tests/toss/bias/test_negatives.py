"""Distractor shares, class measurements and their correlation, by hand and on the published table."""

import csv
from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from scipy.stats import pearsonr, spearmanr

from hardlook.data.voc import VOC_CLASSES
from hardlook.toss.bias.negatives import associate, measure_classes, measure_distractor_shares
from hardlook.toss.bias.one_shot_results import OneShotResults, read_attribute_frame
from hardlook.toss.bias.training_images import assign_folds, split_of_fold

TRAINING = {name: split_of_fold(VOC_CLASSES, fold).training for name, fold in assign_folds(VOC_CLASSES).items()}


def test_both_readings_by_hand():
    images = [("cat",), ("cat", "person"), ("car", "chair", "person"), ("person",), (), ("horse", "person")]
    share = measure_distractor_shares(images, {"person": TRAINING["person"]}, resamples=0)["person"]
    # Horse and person are of one fold: that image, person's own and the empty one train nothing.
    assert (share.images, share.images_with, share.masks, share.masks_with) == (3, 2, 4, 3)
    assert share.paper.value == 2 / 3 and share.released.value == 3 / 4
    assert share.share("paper") is share.paper and share.share("released") is share.released


def test_equal_to_counting_one_by_one():
    rng = np.random.default_rng(0)
    images = [tuple(np.array(VOC_CLASSES)[rng.random(20) < 0.1]) for _ in range(300)]
    found = measure_distractor_shares(images, TRAINING, resamples=0)
    for name in ("aeroplane", "person", "tvmonitor"):
        training = [image for image in images if any(one in TRAINING[name] for one in image)]
        assert found[name].paper.value == sum(name in image for image in training) / len(training)
        masks = [name in image for image in training for one in image if one in TRAINING[name]]
        assert found[name].released.value == sum(masks) / len(masks)


def test_no_training_image_at_all():
    share = measure_distractor_shares([("person",)], {"person": TRAINING["person"]})["person"]
    assert share.images == share.masks == 0 and np.isnan(share.paper.value) and np.isnan(share.released.value)


@pytest.fixture(scope="module")
def published(shared_data):
    """The published percentages, and the classes of all images that the published file of statistics names.

    The file leaves out some classes of an image, nearly always person: the shares of the listed classes then do not
    sum to 1. Person is put in there; on images whose masks we have this is right for 520 of 528.
    """
    folder = shared_data / "reference" / "toss"
    with (folder / "published" / "supp_table1_leaveout.csv").open() as stream:
        percent = {int(row["class_id"]): float(row["percent_distractors"]) for row in csv.DictReader(stream)}
    held, seen = defaultdict(set), defaultdict(float)
    with (folder / "data" / "analysis" / "test_stats.csv").open() as stream:
        for row in csv.DictReader(stream):
            number, _, image = row["filename"].partition("_")
            held[image].add(VOC_CLASSES[int(number) - 1])
            seen[image] += 1 - float(row["distractor_weight"])
    for image, share in seen.items():
        if share < 1 - 1e-4:
            held[image].add("person")
    return {VOC_CLASSES[number - 1]: value for number, value in percent.items()}, list(held.values())


@pytest.mark.real
def test_the_published_numbers_follow_the_reading_released(published):
    percent, images = published
    found = measure_distractor_shares(images, TRAINING, resamples=0)
    wrong = {
        reading: [abs(100 * found[name].share(reading).value - percent[name]) for name in VOC_CLASSES]
        for reading in ("paper", "released")
    }
    assert max(wrong["released"]) < 0.5 and np.mean(wrong["released"]) < 0.2
    assert 2 < max(wrong["paper"]) < 2.5 and np.mean(wrong["paper"]) > 2 * np.mean(wrong["released"])


SHARES = measure_distractor_shares([("cat", "dog"), ("dog",)], {"cat": ["dog"], "dog": ["cat"]}, resamples=0)

FOLDS = {"cat": 0, "dog": 1}

TABLE = pl.DataFrame(
    {
        "class": ["cat", "cat", "cat", "dog"],
        "image": ["a", "b", "c", "a"],
        "iou": [0.9, 0.7, 0.2, float("nan")],
        "oss_perf": [0.5, 0.5, float("nan"), 0.4],
    }
)


def test_the_drop_is_over_images_that_have_both():
    cat, dog = measure_classes(SHARES, FOLDS, None, TABLE, resamples=100)
    assert cat.drop is not None and cat.drop.value == pytest.approx(np.mean([0.4, 0.2]))
    assert cat.supervised is not None and cat.supervised.value == pytest.approx(0.6)
    assert cat.one_shot is not None and cat.one_shot.value == pytest.approx(0.5)
    assert dog.drop is None and dog.supervised is None and dog.one_shot is not None
    assert (cat.fold, dog.fold) == (0, 1)


def test_a_run_takes_the_place_of_the_table_and_is_pooled():
    frame = pl.DataFrame(
        {"class": ["cat", "cat"], "image": ["a", "b"], "intersection": [1, 30], "union": [10, 60], "iou": [0.1, 0.5]}
    )
    cat, dog = measure_classes(SHARES, FOLDS, OneShotResults(frame, "tier 1"), TABLE, resamples=100)
    assert cat.one_shot is not None and cat.one_shot.value == pytest.approx(31 / 70)
    assert cat.drop is not None and cat.drop.value == pytest.approx(np.mean([0.8, 0.2]))
    assert dog.one_shot is None and dog.drop is None


def test_nothing_given_leaves_shares_alone():
    cat, _ = measure_classes(SHARES, FOLDS, None, None)
    assert (cat.one_shot, cat.supervised, cat.drop) == (None, None, None) and cat.distractors.paper.value == 0.5


def test_correlations_are_scipys_and_gaps_are_left_out():
    x, y = np.random.default_rng(0).random((2, 21))
    x[3], y[7] = np.nan, np.nan
    known = np.isfinite(x) & np.isfinite(y)
    found = associate(x.tolist(), y.tolist(), resamples=300)
    assert found.n == 19
    assert found.spearman.value == pytest.approx(spearmanr(x[known], y[known]).statistic)
    assert found.pearson.value == pytest.approx(pearsonr(x[known], y[known]).statistic)
    assert found.spearman.interval.low < found.spearman.value < found.spearman.interval.high
    assert found == associate(x.tolist(), y.tolist(), resamples=300)


@pytest.mark.real
def test_published_distractors_go_with_the_published_drop(shared_data):
    """The paper's own table and statistics, with scipy and polars beside: Spearman .71, clear of 0."""
    folder = shared_data / "reference" / "toss"
    published = pl.read_csv(folder / "published" / "supp_table1_leaveout.csv")
    path = folder / "data" / "analysis" / "test_stats.csv"
    table = read_attribute_frame(path)
    names = table["class"].unique().to_list()
    shares = measure_distractor_shares([], {name: () for name in names}, resamples=0)
    rows = {row.name: row for row in measure_classes(shares, dict.fromkeys(names, 0), None, table, resamples=0)}
    theirs = (
        pl.read_csv(path)
        .with_columns(number=pl.col("filename").str.split("_").list.first().cast(pl.Int64))
        .group_by("number")
        .agg(drop=(pl.col("iou") - pl.col("oss_perf")).mean())
        .sort("number")
    )
    percent = published.sort("class_id")["percent_distractors"].to_list()
    drops = [rows[name].drop.value for name in VOC_CLASSES]
    assert drops == pytest.approx(theirs["drop"].to_list())
    found = associate(percent, drops)
    assert found.spearman.value == pytest.approx(spearmanr(percent, theirs["drop"].to_list()).statistic)
    assert found.spearman.value > 0.7 and found.spearman.interval.low > 0.2
