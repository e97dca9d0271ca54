import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.similarity import HypernymGraph, check_similarity, information_content, lin_matrix

from . import literal


def counts_for(graph, data):
    size = len(graph)
    return np.array(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)))


@given(literal.graphs_and_nodes(), st.data(), st.sampled_from([0.5, 1.0]))
def test_content_counts_an_occurrence_once_for_every_ancestor(drawn, data, smoothing):
    graph, _ = drawn
    counts = counts_for(graph, data)
    sums = [smoothing] * len(graph)
    for node, count in enumerate(counts):
        for above in literal.climbs(graph, node):
            sums[above] += count
    total = smoothing + counts.sum()
    expected = [-math.log(own / total) for own in sums]
    assert information_content(graph, counts, smoothing=smoothing) == pytest.approx(expected, abs=1e-12)


@given(literal.graphs_and_nodes(), st.data(), st.sampled_from([0.0, 1.0]))
def test_every_cell_is_the_definition(drawn, data, smoothing):
    graph, nodes = drawn
    counts = counts_for(graph, data)
    counts[0] += 1
    content = information_content(graph, counts, smoothing=smoothing)
    matrix = lin_matrix(graph, nodes, content)
    for row, a in enumerate(nodes):
        for column, b in enumerate(nodes):
            expected = 1.0 if row == column else literal.lin(graph, a, b, content)
            assert matrix[row, column] == pytest.approx(expected, abs=1e-12)
    assert np.array_equal(check_similarity(matrix, tolerance=0), matrix)


@given(literal.graphs_and_nodes(), st.data())
def test_content_never_falls_on_the_way_down(drawn, data):
    graph, _ = drawn
    content = information_content(graph, counts_for(graph, data))
    assert (content >= 0).all()
    assert all(content[node] >= content[above] for node in range(len(graph)) for above in graph.hypernyms(node))


def test_two_nodes_that_never_occur_are_not_alike_without_smoothing():
    graph = HypernymGraph.from_edges(4, [(1, 0), (2, 1), (3, 1)])
    content = information_content(graph, [5, 0, 0, 0], smoothing=0)
    assert content.tolist() == [0, np.inf, np.inf, np.inf]
    assert lin_matrix(graph, [2, 3, 0], content).tolist() == np.eye(3).tolist()


@pytest.mark.parametrize("counts", [[1], [1, -1], [np.nan, 1], [0, 0]])
def test_counts_that_mean_nothing_are_refused(counts):
    with pytest.raises(ValueError, match="counts: expected"):
        information_content(HypernymGraph.from_edges(2, [(1, 0)]), counts, smoothing=0)


@pytest.mark.parametrize("content", [[1.0], [1.0, -1.0], [np.nan, 1.0]])
def test_content_that_means_nothing_is_refused(content):
    with pytest.raises(ValueError, match="information content: expected"):
        lin_matrix(HypernymGraph.from_edges(2, [(1, 0)]), [0, 1], np.array(content))
