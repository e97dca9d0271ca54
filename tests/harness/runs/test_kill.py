"""kill -9 at random moments, then resume: the same records and scores as an undisturbed run."""

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from command_server import hardlook_command
from small_runs import all_records, scores_text

from hardlook.harness.runs.folder import RunFolder

needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="whether a process lives is read from /proc")

SUPPORT = Path(__file__).parents[2] / "support"

SCENES = 60


def start(out, *more):
    command = [*hardlook_command(), "run", "closed-miou", "--model", "troubled_segmenters:Slow"]
    command += ["--scenes", str(SCENES), "--resamples", "100", "--batch-size", "2", "--out", str(out), "-q", *more]
    environment = {**os.environ, "PYTHONPATH": f"{SUPPORT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def finish(out, *more):
    process = start(out, *more)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()


def wait_until(condition, seconds=60):
    """Whether the condition holds before the time is over."""
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return met


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    finish(out)
    return out


@pytest.mark.parametrize("engine", [("--engine", "inline"), ("--engine", "processes")])
def test_killed_and_resumed_equals_undisturbed(tmp_path, undisturbed, engine):
    kills = int(os.environ.get("HARDLOOK_KILLS", "3"))
    rng = np.random.default_rng(len(engine[1]))
    for _ in range(kills):
        process = start(tmp_path, *engine)
        time.sleep(rng.uniform(0.2, 2.0))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    finish(tmp_path, *engine)
    together = all_records(tmp_path)
    assert together["unit"].n_unique() == SCENES
    assert together.unique(maintain_order=True).equals(all_records(undisturbed))
    assert scores_text(tmp_path) == scores_text(undisturbed)


@needs_proc
def test_orphaned_workers_end_with_their_parent(tmp_path):
    process = start(tmp_path / "run", "--engine", "processes", "--model-arg", f"log={tmp_path / 'log'}")
    assert wait_until(lambda: len(workers(tmp_path / "log")) == 2)
    started = workers(tmp_path / "log")
    assert all(alive(worker) for worker in started)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert wait_until(lambda: not any(alive(worker) for worker in started), 15)


@needs_proc
def test_ctrl_c_ends_at_once_and_keeps_what_is_answered(tmp_path):
    out, log = tmp_path / "run", tmp_path / "log"
    process = start(out, "--engine", "processes", "--model-arg", "seconds=.2", "--model-arg", f"log={log}")
    assert wait_until(lambda: list((out / "records").glob("part-*")))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Resume with the same command" in errors.decode()
    assert workers(log) and wait_until(lambda: not any(alive(worker) for worker in workers(log)), 0.5)
    assert 0 < len(all_records(out)) < SCENES
    assert RunFolder(out).read_manifest()["sessions"][0]["outcome"] == "stopped"


def test_two_processes_on_one_folder_do_not_corrupt_it(tmp_path, undisturbed):
    both = [start(tmp_path), start(tmp_path)]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    assert all_records(tmp_path).unique(maintain_order=True).equals(all_records(undisturbed))
    assert scores_text(tmp_path) == scores_text(undisturbed)
    assert len(RunFolder(tmp_path).read_manifest()["sessions"]) == 2


def workers(log):
    """The processes that have built the model, by the lines of its log."""
    return {int(line) for line in log.read_text().split("\n")[:-1]} if log.exists() else set()


def alive(pid):
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
