"""A cluster of two nodes with one processor each: nodes that join and are killed, and a killed driver."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_server import hardlook_command
from small_runs import all_records, scores_text, small_run
from watched_processes import alive, wait_until, workers

pytest.importorskip("ray")

SUPPORT = Path(__file__).parents[2] / "support"

SCENES = 24


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), *filter(None, sys.path)]))
        made = Cluster(initialize_head=True, connect=False, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "go").touch()
    args = {"log": str(folder / "log"), "go": str(folder / "go")}
    small_run(folder / "run", scenes=SCENES, model="misbehaving_segmenters:Waits", args=args, batch_size=2)
    return folder / "run"


def add_node(cluster):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), *filter(None, sys.path)]))
        return cluster.add_node(num_cpus=1)


def start(cluster, folder):
    """A run with far more workers than the cluster has processors."""
    command = [
        *hardlook_command(),
        "run",
        "closed-miou",
        "--model",
        "misbehaving_segmenters:Waits",
        "--batch-size",
        "2",
    ]
    command += ["--model-arg", f"log={folder / 'log'}", "--model-arg", f"go={folder / 'go'}", "--scenes", str(SCENES)]
    command += ["--resamples", "200", "--engine", "ray", "--workers", "9", "--address", cluster.address]
    return subprocess.Popen(
        [*command, "--out", str(folder / "run"), "-q"],
        env={**os.environ, "PYTHONPATH": str(SUPPORT)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process, folder):
    (folder / "go").touch()
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return errors


def assert_alike(one, other):
    # The paths of log and go are arguments of the model, so that the fingerprints differ.
    assert all_records(one).drop("answers").equals(all_records(other).drop("answers"))
    assert scores_text(one) == scores_text(other)


def has_workers(process, folder, count):
    """Wait until that many actors have been asked for a batch."""
    return wait_until(lambda: len(workers(folder / "log")) >= count or process.poll() is not None, 120) and (
        len(workers(folder / "log")) == count
    )


def test_nodes_that_join_and_are_killed_change_no_number(cluster, undisturbed, tmp_path):
    process = start(cluster, tmp_path)
    assert has_workers(process, tmp_path, 1)
    second = add_node(cluster)
    assert has_workers(process, tmp_path, 2)
    cluster.remove_node(second, allow_graceful=False)
    assert wait_until(lambda: sum(map(alive, workers(tmp_path / "log"))) == 1)
    errors = finish(process, tmp_path)
    assert "the Ray cluster has room for 1 of 9 workers" in errors
    assert "unit by unit" not in errors
    assert_alike(tmp_path / "run", undisturbed)


def test_a_killed_driver_leaves_no_actor_and_its_run_resumes(cluster, undisturbed, tmp_path):
    process = start(cluster, tmp_path)
    assert has_workers(process, tmp_path, 1)
    process.kill()
    process.communicate()
    assert wait_until(lambda: not any(map(alive, workers(tmp_path / "log"))))
    finish(start(cluster, tmp_path), tmp_path)
    assert_alike(tmp_path / "run", undisturbed)
