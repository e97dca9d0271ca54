from dataclasses import replace

from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.evaluation import evaluate_batch, fail_batch
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
