"""A comparison by slice: the leading model of each, slices where it is not the usual one, and sections of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.sections import Block, Dot, DotChart, HeatMap, Section, Table
from hardlook.report.compare.comparison import Comparison, get_model_values
from hardlook.report.compare.differences import Difference, find_score_meaning, get_slice_keys, list_headline_names
from hardlook.report.compare.model_names import shorten_model_names
from hardlook.report.formatting import describe_slice, format_slice

MAX_SLICES, MAX_KINDS, MAX_SENTENCES = 40, 12, 6


@dataclass(frozen=True)
class SliceWinner:
    """One score over `n` units of a slice: its leader and the models tied with it, if ranked; all values."""

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
    shown = set(list_headline_names(card)) | {one.name for one in comparison.differences if one.name not in overall}
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
        title = comparison.find_meaning(winner.name).title
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
        title = comparison.find_meaning(winner.name).title
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


def build_slice_sections(comparison: Comparison) -> list[Section]:
    """One section per kind of slice, for the headline scores and for scores that have slices only."""
    winners = find_slice_winners(comparison)
    changes = find_winner_changes(winners)
    kinds = list(dict.fromkeys(winner.slice_keys for winner in winners if winner.slice))
    sections = []
    for kind in sorted(kinds, key=lambda kind: (len(kind), kinds.index(kind)))[:MAX_KINDS]:
        of_kind = [winner for winner in winners if winner.slice_keys == kind]
        if len({tuple(winner.slice.items()) for winner in of_kind}) > 1:
            changed = [change for change in changes if change.winner.slice_keys == kind]
            blocks = _build_blocks(comparison, of_kind, kind)
            lines = _describe_wins(comparison, of_kind)
            if len(changed) > MAX_SENTENCES:
                blocks.insert(0, build_winner_change_table(comparison, changed))
            else:
                lines += describe_winner_changes(comparison, changed)
            sections.append(Section(f"By {' and '.join(kind)}", "\n\n".join(lines), tuple(blocks)))
    return sections


def _describe_wins(comparison: Comparison, winners: Sequence[SliceWinner]) -> list[str]:
    lines = []
    for name in dict.fromkeys(winner.name for winner in winners if winner.leaders):
        rows = [winner for winner in winners if winner.name == name and winner.leaders]
        wins = count_wins(rows, comparison.models)
        each = ", ".join(f"{model} wins {count}" for model, count in wins.items())
        undecided = len(rows) - sum(wins.values())
        title = comparison.find_meaning(name).title
        more = f"; in {undecided} no model is clearly ahead" if undecided else ""
        lines.append(f"{title}: of {len(rows)} slices {each}{more}.")
    return lines


def _build_blocks(comparison: Comparison, winners: Sequence[SliceWinner], kind: tuple[str, ...]) -> list[Block]:
    blocks: list[Block] = []
    two = len(comparison.models) == 2
    # A map without a winner, or with the same one everywhere, would only repeat the sentence above it.
    clear = {winner.leaders if winner.is_clear else () for winner in winners if winner.leaders}
    if two and len(kind) == 1 and len(clear) > 1:
        blocks.append(_draw_winners_of_two(comparison, winners, kind[0]))
    for name in dict.fromkeys(winner.name for winner in winners):
        rows = [one for one in comparison.differences if one.name == name and get_slice_keys(one.slice) == kind]
        rows = [one for one in rows if math.isfinite(one.value)]
        if two and rows:
            blocks += _draw_two_models(comparison, name, rows, kind)
        elif len(kind) == 1:
            of_name = [winner for winner in winners if winner.name == name]
            blocks += _draw_several_models(comparison, name, of_name, kind[0])
    return blocks


def _draw_winners_of_two(comparison: Comparison, winners: Sequence[SliceWinner], key: str) -> HeatMap:
    names = list(dict.fromkeys(winner.name for winner in winners if winner.leaders))
    slices = list(dict.fromkeys(winner.slice[key] for winner in winners))[:MAX_SLICES]
    first, second = comparison.models
    codes = {
        (winner.slice[key], winner.name): (1.0 if winner.leaders[0] == first else -1.0) if winner.is_clear else 0.0
        for winner in winners
    }
    return HeatMap(
        f"Who wins where: {key}",
        f"1: {first} is better; -1: {second} is better; 0: these units cannot tell. Each score is corrected over all "
        "slices of this kind.",
        slices,
        [comparison.find_meaning(name).title for name in names],
        [[codes.get((value, name), math.nan) for name in names] for value in slices],
        row_axis=key,
        column_axis="score",
        decimals=0,
    )


def _draw_several_models(comparison: Comparison, name: str, winners: Sequence[SliceWinner], key: str) -> list[Block]:
    """The scores of each model in each slice, and who leads there."""
    score = comparison.find_meaning(name).title
    shown = winners[:MAX_SLICES]

    def draw_map(title: str, caption: str, cell: Callable[[SliceWinner, str], float], decimals: int) -> HeatMap:
        rows, models = [winner.slice[key] for winner in shown], comparison.models
        cells = [[cell(winner, model) for model in models] for winner in shown]
        return HeatMap(title, caption, rows, tuple(shorten_model_names(models).values()), cells, key, "model", decimals)

    def get_value(winner: SliceWinner, model: str) -> float:
        return winner.values.get(model, math.nan)

    def get_lead(winner: SliceWinner, model: str) -> float:
        if model not in winner.values:
            return math.nan
        return (1.0 if winner.is_clear else 0.5) if model in winner.leaders else 0.0

    maps: list[Block] = [draw_map(f"{score} by {key}", "Each model on the units of each slice.", get_value, 2)]
    if any(0 < len(winner.leaders) < len(winner.values) for winner in shown):
        caption = "1: ahead of all others; 0.5: among those that lead and do not differ significantly; 0: behind."
        maps.append(draw_map(f"Who wins where: {score} by {key}", caption, get_lead, 1))
    return maps


def _draw_two_models(
    comparison: Comparison, name: str, rows: Sequence[Difference], kind: tuple[str, ...]
) -> list[Block]:
    first, second = shorten_model_names(comparison.models).values()
    meaning = comparison.find_meaning(name)
    if len(kind) == 2:
        cells = {(one.slice[kind[0]], one.slice[kind[1]]): one.value for one in rows}
        names, columns = (sorted(set(values)) for values in zip(*cells, strict=True))
        return [
            HeatMap(
                f"Difference in {meaning.title} by {kind[0]} and {kind[1]}",
                f"{first} minus {second}. Empty: there is no value.",
                names,
                columns,
                [[cells.get((row, column), math.nan) for column in columns] for row in names],
                *kind,
            )
        ]
    if len(kind) != 1:
        return []
    key = kind[0]
    better = "more is better" if meaning.higher_is_better else "less is better"
    better = better if meaning.ranked else "neither more nor less is better"
    if inverted := [one.slice[key] for one in rows if meaning.within(one.slice) != meaning]:
        better += f", but for {', '.join(inverted)} the other way round"
    by_size = sorted(rows, key=lambda one: -abs(one.value))
    left_out = f" The {MAX_SLICES} largest of {len(rows)} are shown." if len(rows) > MAX_SLICES else ""
    chart = DotChart(
        f"Differences in {meaning.title} by {key}",
        f"Dots right of zero: {first} has more, and {better}. A star marks differences that hold after the "
        f"correction.{left_out}",
        tuple(
            Dot(f"{one.slice[key]}{' *' if one.is_significant else ''}", one.value, *one.bounds)
            for one in sorted(by_size[:MAX_SLICES], key=lambda one: -one.value)
        ),
        axis=f"{first} minus {second}",
        references=(("no difference", 0.0),),
    )
    return [chart]
