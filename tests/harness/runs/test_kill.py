"""Orphaned workers, folders in use, Ctrl-C and signals; `test_kill_campaign.py` kills runs and resumes them."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from command_server import hardlook_command
from small_runs import all_records, scores_text
from watched_processes import alive, wait_until, workers

from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.sessions import claim_run

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


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    finish(out)
    return out


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


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_of_a_scheduler_ends_as_ctrl_c_does(tmp_path, undisturbed, number):
    process = start(tmp_path, "--engine", "processes", "--model-arg", "seconds=.2")
    assert wait_until(lambda: list((tmp_path / "records").glob("part-*")))
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number, errors.decode()
    assert f"stopped by {number.name}" in errors.decode() and "Resume with the same command" in errors.decode()
    assert 0 < len(all_records(tmp_path)) < SCENES
    assert RunFolder(tmp_path).read_manifest()["sessions"][0]["outcome"] == "stopped"


def test_of_two_processes_on_one_folder_the_second_says_that_a_run_is_under_way(tmp_path, undisturbed):
    first = start(tmp_path)
    assert wait_until(lambda: list((tmp_path / "sessions").glob("*")))
    _, errors = (second := start(tmp_path)).communicate(timeout=120)
    assert second.returncode == 1 and b"a run is under way in this folder: process" in errors
    _, errors = first.communicate(timeout=120)
    assert first.returncode == 0, errors.decode()
    assert scores_text(tmp_path) == scores_text(undisturbed)
    assert len(all_records(tmp_path)) == SCENES, "nothing was done twice"


def test_after_a_kill_the_folder_is_free_at_once(tmp_path):
    process = start(tmp_path, "--model-arg", "seconds=.2")
    assert wait_until(lambda: list((tmp_path / "sessions").glob("*")))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    with claim_run(RunFolder(tmp_path)):
        pass


def test_two_processes_on_one_folder_do_not_corrupt_it(tmp_path, undisturbed):
    """Where there are no locks, as after the claim of a process on a lost machine was deleted, both do the work."""
    first = start(tmp_path)
    assert wait_until(lambda: list((tmp_path / "sessions").glob("*")))
    (tmp_path / ".running").unlink()
    for process in (first, start(tmp_path)):
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    assert all_records(tmp_path).unique(maintain_order=True).equals(all_records(undisturbed))
    assert scores_text(tmp_path) == scores_text(undisturbed)
    assert len(RunFolder(tmp_path).read_manifest()["sessions"]) == 2
