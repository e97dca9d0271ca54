"""The scores of every model: a chart of each headline score with ranks and tied sets, and a table of them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.comparison.families import headline_names
from hardlook.comparison.model_names import chart_names
from hardlook.comparison.verdicts import meaning_of
from hardlook.contract.scorecard import Score
from hardlook.contract.sections import Block, DotChart, Table, dot_of
from hardlook.stats.ranking import Standing

if TYPE_CHECKING:
    from hardlook.comparison.between_runs import Comparison
    from hardlook.contract.benchmark import ScoreMeaning

LETTERS = (
    "Before each name stand its rank and the letters of its tied sets: models that share a letter cannot be told apart "
    "with these units; where two share none, they or models between them differ."
)
AS_ABOVE = "Rank, tied sets and name as above."
GAP = "\N{EN SPACE}"


def score_blocks(comparison: Comparison) -> list[Block]:
    """A chart of each headline score, best model first, and a table of all scores over all units."""
    card = comparison.benchmark.card
    whole = whole_scores(comparison)
    names = [score.name for score in card.scores if any(score.name in found for found in whole.values())]
    charts: list[Block] = []
    explained = False
    for name in [name for name in names if name in headline_names(card)]:
        known = [(model, found[name]) for model, found in whole.items() if name in found]
        rows = [(model, score) for model, score in known if math.isfinite(score.value)]
        places = comparison.standings.get(name, ())
        letters = (AS_ABOVE if explained else LETTERS) if places else ""
        explained = explained or bool(places)
        charts.append(_chart(meaning_of(card, name), rows, places, letters))
    table = Table(
        "Scores over all units",
        "Intervals of single scores overlap more than those of paired differences: hard units are hard for all models.",
        ("model", *(meaning_of(card, name).title for name in names)),
        tuple((model, *(_value(found.get(name)) for name in names)) for model, found in whole.items()),
    )
    return [*charts, table]


def whole_scores(comparison: Comparison) -> dict[str, dict[str, Score]]:
    """By model and name the scores over all units; of several readings the first."""
    return {
        model: {score.name: score for score in reversed(scores) if not score.slice}
        for model, scores in comparison.scores.items()
    }


def ranked_label(place: Standing, name: str) -> str:
    """Rank, tied sets and name; the name comes last, for long labels are cut at their end on a phone.

    >>> ranked_label(Standing("ridge", 0.4, 1, ("a", "b")), "ridge").split()
    ['1', 'ab', 'ridge']
    """
    return f"{place.rank}{GAP}{''.join(place.sets)}{GAP}{name}"


def _chart(
    meaning: ScoreMeaning, rows: Sequence[tuple[str, Score]], places: Sequence[Standing], letters: str
) -> DotChart:
    names = chart_names([model for model, _ in rows])
    labels = names | {place.model: ranked_label(place, names.get(place.model, place.model)) for place in places}
    down = meaning.higher_is_better or not meaning.directed
    ordered = sorted(rows, key=lambda row: -row[1].value if down else row[1].value)
    if places:
        order = [place.model for place in places]
        ordered = sorted(rows, key=lambda row: order.index(row[0]) if row[0] in order else len(order))
    said = meaning.meaning[:1].upper() + meaning.meaning[1:]
    better = f"{meaning.direction.capitalize()}." if meaning.directed else "Neither higher nor lower is better."
    caption = " ".join(filter(None, (f"{said}." if said else "", better, letters)))
    return DotChart(meaning.title, caption, tuple(dot_of(score, labels[model]) for model, score in ordered))


def _value(score: Score | None) -> float | None:
    return score.value if score is not None and math.isfinite(score.value) else None
