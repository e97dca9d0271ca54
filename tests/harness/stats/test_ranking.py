import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hardlook.harness.stats import (
    competition_ranks,
    detectable_difference,
    holm,
    permutation_test_mean,
    rank_models,
    significant_pairs,
    units_needed,
    units_needed_for,
)
from hardlook.harness.stats.ranking import tied_set_name

p_lists = st.lists(st.floats(0, 1), max_size=20)


def test_four_values_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04, and the last is raised to 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_capped_at_one() -> None:
    assert holm([0.5, 0.9, 0.6]).tolist() == [1.0, 1.0, 1.0]


def test_nan_stays_and_is_not_counted() -> None:
    adjusted = holm([0.02, math.nan, 0.04])
    assert adjusted[[0, 2]] == pytest.approx([0.04, 0.04])
    assert math.isnan(adjusted[1])
    assert np.isnan(holm([math.nan])).all()


def test_keeps_the_shape() -> None:
    assert holm([]).shape == (0,)
    assert holm(np.full((2, 3), 0.01)) == pytest.approx(np.full((2, 3), 0.06))


def test_impossible_values_are_counted() -> None:
    with pytest.raises(ValueError, match=r"2 of 3 lie outside \[0, 1\]"):
        holm([-0.1, 0.5, 1.1])


@given(p_lists)
def test_between_the_raw_value_and_bonferroni(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    raw = np.array(p_values)
    assert (adjusted >= raw).all()
    assert (adjusted <= np.minimum(raw * len(raw), 1)).all()


@given(p_lists)
def test_keeps_the_order(p_values: list[float]) -> None:
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(holm(p_values)[order]) >= 0).all()


@given(p_lists, st.randoms(use_true_random=False))
def test_order_of_the_tests_changes_nothing(p_values: list[float], shuffle: object) -> None:
    order = list(range(len(p_values)))
    shuffle.shuffle(order)
    assert np.array_equal(holm([p_values[i] for i in order]), holm(p_values)[order])


@given(p_lists, st.floats(0.001, 0.5))
def test_rejects_what_the_step_down_procedure_rejects(p_values: list[float], alpha: float) -> None:
    # Holm 1979 as a procedure: go up from the smallest p and stop at the first that exceeds alpha / (m - i).
    rejected = set()
    for i, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] * (len(p_values) - i) > alpha:
            break
        rejected.add(index)
    assert set(np.flatnonzero(holm(p_values) <= alpha).tolist()) == rejected


def test_pairs_are_corrected_together() -> None:
    nan = math.nan
    p_values = np.array([[nan, 0.01, 0.02], [0.01, nan, 0.2], [0.02, 0.2, nan]])
    # Three pairs: 0.01 * 3 = 0.03 and 0.02 * 2 = 0.04 pass 0.05, and 0.2 does not.
    assert significant_pairs(p_values).tolist() == [
        [False, True, True],
        [True, False, False],
        [True, False, False],
    ]
    assert significant_pairs(p_values, alpha=0.03).sum() == 2


def test_an_untested_pair_is_not_told_apart() -> None:
    p_values = np.array([[1, math.nan], [math.nan, 1]])
    assert not significant_pairs(p_values).any()


def test_only_a_symmetric_square_will_do() -> None:
    with pytest.raises(ValueError, match=r"expected shape \(k, k\), got \(2,\)"):
        significant_pairs([0.1, 0.2])
    with pytest.raises(ValueError, match="symmetric"):
        significant_pairs([[1, 0.1], [0.2, 1]])
    with pytest.raises(ValueError, match="alpha: expected a number between 0 and 1, got 5"):
        significant_pairs([[1.0]], alpha=5)


def test_by_hand() -> None:
    # Mean 0.1 and variance 0.06: (1.959964 + 0.841621)**2 * 0.06 / 0.01 = 47.09.
    assert units_needed([0.4, -0.2, 0.1, 0.1]) == 48
    # The textbook 80% at 5%: a difference of one half standard deviation needs 31.4 pairs.
    half = np.array([1.0, -1.0]) * math.sqrt(0.5) + 0.5
    assert units_needed(half) == 32


def test_the_number_gives_the_power() -> None:
    differences = np.random.default_rng(0).normal(0.05, 0.2, 50)
    mean, spread = differences.mean(), differences.std(ddof=1)
    n = int(units_needed(differences, alpha=0.01, power=0.9))

    def power(units: int) -> float:
        return float(stats.norm.cdf(abs(mean) / spread * math.sqrt(units) - stats.norm.ppf(0.995)))

    assert power(n) >= 0.9 > power(n - 1)


def test_simulated_power_is_near_the_plan() -> None:
    # Planned for 80%; 300 comparisons have a standard error of 0.023, and the approximation costs a little.
    n = int(units_needed(np.array([1.0, -1.0]) * math.sqrt(0.5) + 0.5))
    simulate = np.random.default_rng(1)
    found = sum(
        permutation_test_mean(simulate.normal(0.5, 1, n), np.zeros(n), rng=simulate, swaps=199).p_value <= 0.05
        for _ in range(300)
    )
    assert 0.7 <= found / 300 <= 0.88


