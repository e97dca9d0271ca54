import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hardlook.labels.label_set import Label, LabelSet
from hardlook.labels.load import load_label_set
from hardlook.labels.union import union

WORDS = st.sampled_from(["cat", "Cat", "crane", "bus", "tv set", "tv-set"])
SENSES = st.sampled_from([None, "a.n.01", "b.n.01"])


def label_sets(name):
    rows = st.lists(st.tuples(WORDS, SENSES), unique_by=lambda row: row[0].casefold().replace("-", " "), max_size=5)
    return rows.map(lambda rows: LabelSet(name, "file", tuple(Label(i, w, (), s) for i, (w, s) in enumerate(rows))))


@given(label_sets("one"), label_sets("two"))
def test_every_label_keeps_its_sense_and_names_are_unique(first, second):
    both = union(first, second)
    assert len(set(both.labels.names)) == len(both.labels) <= len(first) + len(second)
    assert both.labels.ids.tolist() == list(range(len(both.labels)))
    for labels, places in ((first, both.first), (second, both.second)):
        assert len(places) == len(labels)
        for label, place in zip(labels, places, strict=True):
            assert both.labels.labels[place].synset == label.synset
    assert both.first.tolist() == list(range(len(first)))


@given(label_sets("one"))
def test_a_set_with_itself_is_itself(labels):
    both = union(labels, labels)
    assert both.labels.names == labels.names
    assert np.array_equal(both.first, both.second)


def test_voc_and_coco():
    voc, coco = load_label_set("voc20"), load_label_set("coco133")
    both = union(voc, coco)
    assert both.labels.name == "voc20+coco133" and both.labels.variant == "corrected"
    shared = set(both.first) & set(both.second)
    assert {both.labels.names[place] for place in shared} >= {"dog", "cat", "person", "bus"}
    assert len(both.labels) == len(voc) + len(coco) - len(shared)
