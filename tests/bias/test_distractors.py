import csv
from collections import defaultdict

import numpy as np
import pytest

from hardlook.bias.class_folds import fold_of, split_of_fold
from hardlook.bias.distractors import distractor_shares
from hardlook.data.voc import VOC_CLASSES

TRAINING = {name: split_of_fold(VOC_CLASSES, fold).training for name, fold in fold_of(VOC_CLASSES).items()}


def test_both_readings_by_hand():
    images = [("cat",), ("cat", "person"), ("car", "chair", "person"), ("person",), (), ("horse", "person")]
    share = distractor_shares(images, {"person": TRAINING["person"]}, resamples=0)["person"]
    # Horse and person are of one fold: that image, person's own and the empty one train nothing.
    assert (share.images, share.images_with, share.masks, share.masks_with) == (3, 2, 4, 3)
    assert share.paper.value == 2 / 3 and share.released.value == 3 / 4
    assert share.share("paper") is share.paper and share.share("released") is share.released


def test_equal_to_counting_one_by_one():
    rng = np.random.default_rng(0)
    images = [tuple(np.array(VOC_CLASSES)[rng.random(20) < 0.1]) for _ in range(300)]
    found = distractor_shares(images, TRAINING, resamples=0)
    for name in ("aeroplane", "person", "tvmonitor"):
        training = [image for image in images if any(one in TRAINING[name] for one in image)]
        assert found[name].paper.value == sum(name in image for image in training) / len(training)
        masks = [name in image for image in training for one in image if one in TRAINING[name]]
        assert found[name].released.value == sum(masks) / len(masks)


def test_no_training_image_at_all():
    share = distractor_shares([("person",)], {"person": TRAINING["person"]})["person"]
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
    found = distractor_shares(images, TRAINING, resamples=0)
    wrong = {
        reading: [abs(100 * found[name].share(reading).value - percent[name]) for name in VOC_CLASSES]
        for reading in ("paper", "released")
    }
    assert max(wrong["released"]) < 0.5 and np.mean(wrong["released"]) < 0.2
    assert 2 < max(wrong["paper"]) < 2.5 and np.mean(wrong["paper"]) > 2 * np.mean(wrong["released"])
