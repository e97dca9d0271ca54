"""Runs of MetaCoCo that are torn, killed or shared between processes end as if nothing had happened."""

import pytest
from killed_runs import assert_alike, finish, kill_after_first_records, tear, whole_records

from hardlook.harness.runs.engines import EngineOptions
from hardlook.harness.runs.launch import RunSettings, launch

FAULTS = {"context": 0.5, "noise": 0.2}

SMALL = {"tasks": 6, "resamples": 30, "modes": "iid,ood", "queries": 2}

COMMAND = [
    *("metacoco", "--model", "troubled_few_shot:Slow", "--tasks", "15", "--modes", "iid,ood", "--queries", "1"),
    *("--resamples", "30", "--batch-size", "2"),
]


def run(out, *, engine="inline", args=FAULTS, batch_size=5, **given):
    settings = RunSettings(engine=EngineOptions(engine))
    given = {**SMALL, **given}
    return launch(
        "metacoco", out=out, model="planted-learner", model_args=args, given=given, batch_size=batch_size,
        settings=settings,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    run(out)
    return out


def test_processes_answer_as_this_one_does(whole, tmp_path, forked_workers):
    run(tmp_path / "run", engine="processes")
    assert_alike(tmp_path / "run", whole)


def test_a_resumed_run_is_the_uninterrupted_one(whole, tmp_path):
    run(tmp_path / "torn")
    lost = tear(tmp_path / "torn", kept=7)
    assert run(tmp_path / "torn").progress.answered == lost > 0
    assert_alike(tmp_path / "torn", whole)


def test_killed_and_resumed_equals_undisturbed(tmp_path):
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    kill_after_first_records(COMMAND, killed)
    assert 0 < len(whole_records(killed)) < 30
    for out in (killed, undisturbed):
        finish(COMMAND, out)
    assert_alike(killed, undisturbed)


def test_repeats_are_further_tasks(whole, tmp_path):
    """Two repeats of three are six tasks, numbered on."""
    run(tmp_path / "run", tasks=3, repeats=2)
    here, there = whole_records(tmp_path / "run"), whole_records(whole)
    assert sorted(here["repeat"].unique()) == [0, 1]
    assert here.filter(repeat=1)["index"].unique().sort().to_list() == [3, 4, 5]
    assert here.drop("repeat").equals(there.drop("repeat"))
