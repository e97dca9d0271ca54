"""Senses of labels: polysemy, shared words, published and corrected variants."""

import numpy as np
import pytest

from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.labels import Label, LabelSet
from hardlook.similarity.measures import compute_similarity
from hardlook.similarity.senses import (
    MAX_PAIRS_PER_LABEL,
    compare_variants,
    find_polysemy,
    find_shared_words,
    has_published_senses,
)

SENSES = {"crane": "crane.n.04", "forklift": "forklift.n.01", "heron": "heron.n.02", "dog": "dog.n.01"}


def label_set(senses, **aliases):
    rows = [Label(i, name, aliases.get(name, ()), sense) for i, (name, sense) in enumerate(senses.items())]
    return LabelSet("yard", "file", tuple(rows))


def test_another_sense_is_what_another_table_would_give():
    labels = label_set(SENSES)
    before = compute_similarity(labels, "path").matrix
    cases = {case.label: case for case in find_polysemy(labels, "path")}
    assert {"crane", "dog"} <= cases.keys() and "forklift" not in cases
    crane = cases["crane"]
    assert (crane.senses, crane.rank) == (5, 4)
    for other in crane.others:
        after = compute_similarity(label_set({**SENSES, "crane": other.synset}), "path").matrix
        moved = np.abs(after - before)[0, 1:]
        assert other.mean_change == pytest.approx(moved.mean())
        assert abs(other.largest.after - other.largest.before) == pytest.approx(moved.max())
        assert other.nearest[1] == pytest.approx(after[0, 1:].max())
    assert crane.others[0].synset == "crane.n.05" and crane.others[0].nearest[0] == "heron"


def test_crane_and_crane():
    labels = label_set({"crane": "crane.n.05", "crane-machine": "crane.n.04", "dog": "dog.n.01"}, **{
        "crane-machine": ("Crane",)})  # fmt: skip
    (found,) = find_shared_words(labels)
    assert found.rows == (0, 1) and found.first == ("crane", "crane.n.05")
    same = label_set({"sofa": "sofa.n.01", "couch": "sofa.n.01"}, sofa=("couch",))
    assert find_shared_words(same) == ()


@pytest.mark.parametrize("measure", ["path", "lesk"])
def test_variants_cell_by_cell(measure):
    found = compare_variants("coco80", measure)
    published, corrected = load_label_set("coco80", "published"), load_label_set("coco80")
    old, new = compute_similarity(published, measure).matrix, compute_similarity(corrected, measure).matrix
    moved = [abs(new[i, j] - old[i, j]) for i in range(80) for j in range(i)]
    assert found.pairs == len(moved) == 3160 and found.without == ()
    assert found.changed == sum(value > 1e-9 for value in moved)
    assert found.mean_change == pytest.approx(np.mean(moved))
    first = found.largest[0]
    assert abs(first.corrected - first.published) == pytest.approx(max(moved))
    for label in {one.label for one in found.differences}:
        assert sum(label in (pair.first, pair.second) for pair in found.largest) <= MAX_PAIRS_PER_LABEL


def test_labels_without_a_published_sense_are_left_out():
    found = compare_variants("pc459", "path")
    assert len(found.without) == 53 and found.pairs == 406 * 405 // 2
    assert has_published_senses(load_label_set("coco80")) and not has_published_senses(load_label_set("coco171"))
    assert not has_published_senses(label_set(SENSES))
