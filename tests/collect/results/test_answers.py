import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from hardlook.collect.results.answers import (
    BATCH_CLASSES,
    CLASS_MEANINGS,
    CLASSES,
    classify_answers,
    classify_batches,
    count_classes,
)

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