def test_no_difference_needs_infinitely_many() -> None:
    assert units_needed([1, -1]) == math.inf
    # Zero but for rounding.
    assert units_needed([0.1, 0.2, -0.3]) == math.inf
    assert units_needed([0.0, 0.0]) == math.inf


def test_edges() -> None:
    assert units_needed([0.3, 0.3, 0.3]) == 2
    assert math.isnan(units_needed([0.3]))
    assert math.isnan(units_needed([]))
    assert math.isnan(detectable_difference(0.2, 1))
    assert detectable_difference(0.2, 2) == pytest.approx(2.80158522 * 0.2 / math.sqrt(2))
    assert detectable_difference(0.0, 10) == 0.0


def test_detectable_difference_inverts_units_needed() -> None:
    differences = np.random.default_rng(2).normal(size=40)
    differences = (differences - differences.mean()) / differences.std(ddof=1) + detectable_difference(1.0, 75)
    assert units_needed(differences) == pytest.approx(75, abs=1)


def test_sign_does_not_matter_and_wrong_shares_are_refused() -> None:
    differences = np.array([0.4, -0.2, 0.1, 0.1])
    assert units_needed(-differences) == units_needed(differences)
    with pytest.raises(ValueError, match="alpha: expected a number between 0 and 1, got 5"):
        units_needed(differences, alpha=5)
    with pytest.raises(ValueError, match="power: expected a number between 0 and 1, got 1"):
        units_needed(differences, power=1)
    with pytest.raises(ValueError, match="differences: 1 of 2 values are NaN"):
        units_needed([1, math.nan])
    with pytest.raises(ValueError, match="standard_deviation: expected a finite number from 0, got -1"):
        detectable_difference(-1, 10)


def test_from_a_standard_error_it_is_the_same_number() -> None:
    differences = np.random.default_rng(4).normal(0.1, 0.5, 60)
    error = differences.std(ddof=1) / math.sqrt(60)
    assert units_needed_for(differences.mean(), error, 60) == units_needed(differences)
    assert units_needed_for(-differences.mean(), error, 60) == units_needed(differences)
    assert units_needed_for(0.1, 0.1, 50, alpha=0.01, power=0.9) == math.ceil(
        50 * (stats.norm.ppf(0.995) + stats.norm.ppf(0.9)) ** 2
    )


def test_from_a_standard_error_at_the_edges() -> None:
    assert units_needed_for(0.0, 0.1, 50) == math.inf
    assert units_needed_for(1e-17, 0.1, 50) == math.inf
    assert units_needed_for(0.0, 0.0, 50) == math.inf
    assert units_needed_for(0.3, 0.0, 50) == 2
    assert math.isnan(units_needed_for(0.3, math.nan, 50))
    assert math.isnan(units_needed_for(math.nan, 0.1, 50))
    assert math.isnan(units_needed_for(0.3, 0.1, 1))


def apart(k: int, *pairs: tuple[int, int]) -> np.ndarray:
    matrix = np.zeros((k, k), dtype=bool)
    for i, j in pairs:
        matrix[i, j] = matrix[j, i] = True
    return matrix


def table(models: str, scores: list[float], differs: np.ndarray, **options: bool) -> list[tuple[str, int, str]]:
    standings = rank_models(list(models), scores, differs, **options)
    return [(place.model, place.rank, "".join(place.sets)) for place in standings]


def test_all_alike_share_one_set() -> None:
    assert table("xyz", [0.1, 0.3, 0.2], apart(3)) == [("y", 1, "a"), ("z", 1, "a"), ("x", 1, "a")]


def test_all_apart_have_a_set_each() -> None:
    differs = apart(3, (0, 1), (0, 2), (1, 2))
    assert table("xyz", [0.1, 0.3, 0.2], differs) == [("y", 1, "a"), ("z", 2, "b"), ("x", 3, "c")]


def test_overlapping_sets() -> None:
    # The best differs from the last two, the second from the last: sets {p, q}, {q, r}, {r, s}.
    differs = apart(4, (0, 2), (0, 3), (1, 3))
    assert table("pqrs", [9, 8, 7, 6], differs) == [
        ("p", 1, "a"),
        ("q", 1, "ab"),
        ("r", 2, "bc"),
        ("s", 3, "c"),
    ]


def test_tied_leaders_and_a_straggler() -> None:
    differs = apart(3, (0, 2), (1, 2))
    assert table("pqr", [9, 8, 7], differs) == [("p", 1, "a"), ("q", 1, "a"), ("r", 3, "b")]


def test_a_significant_pair_in_between_splits_a_run() -> None:
    # First and last are alike, but the middle one differs from the first: no run holds first and last.
    assert table("pqr", [9, 8, 7], apart(3, (0, 1))) == [("p", 1, "a"), ("q", 2, "b"), ("r", 2, "b")]


