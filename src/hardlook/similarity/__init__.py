"""Similarity of labels: label sets with their WordNet senses, measures, and their analysis.

The functions on arrays are exported here; `measures.compute_similarity` applies them to a label set.

>>> from hardlook.similarity import HypernymGraph, path_matrix
>>> kinds = HypernymGraph.from_edges(3, [(1, 0), (2, 0)])
>>> path_matrix(kinds, [1, 2]).round(3).tolist()
[[1.0, 0.333], [0.333, 1.0]]

Called like a function, the package computes the similarities of a label set:

>>> import hardlook
>>> hardlook.similarity("coco80", measure="path").matrix.shape
(80, 80)
"""

from hardlook.callable_packages import make_callable
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

make_callable(__name__, "hardlook.similarity.measures:similarity")
