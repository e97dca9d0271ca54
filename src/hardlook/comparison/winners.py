"""Who wins where: in each slice the model that leads, with those that cannot be told from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardlook.comparison.families import headline_names, kind_of
from hardlook.comparison.standings import values_of
from hardlook.comparison.verdicts import meaning_of

if TYPE_CHECKING:
    from hardlook.comparison.between_runs import Comparison
    from hardlook.comparison.differences import Difference
    from hardlook.contract.benchmark import ScoreMeaning


@dataclass(frozen=True)
class SliceWinner:
    """One score over `n` units of a slice: the leader, then those that cannot be told from it, and all values.

    A score that is neither good nor bad has no leaders.
    """

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


@dataclass(frozen=True)
class WinnerChange:
    """A slice with a clear winner that is not among the `usual` ones.

    Those lead over all units where the score has a value there (`overall`); else they win the most slices of this kind.
    """

    winner: SliceWinner
    usual: tuple[str, ...]
    overall: bool


def slice_winners(comparison: Comparison) -> tuple[SliceWinner, ...]:
    """The winners of the headline scores, and of scores that exist in slices alone, over all units and everywhere."""
    card = comparison.benchmark.card
    whole = {one.name for one in comparison.differences if not one.slice}
    shown = set(headline_names(card)) | {one.name for one in comparison.differences if one.name not in whole}
    groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[Difference]] = {}
    for one in comparison.differences:
        if one.name in shown:
            groups.setdefault((one.name, one.reading, tuple(sorted(one.slice.items()))), []).append(one)
    found = [winner_of(rows, meaning_of(card, name).within(rows[0].slice)) for (name, *_), rows in groups.items()]
    return tuple(winner for winner in found if winner is not None)


def winner_of(rows: Sequence[Difference], meaning: ScoreMeaning) -> SliceWinner | None:
    """The leader of one score in one slice, from its differences; None where fewer than two models have a value."""
    values = {model: value for model, value in values_of(rows).items() if math.isfinite(value)}
    if len(values) < 2:
        return None
    leaders: tuple[str, ...] = ()
    if meaning.directed:
        best = min(values, key=lambda model: (-values[model] if meaning.higher_is_better else values[model], model))
        behind = {
            one.second if one.first == best else one.first
            for one in rows
            if best in (one.first, one.second) and one.told
        }
        leaders = (best, *(model for model in values if model != best and model not in behind))
    return SliceWinner(rows[0].name, rows[0].slice, leaders, values, max(one.n for one in rows))


def changes_of_winner(winners: Sequence[SliceWinner]) -> list[WinnerChange]:
    """Slices with another winner than usual.

    >>> first = {"cat": "ant", "dog": "ant", "owl": "bee"}
    >>> won = [SliceWinner("iou", {"class": name}, (model,), {}, 9) for name, model in first.items()]
    >>> [(change.winner.slice["class"], change.usual) for change in changes_of_winner(won)]
    [('owl', ('ant',))]
    """
    whole = {winner.name: winner.leaders for winner in winners if not winner.slice}
    kinds: dict[tuple[str, tuple[str, ...]], list[SliceWinner]] = {}
    for winner in winners:
        if winner.slice:
            kinds.setdefault((winner.name, winner.kind), []).append(winner)
    found = []
    for (name, _), alike in kinds.items():
        usual = whole[name] if name in whole else most_wins(alike)
        changed = (winner for winner in alike if winner.clear and winner.leaders[0] not in usual)
        found += [WinnerChange(winner, usual, name in whole) for winner in changed]
    return found


def most_wins(winners: Sequence[SliceWinner]) -> tuple[str, ...]:
    """The models that win most slices alone; several where they win equally many."""
    models = list(dict.fromkeys(winner.leaders[0] for winner in winners if winner.clear))
    counts = wins(winners, models)
    return tuple(model for model in models if counts[model] == max(counts.values()))


def wins(winners: Sequence[SliceWinner], models: Sequence[str]) -> dict[str, int]:
    """How many slices each model wins alone."""
    return {model: sum(winner.leaders == (model,) for winner in winners) for model in models}
