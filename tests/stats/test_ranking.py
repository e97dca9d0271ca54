import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hardlook.stats import competition_ranks, rank_models
from hardlook.stats.ranking import set_name


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
    names = [set_name(i) for i in range(26 + 26 * 26 + 1)]
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
