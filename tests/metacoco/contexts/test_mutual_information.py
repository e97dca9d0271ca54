"""Mutual information against scikit-learn and against all tables, half samples against the theory of a mean.

The correlation of the planted world moves the index, and probes of the planted encoder show what it follows.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import adjusted_mutual_info_score, mutual_info_score, normalized_mutual_info_score

from hardlook.data.concept_context import list_images
from hardlook.errors import DataError
from hardlook.metacoco.contexts.linear_probes import probe_labels
from hardlook.metacoco.contexts.mutual_information import (
    adjusted_mutual_information,
    contingency_table,
    delete_half_jackknife,
    expected_mutual_information,
    mutual_information,
    normalised_mutual_information,
    study_labels,
)
from hardlook.metacoco.contexts.text_cosines import encode_dataset_images
from hardlook.models.registry import build
from hardlook.world.layouts import write_world
from hardlook.world.planted import PlantedWorld

pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=8, max_size=60)


@given(pairs)
def test_equals_scikit_learn(rows):
    concept, context = (np.array(part) for part in zip(*rows, strict=True))
    assert mutual_information(contingency_table(concept, context)) == pytest.approx(
        mutual_info_score(concept, context), abs=1e-9
    )
    if min(len(set(concept)), len(set(context))) > 1:
        assert normalised_mutual_information(concept, context) == pytest.approx(
            normalized_mutual_info_score(concept, context), abs=1e-9
        )
        assert adjusted_mutual_information(concept, context) == pytest.approx(
            adjusted_mutual_info_score(concept, context), abs=1e-7
        )


@pytest.mark.parametrize(("images", "concepts", "contexts"), [(4000, 2, 3), (20000, 12, 8), (3000, 60, 90)])
def test_large_tables_equal_scikit_learn(images, concepts, contexts):
    """Where values far from the mean are left out."""
    rng = np.random.default_rng(images)
    concept = np.minimum(rng.geometric(2 / concepts if concepts > 2 else 0.7, size=images) - 1, concepts - 1)
    context = np.where(rng.random(images) < 0.3, concept % contexts, rng.integers(contexts, size=images))
    assert adjusted_mutual_information(concept, context) == pytest.approx(
        adjusted_mutual_info_score(concept, context), abs=1e-9
    )


def test_chance_is_the_mean_over_all_orders():
    concept, context = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 2]
    orders = [mutual_info_score(concept, list(order)) for order in itertools.permutations(context)]
    assert expected_mutual_information([3, 2, 1], [2, 3, 1]) == pytest.approx(np.mean(orders))


@given(pairs, st.permutations(range(5)), st.integers(0, 99))
def test_names_and_order_do_not_count(rows, names, seed):
    concept, context = (np.array(part) for part in zip(*rows, strict=True))
    mixed = np.random.default_rng(seed).permutation(len(rows))
    before = adjusted_mutual_information(concept, context)
    after = adjusted_mutual_information(context[mixed], np.array(names)[concept[mixed]])
    assert after == pytest.approx(before, abs=1e-9, nan_ok=True)


def test_shuffled_contexts_are_at_chance():
    rng = np.random.default_rng(3)
    concept, context = np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20)
    shuffled = [rng.permutation(context) for _ in range(100)]
    adjusted = [adjusted_mutual_information(concept, one) for one in shuffled]
    normalised = [normalised_mutual_information(concept, one) for one in shuffled]
    assert abs(np.mean(adjusted)) < 3 * np.std(adjusted) / 10
    assert np.mean(normalised) > 0.1


def test_nothing_to_tell():
    assert (
        math.isnan(adjusted_mutual_information([1, 1, 1], [0, 1, 2]))
        and normalised_mutual_information([1, 1], [0, 1]) == 0
    )
    assert math.isnan(adjusted_mutual_information([0, 1, 2], [0, 1, 2]))


def test_lists_of_two_lengths():
    with pytest.raises(ValueError, match=r"got \(2,\) and \(3,\)"):
        contingency_table([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="got 3 and 4"):
        expected_mutual_information([1, 2], [4])


def test_the_error_of_a_mean():
    values = np.random.default_rng(0).normal(2, 3, 500)
    found = delete_half_jackknife(
        500, lambda kept: float(values[kept].mean()), rng=np.random.default_rng(1), halves=3000
    )
    assert found.value == values.mean()
    assert found.standard_error == pytest.approx(stats.sem(values), rel=0.05)
    assert found.interval.high - found.value == pytest.approx(1.959964 * found.standard_error)


def test_the_error_of_an_odd_number_of_images():
    """Of all halves of two of five the means vary by s^2 / 2 (1 - 2 / 5); times 2 / 3 that is s^2 / 5."""
    values = np.array([0.0, 1.0, 1.0, 2.0, 6.0])
    found = delete_half_jackknife(5, lambda kept: float(values[kept].mean()), rng=np.random.default_rng(0), halves=4000)
    assert found.standard_error == pytest.approx(stats.sem(values), rel=0.03)


def test_few_images_and_bounds():
    few = delete_half_jackknife(3, lambda kept: 1.0, rng=np.random.default_rng(0))
    assert few.value == 1 and math.isnan(few.interval.low) and few.resamples == 0
    undefined = delete_half_jackknife(10, lambda kept: math.nan, rng=np.random.default_rng(0))
    assert undefined.undefined == undefined.resamples and not undefined.interval.defined
    values = np.arange(40.0) / 40
    cut = delete_half_jackknife(40, lambda kept: float(values[kept].max()), rng=np.random.default_rng(0), bounds=(0, 1))
    assert cut.interval.high <= 1


def test_rows_come_once_and_in_order():
    seen = []
    delete_half_jackknife(21, lambda kept: float(seen.append(kept) or 0), rng=np.random.default_rng(0), halves=5)
    assert [len(kept) for kept in seen] == [21, 10, 10, 10, 10, 10]
    assert all((np.diff(kept) > 0).all() for kept in seen)


def labels(correlation, count=960):
    world = PlantedWorld(count=count, correlation=correlation)
    return [world.concept(i) for i in range(count)], [world.context(i) for i in range(count)]


def test_the_worlds_dial_moves_the_index():
    studies = [study_labels(*labels(dial), seed=0) for dial in (0.0, 0.25, 0.5, 0.75, 1.0)]
    adjusted = [study.adjusted.value for study in studies]
    assert adjusted == sorted(adjusted) and abs(adjusted[0]) < 0.02 and adjusted[-1] > 0.8
    for low, high in itertools.pairwise(studies):
        assert low.adjusted.interval.high < high.adjusted.interval.low
    assert studies[0].information == pytest.approx(0, abs=1e-9) and studies[0].empty == 0
    assert studies[-1].empty == 12 * 8 - 12  # each concept in its favourite alone


def test_the_interval_holds_chance_where_contexts_are_drawn_at_random():
    rng = np.random.default_rng(0)
    inside = 0
    for trial in range(20):
        concept, context = rng.integers(8, size=200), rng.integers(5, size=200)
        interval = study_labels([str(i) for i in concept], [str(i) for i in context], seed=trial).adjusted.interval
        inside += 0 in interval
    assert inside >= 17  # of 20 at 95 %; fewer has a chance below 2 %


def test_one_context_alone_is_refused():
    with pytest.raises(DataError, match="2 concepts and 1 contexts"):
        study_labels(["cat", "dog"], ["snow", "snow"], seed=0)


def test_what_the_encoder_follows_is_what_is_read(tmp_path):
    rows = list_images(write_world(tmp_path / "world", "concept-context", count=192, size=(96, 72)))
    concept, context = [row.concept for row in rows], [row.context for row in rows]
    read = {}
    for dial in (0.0, 1.0):
        encoder = build("planted-encoder", "encoder", {"context": str(dial)})
        vectors = encode_dataset_images(encoder, f"planted {dial}", rows, tmp_path / "cache")
        read[dial] = {one.what: one.above_chance for one in probe_labels(vectors, concept, context, seed=0)}
    assert read[0.0]["concept"] > 0.9 and read[0.0]["context"] < 0.2
    assert read[1.0]["context"] > 0.9 and read[1.0]["concept"] < 0.2


def test_vectors_are_in_the_rows_order_and_encoded_once(tmp_path):
    rows = list_images(write_world(tmp_path / "world", "concept-context", count=6, size=(96, 72)))
    encoder, told = build("planted-encoder", "encoder"), []

    def progress(total, done):
        return lambda units, failed: told.append((total, units))

    first = encode_dataset_images(encoder, "p", rows, tmp_path / "cache", progress=progress)
    assert told == [(6, 1)] * 6
    assert (first == np.concatenate([encoder.encode([row.read()]).vectors for row in rows])).all()

    class Fails:
        dimension = encoder.dimension

        def encode(self, images):
            raise AssertionError("the vectors are on disk")

    assert (encode_dataset_images(Fails(), "p", rows[::-1], tmp_path / "cache") == first[::-1]).all()
