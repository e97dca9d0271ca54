"""Runs of MetaCoCo that are torn, killed or shared between processes end as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from hardlook.benchmarks.metacoco.benchmark import METACOCO
from hardlook.runs.engines import EngineOptions
from hardlook.runs.execute import Conduct
from hardlook.runs.folder import RunFolder
from hardlook.runs.launch import launch

SUPPORT = Path(__file__).parents[2] / "support"
FAULTS = {"context": 0.5, "noise": 0.2}
SMALL = {"tasks": 6, "resamples": 30, "modes": "iid,ood", "queries": 2}


def whole_records(out):
    """Every row of a run, pictures' columns and all, by unit."""
    parts = sorted(RunFolder(out).records_path.glob("part-*.parquet"))
    return (
        pl.concat([pl.read_parquet(part) for part in parts])
        .select(list(METACOCO.schema.polars_schema()))
        .unique()
        .sort("unit")
    )


def run(out, *, engine="inline", args=FAULTS, batch_size=5, **given):
    conduct = Conduct(engine=EngineOptions(engine))
    given = {**SMALL, **given}
    return launch(
        "metacoco", out=out, model="planted-learner", model_args=args, given=given, batch_size=batch_size,
        conduct=conduct,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    run(out)
    return out


def test_processes_answer_as_this_one_does(whole, tmp_path):
    run(tmp_path / "run", engine="processes")
    assert whole_records(tmp_path / "run").equals(whole_records(whole))
    assert RunFolder(tmp_path / "run").scores_path.read_text() == RunFolder(whole).scores_path.read_text()


def test_a_resumed_run_is_the_uninterrupted_one(whole, tmp_path):
    run(tmp_path / "torn")
    parts = sorted(RunFolder(tmp_path / "torn").records_path.glob("part-*.parquet"))
    together = pl.concat([pl.read_parquet(part) for part in parts])
    for part in parts[1:]:
        part.unlink()
    together.sample(7, seed=0).write_parquet(parts[0])
    done = run(tmp_path / "torn")
    assert done.progressed.answered == len(together) - 7
    assert whole_records(tmp_path / "torn").equals(whole_records(whole))
    assert RunFolder(tmp_path / "torn").scores_path.read_text() == RunFolder(whole).scores_path.read_text()


def command(out):
    words = [sys.executable, "-m", "hardlook", "run", "metacoco", "--model", "troubled_few_shot:Slow", "--tasks", "25"]
    words += ["--modes", "iid,ood", "--queries", "1", "--resamples", "30", "--batch-size", "2", "--out", str(out), "-q"]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_killed_and_resumed_equals_undisturbed(tmp_path):
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    process = command(killed)
    deadline = time.monotonic() + 60
    while not list((killed / "records").glob("part-*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert 0 < len(whole_records(killed)) < 50
    for out in (killed, undisturbed):
        _, errors = command(out).communicate(timeout=120)
        assert (RunFolder(out).scores_path).is_file(), errors.decode()
    assert whole_records(killed).equals(whole_records(undisturbed))
    assert RunFolder(killed).scores_path.read_text() == RunFolder(undisturbed).scores_path.read_text()


def test_repeats_are_further_tasks(whole, tmp_path):
    """Two repeats of three are six tasks, numbered on."""
    run(tmp_path / "run", tasks=3, repeats=2)
    here, there = whole_records(tmp_path / "run"), whole_records(whole)
    assert sorted(here["repeat"].unique()) == [0, 1]
    assert here.filter(repeat=1)["index"].unique().sort().to_list() == [3, 4, 5]
    assert here.drop("repeat").equals(there.drop("repeat"))
