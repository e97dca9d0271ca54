"""The dial of the planted world moves the index, and probes of the planted encoder tell what it follows."""

import itertools

import numpy as np
import pytest

from hardlook.contexts.image_vectors import image_vectors
from hardlook.contexts.readability import readabilities
from hardlook.contexts.spuriousness import label_study
from hardlook.data.concept_context import read_rows
from hardlook.errors import DataError
from hardlook.models.registry import build
from hardlook.world.planted import PlantedWorld
from hardlook.world.write import write_world


def labels(correlation, count=960):
    world = PlantedWorld(count=count, correlation=correlation)
    return [world.concept(i) for i in range(count)], [world.context(i) for i in range(count)]


def test_the_worlds_dial_moves_the_index():
    studies = [label_study(*labels(dial), seed=0) for dial in (0.0, 0.25, 0.5, 0.75, 1.0)]
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
        interval = label_study([str(i) for i in concept], [str(i) for i in context], seed=trial).adjusted.interval
        inside += 0 in interval
    assert inside >= 17  # of 20 at 95 %; fewer has a chance below 2 %


def test_one_context_alone_is_refused():
    with pytest.raises(DataError, match="2 concepts and 1 contexts"):
        label_study(["cat", "dog"], ["snow", "snow"], seed=0)


def test_what_the_encoder_follows_is_what_is_read(tmp_path):
    rows = read_rows(write_world(tmp_path / "world", "concept-context", count=192, size=(96, 72)))
    concept, context = [row.concept for row in rows], [row.context for row in rows]
    read = {}
    for dial in (0.0, 1.0):
        encoder = build("planted-encoder", "encoder", {"context": str(dial)})
        vectors = image_vectors(encoder, f"planted {dial}", rows, tmp_path / "cache")
        read[dial] = {one.what: one.above_chance for one in readabilities(vectors, concept, context, seed=0)}
    assert read[0.0]["concept"] > 0.9 and read[0.0]["context"] < 0.2
    assert read[1.0]["context"] > 0.9 and read[1.0]["concept"] < 0.2


def test_vectors_are_in_the_rows_order_and_encoded_once(tmp_path):
    rows = read_rows(write_world(tmp_path / "world", "concept-context", count=6, size=(96, 72)))
    encoder, told = build("planted-encoder", "encoder"), []

    def progress(total, done):
        return lambda units, failed: told.append((total, units))

    first = image_vectors(encoder, "p", rows, tmp_path / "cache", progress=progress)
    assert told == [(6, 1)] * 6
    assert (first == np.concatenate([encoder.encode([row.read()]).vectors for row in rows])).all()

    class Fails:
        dimension = encoder.dimension

        def encode(self, images):
            raise AssertionError("the vectors are on disk")

    assert (image_vectors(Fails(), "p", rows[::-1], tmp_path / "cache") == first[::-1]).all()
