from dataclasses import replace

import pytest

from hardlook.harness.benchmark import Benchmark, ScoreMeaning, Unit, as_benchmark
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.launch import launch

CLOSED = find_benchmark("closed-miou")


class Earlier:
    """A benchmark as 0.1.0 had them: an instance with methods, some under other names."""

    card = replace(CLOSED.card, name="earlier", published=tuple)
    options, schema = CLOSED.options, CLOSED.schema

    def sources(self, options):
        return {"planted world": "the same"}

    def units(self, options):
        return CLOSED.list_units(options)

    def prepare(self, unit):
        return CLOSED.prepare(unit)

    def evaluate(self, units, model):
        return CLOSED.evaluate(units, model)

    def score(self, records, options):
        return CLOSED.score(records, options)

    def readings(self, options):
        return CLOSED.readings(options)

    def sections(self, records, scorecard):
        return CLOSED.report(records, scorecard)

    def pictures(self, unit, record):
        return CLOSED.pictures(unit, record)


EARLIER = Earlier()


def test_a_class_of_the_last_release_runs_as_it_did(tmp_path):
    given = {"scenes": 6, "resamples": 20}
    name = f"{__name__}:EARLIER"
    import sys

    sys.modules.setdefault(__name__, sys.modules[Earlier.__module__])
    old = launch(name, out=tmp_path / "old", model="planted-segmenter", model_args={"stranger": 0.3}, given=given)
    new = launch(
        "closed-miou", out=tmp_path / "new", model="planted-segmenter", model_args={"stranger": 0.3}, given=given
    )
    assert old.scored.records.equals(new.scored.records)
    assert [score.value for score in old.scored.scorecard.scores] == [s.value for s in new.scored.scorecard.scores]


def test_objects_become_benchmarks_and_keep_their_functions():
    made = as_benchmark(EARLIER)
    assert isinstance(made, Benchmark) and as_benchmark(made) is made
    assert made.list_units == EARLIER.units and made.report == EARLIER.sections
    assert made.setup is None and made.tallies is None and made.merge_vocabularies is None and made.qualities is None


def test_what_is_missing_is_named():
    class Half:
        card, options, schema = CLOSED.card, CLOSED.options, CLOSED.schema
        list_units = evaluate = staticmethod(len)

    with pytest.raises(TypeError, match="this lacks score, report"):
        as_benchmark(Half())


def test_defaults_are_sensible(tmp_path):
    made = as_benchmark(EARLIER)
    plain = Benchmark(made.card, made.options, made.schema, made.list_units, made.evaluate, made.score, made.report)
    unit = Unit("a", 1)
    assert plain.prepare(unit) is unit and plain.readings(None) == () and plain.pictures(unit, {}) == ()
    options = CLOSED.options(data={"voc": tmp_path}, gt=tmp_path / "gt")
    assert plain.sources(options) == {"voc": tmp_path, "gt": tmp_path / "gt"}
    assert plain.sources(CLOSED.options()) == {}


def test_a_score_may_be_better_the_other_way_in_some_slices():
    iou = ScoreMeaning("iou", "IoU", "overlap", inverted_slices=(("support", "wrong"),))
    assert iou.within({"support": "right"}) is iou
    wrong = iou.within({"support": "wrong", "class": "cat"})
    assert wrong.direction == "lower is better" and iou.direction == "higher is better"
    assert replace(iou, ranked=False).direction == ""


@pytest.mark.parametrize("name", ["closed-miou", "open-miou", "open-ap", "open-pq", "rclicks"])
def test_units_that_are_found_by_id_are_those_of_the_list(name):
    benchmark = find_benchmark(name)
    options = benchmark.options(scenes=20)
    listed = {unit.id: unit for unit in benchmark.list_units(options)}
    assert benchmark.find_units(options, list(listed)) == listed
    (first, *_, last) = listed
    no_scenes = [f"{last}0", last.replace("1", "3"), first.replace("0", "00", 1), f"{first}\n", "", "/etc/passwd"]
    assert benchmark.find_units(options, [last, *no_scenes]) == {last: listed[last]}


@pytest.mark.parametrize("name", ["closed-miou", "open-miou", "open-ap", "open-pq", "rclicks"])
def test_units_of_other_data_are_not_guessed(name, tmp_path):
    benchmark = find_benchmark(name)
    options = benchmark.options(data={"images": tmp_path})
    assert benchmark.find_units(options, ["scene-0001"]) is None
