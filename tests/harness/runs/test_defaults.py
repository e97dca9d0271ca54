"""What a run does unless it is told otherwise, as docs/running.md and docs/reliability.md have it."""

import inspect
from dataclasses import MISSING, fields

from hardlook.harness.runs import batch_queue, engines, launch, plan, progress, ray_cluster, scoring
from hardlook.harness.runs.evaluation import Job, Outcome, PreparedBatch
from hardlook.harness.runs.worker_processes import LOOK_AFTER


def defaults(kind):
    return {one.name: one.default for one in fields(kind) if one.default is not MISSING}


def test_a_run_stops_after_one_failure_in_a_hundred_units():
    settings = launch.RunSettings()
    assert (settings.on_error, settings.max_failures, settings.shard, settings.new) == ("record", 0.01, None, False)
    assert settings.engine == engines.EngineOptions(
        "inline", workers=2, prefetch=0, address="", gpus=0.0, unit_timeout=0.0
    )
    given = inspect.signature(launch.launch).parameters
    assert (given["threads"].default, given["batch_size"].default) == (1, None)
    assert given["full_fingerprint"].default is False
    assert defaults(launch.RunProgress) == {"split_batches": 0, "halved_batches": 0}


def test_outcomes_and_jobs_are_plain_unless_they_say_so():
    assert (Outcome().split, Outcome().halved) == (False, False)
    assert PreparedBatch(()).short_of_memory is False
    assert (Job("b").threads, Job("b").model) == (1, "")
    assert defaults(batch_queue.BatchTask) == {"tries": 1, "moves": 0, "split": False}


def test_how_often_something_is_tried_and_how_long_it_is_waited_for():
    assert (batch_queue.MAX_TRIES, batch_queue.MAX_MOVES) == (2, 5)
    assert (engines.MAX_STARTS, engines.BATCHES_AHEAD, engines.SHOWN) == (5, 3, 5)
    assert (ray_cluster.MAX_STARTS, ray_cluster.WAIT_FOR_NODES, ray_cluster.LOOK_AFTER) == (3, 60.0, 2.0)
    assert (progress.LINE_SECONDS, progress.DRAW_SECONDS, LOOK_AFTER) == (60.0, 0.25, 1.0)
    assert (plan.LARGEST_BATCH, plan.MIN_SPEEDUP, plan.MAX_COMPARED) == (512, 1.1, 20_000)
    assert scoring.EXAMPLES == 5
