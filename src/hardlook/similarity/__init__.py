"""Similarity of labels: label sets with their WordNet senses, measures, and their analysis.

The functions on arrays are exported here; `measures.compute_similarity` applies them to a label set.

>>> from hardlook.similarity import HypernymGraph, path_matrix
>>> kinds = HypernymGraph.from_edges(3, [(1, 0), (2, 0)])
>>> path_matrix(kinds, [1, 2]).round(3).tolist()
[[1.0, 0.333], [0.333, 1.0]]
"""

from hardlook.similarity.graph_measures import (
    HypernymGraph,
    information_content,
    lesk_matrix,
    lin_matrix,
    path_matrix,
    wu_palmer_matrix,
)
from hardlook.similarity.matrix import (
    UNKNOWN,
    DensityCurve,
    Neighbour,
    SimilaritySummary,
    agreement_table,
    check_similarity,
    cosine_matrix,
    density_curve,
    neighbour_overlap,
    off_diagonal,
    rank_agreement,
    rank_neighbours,
    restrict_matrix,
    summarise_matrix,
)

__all__ = [
    "UNKNOWN",
    "DensityCurve",
    "HypernymGraph",
    "Neighbour",
    "SimilaritySummary",
    "agreement_table",
    "check_similarity",
    "cosine_matrix",
    "density_curve",
    "information_content",
    "lesk_matrix",
    "lin_matrix",
    "neighbour_overlap",
    "off_diagonal",
    "path_matrix",
    "rank_agreement",
    "rank_neighbours",
    "restrict_matrix",
    "summarise_matrix",
    "wu_palmer_matrix",
]
