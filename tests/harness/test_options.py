import pytest

from hardlook.errors import OptionError
from hardlook.harness.options import BenchmarkOptions, fields_that_change, option, parse_options, read_reading


class Sample(BenchmarkOptions):
    shots: int = option(1, "Supports a class.", changes="units", ge=1)
    level: float = option(0.95, "Confidence.", changes="scores")


def test_every_field_of_every_benchmark_says_what_it_changes_and_what_it_is():
    from hardlook.harness.registry import BUILT_IN, find_benchmark

    for name in BUILT_IN:
        options = find_benchmark(name).options
        told = {field for what in ("units", "answers", "scores") for field in fields_that_change(options, what)}
        assert told == set(options.model_fields)
        assert all(field.description.endswith(".") for field in options.model_fields.values())


def test_errors_name_the_flag_what_came_and_what_is_taken():
    with pytest.raises(OptionError) as caught:
        parse_options(Sample, {"shots": 0, "levels": 3})
    assert "--shots: input should be greater than or equal to 1 (got 0)" in str(caught.value)
    assert "--levels: extra inputs are not permitted" in str(caught.value)


def test_an_object_in_place_of_a_name_is_told_by_its_class_and_not_printed():
    class Named(BenchmarkOptions):
        encoder: str | None = option(None, "An encoder.", changes="answers")

    class Network:
        def __repr__(self):
            return "Layer\n" * 10_000

    with pytest.raises(OptionError) as caught:
        parse_options(Named, {"encoder": Network()})
    assert "--encoder: input should be a valid string (got an object of the class" in str(caught.value)
    assert "Network" in str(caught.value) and "Layer" not in str(caught.value) and "@hl.register" in caught.value.remedy
    with pytest.raises(OptionError) as caught:
        parse_options(Named, {"encoder": list(range(10_000))})
    assert len(str(caught.value)) < 600 and "@hl.register" not in caught.value.remedy


def test_readings_are_chosen_by_name():
    choices = {"paper": "its words", "released": "its code"}
    assert read_reading(Sample(), "weights", choices, "paper") == "paper"
    assert read_reading(Sample(reading={"weights": "released"}), "weights", choices, "paper") == "released"
    with pytest.raises(OptionError, match=r"paper \(its words\), released \(its code\)"):
        read_reading(Sample(reading={"weights": "ours"}), "weights", choices, "paper")


def test_options_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        Sample().shots = 3


def test_several_values_come_as_one_text_with_commas():
    class Several(BenchmarkOptions):
        measures: tuple[str, ...] = option((), "Some measures.", changes="scores")
        shots: list[int] = option([], "Some shots.", changes="units")

    options = parse_options(Several, {"measures": "path,wup", "shots": "1,5"})
    assert (options.measures, options.shots) == (("path", "wup"), [1, 5])
    with pytest.raises(OptionError, match="--shots"):
        parse_options(Several, {"shots": "1,x"})
