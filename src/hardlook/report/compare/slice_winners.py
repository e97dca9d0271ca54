"""The model that leads in each slice, and the slices in which another model leads than usual."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.sections import Table
from hardlook.report.compare.comparison import Comparison, get_model_values
from hardlook.report.compare.differences import Difference, find_score_meaning, get_slice_keys, list_headline_scores
from hardlook.report.formatting import describe_slice, format_slice


@dataclass(frozen=True)
class SliceWinner:
    """One score over `n` units of a slice: the leader, then the models that cannot be told from it, and all values.

    A score that is not ranked has no leaders.
    """

    name: str
    slice: Mapping[str, str]
    leaders: tuple[str, ...]
    values: Mapping[str, float]
    n: int

    @property
    def is_clear(self) -> bool:
        """Whether one model is ahead of all others."""
        return len(self.leaders) == 1

    @property
    def slice_keys(self) -> tuple[str, ...]:
        """The kind of the slice: the names of its properties; empty over all units."""
        return get_slice_keys(self.slice)


@dataclass(frozen=True)
class WinnerChange:
    """A slice with a clear winner that is not among the `usual` ones.

    Those lead over all units where the score has a value there (`overall`); else they win the most slices of this kind.
    """

    winner: SliceWinner
    usual: tuple[str, ...]
    overall: bool


def find_slice_winners(comparison: Comparison) -> tuple[SliceWinner, ...]:
    """The winners, over all units and in every slice, of the headline scores and of scores that have slices only."""
    card = comparison.benchmark.card
    overall = {one.name for one in comparison.differences if not one.slice}
    shown = set(list_headline_scores(card)) | {one.name for one in comparison.differences if one.name not in overall}
    groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[Difference]] = {}
    for one in comparison.differences:
        if one.name in shown:
            groups.setdefault((one.name, one.reading, tuple(sorted(one.slice.items()))), []).append(one)
    winners = [
        find_winner(rows, find_score_meaning(card, name).within(rows[0].slice)) for (name, *_), rows in groups.items()
    ]
    return tuple(winner for winner in winners if winner is not None)


def find_winner(rows: Sequence[Difference], meaning: ScoreMeaning) -> SliceWinner | None:
    """The leader of one score in one slice, from its differences; None where fewer than two models have a value."""
    values = {model: value for model, value in get_model_values(rows).items() if math.isfinite(value)}
    if len(values) < 2:
        return None
    leaders: tuple[str, ...] = ()
    if meaning.ranked:
        best = min(values, key=lambda model: (-values[model] if meaning.higher_is_better else values[model], model))
        behind = {
            one.second if one.first == best else one.first
            for one in rows
            if best in (one.first, one.second) and one.is_significant
        }
        leaders = (best, *(model for model in values if model != best and model not in behind))
    return SliceWinner(rows[0].name, rows[0].slice, leaders, values, max(one.n for one in rows))


def find_winner_changes(winners: Sequence[SliceWinner]) -> list[WinnerChange]:
    """Slices with another winner than usual.

    >>> first = {"cat": "ant", "dog": "ant", "owl": "bee"}
    >>> won = [SliceWinner("iou", {"class": name}, (model,), {}, 9) for name, model in first.items()]
    >>> [(change.winner.slice["class"], change.usual) for change in find_winner_changes(won)]
    [('owl', ('ant',))]
    """
    overall = {winner.name: winner.leaders for winner in winners if not winner.slice}
    kinds: dict[tuple[str, tuple[str, ...]], list[SliceWinner]] = {}
    for winner in winners:
        if winner.slice:
            kinds.setdefault((winner.name, winner.slice_keys), []).append(winner)
    changes = []
    for (name, _), of_kind in kinds.items():
        usual = overall[name] if name in overall else list_most_frequent_winners(of_kind)
        changed = (winner for winner in of_kind if winner.is_clear and winner.leaders[0] not in usual)
        changes += [WinnerChange(winner, usual, name in overall) for winner in changed]
    return changes


def list_most_frequent_winners(winners: Sequence[SliceWinner]) -> tuple[str, ...]:
    """The models that are the clear winner of most slices; several where they win equally many."""
    models = list(dict.fromkeys(winner.leaders[0] for winner in winners if winner.is_clear))
    counts = count_wins(winners, models)
    return tuple(model for model in models if counts[model] == max(counts.values()))


def count_wins(winners: Sequence[SliceWinner], models: Sequence[str]) -> dict[str, int]:
    """In how many slices each model is the clear winner."""
    return {model: sum(winner.leaders == (model,) for winner in winners) for model in models}


def describe_winner_changes(comparison: Comparison, changes: Sequence[WinnerChange]) -> list[str]:
    """A sentence for each change."""
    lines = []
    for change in changes:
        winner, ending = change.winner, "s" if len(change.usual) == 1 else ""
        title = find_score_meaning(comparison.benchmark.card, winner.name).title
        why = f"lead{ending} over all units" if change.overall else f"win{ending} the most slices"
        lines.append(
            f"The winner changes where {describe_slice(winner.slice)}: {winner.leaders[0]} is ahead in {title}, not "
            f"{' and '.join(change.usual)}, which {why}."
        )
    return lines


def build_winner_change_table(comparison: Comparison, changes: Sequence[WinnerChange]) -> Table:
    """The changes as a table."""
    rows, sliced = [], dict[str, None]()
    for change in changes:
        winner = change.winner
        title = find_score_meaning(comparison.benchmark.card, winner.name).title
        if not change.overall:
            sliced[title] = None
        values = (winner.values.get(model) for model in (winner.leaders[0], change.usual[0]))
        names = (winner.leaders[0], " and ".join(change.usual))
        rows.append((title, format_slice(winner.slice), *names, *values, winner.n))
    captions = ["The usual winner leads over all units."] if any(change.overall for change in changes) else []
    if sliced:
        captions.append(
            f"{', '.join(sliced)}: there is no value over all units, so the usual winner is the model that wins the "
            "most slices of this kind."
        )
    columns = ("score", "slice", "winner", "usual winner", "winner's value", "usual winner's value", "units")
    return Table("Where the winner changes", " ".join(captions), columns, tuple(rows))
