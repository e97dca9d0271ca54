"""Compare similarity measures on a label set: spread, agreement, neighbours, senses, and an order for heat maps.

>>> from hardlook.similarity.label_sets import load_shipped_set
>>> analysis = analyse_labels(load_shipped_set("voc20"), ["path", "wup"])
>>> analysis.views["path"].summary.labels, analysis.left_out, next(iter(analysis.neighbours))
(20, {}, 'bicycle')
>>> bool(analysis.agreement[0, 1] > 0.5), float(analysis.overlap[0, 0])
(True, 1.0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import HardlookError, OptionError
from hardlook.similarity.label_synsets import UnknownPolicy
from hardlook.similarity.labels import LabelSet
from hardlook.similarity.matrix import (
    DensityCurve,
    SimilaritySummary,
    agreement_table,
    density_curve,
    neighbour_overlap,
    rank_neighbours,
    summarise_matrix,
)
from hardlook.similarity.measures import SimilarityResult, compute_similarity, find_measure
from hardlook.similarity.senses import (
    PolysemyCase,
    SharedWord,
    VariantComparison,
    compare_variants,
    find_polysemy,
    find_shared_words,
    has_published_senses,
)

DEFAULT_MEASURES = ("path", "wup", "lin", "lesk")
OPTIONAL_MEASURES = ("glove", "sentence")
MIN_LABELS = 3
OVERLAP_NEIGHBOURS = 5
LISTED_NEIGHBOURS = 10
EXAMPLE_LABELS = 4
BINS = 100
KERNEL_WIDTH = 0.02
RUN_LENGTH = 3

Matrices = Mapping[str, NDArray[np.float64]]
Neighbours = Mapping[str, tuple[tuple[str, float], ...]]


@dataclass(frozen=True)
class MeasureView:
    """One measure over a label set: its matrix, mean and spread, and the density of pairs of different labels.

    `density` counts in bins of 0.01; `smooth` is the same under a Gaussian kernel of 0.02, mirrored at 0 and 1.
    """

    result: SimilarityResult
    summary: SimilaritySummary
    density: DensityCurve
    smooth: DensityCurve


@dataclass(frozen=True, eq=False)
class Analysis:
    """The comparison of m measures over one label set.

    `agreement` (m, m) is Spearman's correlation over pairs of different labels, NaN where a measure has one value
    only; `overlap` (m, m) the share of each label's `nearest` neighbours that two measures have in common. Rows are in
    the order of `views`. `neighbours` has the nearest labels by measure of some labels, as (name, similarity), most
    similar first; `neighbours_chosen` says whether the user chose these labels or they are examples. `polysemy` and
    `variants` are computed with `wordnet_measure`. `left_out` are the default measures that could not be computed, with
    the reason.
    """

    labels: LabelSet
    views: Mapping[str, MeasureView]
    left_out: Mapping[str, str]
    agreement: NDArray[np.float64]
    overlap: NDArray[np.float64]
    nearest: int
    neighbours: Mapping[str, Neighbours]
    neighbours_chosen: bool
    wordnet_measure: str | None
    polysemy: tuple[PolysemyCase, ...]
    shared_words: tuple[SharedWord, ...]
    variants: VariantComparison | None

    @property
    def matrices(self) -> dict[str, NDArray[np.float64]]:
        """Each measure's similarity matrix (K, K)."""
        return {name: view.result.matrix for name, view in self.views.items()}