def test_lower_is_better_on_request() -> None:
    differs = apart(2, (0, 1))
    assert table("pq", [9, 8], differs, higher_is_better=False) == [("q", 1, "a"), ("p", 2, "b")]


def test_equal_scores_are_ordered_by_name() -> None:
    assert [name for name, *_ in table("cab", [1, 1, 1], apart(3))] == ["a", "b", "c"]


def test_no_models_no_ranks() -> None:
    assert rank_models([], [], np.zeros((0, 0))) == ()


@st.composite
def fields(draw: st.DrawFn) -> tuple[list[int], np.ndarray]:
    k = draw(st.integers(1, 8))
    scores = draw(st.lists(st.integers(0, 5), min_size=k, max_size=k))
    upper = np.triu(np.array(draw(st.lists(st.booleans(), min_size=k * k, max_size=k * k))).reshape(k, k), 1)
    return scores, upper | upper.T


@given(fields(), st.randoms(use_true_random=False))
def test_laws_of_the_ranking(field: tuple[list[int], np.ndarray], shuffle: object) -> None:
    scores, differs = field
    k = len(scores)
    names = [f"m{i}" for i in range(k)]
    standings = rank_models(names, scores, differs)
    ranks = [place.rank for place in standings]
    assert ranks[0] == 1 and ranks == sorted(ranks)
    assert all(rank <= place for place, rank in enumerate(ranks, start=1))
    for i, first in enumerate(standings):
        assert first.sets
        for j, second in enumerate(standings[i + 1 :], start=i + 1):
            between = [int(place.model[1:]) for place in standings[i : j + 1]]
            alike = not differs[np.ix_(between, between)].any()
            assert bool(set(first.sets) & set(second.sets)) == alike
    order = list(range(k))
    shuffle.shuffle(order)
    shuffled = rank_models([names[i] for i in order], [scores[i] for i in order], differs[np.ix_(order, order)])
    assert shuffled == standings


def test_wrong_calls_say_what_was_expected() -> None:
    with pytest.raises(ValueError, match="scores: 1 of 2 values are NaN"):
        rank_models(["p", "q"], [1, math.nan], apart(2))
    with pytest.raises(ValueError, match="1 of 2 names appear twice"):
        rank_models(["p", "p"], [1, 2], apart(2))
    with pytest.raises(ValueError, match=r"got 2 and \(3, 3\)"):
        rank_models(["p", "q"], [1, 2], apart(3))
    with pytest.raises(ValueError, match="symmetric"):
        rank_models(["p", "q"], [1, 2], [[0, 1], [0, 0]])


def test_set_names_go_on_after_z() -> None:
    names = [tied_set_name(i) for i in range(26 + 26 * 26 + 1)]
    assert len(set(names)) == len(names)
    assert (names[25], names[26], names[51], names[52], names[-1]) == ("z", "aa", "az", "ba", "aaa")


@given(st.lists(st.integers(-5, 5), max_size=15), st.booleans())
def test_competition_ranks_agree_with_scipy(scores: list[int], higher: bool) -> None:
    expected = stats.rankdata([-s if higher else s for s in scores], method="min") if scores else []
    assert competition_ranks(scores, higher_is_better=higher).tolist() == list(expected)


def test_tolerance_is_measured_from_the_best_of_the_group() -> None:
    # 0.875 is within 1/16 of its neighbour but not of 1.0, the best of the group, so it begins its own.
    scores = [1.0, 0.9375, 0.875, 0.5]
    assert competition_ranks(scores, tolerance=0.0625).tolist() == [1, 1, 3, 4]
    assert competition_ranks(scores, tolerance=1).tolist() == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="tolerance: expected at least 0, got -1"):
        competition_ranks(scores, tolerance=-1)


@pytest.mark.parametrize("effect", [0.3, 0.6, 1.2])
def test_with_degrees_of_freedom_the_planned_units_have_the_power_of_the_t_test(effect):
    """Against the noncentral t distribution; ten units of deviation 1 were seen."""
    n = units_needed_for(effect, 1 / math.sqrt(10), 10, freedom=9)
    at = stats.t.ppf(0.975, n - 1)
    power = stats.nct.sf(at, n - 1, effect * math.sqrt(n)) + stats.nct.cdf(-at, n - 1, effect * math.sqrt(n))
    assert 0.8 <= power < 0.87
    assert n > units_needed_for(effect, 1 / math.sqrt(10), 10)


def test_an_error_that_units_do_not_reduce_can_hide_a_difference():
    factor = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert units_needed_for(0.3, 0.1, 20, fixed_error=0.3 / factor + 1e-9) == math.inf
    assert units_needed_for(0.3, 0.1, 20, fixed_error=0.05) == math.ceil(
        20 * (factor * 0.1) ** 2 / (0.3**2 - (factor * 0.05) ** 2)
    )
