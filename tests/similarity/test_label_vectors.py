"""Labels to vectors: the order of forms, phrases, hyphens, words left out, n-grams, random directions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.similarity.label_vectors import (
    label_vector,
    list_singulars,
    list_word_forms,
    list_words_to_read,
    random_vector,
)
from hardlook.similarity.word_vectors import WordVectors


def known(*words, composed=()):
    rows = dict(zip([*words, *composed], np.eye(len(words) + len(composed), dtype=np.float32), strict=True))
    dimension = len(rows)
    return WordVectors({w: rows[w] for w in words}, {w: rows[w] for w in composed}, dimension, "glove", ())


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("cats", "cat"), ("buses", "bus"), ("glasses", "glass"), ("houses", "house"), ("vases", "vase"),
        ("boxes", "box"), ("benches", "bench"), ("dishes", "dish"), ("cherries", "cherry"), ("leaves", "leaf"),
        ("tomatoes", "tomato"), ("shoes", "shoe"), ("horseshoes", "horseshoe"), ("people", "person"),
        ("snowmen", "snowman"), ("mice", "mouse"), ("horses", "horse"), ("skis", None), ("grass", None), ("bus", None),
    ],
)  # fmt: skip
def test_singulars_of_english(plural, singular):
    assert (list_singulars(plural) or (None,))[0] == singular


@pytest.mark.parametrize(
    ("label", "vocabulary", "used", "how"),
    [
        ("cat", ["cat"], ["cat"], ""),
        ("Cat", ["cat"], ["cat"], "as 'cat'"),
        ("Cat", ["cat", "Cat"], ["Cat"], ""),
        ("cats", ["cat"], ["cat"], "as 'cat'"),
        ("cats", ["cat", "cats"], ["cats"], ""),
        ("traffic light", ["traffic_light", "traffic", "light"], ["traffic_light"], "as 'traffic_light'"),
        ("Traffic Lights", ["traffic_light", "light"], ["traffic_light"], "as 'traffic_light'"),
        ("traffic light", ["traffic", "light"], ["traffic", "light"], "mean of 'traffic' and 'light'"),
        ("wine, red, old", ["wine", "red", "old"], ["wine", "red", "old"], "mean of 'wine', 'red' and 'old'"),
        ("t-shirt", ["t-shirt", "t", "shirt"], ["t-shirt"], ""),
        ("t-shirt rack", ["t", "shirt", "rack"], ["t", "shirt", "rack"], "mean of 't', 'shirt' and 'rack'"),
        ("bottle of wine", ["bottle", "wine"], ["bottle", "wine"], "mean of 'bottle' and 'wine', without 'of'"),
        ("tree-merged", ["tree"], ["tree"], "as 'tree', without 'merged'"),
    ],
)
def test_treatments(label, vocabulary, used, how):
    vectors = known(*vocabulary)
    found = label_vector(label, vectors)
    assert found.how == how
    assert found.vector == pytest.approx(np.mean([vectors.vectors[word] for word in used], axis=0))
    assert set(used) <= list_words_to_read([label])


def test_unknown_labels_have_no_vector():
    for label, how in [("frobnicator", "'frobnicator'"), ("a-b", "'a' and 'b'"), ("  ", "an empty label")]:
        found = label_vector(label, known("cat"))
        assert found.vector is None and found.how == f"{how} not in the vocabulary"


def test_ngrams_come_after_every_form_in_the_dictionary():
    vectors = known("cat", composed=("Cats", "gnu", "traffic_light", "traffic", "light"))
    assert label_vector("Cats", vectors).how == "as 'cat'"
    assert label_vector("gnu", vectors).how == "as 'gnu' (from n-grams)"
    # The whole phrase counts only where the dictionary has it: n-grams would make something of any phrase.
    assert label_vector("traffic light", vectors).how == "mean of 'traffic' (from n-grams) and 'light' (from n-grams)"


@given(st.text(max_size=12))
def test_any_label_is_answered_and_its_forms_are_read(label):
    wanted = list_words_to_read([label])
    found = label_vector(label, known(*sorted(wanted)))
    assert (found.vector is None) == (not wanted)
    assert not found.missing
    assert all(form in wanted for form in list_word_forms(label) if label.isalpha())


@given(st.text(min_size=1), st.integers(2, 64), st.integers(0, 2**31))
def test_random_vectors_depend_on_the_word_and_the_seed_alone(name, dimensions, seed):
    vector = random_vector(name, dimensions, seed)
    assert np.linalg.norm(vector) == pytest.approx(1)
    assert vector.tolist() == random_vector(name, dimensions, seed).tolist()
    assert vector.tolist() != random_vector(name + "s", dimensions, seed).tolist()
    assert vector.tolist() != random_vector(name, dimensions, seed + 1).tolist()
