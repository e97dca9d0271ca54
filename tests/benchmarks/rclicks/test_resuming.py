"""Runs of RClicks that are torn, killed or shared between processes end as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from hardlook.benchmarks.rclicks.benchmark import RCLICKS
from hardlook.errors import ChangedRun
from hardlook.runs.engines import EngineOptions
from hardlook.runs.execute import Conduct
from hardlook.runs.folder import RunFolder
from hardlook.runs.launch import launch

SUPPORT = Path(__file__).parents[2] / "support"
SMALL = {"scenes": 6, "rounds": 4, "resamples": 30}


def whole_records(out):
    """Every row of a run, pictures' columns and all, by unit."""
    parts = sorted(RunFolder(out).records_path.glob("part-*.parquet"))
    return (
        pl.concat([pl.read_parquet(part) for part in parts])
        .select(list(RCLICKS.schema.polars_schema()))
        .unique()
        .sort("unit")
    )


def run(out, *, engine="inline", **given):
    return launch(
        "rclicks", out=out, model="disc", model_args={"fragility": 0.7}, given={**SMALL, **given}, batch_size=2,
        conduct=Conduct(engine=EngineOptions(engine)),
    )  # fmt: skip


def assert_alike(one, other):
    assert whole_records(one).equals(whole_records(other))
    assert RunFolder(one).scores_path.read_text() == RunFolder(other).scores_path.read_text()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    run(out)
    return out


def test_processes_answer_as_this_one_does(whole, tmp_path):
    run(tmp_path / "run", engine="processes")
    assert_alike(tmp_path / "run", whole)


def test_ray_answers_as_this_process_does(whole, tmp_path, ray_cluster):
    run(tmp_path / "run", engine="ray")
    assert_alike(tmp_path / "run", whole)


def test_a_resumed_run_is_the_uninterrupted_one(whole, tmp_path):
    run(tmp_path / "torn")
    parts = sorted(RunFolder(tmp_path / "torn").records_path.glob("part-*.parquet"))
    together = pl.concat([pl.read_parquet(part) for part in parts])
    for part in parts[1:]:
        part.unlink()
    together.sort("unit").head(3).write_parquet(parts[0])
    done = run(tmp_path / "torn")
    assert done.progressed.answered == 3
    assert_alike(tmp_path / "torn", whole)


@pytest.mark.parametrize("given", [{"clicks": "uniform"}, {"rounds": 5}, {"prompts_a_call": 4}, {"halves": True}])
def test_other_clicks_are_another_run(whole, given):
    with pytest.raises(ChangedRun, match="other units or answers"):
        run(whole, **given)


def command(out):
    words = [sys.executable, "-m", "hardlook", "run", "rclicks", "--model", "slow_disc:Slow", "--scenes", "16"]
    words += ["--rounds", "3", "--resamples", "30", "--batch-size", "2", "--out", str(out), "-q"]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_killed_and_resumed_equals_undisturbed(tmp_path):
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    process = command(killed)
    deadline = time.monotonic() + 90
    while not list((killed / "records").glob("part-*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert 0 < len(whole_records(killed)) < 16
    for out in (killed, undisturbed):
        _, errors = command(out).communicate(timeout=180)
        assert (RunFolder(out).scores_path).is_file(), errors.decode()
    assert_alike(killed, undisturbed)