def analyse_labels(
    labels: LabelSet,
    measures: Sequence[str] | None = None,
    *,
    sources: Mapping[str, Path] | None = None,
    unknown: UnknownPolicy = "hypernym",
    seed: int = 0,
    neighbours_of: Sequence[int] = (),
) -> Analysis:
    """Compute every measure over the labels, at least three of them, and compare the measures.

    Without `measures`: the four over WordNet, those named in `sources` (measure to file or folder), and GloVe and the
    sentence encoder where their weights are installed. A requested measure that cannot be computed is an error; one
    of the last two is left out with the reason. `neighbours_of` are rows of labels whose neighbours are listed; by
    default, examples are selected.
    """
    sources = sources or {}
    if len(labels) < MIN_LABELS:
        raise OptionError(f"{len(labels)} labels are too few to analyse", remedy=f"at least {MIN_LABELS}")
    required = _list_required(measures, sources)
    optional = [name for name in OPTIONAL_MEASURES if measures is None and name not in required]
    views: dict[str, MeasureView] = {}
    left_out = {}
    for name in (*required, *optional):
        try:
            result = compute_similarity(labels, name, source=sources.get(name), unknown=unknown, seed=seed)
        except HardlookError as error:
            if name in required:
                raise
            left_out[name] = f"{error.what}; {error.remedy}" if error.remedy else error.what
            continue
        density = density_curve(result.matrix, bins=BINS)
        views[name] = MeasureView(result, summarise_matrix(result.matrix), density, smooth_density(density))
    matrices = {name: view.result.matrix for name, view in views.items()}
    nearest = min(OVERLAP_NEIGHBOURS, len(labels) - 1)
    overlap = [
        [neighbour_overlap(first, second, count=nearest) for second in matrices.values()] for first in matrices.values()
    ]
    rows = neighbours_of or select_example_rows(matrices, count=min(EXAMPLE_LABELS, len(labels)), nearest=nearest)
    wordnet = next((name for name in views if find_measure(name).kind == "wordnet"), None)
    return Analysis(
        labels=labels,
        views=views,
        left_out=left_out,
        agreement=agreement_table(list(matrices.values())),
        overlap=np.array(overlap),
        nearest=nearest,
        neighbours={labels.names[row]: list_neighbours(labels, matrices, row, LISTED_NEIGHBOURS) for row in rows},
        neighbours_chosen=bool(neighbours_of),
        wordnet_measure=wordnet,
        polysemy=find_polysemy(labels, wordnet, unknown) if wordnet else (),
        shared_words=find_shared_words(labels),
        variants=compare_variants(labels.name, wordnet) if wordnet and has_published_senses(labels) else None,
    )


def _list_required(measures: Sequence[str] | None, sources: Mapping[str, Path]) -> tuple[str, ...]:
    for name in sources:
        find_measure(name)
    if measures is None:
        return tuple(dict.fromkeys([*DEFAULT_MEASURES, *sources]))
    if not measures:
        raise OptionError("no measure was given", remedy="name some, or leave the option out")
    if unused := [name for name in sources if name not in measures]:
        remedy = f"measures {','.join([*measures, *unused])}"
        raise OptionError(f"a source is given for {', '.join(unused)}, which is not among the measures", remedy=remedy)
    return tuple(dict.fromkeys(find_measure(name).name for name in measures))


def smooth_density(curve: DensityCurve, width: float = KERNEL_WIDTH) -> DensityCurve:
    """A density under a Gaussian kernel of standard deviation `width`, mirrored at 0 and 1 so that its area stays 1.

    >>> peak = DensityCurve(np.array([0.25, 0.75]), np.array([2.0, 0.0]))
    >>> float(smooth_density(peak, 0.3).density.mean().round(6))
    1.0
    """
    from scipy.ndimage import gaussian_filter1d

    smooth = gaussian_filter1d(curve.density, width * len(curve.centres), mode="reflect")
    return DensityCurve(curve.centres, np.asarray(smooth, np.float64))


def list_similar_pairs(matrix: NDArray[np.float64], names: Sequence[str], count: int) -> list[tuple[str, str, float]]:
    """The `count` most similar pairs of different labels of a matrix (K, K); ties in the order of the labels.

    >>> matrix = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
    >>> list_similar_pairs(matrix, ["cat", "dog", "car"], 2)
    [('cat', 'dog', 0.5), ('dog', 'car', 0.3)]
    """
    rows, columns = np.triu_indices(len(matrix), 1)
    values = matrix[rows, columns]
    order = np.argsort(-values, kind="stable")[:count]
    return [(names[rows[one]], names[columns[one]], float(values[one])) for one in order]


