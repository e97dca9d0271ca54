"""Scores in words, as reports of one-shot segmentation show them."""

from __future__ import annotations

from hardlook.contract.scorecard import Score

# Of the right support's mIoU: what is left under a wrong one when the support is ignored, and when it is followed.
IGNORED_FROM, FOLLOWED_TO = 0.75, 0.25


def number_of(score: Score) -> str:
    """The value and its interval.

    >>> number_of(Score("lca", 0.5, 3))
    '0.500'
    """
    span = f" ({score.interval.low:.3f} to {score.interval.high:.3f})" if score.interval else ""
    return f"{score.value:.3f}{span}"
