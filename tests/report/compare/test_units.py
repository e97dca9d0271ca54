import numpy as np
import polars as pl
from compared_runs import Hits, hits_run
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import DataError
from hardlook.harness.benchmark import Quality
from hardlook.harness.sections import Picture
from hardlook.report.compare.units import (
    UnitQualities,
    choose_shown_models,
    compute_unit_qualities,
    count_units,
    list_largest_gains,
    list_largest_spreads,
    load_pictures,
    merge_pictures,
)

quality = st.one_of(st.floats(0, 1), st.just(np.nan))


def of(values, *, higher=True, models=("ant", "bee")):
    values = np.array(values, dtype=float)
    units = pl.Series([f"u{place}" for place in range(values.shape[1])])
    return UnitQualities(Quality("q", "quality", higher), models[: len(values)], units, values)


@given(st.lists(st.tuples(quality, quality), min_size=1, max_size=20), st.booleans())
def test_counts_add_up_and_turn_round(rows, higher):
    found = of(np.array(rows).T, higher=higher)
    one, other = count_units(found, "ant", "bee"), count_units(found, "bee", "ant")
    assert one.first_better + one.second_better + one.equal + one.undefined == len(rows)
    assert (one.first_better, one.second_better, one.equal) == (other.second_better, other.first_better, other.equal)
    ahead, behind = list_largest_gains(found, "ant", "bee", 99), list_largest_gains(found, "bee", "ant", 99)
    assert (len(ahead), len(behind)) == (one.first_better, one.second_better)
    assert not set(ahead) & set(behind)
    assert all(list_largest_gains(found, "ant", "bee", most) == ahead[:most] for most in range(len(rows)))
    gains = dict(zip(found.units, found.gains("ant", "bee"), strict=True))
    assert [gains[unit] for unit in ahead] == sorted((gains[unit] for unit in ahead), reverse=True)


def test_lower_is_better_where_the_quality_says_so_and_ties_go_by_unit():
    found = of([[0.1, 0.1, 0.9], [0.5, 0.5, 0.2]], higher=False)
    assert list_largest_gains(found, "ant", "bee", 9) == ["u0", "u1"]
    assert list_largest_gains(found, "bee", "ant", 9) == ["u2"]


def test_of_several_models_the_widest_units_and_their_best_and_worst_are_shown():
    found = of([[0.5, 0.9, np.nan], [0.5, 0.1, 0.2], [0.6, 0.4, 0.3]], models=("ant", "bee", "cat"))
    assert list_largest_spreads(found, 9) == ["u1", "u0"]
    assert choose_shown_models(found, "u1") == ("ant", "bee")


def test_qualities_are_those_of_the_shared_units_in_their_order():
    runs = [hits_run([0.1, 0.2, 0.3], "ant"), hits_run([0.4, 0.5, 0.6], "bee")]
    found = compute_unit_qualities(runs, ["ant", "bee"], pl.Series(["unit-002", "unit-000"]))
    assert found.values.tolist() == [[0.3, 0.1], [0.6, 0.4]]


def test_pictures_that_models_share_come_once_and_the_others_with_names():
    image = np.zeros((2, 2, 3), np.uint8)
    truth = Picture("mask", image, mask=np.ones((2, 2), bool))
    answers = {
        "ant": [Picture("image", image), truth, Picture("prediction", image, mask=np.zeros((2, 2), bool))],
        "bee": [Picture("image", image), truth, Picture("prediction", image, mask=np.eye(2, dtype=bool))],
    }
    assert [one.label for one in merge_pictures(answers)] == ["image", "mask", "prediction (ant)", "prediction (bee)"]
    same = {"ant": [truth], "bee": [truth]}
    assert [one.label for one in merge_pictures(same)] == ["mask"]


def test_data_that_are_gone_leave_a_reason_in_place_of_pictures():
    class Gone(Hits):
        def list_units(self, options):
            raise DataError("there is no such folder")

    runs = {name: hits_run([1], name, benchmark=Gone()) for name in ("ant", "bee")}
    found = load_pictures(runs, {"unit-000": ("ant", "bee")})
    assert found["unit-000"].startswith("ant: the data cannot be read any more: there is no such folder")
    assert load_pictures(runs, {}) == {}
