"""Several server processes on one database, and processes that are killed in the middle."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from collect_people import assert_counts_are_true, rows
from command_server import python_command

from hardlook.collect.store.store import Store

SUPPORT = Path(__file__).parents[2] / "support"


def start(url, name, output, *numbers):
    """A worker as a process of its own, its acknowledgements in a file."""
    program = "import sys; from store_worker import main; main(*sys.argv[1:])"
    command = [*python_command(), "-c", program, url, name, *map(str, numbers)]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "POLARS_MAX_THREADS": "1"}
    with output.open("wb") as stream:
        return subprocess.Popen(command, env=environment, stdout=stream, stderr=subprocess.PIPE)


def acknowledged(*outputs):
    """Keys whose whole line was written."""
    return [line for output in outputs for line in output.read_text().split("\n")[:-1]]


def wait_until_alone(url):
    """Until PostgreSQL has noticed that a client is gone, and finished or undone what it was doing for it."""
    if url.startswith("sqlite"):
        return
    import psycopg

    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(url, autocommit=True) as connection:
        deadline = time.monotonic() + 30
        while connection.execute(others).fetchone()[0] and time.monotonic() < deadline:
            time.sleep(0.01)


def test_eight_processes_with_twenty_five_people_each(database_url, tmp_path):
    outputs = [tmp_path / f"{n}.txt" for n in range(8)]
    # 16 items, 2 answers each on 2 devices, batches of 4: fewer places than 200 people would take.
    workers = [start(database_url, f"w{n}", outputs[n], 25, 16, 4, 2, 2) for n in range(8)]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors.decode()
    assert_counts_are_true(database_url, target=2)
    keys = [row["key"] for row in rows(database_url, "answers")[0]]
    assert sorted(keys) == sorted(acknowledged(*outputs))
    with Store.open(database_url) as store:
        assert len(store.participants()) == 200
        assert store.progress()["pending"].sum() == 0


@pytest.mark.parametrize("least", [3, 40])
def test_what_a_killed_process_acknowledged_is_there(database_url, tmp_path, least):
    output = tmp_path / "acknowledged.txt"
    worker = start(database_url, "killed", output, 1000, 100, 10, 100, 3)
    deadline = time.monotonic() + 60
    while len(acknowledged(output)) < least and worker.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    wait_until_alone(database_url)
    acknowledged_keys = acknowledged(output)
    assert len(acknowledged_keys) >= least
    # At most one answer a thread was stored and not yet acknowledged.
    keys = {row["key"] for row in rows(database_url, "answers")[0]}
    assert set(acknowledged_keys) <= keys and len(keys) <= len(acknowledged_keys) + 4
    assert_counts_are_true(database_url)
    with Store.open(database_url) as store:
        sizes = {len(batch) for batch in store.answers().partition_by("batch")}
        assert max(sizes) <= 10
        assert store.batches()["trials"].unique().to_list() == [10]
        open_before = store.batches().filter(state="open").height
        assert store.return_abandoned(1800.0, now=10_000.0) == open_before
    assert_counts_are_true(database_url)
