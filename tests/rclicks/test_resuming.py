"""Runs of RClicks that are torn, killed or shared between processes end as if nothing had happened."""

import pytest
from killed_runs import assert_alike, finish, kill_after_first_records, tear, whole_records

from hardlook.errors import ChangedRun
from hardlook.harness.runs.engines import EngineOptions
from hardlook.harness.runs.launch import RunSettings, launch

SMALL = {"scenes": 6, "rounds": 4, "resamples": 30}

COMMAND = [
    *("rclicks", "--model", "slow_disc:Slow", "--scenes", "16", "--rounds", "3", "--resamples", "30"),
    *("--batch-size", "2"),
]


def run(out, *, engine="inline", **given):
    return launch(
        "rclicks", out=out, model="disc", model_args={"fragility": 0.7}, given={**SMALL, **given}, batch_size=2,
        settings=RunSettings(engine=EngineOptions(engine)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    run(out)
    return out


def test_processes_answer_as_this_one_does(whole, tmp_path, forked_workers):
    run(tmp_path / "run", engine="processes")
    assert_alike(tmp_path / "run", whole)


def test_ray_answers_as_this_process_does(whole, tmp_path, ray_cluster):
    run(tmp_path / "run", engine="ray")
    assert_alike(tmp_path / "run", whole)


def test_a_resumed_run_is_the_uninterrupted_one(whole, tmp_path):
    run(tmp_path / "torn")
    lost = tear(tmp_path / "torn", kept=3)
    assert run(tmp_path / "torn").progress.answered == lost > 0
    assert_alike(tmp_path / "torn", whole)


@pytest.mark.parametrize("given", [{"clicks": "uniform"}, {"rounds": 5}, {"prompts_a_call": 4}, {"halves": True}])
def test_other_clicks_are_another_run(whole, given):
    with pytest.raises(ChangedRun, match="other units or answers"):
        run(whole, **given)


def test_killed_and_resumed_equals_undisturbed(tmp_path):
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    kill_after_first_records(COMMAND, killed)
    assert 0 < len(whole_records(killed)) < 16
    for out in (killed, undisturbed):
        finish(COMMAND, out)
    assert_alike(killed, undisturbed)
