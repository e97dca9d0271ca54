"""Planted segmenters with free words: what they say, and that they see what those with labels see."""

import numpy as np
import pytest

from hardlook.errors import ModelError
from hardlook.models.planted.phrases import (
    MAX_STEPS,
    PlantedPhraseInstances,
    PlantedPhrasePanoptic,
    PlantedPhraseSegmenter,
    read_planted_phrases,
)
from hardlook.models.planted.segmenters import PlantedInstances, PlantedPanoptic, PlantedSegmenter
from hardlook.similarity.free_words.phrases import map_phrases
from hardlook.similarity.wordnet.measures import wordnet_similarity
from hardlook.similarity.wordnet.nouns import load_nouns
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import BY_NAME, CONCEPTS

FAULTS = {"sibling": 0.3, "ragged": 0.5}


@pytest.fixture(scope="module")
def images():
    return [PlantedWorld(seed=3, count=6)[index].image for index in range(6)]


def find_synset(phrase):
    return map_phrases([phrase])[0].synset


@pytest.mark.parametrize("concept", [label.name for label in CONCEPTS])
def test_the_table_says_what_wordnet_says(concept):
    nouns = load_nouns()
    own = nouns.index(BY_NAME[concept].synset)
    synonym, *hypernyms = (nouns.index(find_synset(phrase)) for phrase in read_planted_phrases()[concept])
    assert synonym == own and len(hypernyms) == MAX_STEPS
    above, seen = {own}, set()
    while above:
        above = {int(parent) for node in above for parent in nouns.graph.hypernyms(node)} - seen
        seen |= above
    assert set(hypernyms) <= seen
    similarity = wordnet_similarity("path", [own, *hypernyms])[0].tolist()
    assert similarity == sorted(set(similarity), reverse=True)
    assert find_synset(f"a {concept[0]}{concept}") is None


def test_the_same_pixels_as_with_labels(images):
    labelled, phrased = PlantedSegmenter(**FAULTS), PlantedPhraseSegmenter(**FAULTS)
    for label_map, answer in zip(labelled.segment(images), phrased.segment(images), strict=True):
        synonyms = {phrases[0]: name for name, phrases in read_planted_phrases().items()}
        names = [synonyms.get(phrase, phrase.removeprefix("the ")) for phrase in answer.phrases]
        table = np.array([*(labelled.labels.index(name) for name in names), -1])
        assert np.array_equal(table[answer.answer], label_map)


def test_the_same_objects_and_segments_as_with_labels(images):
    faults = {**FAULTS, "missed": 0.3}
    for labelled, phrased in zip(
        PlantedInstances(**faults).detect(images), PlantedPhraseInstances(**faults).detect(images), strict=True
    ):
        assert np.array_equal(labelled.masks, phrased.answer.masks)
        assert np.array_equal(labelled.scores, phrased.answer.scores) and len(phrased.phrases) == len(labelled.scores)
    for labelled, phrased in zip(
        PlantedPanoptic(**faults).segment_panoptic(images),
        PlantedPhrasePanoptic(**faults).segment_panoptic(images),
        strict=True,
    ):
        assert np.array_equal(labelled.map, phrased.answer.map)
        countable = [PlantedPanoptic.things[label] for label in labelled.labels.values()]
        assert [phrased.things[label] for label in phrased.answer.labels.values()] == countable


def test_dials_move_the_words(images):
    said = {
        name: [phrase for answer in PlantedPhraseInstances(**dials).detect(images) for phrase in answer.phrases]
        for name, dials in {"synonyms": {}, "half": {"hypernym": 0.5}, "all": {"hypernym": 1.0, "steps": 3}}.items()
    }
    synonyms = {phrases[0] for phrases in read_planted_phrases().values()}
    shares = {name: sum(phrase in synonyms for phrase in phrases) / len(phrases) for name, phrases in said.items()}
    assert shares["synonyms"] == 1 and 0.2 < shares["half"] < 0.8 and shares["all"] == 0


@pytest.mark.parametrize(
    "dials", [{"hypernym": 1.5}, {"hypernym": 0.6, "misspelled": 0.6}, {"steps": 4}, {"steps": 0}, {"sibling": -1}]
)
def test_impossible_dials(dials):
    with pytest.raises(ModelError):
        PlantedPhraseSegmenter(**dials)
