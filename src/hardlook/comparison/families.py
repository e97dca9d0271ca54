"""Which comparisons are corrected together.

A family is a set of questions that one reader asks at once, so that the chance of even one false answer among them is
what must stay small. There are three kinds:

- the headline scores over all units, all pairs of models: the question of the whole comparison;
- the other scores over all units, all pairs;
- one score by one kind of slice (the set of slice names, such as context, or class and context), all pairs.

So slices that nobody looks at never weaken the headline, and a score with hundreds of classes pays for them itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hardlook.stats.multiplicity import holm

if TYPE_CHECKING:
    from hardlook.comparison.differences import Difference
    from hardlook.contract.benchmark import BenchmarkCard

HEADLINE, OTHERS = "headline scores", "other scores"


def headline_names(card: BenchmarkCard) -> tuple[str, ...]:
    """The scores that the card calls headlines; the first one where it calls none so."""
    marked = tuple(score.name for score in card.scores if score.headline)
    return marked or tuple(score.name for score in card.scores[:1])


def kind_of(where: Mapping[str, str]) -> tuple[str, ...]:
    """The kind of a slice: the names it is cut by, in order.

    >>> kind_of({"context": "night", "class": "cat"})
    ('class', 'context')
    """
    return tuple(sorted(where))


def family_of(name: str, where: Mapping[str, str], headline: Sequence[str]) -> str:
    """The family of one comparison, by name.

    >>> family_of("miou", {}, ["miou"]), family_of("iou", {"context": "night", "class": "cat"}, ["miou"])
    ('headline scores', 'iou by class and context')
    """
    if where:
        return f"{name} by {' and '.join(kind_of(where))}"
    return HEADLINE if name in headline else OTHERS


def corrected(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """The differences with Holm's p-values of their families; a NaN is a comparison that was not made."""
    listed = list(differences)
    places: dict[str, list[int]] = {}
    for place, difference in enumerate(listed):
        places.setdefault(difference.family, []).append(place)
    for rows in places.values():
        for place, adjusted in zip(rows, holm([listed[row].p_value for row in rows]), strict=True):
            listed[place] = replace(listed[place], adjusted=float(adjusted))
    return tuple(listed)


def sizes(differences: Iterable[Difference]) -> dict[str, int]:
    """How many comparisons were made in each family."""
    counts: dict[str, int] = {}
    for difference in differences:
        counts[difference.family] = counts.get(difference.family, 0) + int(not np.isnan(difference.p_value))
    return counts
