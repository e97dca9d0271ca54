"""Who wins where: in each slice the model that leads, with those that cannot be told from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardlook.comparison.families import headline_names, kind_of
from hardlook.comparison.standings import values_of

if TYPE_CHECKING:
    from hardlook.comparison.between_runs import Comparison
    from hardlook.comparison.differences import Difference


@dataclass(frozen=True)
class SliceWinner:
    """One score over `n` units of a slice: the leader, then those that cannot be told from it, and all values."""

    name: str
    slice: Mapping[str, str]
    leaders: tuple[str, ...]
    values: Mapping[str, float]
    n: int

    @property
    def clear(self) -> bool:
        """Whether one model is ahead of all others."""
        return len(self.leaders) == 1

    @property
    def kind(self) -> tuple[str, ...]:
        """What the slice is cut by; empty over all units."""
        return kind_of(self.slice)


def slice_winners(comparison: Comparison) -> tuple[SliceWinner, ...]:
    """The winners of the headline scores, and of scores that exist in slices alone, over all units and everywhere."""
    card = comparison.benchmark.card
    whole = {one.name for one in comparison.differences if not one.slice}
    shown = set(headline_names(card)) | {one.name for one in comparison.differences if one.name not in whole}
    groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[Difference]] = {}
    for one in comparison.differences:
        if one.name in shown:
            groups.setdefault((one.name, one.reading, tuple(sorted(one.slice.items()))), []).append(one)
    higher = {score.name: score.higher_is_better for score in card.scores}
    found = [winner_of(rows, higher_is_better=higher.get(name, True)) for (name, *_), rows in groups.items()]
    return tuple(winner for winner in found if winner is not None)


def winner_of(rows: Sequence[Difference], *, higher_is_better: bool) -> SliceWinner | None:
    """The leader of one score in one slice, from its differences; None where fewer than two models have a value."""
    values = {model: value for model, value in values_of(rows).items() if math.isfinite(value)}
    if len(values) < 2:
        return None
    best = min(values, key=lambda model: (-values[model] if higher_is_better else values[model], model))
    behind = {
        one.second if one.first == best else one.first
        for one in rows
        if best in (one.first, one.second) and one.verdict in ("better", "worse")
    }
    tied = tuple(model for model in values if model != best and model not in behind)
    return SliceWinner(rows[0].name, rows[0].slice, (best, *tied), values, max(one.n for one in rows))


def changes_of_winner(winners: Sequence[SliceWinner], headline: Sequence[str]) -> list[tuple[SliceWinner, SliceWinner]]:
    """Slices with a clear winner that is not among the leaders over all units, each with the winner over all units.

    A score that exists in slices alone is held against the first headline.
    """
    whole = {winner.name: winner for winner in winners if not winner.slice}
    usual = next((whole[name] for name in headline if name in whole), None)
    found = []
    for winner in winners:
        overall = whole.get(winner.name, usual)
        if winner.slice and winner.clear and overall is not None and winner.leaders[0] not in overall.leaders:
            found.append((winner, overall))
    return found


def wins(winners: Sequence[SliceWinner], models: Sequence[str]) -> dict[str, int]:
    """How many slices each model wins alone."""
    return {model: sum(winner.leaders == (model,) for winner in winners) for model in models}
