"""Random hypernym graphs, and the measures written as their definitions read: one pair at a time, by walking."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from hardlook.similarity.graph_measures import HypernymGraph


@st.composite
def hypernym_graphs(draw, largest=14):
    """A graph without cycles, whose numbering says nothing about depth; several roots and lone nodes happen."""
    size = draw(st.integers(1, largest))
    order = draw(st.permutations(range(size)))
    edges = []
    for place in range(1, size):
        above = draw(st.lists(st.integers(0, place - 1), max_size=3, unique=True))
        edges += [(order[place], order[other]) for other in above]
    return HypernymGraph.from_edges(size, edges)


@st.composite
def graphs_and_nodes(draw):
    graph = draw(hypernym_graphs())
    nodes = draw(st.lists(st.integers(-1, len(graph) - 1), min_size=1, max_size=8))
    return graph, nodes


def parents(graph, node):
    return [int(above) for above in graph.hypernyms(node)]


def climbs(graph, node):
    """Every ancestor with the edges of the shortest way up to it, breadth first."""
    found, front = {node: 0}, [node]
    while front:
        reached = []
        for at in front:
            for above in parents(graph, at):
                if above not in found:
                    found[above] = found[at] + 1
                    reached.append(above)
        front = reached
    return found


def depth(graph, node, choose):
    above = parents(graph, node)
    return 1 + choose(depth(graph, other, choose) for other in above) if above else 0


def distance(graph, a, b):
    up_a, up_b = climbs(graph, a), climbs(graph, b)
    return min((up_a[s] + up_b[s] for s in up_a.keys() & up_b.keys()), default=math.inf)


def path(graph, a, b):
    if a == -1 or b == -1:
        return 0.0
    return 1 / (1 + distance(graph, a, b))


def wu_palmer(graph, a, b):
    """nltk's reading, with (a, b) and (b, a) alike and 1 for equal nodes; ties to the lowest number."""
    if a == b and a != -1:
        return 1.0
    shared = climbs(graph, a).keys() & climbs(graph, b).keys() if min(a, b) >= 0 else set()
    if not shared:
        return 0.0
    greatest = max(depth(graph, s, min) for s in shared)
    lowest = sorted(s for s in shared if depth(graph, s, min) == greatest)
    chosen = next((s for s in (a, b) if s in lowest), lowest[0])
    doubled = 2 * (depth(graph, chosen, max) + 1)
    return doubled / (doubled + distance(graph, a, chosen) + distance(graph, b, chosen))


def lin(graph, a, b, content):
    if a == b and a != -1:
        return 1.0
    shared = climbs(graph, a).keys() & climbs(graph, b).keys() if min(a, b) >= 0 else set()
    if not shared or math.isinf(content[a] + content[b]) or content[a] + content[b] == 0:
        return 0.0
    return 2 * max(content[s] for s in shared) / (content[a] + content[b])
