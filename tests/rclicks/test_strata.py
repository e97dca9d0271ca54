"""Intervals over datasets: images are drawn within their dataset, so that no dataset is ever lost in a resample."""

import click_records
import numpy as np
import pytest
from click_records import reaching, record

from hardlook.harness.tally import Draws, Entry, estimate_tally
from hardlook.rclicks.benchmark import RCLICKS
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.scores import read_results, tally_datasets

# Few images, so that drawing over all of them would leave one dataset out in many resamples.
IMAGES = {"berkeley": 2, "grabcut": 3}

NEEDED = {"berkeley": 9, "grabcut": 2}


@pytest.fixture(scope="module")
def frame():
    """Two datasets, each with the same IoUs on all of its instances; images of both have the same names."""
    rows = [
        record(f"{image}-{number}", reaching(NEEDED[name]), [reaching(NEEDED[name])] * 10, dataset=name, image=image)
        for name, images in IMAGES.items()
        for image in map(str, range(images))
        for number in range(2)
    ]
    return click_records.frame(rows)


def test_datasets_that_are_constant_within_leave_no_interval(frame):
    card = RCLICKS.score(frame, RClicksOptions(resamples=300, interval="percentile"))
    for name in ("noc90", "noc90-base", "auc", "sample-iou1"):
        score = card.get(name)
        assert score.interval.low == pytest.approx(score.value)
        assert score.interval.high == pytest.approx(score.value)
        assert score.interval.n == sum(IMAGES.values())
    assert card.get("noc90").value == pytest.approx(np.mean(list(NEEDED.values())))


def test_what_varies_within_a_dataset_has_an_interval(frame):
    """Of two images with 0 and 1 a quarter of the resamples takes the first twice; the other dataset stays at 0."""
    table = read_results(frame)
    column = ((table.dataset == "berkeley") & (table.image == "1")).astype(float)
    tally = tally_datasets(column[:, None], table, [Entry("share", len(table))], ("test",))
    (estimate,) = estimate_tally(tally, Draws(resamples=2000, interval="percentile"))
    assert (estimate.value, estimate.interval.low, estimate.interval.high) == pytest.approx((0.25, 0.0, 0.5))
    (narrow,) = estimate_tally(tally, Draws(resamples=2000, level=0.4, interval="percentile"))
    assert (narrow.interval.low, narrow.interval.high) == pytest.approx((0.25, 0.25))
