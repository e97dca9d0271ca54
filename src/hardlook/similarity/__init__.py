"""Similarity between labels, from arrays: measures over a graph of hypernyms, glosses or vectors, and their analysis.

>>> from hardlook.similarity import HypernymGraph, path_matrix
>>> kinds = HypernymGraph.from_edges(3, [(1, 0), (2, 0)])
>>> path_matrix(kinds, [1, 2]).round(3).tolist()
[[1.0, 0.333], [0.333, 1.0]]
"""

from hardlook.similarity.agreement import agreement_table, neighbour_overlap, rank_agreement
from hardlook.similarity.cosine import cosine_matrix
from hardlook.similarity.graph import HypernymGraph
from hardlook.similarity.lesk import lesk_matrix
from hardlook.similarity.lin import information_content, lin_matrix
from hardlook.similarity.matrix import UNKNOWN, check_similarity, restrict
from hardlook.similarity.path import path_matrix
from hardlook.similarity.summary import (
    DensityCurve,
    Neighbour,
    SimilaritySummary,
    density_curve,
    neighbours,
    off_diagonal,
    summarise,
)
from hardlook.similarity.wu_palmer import wu_palmer_matrix

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
    "neighbours",
    "off_diagonal",
    "path_matrix",
    "rank_agreement",
    "restrict",
    "summarise",
    "wu_palmer_matrix",
]
