import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import DataError, OptionError
from hardlook.similarity.graph_measures import HypernymGraph, path_matrix
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.label_synsets import assign_synsets, move_below_hypernyms
from hardlook.similarity.labels import Label, LabelSet
from hardlook.similarity.wordnet.nouns import load_nouns

SIGNS = LabelSet(
    "signs",
    "file",
    (
        Label(0, "street sign", synset="street_sign.n.01"),
        Label(1, "stop sign", hypernym="street_sign.n.01"),
        Label(2, "crane"),
        Label(3, "dog", synset="dog.n.01", proposed=True),
    ),
)

MAPPED = LabelSet("mapped", "file", tuple(label for label in SIGNS if label.name != "crane"))


@pytest.fixture(scope="module")
def nouns():
    return load_nouns()


def test_hypernym_takes_the_place(nouns):
    placement = assign_synsets(MAPPED, nouns)
    assert placement.nodes.tolist() == [
        nouns.index(name) for name in ("street_sign.n.01", "street_sign.n.01", "dog.n.01")
    ]
    assert placement.below.tolist() == [False, True, False]
    assert [(one.label, one.how) for one in placement.treated] == [("stop sign", "hypernym")]
    assert placement.proposed == ("dog",)


def test_hypernym_never_guesses(nouns):
    with pytest.raises(DataError, match="1 of 4 labels") as refusal:
        assign_synsets(SIGNS, nouns, "hypernym")
    assert "crane.n.04" in str(refusal.value) and "stop sign" not in str(refusal.value)


def test_zero_is_zero_to_all_others(nouns):
    placement = assign_synsets(SIGNS, nouns, "zero")
    assert placement.nodes[[1, 2]].tolist() == [-1, -1]
    assert [treatment.how for treatment in placement.treated] == ["zero", "zero"]
    similarity = path_matrix(nouns.graph, placement.nodes)
    assert similarity[2].tolist() == [0, 0, 1, 0]


def test_error_lists_labels_with_candidates(nouns):
    with pytest.raises(DataError, match="2 of 4 labels") as refusal:
        assign_synsets(SIGNS, nouns, "error")
    assert "stop sign: not in WordNet" in str(refusal.value)
    assert "labels map" in refusal.value.remedy


def test_a_long_list_is_cut_and_says_so(nouns):
    with pytest.raises(DataError, match="and 33 more"):
        assign_synsets(load_label_set("pc459", "published"), nouns)


@pytest.mark.parametrize(("unknown", "said"), [("random", "embeddings"), ("nearest", "no such treatment")])
def test_treatments_that_wordnet_does_not_have(unknown, said, nouns):
    with pytest.raises(OptionError, match=said):
        assign_synsets(SIGNS, nouns, unknown)


@given(st.data())
def test_one_edge_below_equals_a_graph_with_the_labels_in_it(data):
    # Every label without a sense becomes a real leaf under its hypernym, and the path is measured there.
    size = data.draw(st.integers(2, 12))
    edges = [(node, data.draw(st.integers(0, node - 1))) for node in range(1, size)]
    nodes = data.draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=6))
    below = data.draw(st.lists(st.booleans(), min_size=len(nodes), max_size=len(nodes)))
    leaves, moved = [], []
    for node, leaf in zip(nodes, below, strict=True):
        moved.append(size + len(leaves) if leaf else node)
        leaves += [(size + len(leaves), node)] if leaf else []
    short = path_matrix(HypernymGraph.from_edges(size, edges), nodes)
    whole = path_matrix(HypernymGraph.from_edges(size + len(leaves), edges + leaves), moved)
    assert move_below_hypernyms(short, np.array(below)) == pytest.approx(whole)
