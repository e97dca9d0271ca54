import os
from dataclasses import replace

import cv2
import pytest
import threadpoolctl

from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.evaluation import (
    THREAD_VARIABLES,
    Job,
    build_worker,
    evaluate_batch,
    fail_batch,
    is_out_of_memory,
    pin_threads,
)
from hardlook.models.registry import build

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
    assert "unit: scene-0000" in outcome.failures[0].error


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
