import numpy as np
import pytest
from hypothesis import given

from hardlook.similarity import HypernymGraph, check_similarity, path_matrix

from . import literal


@given(literal.graphs_and_nodes())
def test_every_cell_is_the_shortest_way_through_a_common_hypernym(drawn):
    graph, nodes = drawn
    matrix = path_matrix(graph, nodes)
    for row, a in enumerate(nodes):
        for column, b in enumerate(nodes):
            expected = 1.0 if row == column else literal.path(graph, a, b)
            assert matrix[row, column] == expected
    assert np.array_equal(check_similarity(matrix, tolerance=0), matrix)


def test_a_way_goes_up_and_then_down_but_never_down_and_up():
    # 2 is a kind of both 0 and 1, but nothing is above 0 and 1 together.
    graph = HypernymGraph.from_edges(3, [(2, 0), (2, 1)])
    assert path_matrix(graph, [0, 1, 2]).tolist() == [[1, 0, 0.5], [0, 1, 0.5], [0.5, 0.5, 1]]


def test_unknown_labels_are_like_nothing_and_not_like_each_other():
    graph = HypernymGraph.from_edges(2, [(1, 0)])
    assert path_matrix(graph, [-1, -1, 1]).tolist() == np.eye(3).tolist()
    assert path_matrix(graph, [-1]).tolist() == [[1.0]]
    assert path_matrix(graph, []).shape == (0, 0)


@pytest.mark.parametrize("nodes", [[2], [-2], [[0, 1]]])
def test_nodes_outside_the_graph_are_refused(nodes):
    with pytest.raises(ValueError, match=r"expected a vector of values in -1\.\.1"):
        path_matrix(HypernymGraph.from_edges(2, [(1, 0)]), nodes)
