"""Who ranks where in each headline score, with tied sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hardlook.comparison.verdicts import meaning_of
from hardlook.stats.ranking import Standing, rank_models

if TYPE_CHECKING:
    from hardlook.comparison.differences import Difference
    from hardlook.contract.benchmark import BenchmarkCard


def standings_of(
    differences: Sequence[Difference], models: Sequence[str], card: BenchmarkCard
) -> dict[str, tuple[Standing, ...]]:
    """By score, the models best first; `differences` are those of the scores to rank by, over all units.

    A score that is neither good nor bad ranks nobody. A model whose score is undefined has no place. Two models
    differ where the verdict, corrected over all pairs and headline scores, says so.
    """
    found = {}
    for name in dict.fromkeys(one.name for one in differences if meaning_of(card, one.name).directed):
        # Of a score with several readings the first is the one that the benchmark leads with.
        reading = next(one.reading for one in differences if one.name == name)
        rows = [one for one in differences if one.name == name and one.reading == reading]
        values = values_of(rows)
        placed = [model for model in models if math.isfinite(values.get(model, math.nan))]
        differs = np.zeros((len(placed), len(placed)), dtype=np.bool_)
        for one in rows:
            if one.told:
                i, j = placed.index(one.first), placed.index(one.second)
                differs[i, j] = differs[j, i] = True
        if placed:
            better = meaning_of(card, name).higher_is_better
            scores = [values[model] for model in placed]
            found[name] = rank_models(placed, scores, differs, higher_is_better=better)
    return found


def values_of(differences: Sequence[Difference]) -> dict[str, float]:
    """The score of each model, from the differences of one score in one slice."""
    values: dict[str, float] = {}
    for one in differences:
        values.setdefault(one.first, one.first_value)
        values.setdefault(one.second, one.second_value)
    return values
