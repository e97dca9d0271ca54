"""Charts that the reports of all open metrics share."""

from __future__ import annotations

import math

from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import Dot, DotChart, Section


def is_slice(score: Score, name: str, keys: set[str]) -> bool:
    """Whether a score has this name and exactly these slice keys.

    >>> is_slice(Score("miou", 0.5, 3, slice={"class": "cat"}), "miou", {"class"})
    True
    """
    return score.name == name and set(score.slice) == keys


def measures_section(scorecard: Scorecard, name: str, title: str, reference: tuple[str, str]) -> Section | None:
    """The open score `name` under every compared measure; `reference` is the label and name of the hard score."""
    scores = [score for score in scorecard.scores if is_slice(score, name, {"measure"})]
    defined = [score for score in scores if not math.isnan(score.value)]
    if not defined:
        return None
    label, hard = reference
    chart = DotChart(
        f"{title} under other measures",
        "The same records, re-scored. Numbers under different measures are not comparable with each other.",
        [Dot(score.slice["measure"], score.value) for score in defined],
        axis=title,
        references=((label, scorecard.get(hard).value),),
    )
    return Section("What the measure does", "", (chart,))
