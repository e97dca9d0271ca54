"""Whether a run's numbers may stand beside the paper's, in words on every headline score."""

from __future__ import annotations

from dataclasses import replace

from hardlook.benchmarks.open_labels.options import OpenLabelOptions
from hardlook.contract.scorecard import Scorecard


def comparable(options: OpenLabelOptions) -> str:
    """The sentence for these options.

    >>> comparable(OpenLabelOptions())
    'Not comparable with the paper: these are scenes of the planted world.'
    """
    if not (options.data or options.gt):
        return "Not comparable with the paper: these are scenes of the planted world."
    if options.similarity is not None or (options.variant, options.measure) != ("published", "path"):
        return "Not comparable with the paper's tables, which are --variant published --measure path."
    return "Comparable with the paper's tables where the images are the same validation set."


def with_comparison(scorecard: Scorecard, options: OpenLabelOptions) -> Scorecard:
    """The scorecard with that sentence on every score over all units."""
    text = comparable(options)
    return replace(
        scorecard,
        scores=tuple(score if score.slice else replace(score, comparable=text) for score in scorecard.scores),
    )
