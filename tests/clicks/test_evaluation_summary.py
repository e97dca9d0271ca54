"""Means over stems: groups, intervals, counts."""

from dataclasses import replace

import numpy as np
import pytest

from hardlook.clicks.evaluation import StemScores
from hardlook.clicks.evaluation_summary import METRICS, summarise_rows
from hardlook.errors import OptionError


def rows_of(count, seed=0):
    rng = np.random.default_rng(seed)
    return [
        StemScores(
            f"stem{i}", "GrabCut" if i % 3 else "DAVIS", ("first", "fn", "fp")[i % 3], ("pc", "mobile")[i % 2], "",
            f"image{i // 2}", 48, *rng.random(5).tolist(), ks_undefined=i % 4, fell_back=i == 5,
        )
        for i in range(count)
    ]  # fmt: skip


def test_scores_are_plain_means_and_counts_are_sums():
    rows = rows_of(20)
    [whole] = summarise_rows(rows, METRICS, resamples=200)
    for name in METRICS:
        estimate = whole.scores[name]
        assert estimate.value == pytest.approx(np.mean([getattr(row, name) for row in rows]))
        assert estimate.value in estimate.interval
        assert (estimate.interval.n, estimate.interval.resampled) == (17, "image")  # ten images, seven in both datasets
    assert (whole.stems, whole.ks_undefined, whole.fell_back) == (20, 30, 1)


def test_stems_of_other_datasets_are_other_images():
    rows = rows_of(6)
    same = [replace(row, image_key="a") for row in rows]
    assert summarise_rows(same, METRICS, resamples=0)[0].scores["ks"].interval.n == 2


@pytest.mark.parametrize("by", [("dataset",), ("click_type",), ("device",), ("dataset", "device"), ("display_mode",)])
def test_groups_partition_the_stems(by):
    rows = rows_of(21)
    parts = summarise_rows(rows, METRICS, by=by, resamples=50)
    assert sum(part.stems for part in parts) == 21
    names = [tuple(part.group.values()) for part in parts]
    assert names == sorted({tuple(getattr(row, name) for name in by) for row in rows})
    for part in parts:
        chosen = [row for row in rows if all(getattr(row, name) == value for name, value in part.group.items())]
        assert part.scores["wd"].value == pytest.approx(np.mean([row.wd for row in chosen]))


def test_order_of_rows_changes_no_value():
    rows = rows_of(12)
    first, second = (summarise_rows(some, METRICS, resamples=100) for some in (rows, rows[::-1]))
    for name in METRICS:
        assert first[0].scores[name].value == pytest.approx(second[0].scores[name].value)


def test_unknown_columns_are_refused():
    with pytest.raises(OptionError, match="rows have no colour") as caught:
        summarise_rows(rows_of(2), METRICS, by=("colour",))
    assert "click_type" in caught.value.remedy
