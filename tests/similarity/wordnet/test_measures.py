"""The measures against nltk's, over the same files, and against published numbers."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from hardlook.errors import OptionError
from hardlook.similarity.graph_measures import sum_over_hyponyms
from hardlook.similarity.matrix import check_similarity, summarise_matrix
from hardlook.similarity.wordnet.measures import (
    DESCRIPTIONS,
    STOP_WORDS,
    WORDNET_MEASURES,
    gloss_words,
    noun_information_content,
    wordnet_similarity,
)
from hardlook.similarity.wordnet.nouns import load_nouns

NOUNS = load_nouns()

IMAGENET = Path(__file__).with_name("imagenet_wnids.txt")


def numbers(*names):
    return [NOUNS.index(name) for name in names]


@pytest.fixture(scope="module")
def sampled():
    """90 synsets at random: half of anything, the rest instances, kinds of person, and a chain of ancestors."""
    rng = np.random.default_rng(3)
    capital = NOUNS.index("national_capital.n.01")
    instances = [i for i in range(len(NOUNS)) if capital in NOUNS.graph.hypernyms(i)]
    chosen = [*rng.choice(len(NOUNS), 45, replace=False), *rng.choice(instances, 20, replace=False)]
    people = [i for i in range(len(NOUNS)) if NOUNS.index("person.n.01") in NOUNS.graph.hypernyms(i)]
    chosen += [*rng.choice(people, 12, replace=False), *NOUNS.hypernym_path(NOUNS.index("dog.n.01"))]
    return list(dict.fromkeys(int(node) for node in chosen))


@pytest.fixture(scope="module")
def theirs(reader, sampled):
    return [reader.synset_from_pos_and_offset("n", int(NOUNS.offset(node)[1:])) for node in sampled]


def test_the_spec_s_cat_and_dog():
    pair = numbers("dog.n.01", "cat.n.01")
    assert wordnet_similarity("path", pair)[0, 1] == pytest.approx(0.2)
    assert wordnet_similarity("wup", pair)[0, 1] == pytest.approx(0.857, abs=5e-4)


def test_path_equals_nltk_on_every_pair(sampled, theirs):
    ours = wordnet_similarity("path", sampled)
    expected = [[a.path_similarity(b) for b in theirs] for a in theirs]
    assert ours.tolist() == expected


def test_wu_palmer_equals_nltk_on_every_pair_asked_from_above(sampled, theirs):
    ours = wordnet_similarity("wup", sampled)
    lopsided = 0
    for row, a in enumerate(theirs):
        for column, b in enumerate(theirs[:row]):
            forth, back = a.wup_similarity(b), b.wup_similarity(a)
            lopsided += forth != back
            # nltk may differ by the order it is asked in, but only where one synset is above the other.
            from_above = back if b in a.common_hypernyms(a) else forth
            assert ours[row, column] == from_above, (a.name(), b.name())
    assert lopsided < len(theirs)


def test_wu_palmer_where_nltk_is_lopsided(reader):
    found = 0
    for node in range(len(NOUNS)):
        above = NOUNS.graph.hypernyms(node)
        if len(above) < 2 or len(set(NOUNS.graph.min_depth[above].tolist())) == 1:
            continue
        for other in set(NOUNS.graph.ancestors(node).tolist()) - {node}:
            upper, lower = (reader.synset_from_pos_and_offset("n", int(NOUNS.offset(i)[1:])) for i in (other, node))
            if (expected := upper.wup_similarity(lower)) != lower.wup_similarity(upper):
                assert wordnet_similarity("wup", [node, other])[0, 1] == expected
                found += 1
        if found > 20:
            break
    assert found


def test_lin_equals_nltk_with_the_same_information_content(sampled, theirs):
    sums = sum_over_hyponyms(NOUNS.graph, NOUNS.counts.astype(float)) + 1
    content = {"n": defaultdict(float, {int(NOUNS.offset(i)[1:]): float(own) for i, own in enumerate(sums)})}
    content["n"][0] = float(NOUNS.counts.sum() + 1)
    ours = wordnet_similarity("lin", sampled)
    for row, a in enumerate(theirs):
        for column, b in enumerate(theirs):
            if row != column:
                assert ours[row, column] == pytest.approx(a.lin_similarity(b, content), abs=1e-12)


def test_information_content_rests_on_every_tagged_noun():
    content = noun_information_content()
    (entity, dog, animal) = numbers("entity.n.01", "dog.n.01", "animal.n.01")
    assert content[entity] == 0 and 0 < content[animal] < content[dog]
    assert content.max() == pytest.approx(np.log(NOUNS.counts.sum() + 1))


@pytest.mark.parametrize("measure", WORDNET_MEASURES)
def test_every_measure_gives_a_similarity_matrix_and_zero_to_unknown_labels(measure, sampled):
    matrix = wordnet_similarity(measure, [*sampled[:40], -1, sampled[0]])
    assert np.array_equal(check_similarity(matrix, tolerance=0), matrix)
    assert matrix[40, :40].sum() == 0 and matrix[41, 0] == 1
    assert matrix[0, 1:40].sum() > 0


@pytest.mark.parametrize(
    ("measure", "mean", "std", "digits"), [("path", 0.0827, 0.0433, 5e-5), ("wup", 0.445, 0.156, 5e-4)]
)
def test_imagenet_s_published_means(measure, mean, std, digits):
    offsets = [line for line in IMAGENET.read_text().splitlines() if not line.startswith("#")]
    assert len(set(offsets)) == 1000
    summary = summarise_matrix(wordnet_similarity(measure, numbers(*offsets)))
    assert summary.mean == pytest.approx(mean, abs=digits)
    assert summary.std == pytest.approx(std, abs=digits)


def test_lesk_s_entry_is_lemmas_definition_and_hypernyms_definitions():
    words = gloss_words(NOUNS.index("dog.n.01"))
    # "domestic_dog"; "a member of the genus Canis ..."; canine: "any of various fissiped mammals ..."; and the example
    # "the dog barked all night" left out.
    assert {"domestic", "familiaris", "genus", "fissiped"} <= set(words)
    assert not {"barked", "the", "of"} & set(words) and len(words) == len(set(words))
    assert not STOP_WORDS & set(words)


def test_lesk_by_hand():
    # physical entity: {physical, entity, existence} and entity's {perceived, known, inferred, distinct, existence,
    # living, nonliving}; entity: {entity} and the same seven. Eight in common of nine and eight.
    pair = numbers("physical_entity.n.01", "entity.n.01")
    assert wordnet_similarity("lesk", pair)[0, 1] == pytest.approx(2 * 8 / (9 + 8))


def test_descriptions_say_what_was_measured():
    assert "sense counts" in DESCRIPTIONS["lin"]
    with pytest.raises(OptionError, match="no WordNet measure 'jcn'"):
        wordnet_similarity("jcn", [0])
