"""The part of a hypernym graph that some nodes share: those nodes and everything above them.

What two nodes have in common lies above both. So one sweep up, from the asked nodes to the roots, and one sweep down
again give every pair's answer at once, in time edges x nodes instead of pairs x ancestors.

>>> from hardlook.similarity.graph import HypernymGraph
>>> shared = find_ancestry(HypernymGraph.from_edges(6, [(1, 0), (2, 1), (3, 1), (4, 3), (5, 0)]), np.array([2, 4]))
>>> shared.members.tolist(), shared.rows.tolist()
([0, 1, 2, 3, 4], [2, 4])
>>> shared.distances[shared.rows].tolist()
[[0, 3], [3, 0]]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hardlook.similarity.graph import HypernymGraph

# Stands for "no way there"; a sum of two still fits into int32.
FAR = 1 << 29


@dataclass(frozen=True, eq=False)
class Sweep:
    """One level's step: each row of `targets` receives from its group of `sources`; groups begin at `starts`."""

    targets: NDArray[np.int64]
    sources: NDArray[np.int64]
    starts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ancestry:
    """K distinct nodes with their M ancestors (themselves included), hypernyms before hyponyms.

    `members` (M,) are node numbers of the graph, `rows` (K,) the places of the asked nodes in it. `upward` leads from
    the deepest level to the roots, `downward` back.
    """

    members: NDArray[np.int64]
    rows: NDArray[np.int64]
    upward: tuple[Sweep, ...]
    downward: tuple[Sweep, ...]

    @cached_property
    def climbs(self) -> NDArray[np.int32]:
        """(M, K) edges on the shortest way up from each asked node to each member; FAR or more if it is no ancestor."""
        steps = np.full((len(self.members), len(self.rows)), FAR, np.int32)
        steps[self.rows, np.arange(len(self.rows))] = 0
        return _shorten(steps, self.upward)

    @cached_property
    def distances(self) -> NDArray[np.int32]:
        """(M, K) edges on the shortest way up and down again between asked nodes and members; FAR or more if none."""
        return _shorten(self.climbs.copy(), self.downward)

    def best_shared(self, worth: NDArray[np.float64]) -> NDArray[np.float64]:
        """(K, K) the greatest `worth` (M,) among the members above both nodes of a pair; -inf where there is none."""
        best = np.where(self.climbs < FAR, worth[:, None], -np.inf)
        for level in self.downward:
            inherited = np.maximum.reduceat(best[level.sources], level.starts, axis=0)
            best[level.targets] = np.maximum(best[level.targets], inherited)
        return best[self.rows]


def find_ancestry(graph: HypernymGraph, nodes: NDArray[np.int64]) -> Ancestry:
    """The ancestry of distinct nodes of a graph, which must not be empty."""
    members = graph.ancestors(nodes)
    members = members[np.argsort(graph.max_depth[members], kind="stable")]
    depth = graph.max_depth[members]
    place = np.empty(len(graph), np.int64)
    place[members] = np.arange(len(members))
    above, counts = graph.hypernyms_of(members)
    hyponyms, hypernyms = np.repeat(np.arange(len(members)), counts), place[above]
    return Ancestry(
        members=members,
        rows=place[nodes],
        upward=tuple(reversed(_sweeps(hypernyms, hyponyms, depth))),
        downward=tuple(_sweeps(hyponyms, hypernyms, depth)),
    )


def _sweeps(targets: NDArray[np.int64], sources: NDArray[np.int64], depth: NDArray[np.int64]) -> list[Sweep]:
    """Edges towards `targets`, grouped by the target's level, from the roots down."""
    order = np.argsort(targets, kind="stable")
    targets, sources = targets[order], sources[order]
    # Members are sorted by depth, so edges sorted by target are sorted by the target's level too.
    levels = depth[targets]
    borders = np.flatnonzero(np.diff(levels, prepend=-1, append=-1))
    sweeps = []
    for begin, end in pairwise(borders.tolist()):
        starts = np.flatnonzero(np.diff(targets[begin:end], prepend=-1))
        sweeps.append(Sweep(targets[begin:end][starts], sources[begin:end], starts))
    return sweeps


def _shorten(steps: NDArray[np.int32], sweeps: tuple[Sweep, ...]) -> NDArray[np.int32]:
    for level in sweeps:
        nearest = np.minimum.reduceat(steps[level.sources], level.starts, axis=0) + np.int32(1)
        steps[level.targets] = np.minimum(steps[level.targets], nearest)
    return steps