def list_neighbours(labels: LabelSet, matrices: Matrices, row: int, count: int) -> Neighbours:
    """The `count` nearest labels of the label in `row` under every measure."""
    return {
        measure: tuple((labels.names[one.row], one.similarity) for one in rank_neighbours(matrix, row, count=count))
        for measure, matrix in matrices.items()
    }


def select_example_rows(matrices: Matrices, *, count: int, nearest: int) -> tuple[int, ...]:
    """Rows of labels worth listing: half of them where the measures differ most, half where they differ least.

    Labels are ranked by how many of their `nearest` neighbours two measures have in common, averaged over the pairs
    of measures. With one measure alone, the labels with the most similar neighbours are selected.

    >>> near, far = np.array([[1, 0.9, 0.1], [0.9, 1, 0.5], [0.1, 0.5, 1]]), np.ones((3, 3))
    >>> select_example_rows({"a": near, "b": near, "c": far}, count=2, nearest=1)
    (2, 0)
    """
    first = next(iter(matrices.values()))
    if len(matrices) == 1:
        return tuple(int(row) for row in np.argsort(-(first - np.eye(len(first))).max(axis=1), kind="stable")[:count])
    is_nearest = {name: _mark_nearest(matrix, nearest) for name, matrix in matrices.items()}
    shared = np.mean([(is_nearest[a] & is_nearest[b]).sum(axis=1) for a, b in combinations(is_nearest, 2)], axis=0)
    low = np.argsort(shared, kind="stable").tolist()[: (count + 1) // 2]
    high = [row for row in np.argsort(-shared, kind="stable").tolist() if row not in low]
    return tuple([*low, *high[: count - len(low)]])


def _mark_nearest(matrix: NDArray[np.float64], count: int) -> NDArray[np.bool_]:
    others = matrix.copy()
    np.fill_diagonal(others, -1.0)
    columns = np.argsort(-others, axis=1, kind="stable")[:, :count]
    marks = np.zeros(matrix.shape, np.bool_)
    np.put_along_axis(marks, columns, True, axis=1)
    return marks


def select_heat_map_rows(matrix: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """At most `size` rows of a similarity matrix (K, K), similar ones next to each other."""
    chosen = sample_runs(order_by_similarity(matrix), size)
    return chosen[order_by_similarity(matrix[np.ix_(chosen, chosen)], optimal=True)]


def order_by_similarity(matrix: NDArray[np.float64], *, optimal: bool = False) -> NDArray[np.int64]:
    """(K,) rows of a similarity matrix (K, K) in the order of a clustering (average linkage of 1 - similarity).

    `optimal` also rotates branches so that adjacent leaves are similar, which is slow for many labels.

    >>> matrix = np.eye(4)
    >>> matrix[0, 2] = matrix[2, 0] = matrix[1, 3] = matrix[3, 1] = 0.8
    >>> order = order_by_similarity(matrix).tolist()
    >>> {order.index(0) - order.index(2), order.index(1) - order.index(3)} <= {-1, 1}
    True
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(matrix) < 3:
        return np.arange(len(matrix))
    distances = squareform(np.clip(1.0 - matrix, 0.0, None), checks=False)
    return np.asarray(leaves_list(linkage(distances, "average", optimal_ordering=optimal)), np.int64)


def sample_runs(order: NDArray[np.int64], size: int, *, run: int = RUN_LENGTH) -> NDArray[np.int64]:
    """At most `size` entries of an order (K,): runs of `run` neighbours, spread evenly over it; all if they fit.

    >>> sample_runs(np.arange(12), 6, run=3).tolist()
    [1, 2, 3, 7, 8, 9]
    """
    if len(order) <= size:
        return order
    runs = max(size // run, 1)
    width = len(order) / runs
    starts = [int(width * (number + 0.5) - run / 2) for number in range(runs)]
    return order[sorted({index for start in starts for index in range(max(start, 0), min(start + run, len(order)))})]
