"""Runs that are torn or killed, and what two runs have in common at the end."""

import os
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
from command_server import hardlook_command, python_command
from small_runs import replace_part

from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.folder import RunFolder


def whole_records(out):
    """Every row of a run, pictures' columns and all, by unit."""
    folder = RunFolder(out)
    schema = find_benchmark(folder.read_manifest()["benchmark"]["name"]).schema
    parts = sorted(folder.records_path.glob("part-*.parquet"))
    rows = pl.concat([pl.read_parquet(part) for part in parts])
    return rows.select(list(schema.polars_schema())).unique().sort("unit")


def assert_alike(one, other):
    """The same records, and the same text of scores."""
    assert whole_records(one).equals(whole_records(other))
    assert RunFolder(one).scores_path.read_text() == RunFolder(other).scores_path.read_text()


def tear(out, kept):
    """Lose all records of a run but some, `kept` of its rows; how many were lost."""
    parts = sorted(RunFolder(out).records_path.glob("part-*.parquet"))
    together = pl.concat([pl.read_parquet(part) for part in parts])
    for part in parts[1:]:
        part.unlink()
    replace_part(parts[0], together.sample(kept, seed=0))
    return len(together) - kept


def start(words, out, *, flush=None):
    """`hardlook run` with these words and this folder, as a process of its own; records are written after `flush` s."""
    command = [*hardlook_command(), "run", *words, "--out", str(out), "-q"]
    if flush is not None:
        code = f"import killed_processes; killed_processes.run({str(out)!r}, {list(words)!r}, flush={flush})"
        command = [*python_command(), "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill_after_first_records(words, out, *, flush=None, part="."):
    """Start the run, and kill it as soon as some records are on disk, in the folder `part` of several runs."""
    process = start(words, out, flush=flush)
    deadline = time.monotonic() + 90
    records = out / part / "records"
    while not list(records.glob("part-*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def finish(words, out):
    """Run or resume to the end."""
    _, errors = start(words, out).communicate(timeout=180)
    assert RunFolder(out).scores_path.is_file(), errors.decode()


def check_killed_and_resumed(words, folder, *, units):
    """Kill a run after its first records, resume it, and compare it with one that was left alone: the records.

    `words` ask for one unit at a time (`--batch-size 1`), so that a run of few `units` is killed between two of them.
    """
    killed, undisturbed = folder / "killed", folder / "undisturbed"
    kill_after_first_records(words, killed, flush=0.0)
    assert 0 < len(whole_records(killed)) < units
    finish(words, killed)
    finish(words, undisturbed)
    assert_alike(killed, undisturbed)
    records = whole_records(undisturbed)
    assert len(records) == units
    return records
