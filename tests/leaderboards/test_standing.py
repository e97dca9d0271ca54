"""Ranks: an order, ties, and who gets none."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from hardlook.contract.benchmark import ScoreMeaning
from hardlook.leaderboards.method_names import name_runs
from hardlook.leaderboards.settings import differences, first_run
from hardlook.leaderboards.standing import Row, compares_with_the_paper, ranked

VALUES = st.sampled_from([0.1, 0.2, 0.3, math.nan])
ROWS = st.lists(st.builds(
    Row, kind=st.sampled_from(["run", "published"]), method=st.sampled_from("abc"), value=VALUES,
    flags=st.sampled_from([(), ("other units than the first run",)]),
))  # fmt: skip


@given(ROWS, st.booleans())
def test_ranks_are_those_of_scipy_among_rows_that_can_be_compared(rows, higher):
    found = ranked(rows, ScoreMeaning("s", "S", "", higher_is_better=higher))
    counted = [row for row in found if not row.flags and not math.isnan(row.value)]
    values = np.array([row.value for row in counted])
    assert [row.rank for row in counted] == rankdata(-values if higher else values, method="min").astype(int).tolist()
    assert all(row.rank is None for row in found if row not in counted)


@given(ROWS, st.booleans(), st.randoms())
def test_the_order_is_best_first_and_does_not_depend_on_the_order_of_rows(rows, higher, random):
    meaning = ScoreMeaning("s", "S", "", higher_is_better=higher)
    shuffled = random.sample(rows, len(rows))
    assert [repr(row) for row in ranked(rows, meaning)] == [repr(row) for row in ranked(shuffled, meaning)]
    values = [row.value for row in ranked(rows, meaning)]
    known = [value for value in values if not math.isnan(value)]
    assert values[: len(known)] == sorted(known, reverse=higher)


@given(st.lists(st.tuples(
    st.sampled_from(["net", "other"]), st.dictionaries(st.sampled_from("kl"), st.integers(0, 2)), st.uuids().map(str),
)))  # fmt: skip
def test_every_run_has_a_name_of_its_own(runs):
    names = name_runs(runs)
    assert len(set(names)) == len(names)
    assert all(name.startswith(run[0]) for name, run in zip(names, runs, strict=True))


def test_what_differs_is_told():
    first = {"units": "a", "data voc": "1", "option rounds": 20, "reading nof": "released", "option seed": 0}
    assert differences(dict(first), first) == ()
    assert differences({**first, "units": "b", "option seed": 1}, first) == ("other units than the first run",)
    assert differences({**first, "data voc": "2"}, first) == ("other data than the first run: voc",)
    assert differences({**first, "option rounds": 8, "reading nof": "paper"}, first) == (
        "other settings than the first run: rounds=8",
        "other readings than the first run: nof=paper",
    )
    # A part that only one of them has, say of another version, is no difference.
    assert differences({**first, "option new": 1, "data voc (every byte)": "9"}, first) == ()


@given(st.lists(st.sampled_from("aab"), min_size=1))
def test_the_first_run_is_the_earliest_of_the_largest_group(letters):
    chosen = letters[first_run([{"units": letter} for letter in letters])]
    assert letters.count(chosen) == max(map(letters.count, letters))
    assert first_run([{"units": letter} for letter in letters]) == letters.index(chosen)


def test_conditions_that_no_option_tells_give_no_rank():
    assert compares_with_the_paper("comparable with the published scores of GrabCut, which are those of 50 instances")
    for words in ("", "not comparable: fewer folds", "not in the paper: its tables have no such score",
                  "comparable where the images are MetaCoCo's", "comparable with X; provided that weights are theirs",
                  "beside the paper's: only the pattern compares"):  # fmt: skip
        assert not compares_with_the_paper(words)
