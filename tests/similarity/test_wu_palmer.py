import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hardlook.similarity import HypernymGraph, check_similarity, wu_palmer_matrix

from . import literal


@given(literal.graphs_and_nodes())
def test_every_cell_is_the_definition(drawn):
    graph, nodes = drawn
    matrix = wu_palmer_matrix(graph, nodes)
    for row, a in enumerate(nodes):
        for column, b in enumerate(nodes):
            expected = 1.0 if row == column else literal.wu_palmer(graph, a, b)
            assert matrix[row, column] == expected
    assert np.array_equal(check_similarity(matrix, tolerance=0), matrix)


@given(literal.graphs_and_nodes(), st.data())
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
