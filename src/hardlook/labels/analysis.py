"""Label similarity looked at by several measures at once: how each spreads, and whether they agree.

>>> from hardlook.labels.shipped import read_shipped
>>> found = analyse(read_shipped("voc20"), ["path", "wup"])
>>> found.views["path"].summary.labels, found.left_out
(20, ())
>>> bool(found.agreement[0, 1] > 0.5), float(found.overlap[0, 0])
(True, 1.0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import HardlookError, OptionError
from hardlook.labels.label_set import LabelSet
from hardlook.labels.measures import SimilarityResult, find_measure, similarity_of
from hardlook.labels.unknown import Unknown
from hardlook.similarity.agreement import agreement_table, neighbour_overlap
from hardlook.similarity.summary import DensityCurve, SimilaritySummary, density_curve, summarise

ALWAYS = ("path", "wup", "lin", "lesk")
WHERE_INSTALLED = ("glove", "sentence")
NEAREST = 5
FEWEST_LABELS = 3
BINS = 100
KERNEL = 0.02


@dataclass(frozen=True)
class MeasureView:
    """One measure over a label set: its matrix, mean and spread, and the density of pairs of different labels.

    `density` counts in bins of 0.01; `smooth` is the same under a Gaussian kernel of 0.02, mirrored at 0 and 1.
    """

    result: SimilarityResult
    summary: SimilaritySummary
    density: DensityCurve
    smooth: DensityCurve


@dataclass(frozen=True)
class LeftOutMeasure:
    """A measure that would have been shown, and why it is not."""

    name: str
    why: str


@dataclass(frozen=True, eq=False)
class Analysis:
    """m measures over one label set.

    `agreement` (m, m) is Spearman's correlation over pairs of different labels, NaN where a measure has one value
    only; `overlap` (m, m) the share of each label's `nearest` neighbours that two measures have in common. Rows are in
    the order of `views`.
    """

    labels: LabelSet
    views: Mapping[str, MeasureView]
    left_out: tuple[LeftOutMeasure, ...]
    agreement: NDArray[np.float64]
    overlap: NDArray[np.float64]
    nearest: int

    @property
    def matrices(self) -> dict[str, NDArray[np.float64]]:
        """Each measure's similarity matrix (K, K)."""
        return {name: view.result.matrix for name, view in self.views.items()}

    @property
    def wordnet_measure(self) -> str | None:
        """The first measure over WordNet, by which senses and variants are compared; None where there is none."""
        return next((name for name in self.views if find_measure(name).kind == "wordnet"), None)


def analyse(
    labels: LabelSet,
    measures: Sequence[str] | None = None,
    *,
    sources: Mapping[str, Path] | None = None,
    unknown: Unknown = "hypernym",
    seed: int = 0,
) -> Analysis:
    """Every measure over the labels, at least three of them.

    Without `measures`: the four over WordNet, those that `sources` (measure to file or folder) names, and GloVe and
    the sentence encoder where their weights are installed. A measure that was asked for by name and cannot be had is
    an error; one of the last two is left out with the reason.
    """
    sources = sources or {}
    if len(labels) < FEWEST_LABELS:
        raise OptionError(f"{len(labels)} labels are too few to analyse", remedy=f"at least {FEWEST_LABELS}")
    asked = _asked(measures, sources)
    results: dict[str, SimilarityResult] = {}
    left_out = []
    for name in asked if measures is not None else (*asked, *(one for one in WHERE_INSTALLED if one not in asked)):
        try:
            results[name] = similarity_of(labels, name, source=sources.get(name), unknown=unknown, seed=seed)
        except HardlookError as error:
            if name in asked:
                raise
            left_out.append(LeftOutMeasure(name, f"{error.what}; {error.remedy}" if error.remedy else error.what))
    views = {name: _view(one) for name, one in results.items()}
    matrices = [one.matrix for one in results.values()]
    nearest = min(NEAREST, len(labels) - 1)
    overlap = [[neighbour_overlap(first, second, count=nearest) for second in matrices] for first in matrices]
    return Analysis(labels, views, tuple(left_out), agreement_table(matrices), np.array(overlap), nearest)


def smooth_density(curve: DensityCurve, width: float = KERNEL) -> DensityCurve:
    """A density under a Gaussian kernel of standard deviation `width`, mirrored at 0 and 1 so that its area stays 1.

    >>> peak = DensityCurve(np.array([0.25, 0.75]), np.array([2.0, 0.0]))
    >>> float(smooth_density(peak, 0.3).density.mean().round(6))
    1.0
    """
    from scipy.ndimage import gaussian_filter1d

    smooth = gaussian_filter1d(curve.density, width * len(curve.centres), mode="reflect")
    return DensityCurve(curve.centres, np.asarray(smooth, np.float64))


def _view(result: SimilarityResult) -> MeasureView:
    density = density_curve(result.matrix, bins=BINS)
    return MeasureView(result, summarise(result.matrix), density, smooth_density(density))


def _asked(measures: Sequence[str] | None, sources: Mapping[str, Path]) -> tuple[str, ...]:
    for name in sources:
        find_measure(name)
    if measures is None:
        return tuple(dict.fromkeys([*ALWAYS, *sources]))
    if not measures:
        raise OptionError("no measure was given", remedy="name some, or leave the option out")
    strays = [name for name in sources if name not in measures]
    if strays:
        raise OptionError(
            f"a source is given for {', '.join(strays)}, which is not among the measures",
            remedy=f"measures {','.join([*measures, *strays])}",
        )
    return tuple(dict.fromkeys(find_measure(name).name for name in measures))
