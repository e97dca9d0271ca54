import os
import sys
import types
from dataclasses import replace

import cv2
import pytest
import threadpoolctl

from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.evaluation import (
    Job,
    PreparedBatch,
    build_worker,
    evaluate_batch,
    evaluate_prepared,
    fail_batch,
    is_out_of_memory,
    iterate_batch,
    iterate_prepared,
)
from hardlook.models.registry import build
from hardlook.threads import THREAD_VARIABLES, pin_threads

BENCHMARK = find_benchmark("closed-miou")

UNITS = BENCHMARK.list_units(BENCHMARK.options(scenes=6))


def model(name, **args):
    return build(f"troubled_segmenters:{name}", role="semantic-segmenter", args=args)


def test_one_bad_unit_costs_nobody_else_its_answer():
    outcome = evaluate_batch(BENCHMARK, UNITS, model("Raises", scenes="3"))
    assert sorted(record["unit"] for record in outcome.records) == [f"scene-000{i}" for i in (0, 1, 2, 4, 5)]
    (failure,) = outcome.failures
    assert (failure.unit, failure.stage) == ("scene-0003", "evaluate")
    assert failure.error == "ValueError: this picture is too much for me"
    assert "Traceback" in failure.traceback
    assert outcome.split


def test_a_bad_unit_that_is_alone_is_evaluated_once_and_nothing_is_split():
    asked, raising = [], model("Raises", scenes="0")

    def evaluate(units, built):
        asked.append([unit.id for unit in units])
        return BENCHMARK.evaluate(units, built)

    outcome = evaluate_batch(replace(BENCHMARK, evaluate=evaluate), UNITS[:1], raising)
    assert asked == [["scene-0000"]]
    assert ([failure.unit for failure in outcome.failures], outcome.split) == (["scene-0000"], False)


def test_a_unit_that_cannot_be_read_fails_before_the_model_sees_it():
    broken = replace(UNITS[0], payload=replace(UNITS[0].payload, scene=(UNITS[0].payload.scene[0], 99)))
    outcome = evaluate_batch(BENCHMARK, [broken, UNITS[1]], model("Raises", scenes="5"))
    assert [failure.stage for failure in outcome.failures] == ["prepare"]
    assert [record["unit"] for record in outcome.records] == ["scene-0001"]
    assert not outcome.split


def test_a_model_that_breaks_its_contract_is_named_with_the_unit():
    outcome = evaluate_batch(BENCHMARK, UNITS[:1], model("WrongSize"))
    assert "WrongSize: map: expected shape (H, W) = (120, 160), got (119, 160)" in outcome.failures[0].error
    assert "; unit: scene-0000" in outcome.failures[0].error


def test_a_failure_whose_error_names_a_file_with_bytes_that_are_no_text_can_be_written():
    def prepare(unit):
        raise FileNotFoundError(os.fsdecode(b"caf\xe9.png"))

    (failure,) = evaluate_batch(replace(BENCHMARK, prepare=prepare), UNITS[:1], None).failures
    assert failure.error == "FileNotFoundError: caf\\udce9.png"
    assert failure.error.encode() and failure.traceback.encode()


def test_a_lost_batch_fails_unit_by_unit():
    outcome = fail_batch(UNITS[:2], "died")
    assert [(failure.unit, failure.stage, failure.error) for failure in outcome.failures] == [
        ("scene-0000", "worker", "died"),
        ("scene-0001", "worker", "died"),
    ]


class OutOfMemoryError(RuntimeError):
    """Named as torch names its own."""


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (MemoryError(), True),
        (OutOfMemoryError(), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (RuntimeError("memory of elephants"), False),
        (None, False),
    ],
)
def test_short_memory_is_known_by_what_libraries_say_and_by_what_an_error_comes_from(error, short):
    assert is_out_of_memory(error) == short
    outer = ValueError("prediction failed")
    outer.__cause__ = error
    assert is_out_of_memory(outer) == short
    hidden = ValueError("and again")
    hidden.__context__ = outer
    assert is_out_of_memory(hidden) == short


def test_errors_that_come_from_each_other_end_the_search():
    first, second = ValueError("one"), ValueError("two")
    first.__cause__, second.__cause__ = second, first
    assert not is_out_of_memory(first)


