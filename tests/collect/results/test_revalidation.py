from dataclasses import replace

import polars as pl
import pytest
from web_visitors import StudyApp

from hardlook.collect.results.revalidation import revalidate_answers
from hardlook.collect.study.clicks import make_click_study
from hardlook.collect.study.instances import list_planted_instances
from hardlook.collect.study.settings import StudySettings
from hardlook.errors import DataError
from hardlook.world.planted import PlantedWorld


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
