"""Information of concept and context against scikit-learn and against counting all tables."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_mutual_info_score, mutual_info_score, normalized_mutual_info_score

from hardlook.contexts.association import (
    adjusted_information,
    contingency,
    expected_information,
    mutual_information,
    normalised_information,
)

pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=8, max_size=60)


@given(pairs)
def test_equals_scikit_learn(rows):
    concept, context = (np.array(part) for part in zip(*rows, strict=True))
    assert mutual_information(contingency(concept, context)) == pytest.approx(
        mutual_info_score(concept, context), abs=1e-9
    )
    if min(len(set(concept)), len(set(context))) > 1:
        assert normalised_information(concept, context) == pytest.approx(
            normalized_mutual_info_score(concept, context), abs=1e-9
        )
        assert adjusted_information(concept, context) == pytest.approx(
            adjusted_mutual_info_score(concept, context), abs=1e-7
        )


@pytest.mark.parametrize(("images", "concepts", "contexts"), [(4000, 2, 3), (20000, 12, 8), (3000, 60, 90)])
def test_large_tables_equal_scikit_learn(images, concepts, contexts):
    """Where values far from the mean are left out."""
    rng = np.random.default_rng(images)
    concept = np.minimum(rng.geometric(2 / concepts if concepts > 2 else 0.7, size=images) - 1, concepts - 1)
    context = np.where(rng.random(images) < 0.3, concept % contexts, rng.integers(contexts, size=images))
    assert adjusted_information(concept, context) == pytest.approx(
        adjusted_mutual_info_score(concept, context), abs=1e-9
    )


def test_chance_is_the_mean_over_all_orders():
    concept, context = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 2]
    orders = [mutual_info_score(concept, list(order)) for order in itertools.permutations(context)]
    assert expected_information([3, 2, 1], [2, 3, 1]) == pytest.approx(np.mean(orders))


@given(pairs, st.permutations(range(5)), st.integers(0, 99))
def test_names_and_order_do_not_count(rows, names, seed):
    concept, context = (np.array(part) for part in zip(*rows, strict=True))
    mixed = np.random.default_rng(seed).permutation(len(rows))
    before = adjusted_information(concept, context)
    after = adjusted_information(context[mixed], np.array(names)[concept[mixed]])
    assert after == pytest.approx(before, abs=1e-9, nan_ok=True)


def test_shuffled_contexts_are_at_chance():
    rng = np.random.default_rng(3)
    concept, context = np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20)
    shuffled = [rng.permutation(context) for _ in range(100)]
    adjusted = [adjusted_information(concept, one) for one in shuffled]
    normalised = [normalised_information(concept, one) for one in shuffled]
    assert abs(np.mean(adjusted)) < 3 * np.std(adjusted) / 10
    assert np.mean(normalised) > 0.1


def test_nothing_to_tell():
    assert math.isnan(adjusted_information([1, 1, 1], [0, 1, 2])) and normalised_information([1, 1], [0, 1]) == 0
    assert math.isnan(adjusted_information([0, 1, 2], [0, 1, 2]))


def test_lists_of_two_lengths():
    with pytest.raises(ValueError, match=r"got \(2,\) and \(3,\)"):
        contingency([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="got 3 and 4"):
        expected_information([1, 2], [4])