def test_a_batch_whose_files_do_not_fit_into_memory_is_read_in_halves():
    read = []

    def prepare(unit):
        read.append(unit.id)
        if len(read) in (3, 8):  # the third unit, then the second of the second half
            raise MemoryError
        return BENCHMARK.prepare(unit)

    outcome = evaluate_batch(replace(BENCHMARK, prepare=prepare), UNITS[:5], model("Raises", scenes="9"))
    assert [record["unit"] for record in outcome.records] == [unit.id for unit in UNITS[:5]]
    assert outcome.split and outcome.halved and not outcome.failures
    assert [int(unit[-1]) for unit in read] == [0, 1, 2, *(0, 1, 2), *(3, 4), 3, 4]


def test_records_of_other_units_are_an_error_of_the_benchmark():
    def evaluate(units, built):
        return [{**record, "unit": "other"} for record in BENCHMARK.evaluate(units, built)]

    outcome = evaluate_batch(replace(BENCHMARK, evaluate=evaluate), UNITS[:1], model("Raises", scenes="9"))
    assert "was given units ['scene-0000'] and returned records of ['other']" in outcome.failures[0].error


def test_a_worker_has_one_thread_unless_it_is_given_more(monkeypatch):
    for variable in THREAD_VARIABLES:
        monkeypatch.setenv(variable, "7")
    before = cv2.getNumThreads()
    try:
        for job, threads in ((Job("closed-miou", "planted-segmenter"), 1), (Job("closed-miou", threads=2), 2)):
            worker = build_worker(job)
            assert {os.environ[variable] for variable in THREAD_VARIABLES} == {str(threads)}
            assert cv2.getNumThreads() == threads
            assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"} <= {
                threads
            }
            assert (worker.model is None) == (not job.model)
    finally:
        pin_threads(1)
        cv2.setNumThreads(before)


def raising(error):
    """A function of any arguments that raises this error."""

    def fail(*given):
        raise error

    return fail


@pytest.mark.parametrize("part", ["prepare", "evaluate"])
def test_only_ctrl_c_ends_a_batch(part):
    with pytest.raises(KeyboardInterrupt):
        evaluate_batch(replace(BENCHMARK, **{part: raising(KeyboardInterrupt())}), UNITS[:2], None)
    outcome = evaluate_batch(replace(BENCHMARK, **{part: raising(SystemExit(3))}), UNITS[:2], None)
    assert [(failure.unit, failure.stage, failure.error) for failure in outcome.failures] == [
        ("scene-0000", part, "SystemExit: 3"),
        ("scene-0001", part, "SystemExit: 3"),
    ]


def test_a_single_unit_that_does_not_fit_into_memory_fails():
    for part in ("prepare", "evaluate"):
        outcome = evaluate_batch(replace(BENCHMARK, **{part: raising(MemoryError("large"))}), UNITS[:1], None)
        assert [(one.stage, one.error) for one in outcome.failures] == [(part, "MemoryError: large")]
        assert not outcome.split and not outcome.halved


def test_a_batch_that_does_not_fit_into_memory_is_halved_and_its_order_kept():
    asked, segmenter = [], model("Raises", scenes="9")

    def evaluate(units, built):
        asked.append([int(unit.id[-1]) for unit in units])
        if len(units) > 2:
            raise MemoryError
        return BENCHMARK.evaluate(units, built)

    outcome = evaluate_batch(replace(BENCHMARK, evaluate=evaluate), UNITS[:5], segmenter)
    assert asked == [[0, 1, 2, 3, 4], [0, 1, 2], [0, 1], [2], [3, 4]]
    assert [record["unit"] for record in outcome.records] == [unit.id for unit in UNITS[:5]]
    assert outcome.split and outcome.halved
    # One by one after an error of another kind: that is no want of memory.
    split = evaluate_batch(BENCHMARK, UNITS[:2], model("Raises", scenes="1"))
    assert split.split and not split.halved
    # Once halved for want of memory, it stays so whatever comes later.
    asked.clear()

    def fail_again(units, built):
        if len(units) > 2:
            raise MemoryError
        if len(units) == 2:
            raise ValueError("no pairs")
        return BENCHMARK.evaluate(units, built)

    both = evaluate_batch(replace(BENCHMARK, evaluate=fail_again), UNITS[:4], segmenter)
    assert both.split and both.halved and len(both.records) == 4


