"""Mutual information of attributes with success, on made-up and on published tables."""

import numpy as np
import polars as pl
import pytest
from sklearn.feature_selection import mutual_info_classif

from hardlook.errors import DataError
from hardlook.toss.bias.information import measure_information
from hardlook.toss.bias.one_shot_results import OneShotResults, read_attribute_frame, replace_one_shot_iou
from hardlook.toss.tiers.attributes import ATTRIBUTES, NUMBERS


def table(seed=0, count=400):
    """Salience decides success, size has a part in it, the others are noise."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.random(count) for name in NUMBERS}
    columns["oss_perf"] = np.clip(0.8 * columns["saliou"] + 0.2 * columns["area_ratio"], 0, 1)
    names = {
        "filename": [f"1_{n}" for n in range(count)],
        "class": ["cat"] * count,
        "image": [str(n) for n in range(count)],
    }
    return pl.DataFrame({**names, **columns})


def test_values_are_scikit_learns_and_the_planted_cause_comes_first():
    frame = table()
    study = measure_information(frame, halves=40)
    assert study.attributes[0].attribute == "salience" and study.attributes[0].above_chance
    outcome = frame["oss_perf"].to_numpy() > 0.5
    for one in study.attributes:
        values = frame[one.column].to_numpy()[:, None]
        theirs = mutual_info_classif(values, outcome, discrete_features=False, n_neighbors=3, random_state=0)[0]
        assert one.information.value == pytest.approx(theirs, abs=1e-6)
    assert study.success == outcome.mean() and {one.attribute for one in study.attributes} == set(ATTRIBUTES.values())


def test_noise_stays_near_its_chance():
    study = measure_information(table(seed=3), halves=10)
    noise = [one for one in study.attributes if one.attribute in ("blobs", "distractors", "centredness")]
    assert all(one.information.value < 3 * max(one.chance, 0.02) for one in noise)
    assert all(one.chance < 0.2 for one in study.attributes)


def test_gaps_are_counted_and_an_empty_attribute_is_named():
    frame = table().with_columns(
        pl.when(pl.int_range(pl.len()) < 30).then(float("nan")).otherwise(pl.col("iou")).alias("iou"),
        pl.lit(float("nan")).alias("blob_count"),
    )
    study = measure_information(frame, halves=10)
    assert study.absent == ("blobs",)
    assert {one.attribute: one.missing for one in study.attributes}["supervised IoU"] == 30


def test_a_run_gives_the_outcome_of_its_queries_only():
    frame = table(count=60)
    found = pl.DataFrame({"class": ["cat"] * 40, "image": [str(n) for n in range(40)], "iou": [0.9, 0.1] * 20})
    joined = replace_one_shot_iou(frame, OneShotResults(found, "tier 1"))
    assert joined["image"].to_list() == frame["image"].to_list()
    assert joined["oss_perf"].to_list()[:2] == [0.9, 0.1] and np.isnan(joined["oss_perf"].to_numpy()[40:]).all()
    study = measure_information(joined, halves=10)
    assert study.rows == 40 and study.success == 0.5


@pytest.mark.parametrize("value", [float("nan"), 0.9, 0.5])
def test_without_two_outcomes_nothing_can_be_said(value):
    with pytest.raises(DataError, match="rows have a one-shot IoU"):
        measure_information(table().with_columns(pl.lit(value).alias("oss_perf")))


@pytest.mark.real
def test_five_of_six_published_values(shared_data):
    """On the published table: within the width of our interval of the printed value, blobs excepted."""
    folder = shared_data / "reference" / "toss"
    frame = read_attribute_frame(folder / "data" / "analysis" / "test_stats.csv")
    study = measure_information(frame, halves=60)
    printed = pl.read_csv(folder / "published" / "supp_mutual_information.csv")
    values = dict(zip(ATTRIBUTES, printed["mutual_information"].to_list(), strict=True))
    inside = [one.column for one in study.attributes if values[one.column] in one.information.interval]
    assert set(inside) >= {"iou", "area_ratio", "offset_ratio", "saliou", "distractor_weight"}
    assert [one.attribute for one in study.attributes][:3] == ["salience", "distractors", "supervised IoU"]
