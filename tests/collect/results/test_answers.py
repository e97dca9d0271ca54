import json
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from web_visitors import StudyApp

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
    revalidate_answers,
    unpack_circumstances,
    unpack_durations,
)
from hardlook.collect.study.clicks import make_click_study
from hardlook.collect.study.instances import list_planted_instances
from hardlook.collect.study.settings import StudySettings
from hardlook.errors import DataError
from hardlook.world.planted import PlantedWorld

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


def test_clicks_and_batches_are_judged_by_the_masks(gathered, recounted):
    # Whatever was stored is not looked at.
    answers = gathered.store.answers().with_columns(
        inside=pl.lit(None, pl.Boolean), near=pl.lit(False), batch_valid=pl.lit(True)
    )
    judged = revalidate_answers(gathered.study, answers, gathered.store.batches()).answers
    names = ("key", "inside", "near", "batch_valid")
    found = {row[0]: row[1:] for row in judged.select(names).iter_rows()}
    assert found == {
        row["key"]: (row["inside"], row["near"], row["batch_valid"] if row["batch"]["state"] != "open" else None)
        for row in recounted
    }
    assert not all(row["inside"] for row in recounted) and not all(row["batch_valid"] for row in recounted)


def test_nothing_differs_from_what_was_stored(gathered):
    judged = revalidate_answers(gathered.study, gathered.store.answers(), gathered.store.batches())
    assert (judged.changed_answers, judged.changed_batches) == (0, 0)


def test_changed_settings_are_counted(gathered, recounted):
    settings = gathered.study.settings
    study = replace(gathered.study, settings=settings.model_copy(update={"click_radius": 1000.0, "least_inside": 1.0}))
    judged = revalidate_answers(study, gathered.store.answers(), gathered.store.batches())
    assert judged.answers["near"].all()
    assert judged.changed_answers == sum(not row["near"] for row in recounted) > 0
    missed = {row["batch"]["id"] for row in recounted if not row["inside"]}
    whole = {row["batch"]["id"] for row in recounted if row["batch_valid"]}
    assert judged.changed_batches == len(whole & missed) > 0


def test_batches_that_went_on_meanwhile_stay_open(gathered):
    answers = gathered.store.answers()
    last = answers.filter(pl.col("batch_state") == "complete").row(-1, named=True)
    # The last answer came, and closed its batch, after the answers were read.
    early = answers.filter(pl.col("key") != last["key"]).with_columns(
        batch_state=pl.when(pl.col("batch") == last["batch"]).then(pl.lit("open")).otherwise("batch_state")
    )
    judged = revalidate_answers(gathered.study, early, gathered.store.batches())
    [batch] = judged.batches.filter(pl.col("id") == last["batch"]).iter_rows(named=True)
    assert batch["state"] == "open" and batch["valid"] is None
    assert set(judged.answers.filter(pl.col("batch") == last["batch"])["batch_state"]) == {"open"}
    assert judged.changed_batches == 0


def test_all_tasks_are_reported_as_done(gathered):
    done = []
    revalidate_answers(gathered.study, gathered.store.answers().head(1), gathered.store.batches(), done.append)
    assert sum(done) == len(gathered.study.tasks)


def test_what_cannot_be_judged_is_refused(gathered):
    answers, batches = gathered.store.answers(), gathered.store.batches()
    with pytest.raises(DataError, match="1 tasks that are not of this study, such as 't9'"):
        revalidate_answers(gathered.study, answers.with_columns(task=pl.lit("t9")), batches)
    several = pl.Series("task", [f"t{9 - place}" for place in range(3)])
    with pytest.raises(DataError, match="3 tasks that are not of this study, such as 't7'"):
        revalidate_answers(gathered.study, answers.head(3).with_columns(several), batches)
    for axis in ("x", "y"):
        without = answers.with_columns(pl.when(pl.int_range(pl.len()) > 1).then(axis).alias(axis))
        with pytest.raises(DataError, match=f"2 answers without a click, the first to {answers['task'][0]}"):
            revalidate_answers(gathered.study, without, batches)


@pytest.mark.parametrize("rule", ["drop", "keep"])
def test_a_batch_in_no_time_stays_dropped_or_kept(tmp_path, rule):
    settings = StudySettings(
        kind="clicks", title="Cups", batch_size=3, training_tasks=0, open_link=True, quick_batches=rule
    )
    study = make_click_study(tmp_path / "study", list_planted_instances(PlantedWorld(seed=0, count=3)), settings)
    with StudyApp(study, study.database) as app:
        visitor = app.participant()
        trials = [trial["id"] for trial in visitor.batch()["batch"]["trials"]]
        for trial in trials:
            visitor.show(trial)
        app.now += 5.3
        for trial in trials:
            visitor.answer(trial, **app.right_click(trial))
        found = revalidate_answers(study, app.store.answers(), app.store.batches())
    assert found.batches["valid"].to_list() == [rule == "keep"] == found.answers["batch_valid"].unique().to_list()
    assert found.changed_batches == found.changed_answers == 0
