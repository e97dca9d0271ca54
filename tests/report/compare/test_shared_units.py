from dataclasses import replace

import pytest
from compared_runs import HITS, HitOptions, Hits, hits_run, with_parts

from hardlook.errors import OptionError, RunError
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.shared_units import describe_differing_settings, find_shared_units


def two(**more):
    return [hits_run([1, 0, 1, 1], "ant", **more), hits_run([0, 0, 1, 1], "bee", **more)]


def test_the_same_lists_and_data_are_called_the_same_units():
    units = find_shared_units(two(), ["ant", "bee"])
    assert units.same and units.count == len(units.ids) == 4
    assert units.describe() == ["Same units: every model answered the same 4 units of the same data, by fingerprint."]


def test_only_the_overlap_is_compared_and_what_is_left_out_is_named():
    ant = hits_run([1, 1, 0, 1, 1], "ant", units=["a", "b", "c", "x", "y"])
    bee = hits_run([0, 1, 1], "bee", units=["a", "b", "c"])
    found = compare_runs([ant, bee], swaps=99)
    assert found.units.ids.to_list() == ["a", "b", "c"]
    assert (found.units.same_list, found.units.only) == (False, {"ant": 2, "bee": 0})
    # On a, b and c both have two hits of three; the whole of ant would give four of five.
    assert found.headline[0].first_value == found.headline[0].second_value == pytest.approx(2 / 3)
    assert "3 units have an answer of every model" in found.notes[0]
    assert found.notes[1] == "2 of the 5 units of ant are left out (`x`, `y`)."


def test_a_unit_that_failed_in_one_run_is_told_apart_from_another_list():
    parts = {"units": "the list", "data images": "one"}
    ant = hits_run([1, 0], "ant", units=["a", "b"], parts=parts)
    bee = hits_run([1], "bee", units=["a"], parts=parts)
    units = find_shared_units([ant, bee], ["ant", "bee"])
    assert units.same_list and not units.same
    assert units.describe()[0].startswith("The list of units is the same; 1 units")


def test_other_data_under_the_same_names_bring_a_warning():
    ant, bee = two()
    units = find_shared_units([ant, with_parts(bee, **{"data images": "two"})], ["ant", "bee"])
    assert units.changed == ("images",)
    assert "Warning" in units.describe()[-1] and "images" in units.describe()[-1]


def test_predictions_and_inner_models_may_differ_but_the_latter_are_told():
    ant, bee = two()
    ant = with_parts(ant, **{"data pred": "p1", "data encoder model": "resnet", "option keep_predictions": True})
    bee = with_parts(bee, **{"data pred": "p2", "data encoder model": "vit", "option keep_predictions": False})
    assert find_shared_units([ant, bee], ["ant", "bee"]).same
    assert describe_differing_settings([ant, bee], ["ant", "bee"]) == [
        "The runs differ in `encoder model`: ant: resnet; bee: vit."
    ]
    rounds = [with_parts(ant, **{"option rounds": 10}), with_parts(bee, **{"option rounds": 20})]
    assert "The runs differ in `rounds`: ant: 10; bee: 20." in describe_differing_settings(rounds, ["ant", "bee"])


def test_no_overlap_is_an_error():
    with pytest.raises(RunError, match="no unit in common: ant has units such as 'a', bee such as 'b'"):
        compare_runs([hits_run([1], "ant", units=["a"]), hits_run([1], "bee", units=["b"])])


def test_runs_that_do_not_fit_are_refused_with_what_differs_and_the_remedy():
    ant, bee = two()
    with pytest.raises(OptionError, match="at least two runs, got 1"):
        compare_runs([ant])
    other = Hits()
    other.card = replace(HITS.card, version="2")
    with pytest.raises(OptionError, match="different benchmarks: ant: hits 1; bee: hits 2"):
        compare_runs([ant, replace(bee, benchmark=other)])
    with pytest.raises(OptionError, match="different readings of rule: ant: plain; bee: odd") as error:
        compare_runs([ant, replace(bee, options=HitOptions(reading={"rule": "odd"}))])
    assert "--reading rule=plain" in error.value.remedy
    with pytest.raises(OptionError, match="different --strict: ant: False; bee: True"):
        compare_runs([ant, replace(bee, options=HitOptions(strict=True))])


def test_options_that_only_draw_intervals_may_differ():
    ant, bee = two()
    found = compare_runs([ant, replace(bee, options=HitOptions(resamples=50, level=0.9))], swaps=9)
    # The number of resamples is the comparison's own, not that of the runs.
    assert found.resamples == 2_000


def test_names_come_from_models_then_from_folders_or_as_given():
    ant, bee = two()
    assert compare_runs([ant, bee], swaps=9).models == ("ant", "bee")
    twins = [hits_run([1, 0], "net"), hits_run([0, 0], "net")]
    with pytest.raises(OptionError, match="is given twice"):
        compare_runs(twins, swaps=9)
    assert compare_runs(twins, names=["x", "y"], swaps=9).models == ("x", "y")
    with pytest.raises(OptionError, match="--names: expected 2 different names"):
        compare_runs([ant, bee], names=["x"])
