"""Scores as reports show them: looked up, and in words.

>>> card = Scorecard("toss", "1", "", (Score("lca", 0.5, 3), Score("hca", math.nan, 3)))
>>> found(card, "hca"), found(card, "lca").value
(None, 0.5)
"""

from __future__ import annotations

import math

from hardlook.contract.scorecard import Score, Scorecard

# Of the right support's mIoU: what is left under a wrong one when the support is ignored, and when it is followed.
IGNORED_FROM, FOLLOWED_TO = 0.75, 0.25


def found(scorecard: Scorecard, name: str, **where: str) -> Score | None:
    """A score that is there and defined, else None."""
    for score in scorecard.scores:
        if score.name == name and dict(score.slice) == where and not math.isnan(score.value):
            return score
    return None


def number_of(score: Score) -> str:
    """The value and its interval.

    >>> number_of(Score("lca", 0.5, 3))
    '0.500'
    """
    span = f" ({score.interval.low:.3f} to {score.interval.high:.3f})" if score.interval else ""
    return f"{score.value:.3f}{span}"
