"""Totals of a run by class and image, and attribute tables as data frames."""

import csv
import math

import numpy as np
import polars as pl
import pytest

from hardlook.errors import DataError, RunError
from hardlook.randomness import generator
from hardlook.toss.bias.one_shot_results import class_iou, read_attribute_frame, sum_results

HEADER = "filename,oss_perf,iou,area_ratio,offset_ratio,saliou,blob_count,distractor_weight"


def written(tmp_path, text):
    path = tmp_path / "attributes.csv"
    path.write_text(text)
    return path


def test_our_columns_class_and_image_are_taken_and_gaps_are_nan(tmp_path):
    path = written(tmp_path, f"{HEADER},class,image\n3_x_1,,0.5,.1,.2,.3,2,0,owl,x_1\n")
    (row,) = read_attribute_frame(path).to_dicts()
    assert (row["class"], row["image"], row["iou"], row["blob_count"]) == ("owl", "x_1", 0.5, 2.0)
    assert math.isnan(row["oss_perf"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("name,iou\na,1\n", "lacks filename"),
        ("filename,size\n1_a,1\n", "no number in any of the columns"),
        ("\0" * 9, "lacks filename"),
        (f"{HEADER}\n1_a,,x,1,1,1,1,1\n", "iou is not a number: 'x'"),
        (f"{HEADER}\n21_a,,1,1,1,1,1,1\n", "'21', which is not a class"),
        (f"{HEADER}\nowl_a,,1,1,1,1,1,1\n", "'owl', which is not a class"),
        (f"{HEADER}\n1_a,,1,1,1,1,1,1\n1_a,,1,1,1,1,1,1\n", "comes twice"),
    ],
)
def test_bad_tables_say_what_and_where(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(DataError, match=message) as raised:
        read_attribute_frame(path)
    assert str(path) in str(raised.value) and raised.value.remedy


def test_a_picture_is_no_table_and_says_what_to_give(tmp_path):
    path = tmp_path / "attributes.csv"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    with pytest.raises(DataError, match="this is not text") as raised:
        read_attribute_frame(path)
    assert "hardlook attributes" in raised.value.remedy and "polars" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_attribute_frame(tmp_path / "none.csv")


@pytest.mark.real
def test_the_published_file_as_it_is(shared_data):
    path = shared_data / "reference" / "toss" / "data" / "analysis" / "test_stats.csv"
    table = read_attribute_frame(path)
    with path.open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(table) == len(rows) == 15_052
    assert table["saliou"].to_list() == [float(row["saliou"]) for row in rows]
    assert (table["class"][0], table["image"][0]) == ("car", "2009_003977")


def records(seed=0, count=60, tiers=(1, 2)):
    rng = np.random.default_rng(seed)
    truth, predicted = rng.integers(5, 50, (2, count))
    void = rng.integers(0, 3, count)
    return pl.DataFrame(
        {
            "tier": rng.choice(tiers, count),
            "shots": rng.choice([1, 5], count),
            "class": rng.choice(["cat", "dog"], count),
            "query": rng.choice(["a", "b", "c"], count),
            "truth": truth,
            "predicted": predicted + void,
            "intersection": np.minimum(truth, predicted) // 2,
            "predicted_void": void,
        }
    )


@pytest.mark.parametrize("void_ignored", [True, False])
def test_totals_equal_a_loop_over_pairs(void_ignored):
    frame = records()
    answers = sum_results(frame, void_ignored=void_ignored)
    sums = {}
    for row in frame.iter_rows(named=True):
        if row["tier"] == 1 and row["shots"] == 1:
            union = row["predicted"] + row["truth"] - row["intersection"]
            union -= row["predicted_void"] if void_ignored else 0
            one = sums.setdefault((row["class"], row["query"]), [0, 0])
            one[0] += row["intersection"]
            one[1] += union
    found = {(row["class"], row["image"]): row for row in answers.frame.iter_rows(named=True)}
    assert found.keys() == sums.keys() and answers.pairs == "tier 1"
    for key, (intersection, union) in sums.items():
        assert (found[key]["intersection"], found[key]["union"]) == (intersection, union)
        assert found[key]["iou"] == intersection / union
    cats = [value for (name, _), value in sums.items() if name == "cat"]
    pooled = class_iou(answers, "cat", generator(0, "t"), 100)
    assert pooled.value == sum(i for i, _ in cats) / sum(u for _, u in cats)


def test_fixed_pairs_come_before_tier_1_and_text_columns_are_read():
    frame = records(tiers=(0, 1)).with_columns(pl.col("tier", "shots").cast(pl.String))
    answers = sum_results(frame)
    of_fixed = frame.filter((pl.col("tier") == "0") & (pl.col("shots") == "1"))
    assert answers.pairs == "the fixed pairs"
    assert answers.frame["intersection"].sum() == of_fixed["intersection"].sum()


def test_an_image_with_neither_truth_nor_prediction_has_no_iou():
    row = {"tier": 1, "shots": 1, "class": "cat", "query": "a", "truth": 0, "predicted": 0}
    frame = pl.DataFrame([{**row, "intersection": 0, "predicted_void": 0}])
    assert sum_results(frame).frame["iou"].to_list() == [None]


def test_runs_that_cannot_say_are_refused():
    with pytest.raises(RunError, match="neither fixed pairs nor pairs of tier 1"):
        sum_results(records(tiers=(2, 3)))
    with pytest.raises(RunError, match="lack class, truth"):
        sum_results(records().drop("class", "truth"))