def each(units, built):
    """Closed mIoU's records, yielded one by one."""
    for unit in units:
        yield from BENCHMARK.evaluate([unit], built)


EACH = replace(BENCHMARK, evaluate_each=each)


def name_units(outcomes):
    return [[record["unit"] for record in outcome.records] for outcome in outcomes]


def test_a_benchmark_that_yields_records_gives_one_outcome_per_record():
    segmenter = model("Raises", scenes="9")
    assert name_units(iterate_batch(EACH, UNITS[:3], segmenter)) == [[unit.id] for unit in UNITS[:3]]
    assert name_units(iterate_batch(BENCHMARK, UNITS[:3], segmenter)) == [[unit.id for unit in UNITS[:3]]]
    prepared = PreparedBatch([BENCHMARK.prepare(unit) for unit in UNITS[:2]])
    assert name_units(iterate_prepared(EACH, prepared, segmenter)) == [["scene-0000"], ["scene-0001"]]
    assert name_units(iterate_prepared(BENCHMARK, prepared, segmenter)) == [["scene-0000", "scene-0001"]]
    assert evaluate_prepared(BENCHMARK, PreparedBatch(()), segmenter).records == []


def test_units_after_one_that_raises_are_evaluated_and_it_alone_fails():
    outcomes = list(iterate_batch(EACH, UNITS[:4], model("Raises", scenes="1")))
    assert name_units(outcomes) == [["scene-0000"], ["scene-0002", "scene-0003"]]
    assert [failure.unit for outcome in outcomes for failure in outcome.failures] == ["scene-0001"]


def test_units_that_cannot_be_read_come_first_where_records_are_yielded():
    broken = replace(UNITS[0], payload=replace(UNITS[0].payload, scene=(UNITS[0].payload.scene[0], 99)))
    outcomes = list(iterate_batch(EACH, [broken, UNITS[1]], model("Raises", scenes="9")))
    assert name_units(outcomes) == [[], ["scene-0001"]]
    assert [[failure.stage for failure in outcome.failures] for outcome in outcomes] == [["prepare"], []]


def test_ctrl_c_ends_a_batch_that_is_yielded():
    with pytest.raises(KeyboardInterrupt):
        list(iterate_batch(replace(EACH, evaluate_each=raising(KeyboardInterrupt())), UNITS[:2], None))


def test_a_yielded_record_of_no_unit_or_of_one_twice_is_evaluated_again():
    segmenter = model("Raises", scenes="9")

    def twice(units, built):
        for record in each(units, built):
            yield record
            yield record

    def nameless(units, built):
        return ({**record, "unit": 3} for record in each(units, built))

    for wrong, first in ((twice, [["scene-0000"]]), (nameless, [])):
        outcomes = name_units(iterate_batch(replace(EACH, evaluate_each=wrong), UNITS[:3], segmenter))
        assert outcomes[:-1] == first and [one for part in outcomes for one in part] == [unit.id for unit in UNITS[:3]]


def test_files_that_do_not_fit_into_memory_are_read_in_halves_where_records_are_yielded():
    read = []

    def prepare(unit):
        read.append(unit.id)
        if len(read) in (2, 4):  # the second unit, in both attempts to read all three
            raise MemoryError
        return BENCHMARK.prepare(unit)

    (outcome,) = iterate_batch(replace(EACH, prepare=prepare), UNITS[:3], model("Raises", scenes="9"))
    assert len(outcome.records) == 3 and outcome.halved


def test_threads_of_torch_are_pinned_where_it_is_loaded(monkeypatch):
    pinned = []
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(set_num_threads=pinned.append))
    pin_threads(1)
    assert pinned == [1]
    monkeypatch.delitem(sys.modules, "torch")
    pin_threads(1)
    assert pinned == [1] and "torch" not in sys.modules


@pytest.mark.parametrize("started", [True, False])
def test_memory_that_torch_keeps_is_given_back_where_it_uses_a_gpu(monkeypatch, started):
    freed = []
    cuda = types.SimpleNamespace(is_initialized=lambda: started, empty_cache=lambda: freed.append(True))
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    evaluate_batch(replace(BENCHMARK, evaluate=raising(MemoryError())), UNITS[:1], None)
    assert freed == [True] * started
    evaluate_batch(replace(BENCHMARK, evaluate=raising(ValueError())), UNITS[:1], None)
    assert freed == [True] * started
