"""Pairs one by one are the cells of the matrices, which have oracles of their own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.similarity import pair_measures
from hardlook.similarity.graph_measures import (
    HypernymGraph,
    lesk_matrix,
    lin_matrix,
    path_matrix,
    wu_palmer_matrix,
)
from hardlook.similarity.matrix import cosine_matrix, restrict_matrix
from hardlook.similarity.pair_measures import (
    among_rows,
    cosine_pairs,
    identity_pairs,
    lesk_pairs,
    lin_pairs,
    path_pairs,
    wu_palmer_pairs,
)
from hardlook.similarity.wordnet.measures import WORDNET_MEASURES, wordnet_pairs, wordnet_similarity
from hardlook.similarity.wordnet.nouns import load_nouns


def all_cells(pairs, labels):
    true, called = np.indices((labels, labels)).reshape(2, -1)
    return pairs(true, called).reshape(labels, labels)


@st.composite
def graphs(draw):
    """Graphs with several roots and several paths from a node to an ancestor, and nodes of them, -1 among them."""
    size = draw(st.integers(2, 9))
    upward = draw(st.lists(st.tuples(st.integers(1, size - 1), st.integers(0, size - 2)), max_size=14))
    edges = sorted({(low, high) for low, high in upward if high < low})
    nodes = draw(st.lists(st.integers(-1, size - 1), min_size=1, max_size=7))
    return HypernymGraph.from_edges(size, edges), np.array(nodes)


@given(graphs(), st.integers(0, 2**31), st.sampled_from([1, 3, 2**16]))
def test_pairs_of_any_graph_are_the_cells_of_its_matrices(found, seed, block):
    graph, nodes = found
    rng = np.random.default_rng(seed)
    rank = rng.permutation(len(graph))
    content = rng.choice([0.0, 0.5, 1.0, 2.0, np.inf], len(graph))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_measures, "BLOCK_PAIRS", block)
        for pairs, matrix in (
            (path_pairs(graph, nodes), path_matrix(graph, nodes)),
            (wu_palmer_pairs(graph, nodes), wu_palmer_matrix(graph, nodes)),
            (wu_palmer_pairs(graph, nodes, tie_rank=rank), wu_palmer_matrix(graph, nodes, tie_rank=rank)),
            (lin_pairs(graph, nodes, content), lin_matrix(graph, nodes, content)),
        ):
            assert (all_cells(pairs, len(nodes)) == matrix).all()


@pytest.mark.parametrize("measure", WORDNET_MEASURES)
def test_pairs_of_nouns_are_the_cells_of_their_matrix(measure):
    nodes = np.random.default_rng(5).choice(len(load_nouns().graph), 250).tolist()
    nodes[7:9], nodes[20] = [-1, -1], nodes[3]
    assert (all_cells(wordnet_pairs(measure, nodes), 250) == wordnet_similarity(measure, nodes)).all()


@given(st.lists(st.lists(st.sampled_from("abcde"), max_size=6), min_size=1, max_size=6))
def test_pairs_of_glosses_are_the_cells_of_their_matrix(tokens):
    assert (all_cells(lesk_pairs(tokens), len(tokens)) == lesk_matrix(tokens)).all()


def test_pairs_of_vectors_are_the_cells_of_their_matrix_to_the_last_digit(monkeypatch):
    monkeypatch.setattr(pair_measures, "BLOCK_NUMBERS", 100)
    vectors = np.random.default_rng(0).normal(size=(12, 30))
    vectors[4] = 0
    assert all_cells(cosine_pairs(vectors), 12) == pytest.approx(cosine_matrix(vectors), abs=1e-15)
    with pytest.raises(ValueError, match="row 4"):
        cosine_pairs(np.where(vectors == 0, np.nan, vectors))


def test_a_list_of_rows_is_the_restricted_matrix():
    matrix, places = np.array([[1.0, 0.3], [0.3, 1.0]]), [1, -1, 0, -1]
    pairs = among_rows(lambda one, other: matrix[one, other], places)
    assert (all_cells(pairs, 4) == restrict_matrix(matrix, places)).all()
    assert (all_cells(identity_pairs(), 3) == np.eye(3)).all()


def test_wrong_nodes_and_contents_are_errors():
    graph = HypernymGraph.from_edges(2, [(1, 0)])
    with pytest.raises(ValueError, match=r"values in -1\.\.1"):
        path_pairs(graph, [2])
    with pytest.raises(ValueError, match="information content"):
        lin_pairs(graph, [1], np.array([np.nan, 1]))
