import math

import literal_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.similarity.graph_measures import (
    HypernymGraph,
    information_content,
    lesk_matrix,
    lin_matrix,
    path_matrix,
    wu_palmer_matrix,
)
from hardlook.similarity.matrix import check_similarity


@given(literal_measures.hypernym_graphs())
def test_depths_and_ancestors_are_those_of_a_walk(graph):
    for node in range(len(graph)):
        assert graph.max_depth[node] == literal_measures.depth(graph, node, max)
        assert graph.min_depth[node] == literal_measures.depth(graph, node, min)
        assert graph.ancestors(node).tolist() == sorted(literal_measures.climbs(graph, node))


@given(literal_measures.graphs_and_nodes())
def test_ancestors_of_several_are_the_union(drawn):
    graph, nodes = drawn
    known = [node for node in nodes if node >= 0]
    assert graph.ancestors(known).tolist() == sorted(
        {above for node in known for above in literal_measures.climbs(graph, node)}
    )


def test_hypernyms_keep_their_order():
    graph = HypernymGraph.from_edges(4, [(3, 2), (1, 0), (3, 0), (3, 1)])
    assert graph.hypernyms(3).tolist() == [2, 0, 1]


@pytest.mark.parametrize("edges", [[(0, 0)], [(0, 1), (1, 2), (2, 1)]])
def test_a_cycle_is_named(edges):
    graph = HypernymGraph.from_edges(4, edges)
    on_cycle = {hyponym for hyponym, above in edges} & {above for _, above in edges}
    with pytest.raises(ValueError, match="no cycle") as error:
        _ = graph.max_depth
    assert any(f"node {node} " in str(error.value) for node in on_cycle)


@pytest.mark.parametrize(
    ("indptr", "indices"), [([0, 2], [0]), ([1, 1], []), ([0, 1], [1]), ([0, 1], [-1]), ([0, 1, 0, 1], [0]), ([], [])]
)
def test_arrays_that_are_no_graph_are_refused(indptr, indices):
    with pytest.raises(ValueError, match="graph: expected"):
        HypernymGraph(np.array(indptr), np.array(indices))


def test_a_long_chain_is_no_trouble():
    size = 3000
    chain = HypernymGraph.from_edges(size, [(node, node - 1) for node in range(1, size)])
    assert chain.max_depth.tolist() == chain.min_depth.tolist() == list(range(size))


WORDS = st.sampled_from("abcdefgh")


@given(st.lists(st.lists(WORDS, max_size=6), max_size=7))
def test_every_cell_is_dice_of_the_sets(entries):
    matrix = lesk_matrix(entries)
    assert matrix.shape == (len(entries), len(entries))
    for row, a in enumerate(entries):
        for column, b in enumerate(entries):
            size = len(set(a)) + len(set(b))
            expected = 1.0 if row == column else (2 * len(set(a) & set(b)) / size if size else 0.0)
            assert matrix[row, column] == pytest.approx(expected, abs=1e-12)
    assert np.array_equal(check_similarity(matrix, tolerance=0), matrix)


def test_two_entries_without_words_are_not_alike():
    assert lesk_matrix([(), ()]).tolist() == [[1, 0], [0, 1]]


def counts_for(graph, data):
    size = len(graph)
    return np.array(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)))


@given(literal_measures.graphs_and_nodes(), st.data(), st.sampled_from([0.5, 1.0]))
def test_content_counts_an_occurrence_once_for_every_ancestor(drawn, data, smoothing):
    graph, _ = drawn
    counts = counts_for(graph, data)
    sums = [smoothing] * len(graph)
    for node, count in enumerate(counts):
        for above in literal_measures.climbs(graph, node):
            sums[above] += count
    total = smoothing + counts.sum()
    expected = [-math.log(own / total) for own in sums]
    assert information_content(graph, counts, smoothing=smoothing) == pytest.approx(expected, abs=1e-12)


@given(literal_measures.graphs_and_nodes(), st.data(), st.sampled_from([0.0, 1.0]))
def test_every_cell_is_the_definition(drawn, data, smoothing):
    graph, nodes = drawn
    counts = counts_for(graph, data)
    counts[0] += 1
    content = information_content(graph, counts, smoothing=smoothing)
    matrix = lin_matrix(graph, nodes, content)
    for row, a in enumerate(nodes):
        for column, b in enumerate(nodes):
            expected = 1.0 if row == column else literal_measures.lin(graph, a, b, content)
            assert matrix[row, column] == pytest.approx(expected, abs=1e-12)
    assert np.array_equal(check_similarity(matrix, tolerance=0), matrix)


@given(literal_measures.graphs_and_nodes(), st.data())
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


@given(literal_measures.graphs_and_nodes())
def test_every_cell_is_the_shortest_way_through_a_common_hypernym(drawn):
    graph, nodes = drawn
    matrix = path_matrix(graph, nodes)
    for row, a in enumerate(nodes):
        for column, b in enumerate(nodes):
            expected = 1.0 if row == column else literal_measures.path(graph, a, b)
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


@given(literal_measures.graphs_and_nodes())
def test_wu_palmer_every_cell_is_the_definition(drawn):
    graph, nodes = drawn
    matrix = wu_palmer_matrix(graph, nodes)
    for row, a in enumerate(nodes):
        for column, b in enumerate(nodes):
            expected = 1.0 if row == column else literal_measures.wu_palmer(graph, a, b)
            assert matrix[row, column] == expected
    assert np.array_equal(check_similarity(matrix, tolerance=0), matrix)


@given(literal_measures.graphs_and_nodes(), st.data())
def test_ties_by_rank_are_ties_by_number_in_a_renumbered_graph(drawn, data):
    graph, nodes = drawn
    rank = np.array(data.draw(st.permutations(range(len(graph)))))
    renumbered = HypernymGraph.from_edges(
        len(graph), [(rank[node], rank[above]) for node in range(len(graph)) for above in graph.hypernyms(node)]
    )
    moved = [-1 if node == -1 else int(rank[node]) for node in nodes]
    assert np.array_equal(wu_palmer_matrix(graph, nodes, tie_rank=rank), wu_palmer_matrix(renumbered, moved))


def test_a_node_with_a_short_and_a_long_way_up_is_wholly_like_itself():
    # 4 hangs below the root and below 3, which lies deeper than 4's shortest way.
    graph = HypernymGraph.from_edges(5, [(1, 0), (2, 1), (3, 2), (4, 0), (4, 3)])
    assert wu_palmer_matrix(graph, [4, 4]).tolist() == [[1, 1], [1, 1]]
