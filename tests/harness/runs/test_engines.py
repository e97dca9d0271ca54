"""Same numbers from every engine, bit for bit, and no worker's death loses an answer."""

import pytest
from small_runs import all_records, scores_text, small_run

from hardlook.harness.runs import engines
from hardlook.harness.runs.engines import BATCHES_AHEAD, EngineOptions, evaluate_inline
from hardlook.harness.runs.evaluation import Job, build_worker

DIES = "troubled_segmenters:Dies"

PROCESSES = EngineOptions("processes", workers=2)

RAY = EngineOptions("ray", workers=2)


@pytest.fixture(scope="module")
def inline(tmp_path_factory):
    out = tmp_path_factory.mktemp("inline")
    small_run(out)
    return out


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(PROCESSES, id="processes"),
        pytest.param(EngineOptions("processes", workers=1), id="one process"),
        pytest.param(EngineOptions("inline", prefetch=2), id="prefetch"),
    ],
)
def test_engines_give_equal_records_and_scores(tmp_path, inline, engine):
    small_run(tmp_path, engine=engine)
    assert all_records(tmp_path).equals(all_records(inline))
    assert scores_text(tmp_path) == scores_text(inline)


class Taken(list):
    """Batches that count how many of them were taken."""

    count = 0

    def __iter__(self):
        for batch in super().__iter__():
            self.count += 1
            yield batch


def test_batches_are_read_ahead_by_readers_and_no_more_than_there_is_room_for(forked_workers, monkeypatch):
    def read_here(benchmark, units, model):
        raise AssertionError("the reader has not read this batch")

    monkeypatch.setattr(engines, "iterate_batch", read_here)
    job = Job("closed-miou", "planted-segmenter")
    worker = build_worker(job)
    batches = Taken((unit,) for unit in worker.benchmark.list_units(worker.benchmark.options(scenes=12)))
    taken = [batches.count for _ in evaluate_inline(job, worker, batches, prefetch=1)]
    # The batch that is answered, and those that are read or wait to be read meanwhile.
    assert taken == [min(done + 1 + BATCHES_AHEAD, 12) for done in range(12)]


def test_ray_gives_equal_records_and_scores(tmp_path, inline, ray_cluster):
    small_run(tmp_path, engine=RAY)
    assert all_records(tmp_path).equals(all_records(inline))
    assert scores_text(tmp_path) == scores_text(inline)


def test_shards_give_equal_records_and_scores(tmp_path, inline):
    first = small_run(tmp_path, shard=(1, 3))
    assert first.scored is None
    assert first.progress.open == 8
    assert small_run(tmp_path, shard=(3, 3)).scored is None
    last = small_run(tmp_path, shard=(2, 3))
    assert last.scored is not None
    assert all_records(tmp_path).equals(all_records(inline))
    assert scores_text(tmp_path) == scores_text(inline)


def test_a_process_that_dies_once_costs_nothing(tmp_path, forked_workers):
    dies_once(tmp_path, PROCESSES)


def test_an_actor_that_dies_once_costs_nothing(tmp_path, ray_cluster):
    dies_once(tmp_path, RAY)


def dies_once(folder, engine):
    done = small_run(folder / "run", engine=engine, model=DIES, args={"once": str(folder / "died")})
    assert (folder / "died").exists()
    assert (done.progress.answered, done.progress.failed) == (12, 0)


def test_a_unit_that_always_kills_its_process_is_recorded_and_the_rest_is_answered(tmp_path, forked_workers):
    always_dies(tmp_path, PROCESSES)


def test_a_unit_that_always_kills_its_actor_is_recorded_and_the_rest_is_answered(tmp_path, ray_cluster):
    always_dies(tmp_path, RAY)


def always_dies(folder, engine):
    done = small_run(folder, engine=engine, model=DIES, batch_size=2, max_failures=0.5)
    assert (done.progress.answered, done.progress.failed) == (11, 1)
    assert done.scored.failures["unit"].to_list() == ["scene-0003"]
    assert set(done.scored.failures["stage"]) == {"worker"}


def test_failures_inside_workers_carry_their_traceback(tmp_path, forked_workers):
    done = small_run(
        tmp_path, engine="processes", model="troubled_segmenters:Raises", args={"scenes": "5"}, max_failures=0.5
    )
    assert "troubled_segmenters.py" in done.scored.failures["traceback"][0]


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({"name": "processes", "workers": 3}, ("processes", 3, 0.0)),
        ({"name": "processes", "workers": 3, "unit_timeout": 9.0}, ("processes", 3, 9.0)),
        ({"name": "inline", "workers": 3, "unit_timeout": 9.0}, ("processes", 1, 9.0)),
        ({"name": "inline", "workers": 3, "prefetch": 2}, ("inline", 2)),
    ],
)
def test_units_with_a_time_limit_run_in_one_process_unless_more_are_asked_for(monkeypatch, options, chosen):
    monkeypatch.setattr(
        engines,
        "evaluate_in_processes",
        lambda job, batches, workers, unit_timeout: ("processes", workers, unit_timeout),
    )
    monkeypatch.setattr(engines, "evaluate_inline", lambda job, worker, batches, prefetch: ("inline", prefetch))
    assert engines._choose_engine(EngineOptions(**options), Job("closed-miou"), None, []) == chosen
