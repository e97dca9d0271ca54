import numpy as np
import pytest
from hypothesis import given

from hardlook.similarity import HypernymGraph

from . import literal


@given(literal.hypernym_graphs())
def test_depths_and_ancestors_are_those_of_a_walk(graph):
    for node in range(len(graph)):
        assert graph.max_depth[node] == literal.depth(graph, node, max)
        assert graph.min_depth[node] == literal.depth(graph, node, min)
        assert graph.ancestors(node).tolist() == sorted(literal.climbs(graph, node))


@given(literal.graphs_and_nodes())
def test_ancestors_of_several_are_the_union(drawn):
    graph, nodes = drawn
    known = [node for node in nodes if node >= 0]
    assert graph.ancestors(known).tolist() == sorted({above for node in known for above in literal.climbs(graph, node)})


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
