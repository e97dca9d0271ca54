"""kill -9 at random moments, then resume: the same records and scores as an undisturbed run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from small_runs import all_records, scores_text

from hardlook.runs.folder import RunFolder

needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="child processes are found through /proc")
SUPPORT = Path(__file__).parents[1] / "support"
SCENES = 60


def start(out, *more):
    command = [sys.executable, "-m", "hardlook", "run", "closed-miou", "--model", "troubled_segmenters:Slow"]
    command += ["--scenes", str(SCENES), "--resamples", "100", "--batch-size", "2", "--out", str(out), "-q", *more]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def finish(out, *more):
    process = start(out, *more)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()


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
        time.sleep(rng.uniform(0.8, 3.5))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    finish(tmp_path, *engine)
    together = all_records(tmp_path)
    assert together["unit"].n_unique() == SCENES
    assert together.unique(maintain_order=True).equals(all_records(undisturbed))
    assert scores_text(tmp_path) == scores_text(undisturbed)


@needs_proc
def test_orphaned_workers_end_with_their_parent(tmp_path):
    process = start(tmp_path, "--engine", "processes")
    deadline = time.monotonic() + 30
    while len(children(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = children(process.pid)
    assert len(workers) >= 2
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    deadline = time.monotonic() + 15
    while any(alive(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(alive(worker) for worker in workers)


@needs_proc
def test_ctrl_c_ends_at_once_and_keeps_what_is_answered(tmp_path):
    process = start(tmp_path, "--engine", "processes", "--model-arg", "seconds=.2")
    deadline = time.monotonic() + 60
    while not list((tmp_path / "records").glob("part-*")) and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Go on with the same command" in errors.decode()
    time.sleep(0.5)
    assert not any(alive(worker) for worker in workers)
    assert 0 < len(all_records(tmp_path)) < SCENES
    assert RunFolder(tmp_path).read_manifest()["sessions"][0]["outcome"] == "stopped"


def test_two_processes_on_one_folder_do_not_corrupt_it(tmp_path, undisturbed):
    both = [start(tmp_path), start(tmp_path)]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    assert all_records(tmp_path).unique(maintain_order=True).equals(all_records(undisturbed))
    assert scores_text(tmp_path) == scores_text(undisturbed)
    assert len(RunFolder(tmp_path).read_manifest()["sessions"]) == 2


def children(pid):
    """Processes whose parent is `pid`, from /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            if parent == pid:
                found.append(int(entry.name))
    return found


def alive(pid):
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
