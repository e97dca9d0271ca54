import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.collect.results.answers import (
    BATCH_CLASSES,
    CLASS_MEANINGS,
    CLASSES,
    DURATIONS,
    POINTER_CONFLICT,
    classify_answers,
    classify_batches,
    count_classes,
    find_quick_batches,
    list_dropped_batches,
    unpack_circumstances,
    unpack_durations,
)
from hardlook.collect.study.settings import StudySettings
from hardlook.errors import DataError

ANSWERS = st.lists(
    st.fixed_dictionaries(
        {
            "participant": st.sampled_from("abc"),
            "batch_state": st.sampled_from(["open", "complete", "returned"]),
            "batch_valid": st.sampled_from([True, False, None]),
            "near": st.booleans(),
            "mode": st.sampled_from(["text", "cut-out"]),
        }
    ),
    min_size=1,
    max_size=20,
)


def literal(row, excluded, mode):
    if row["participant"] in excluded:
        return "excluded by rule"
    if row["batch_state"] == "open":
        return "batch not complete"
    if not row["batch_valid"]:
        return "batch not complete" if row["batch_state"] == "returned" else "batch invalid"
    if not row["near"]:
        return "outside"
    return "valid" if mode in (None, row["mode"]) else "of another display mode"


@given(ANSWERS, st.sets(st.sampled_from("abc")), st.sampled_from([None, "text"]))
def test_each_answer_is_in_one_class_and_the_counts_add_up(answers, excluded, mode):
    frame = pl.DataFrame(
        answers, {**dict.fromkeys(answers[0], pl.String), "batch_valid": pl.Boolean, "near": pl.Boolean}
    )
    found = classify_answers(frame, excluded, mode)
    assert found["class"].to_list() == [literal(row, excluded, mode) for row in answers]
    assert sum(count_classes(found).values()) == len(answers)


@given(ANSWERS, st.sets(st.sampled_from("abc")))
def test_the_same_of_batches(answers, excluded):
    rows = [(row["participant"], row["batch_state"], row["batch_valid"]) for row in answers]
    frame = pl.DataFrame(rows, {"participant": pl.String, "state": pl.String, "valid": pl.Boolean}, orient="row")
    found = classify_batches(frame, excluded)
    assert found["class"].to_list() == [literal(row | {"near": True}, excluded, None) for row in answers]
    assert sum(count_classes(found, BATCH_CLASSES).values()) == len(answers)


def test_every_class_has_a_meaning():
    assert CLASS_MEANINGS.keys() == set(CLASSES) and set(BATCH_CLASSES) < set(CLASSES)


def test_what_a_browser_reported_becomes_columns_and_the_rest_is_null():
    durations = [json.dumps({DURATIONS[0]: 12.5}), None, "{}"]
    found = unpack_durations(pl.DataFrame({"durations": durations}, {"durations": pl.String}))
    assert found[DURATIONS[0]].to_list() == [12.5, None, None]
    assert set(DURATIONS) <= set(found.columns)
    seen = pl.DataFrame({"circumstances": ['{"pointer": "touch", "zoom": 2, "hidden": 1}', None]})
    row, nothing = unpack_circumstances(seen).to_dicts()
    assert (row["pointer"], row["zoom"], row["hidden"], row["restarts"]) == ("touch", 2.0, 1, None)
    assert nothing["pointer"] is None
    for unpack, name in ((unpack_durations, "durations"), (unpack_circumstances, "circumstances")):
        with pytest.raises(DataError, match=f"{name} of an answer are not JSON"):
            unpack(pl.DataFrame({name: ["{"]}))


@pytest.mark.parametrize("rule", ["drop", "keep"])
def test_batches_in_no_time_are_found_and_dropped_where_the_study_says_so(rule):
    settings = StudySettings(kind="clicks", title="Quick", quick_batches=rule)
    rows = [("slow", "text", 0.0, 60.0), ("slow", "text", 60.0, 130.0), ("quick", "text", 0.0, 0.01)]
    answers = pl.DataFrame(rows, ["batch", "mode", "shown", "received"], orient="row")
    assert find_quick_batches(settings, answers) == ["quick"]
    assert list_dropped_batches(settings, answers) == (["quick"] if rule == "drop" else [])


def test_a_finger_on_a_computer_and_a_mouse_on_a_phone_are_conflicts():
    pairs = [(device, pointer) for device in ("pc", "mobile") for pointer in ("mouse", "touch", "pen")]
    frame = pl.DataFrame(pairs, ["device", "pointer"], orient="row")
    assert frame.filter(POINTER_CONFLICT).rows() == [("pc", "touch"), ("mobile", "mouse")]
