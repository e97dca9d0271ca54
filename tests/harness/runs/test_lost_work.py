"""Whatever workers and models do, every unit comes back once, as a record or as a failure."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from command_server import hardlook_command
from small_runs import all_records, small_run
from watched_processes import alive, wait_until, workers

from hardlook.errors import ModelError, RunError
from hardlook.harness.runs import engines, ray_cluster
from hardlook.harness.runs.batches import make_batches
from hardlook.harness.runs.engines import EngineOptions, evaluate_batches
from hardlook.harness.runs.evaluation import Job, Outcome, build_worker, fail_batch
from hardlook.harness.runs.folder import RunFolder

TROUBLE = "misbehaving_segmenters:"

SUPPORT = Path(__file__).parents[2] / "support"

needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="whether a process lives is read from /proc")

INLINE, PROCESSES, RAY = (EngineOptions(name, workers=2) for name in ("inline", "processes", "ray"))


@pytest.fixture
def engine(request, forked_workers):
    """An engine by its options; Ray is started only for a test that needs it."""
    if request.param.name == "ray":
        request.getfixturevalue("ray_cluster")
    return request.param


def each_engine(*options):
    ids = [f"{one.name}{' ahead' if one.prefetch else ''}" for one in options]
    return pytest.mark.parametrize("engine", options, indirect=True, ids=ids)


JOB = Job("closed-miou", "planted-segmenter")

HERE = build_worker(JOB)

UNITS = HERE.benchmark.list_units(HERE.benchmark.options(scenes=24))


def list_units(outcomes):
    return sorted(str(record["unit"]) for outcome in outcomes for record in outcome.records)


@each_engine(PROCESSES, EngineOptions("inline", prefetch=2))
def test_processes_that_die_between_two_batches_lose_no_unit(engine):
    outcomes = evaluate_batches(engine, JOB, HERE, make_batches(UNITS, 2))
    first = next(outcomes)
    for child in multiprocessing.active_children():
        child.kill()
        child.join()
    assert wait_until(lambda: not multiprocessing.active_children())
    assert list_units([first, *outcomes]) == [unit.id for unit in UNITS]


def test_every_process_may_die_again_and_again(forked_workers):
    came = []
    for number, outcome in enumerate(evaluate_batches(PROCESSES, JOB, HERE, make_batches(UNITS, 2))):
        came.append(outcome)
        if number % 4 == 1:
            for child in multiprocessing.active_children()[:1]:
                child.kill()
    assert list_units(came) == [unit.id for unit in UNITS]
    assert not any(outcome.failures for outcome in came)


def test_a_batch_that_comes_in_parts_goes_on_where_its_worker_died(forked_workers):
    job = Job("rclicks", "disc")
    here = build_worker(job)
    units = here.benchmark.list_units(here.benchmark.options(scenes=6, rounds=2))
    outcomes = evaluate_batches(EngineOptions("processes", workers=1), job, here, [tuple(units)])
    first = next(outcomes)
    for child in multiprocessing.active_children():
        child.kill()
    came = [first, *outcomes]
    assert len(first.records) == 1 and list_units(came) == [unit.id for unit in units]
    assert not any(outcome.split for outcome in came)


def test_workers_that_die_before_they_are_ready_end_the_run_with_an_error(forked_workers):
    job = Job("closed-miou", "misbehaving_segmenters:DiesWhenMade")
    with pytest.raises(RunError, match=r"5 worker processes in a row died before they had built the model: .*SIGKILL"):
        list(evaluate_batches(PROCESSES, job, HERE, make_batches(UNITS, 2)))


def test_a_worker_watches_its_parent_before_anything_slow_is_imported():
    heavy = "{'numpy', 'polars', 'pydantic', 'hardlook.harness.benchmark'} & set(sys.modules)"
    code = f"import sys, hardlook.harness.runs.worker_processes; assert not {heavy}, {heavy}"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("outcomes", "what", "named"),
    [
        (lambda batches: [], "24 units did not come back", "scene-0000"),
        (lambda batches: [fail_batch(batch, "") for batch in batches[:-1]], "2 units did not come back", "scene-0022"),
        (lambda batches: [fail_batch(batches[0], "")] * 2, "2 units were returned more than once", "scene-0000"),
        (lambda batches: [fail_batch(batches[0] * 2, "")], "4 units were returned more than once", "scene-0000"),
        (lambda batches: [Outcome([{"unit": "another"}])], "were not requested", "another"),
    ],
)
def test_an_engine_that_loses_or_doubles_a_unit_is_an_error_with_its_name(monkeypatch, outcomes, what, named):
    monkeypatch.setattr(
        engines, "evaluate_inline", lambda job, worker, batches, prefetch: (o for o in outcomes(batches))
    )
    with pytest.raises(RunError, match=what) as caught:
        list(evaluate_batches(INLINE, JOB, HERE, make_batches(UNITS, 2)))
    assert caught.value.unit.startswith(named)


@each_engine(INLINE, EngineOptions("inline", prefetch=1), PROCESSES, RAY)
def test_a_model_that_calls_sys_exit_fails_its_unit(tmp_path, engine):
    done = small_run(tmp_path, engine=engine, model=TROUBLE + "Exits", max_failures=0.5)
    assert (done.progress.answered, done.progress.failed) == (11, 1)
    assert done.scored.failures["unit"].to_list() == ["scene-0003"]
    assert done.scored.failures["error"].to_list() == ["SystemExit: 0"]


def test_a_model_that_calls_sys_exit_when_it_is_made_is_named(tmp_path):
    with pytest.raises(ModelError, match="ExitsWhenMade' could not be made with no arguments: SystemExit: 0"):
        small_run(tmp_path, model=TROUBLE + "ExitsWhenMade")


@each_engine(*(EngineOptions(name, workers=1, unit_timeout=100) for name in ("inline", "processes", "ray")))
def test_a_unit_that_hangs_fails_alone(tmp_path, engine, monkeypatch):
    """Time jumps whenever the model hangs: however busy the machine is, no other unit comes near its timeout."""
    log, hanging = tmp_path / "log", tmp_path / "hanging"

    def monotonic():
        return time.monotonic() + (1000 * len(hanging.read_text()) if hanging.exists() else 0)

    for module in (engines, ray_cluster):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=monotonic, sleep=time.sleep))
    args = {"log": str(log), "hanging": str(hanging)}
    out = tmp_path / "run"
    done = small_run(out, engine=engine, model=TROUBLE + "Hangs", args=args, batch_size=3, max_failures=0.5)
    assert (done.progress.answered, done.progress.failed, done.progress.split_batches) == (11, 1, 1)
    assert done.scored.failures["unit"].to_list() == ["scene-0003"]
    (error,) = done.scored.failures["error"]
    assert error == "no answer within 100 s (--unit-timeout); its worker was ended"
    asked = [line.split() for line in log.read_text().splitlines()]
    # Three other batches, that of the unit, and its three units one by one; never in this process.
    assert sorted(size for _, size in asked) == ["1", "1", "1", "3", "3", "3", "3"]
    assert str(os.getpid()) not in {pid for pid, _ in asked}
    assert engine.name == "ray" or not any(alive(int(pid)) for pid, _ in asked)


def test_a_timeout_that_nothing_reaches_changes_nothing(tmp_path, forked_workers):
    small_run(tmp_path / "without")
    small_run(tmp_path / "with", engine=EngineOptions("processes", unit_timeout=60))
    assert all_records(tmp_path / "with").equals(all_records(tmp_path / "without"))


@each_engine(INLINE, PROCESSES, RAY)
@pytest.mark.parametrize("kind", ["MemoryError", "torch"])
def test_a_batch_that_does_not_fit_into_memory_is_halved(tmp_path, engine, kind):
    if kind == "torch":
        pytest.importorskip("torch")
    log = tmp_path / "log"
    args = {"most": 2, "log": str(log), "kind": kind}
    done = small_run(
        tmp_path / "run", scenes=7, engine=engine, model=TROUBLE + "ShortOfMemory", args=args, batch_size=7
    )
    assert (done.progress.answered, done.progress.failed, done.progress.halved_batches) == (7, 0, 1)
    # Seven are four and three, four are two and two, three are two and one.
    assert [int(size) for size in log.read_text().split()] == [7, 4, 2, 2, 3, 2, 1]
    assert RunFolder(tmp_path / "run").read_manifest()["sessions"][0]["halved_batches"] == 1


def test_a_unit_that_does_not_fit_into_memory_alone_fails(tmp_path):
    with pytest.raises(RunError, match="every unit failed; the first: MemoryError"):
        small_run(tmp_path, scenes=4, model=TROUBLE + "ShortOfMemory", args={"most": 0}, max_failures=1)


def start(out, *words, first=None):
    environment = {**os.environ, "PYTHONPATH": f"{SUPPORT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [*(first or hardlook_command()), "run", "closed-miou", "--scenes", "12", "--resamples", "50", "-q"]
    return subprocess.Popen(
        [*command, "--out", str(out), *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_command_says_that_batches_were_halved(tmp_path):
    process = start(tmp_path, "--model", TROUBLE + "ShortOfMemory", "--batch-size", "6", "--json")
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "2 batches did not fit into memory and were evaluated in halves or smaller parts" in errors
    assert json.loads(out)["units"]["scored"] == 12


def test_the_command_ends_a_hanging_unit_and_says_so(tmp_path):
    words = ("--unit-timeout", "4", "--max-failures", ".5", "--batch-size", "1")
    process = start(tmp_path, "--model", TROUBLE + "Hangs", *words)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 3, errors
    assert "1 units failed" in errors
    assert "no answer within 4 s" in pl.read_parquet(tmp_path / "failures.parquet")["error"][0]


@needs_proc
def test_workers_that_hold_the_interpreter_end_with_their_parent(tmp_path):
    log = tmp_path / "log"
    words = ("--model", TROUBLE + "HoldsInterpreter", "--model-arg", f"log={log}", "--engine", "processes")
    # Real children: those of the command server are its own, whoever asked for them.
    process = start(tmp_path / "run", *words, first=[sys.executable, "-m", "hardlook"])
    assert wait_until(lambda: len(workers(log)) == 2)
    started = workers(log)
    assert all(alive(worker) for worker in started)
    os.kill(process.pid, signal.SIGKILL)
    try:
        assert wait_until(lambda: not any(alive(worker) for worker in started), 10)
    finally:
        for worker in filter(alive, started):
            os.kill(worker, signal.SIGKILL)
        process.communicate()
