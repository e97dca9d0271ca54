import numpy as np
import polars as pl
import pytest

from hardlook.bias.one_shot_answers import class_iou, one_shot_answers
from hardlook.errors import RunError
from hardlook.randomness import generator


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
    answers = one_shot_answers(frame, void_ignored=void_ignored)
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
    answers = one_shot_answers(frame)
    of_fixed = frame.filter((pl.col("tier") == "0") & (pl.col("shots") == "1"))
    assert answers.pairs == "the fixed pairs"
    assert answers.frame["intersection"].sum() == of_fixed["intersection"].sum()


def test_an_image_with_neither_truth_nor_prediction_has_no_iou():
    row = {"tier": 1, "shots": 1, "class": "cat", "query": "a", "truth": 0, "predicted": 0}
    frame = pl.DataFrame([{**row, "intersection": 0, "predicted_void": 0}])
    assert one_shot_answers(frame).frame["iou"].to_list() == [None]


def test_runs_that_cannot_say_are_refused():
    with pytest.raises(RunError, match="neither fixed pairs nor pairs of tier 1"):
        one_shot_answers(records(tiers=(2, 3)))
    with pytest.raises(RunError, match="lack class, truth"):
        one_shot_answers(records().drop("class", "truth"))
