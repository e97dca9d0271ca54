"""What the report of MetaCoCo shows: modes, contexts, concepts, errors, curves, and the published tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.benchmarks.metacoco.galleries import context_galleries
from hardlook.benchmarks.metacoco.leaderboard import leaderboard
from hardlook.benchmarks.metacoco.mode_words import MODE_WORDS, pooled_modes, same_tasks
from hardlook.benchmarks.metacoco.scores import headline_choice
from hardlook.benchmarks.metacoco.slices import MISLED
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import (
    Block,
    CurveChart,
    Dot,
    DotChart,
    HeatMap,
    Line,
    Section,
    dot_of,
)

if TYPE_CHECKING:
    import polars as pl

MOST_CONTEXTS, MOST_CONCEPTS = 24, 40
BY_CHANCE = "by chance"


def show(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections, those without content left out."""
    found = [
        _modes(scorecard),
        _contexts(scorecard),
        _errors(scorecard),
        _concepts(scorecard),
        _curves(records, scorecard),
    ]
    found += [leaderboard(records, scorecard), context_galleries(records, *headline_choice(records, scorecard))]
    return [section for section in found if section is not None]


def _score(scorecard: Scorecard, name: str, **where: str) -> Score | None:
    return next((one for one in scorecard.scores if one.name == name and dict(one.slice) == where), None)


def _modes(scorecard: Scorecard) -> Section:
    rows = [(mode, score) for mode in MODE_WORDS if (score := _score(scorecard, mode))]
    chart = DotChart(
        "Accuracy by how the queries' context relates to their support's",
        f"{same_tasks(scorecard)}Lines are t intervals over tasks.",
        tuple(dot_of(score, MODE_WORDS[mode]) for mode, score in rows),
        axis="accuracy",
    )
    gap = _score(scorecard, "gap")
    if gap is None:
        words = "Run the modes iid and ood to see what context is worth."
    elif gap.interval and gap.interval.low > 0:
        words = f"Leaving the support's context costs {_points(gap)}: part of what was learnt is the context."
    elif gap.interval and gap.interval.high < 0:
        words = f"Queries in other contexts are easier, by {_points(gap)}."
    else:
        words = f"No loss shows when queries leave their support's context ({_points(gap)})."
    return Section("What context is worth", words, (chart,))


def _contexts(scorecard: Scorecard) -> Section | None:
    cells = {
        (score.slice["support context"], score.slice["query context"]): score
        for score in scorecard.scores
        if score.name == "accuracy" and set(score.slice) == {"support context", "query context"}
    }
    weight: dict[str, int] = {}
    for pair, score in cells.items():
        for name in pair:
            weight[name] = weight.get(name, 0) + score.n
    names = sorted(sorted(weight, key=lambda name: -weight[name])[:MOST_CONTEXTS])
    if len(names) < 2:
        return None
    nothing = float("nan")
    heat = HeatMap(
        "Accuracy by support context and query context",
        f"Rows: where the class was shown. Columns: where it is asked about. {pooled_modes(scorecard)}"
        + (f"The {len(names)} most frequent contexts of {len(weight)}." if len(weight) > len(names) else ""),
        names,
        names,
        [[cells[row, column].value if (row, column) in cells else nothing for column in names] for row in names],
        row_axis="support context",
        column_axis="query context",
    )
    apart = [(pair, score) for pair, score in cells.items() if pair[0] != pair[1]]
    if not apart:
        return Section("From which context to which", "", (heat,))
    (worst, low), (best, high) = min(apart, key=lambda one: one[1].value), max(apart, key=lambda one: one[1].value)
    words = (
        f"From {worst[0]} to {worst[1]} accuracy is {low.value:.3f}, the lowest; from {best[0]} to {best[1]} it is "
        f"{high.value:.3f}, the highest between two contexts."
    )
    return Section("From which context to which", words, (heat,))


def _errors(scorecard: Scorecard) -> Section | None:
    rows: list[Dot] = []
    asked = [mode for mode in MISLED if _score(scorecard, mode)]
    for mode in asked:
        where = {} if mode == asked[0] else {"mode": mode}  # the first one's is the headline
        share, chance = _score(scorecard, "attraction", **where), _score(scorecard, "attraction-chance", **where)
        if share and chance:
            rows += [dot_of(share, "answered class was shown there", mode), dot_of(chance, BY_CHANCE, mode)]
    if not rows:
        return None
    chart = DotChart(
        "Errors that go to a class shown in the query's context",
        "Of all wrong answers, the share whose class was shown in the very context of the query, beside what would "
        "happen if errors fell on all wrong classes alike.",
        tuple(rows),
        axis="share of errors",
    )
    excess = _score(scorecard, "excess-attraction")
    words = ""
    if all(dot.value == 0 for dot in rows if dot.label == BY_CHANCE):
        words = "No wrong class was shown in a query's context, so no error could follow it."
    elif excess and excess.interval:
        says = "Errors follow context" if excess.interval.low > 0 else "Errors do not follow context beyond chance"
        words = f"{says}: {excess.value:+.3f} ({excess.interval.low:+.3f} to {excess.interval.high:+.3f})."
    return Section("Where wrong answers go", words, (chart,))


def _concepts(scorecard: Scorecard) -> Section | None:
    by_mode: dict[str, dict[str, Score]] = {}
    for score in scorecard.scores:
        if score.name == "accuracy" and set(score.slice) == {"concept", "mode"}:
            by_mode.setdefault(score.slice["mode"], {})[score.slice["concept"]] = score
    mode = next((one for one in ("ood", "blind", *by_mode) if one in by_mode), None)
    if mode is None:
        return None
    ranked = sorted(by_mode[mode].items(), key=lambda one: one[1].value)[:MOST_CONCEPTS]
    every = len(by_mode[mode])
    some = f"The {len(ranked)} lowest of {every} concepts. " if len(ranked) < every else ""
    chart = DotChart(
        f"Accuracy of each concept in {mode} tasks",
        f"{some}Lowest first; intervals resample tasks.",
        tuple(dot_of(score, name) for name, score in ranked),
        axis="accuracy",
    )
    blocks: list[Block] = [chart]
    if len(by_mode) > 1:
        modes = [one for one in MODE_WORDS if one in by_mode]
        names = [name for name, _ in ranked]
        nothing = float("nan")
        blocks.append(
            HeatMap(
                "Accuracy of each concept in each mode",
                f"{some}A row that darkens only at iid is a concept known by its context.",
                names,
                modes,
                [[by_mode[one][name].value if name in by_mode[one] else nothing for one in modes] for name in names],
                row_axis="concept",
                column_axis="mode",
            )
        )
    return Section("Which concepts", "", tuple(blocks))


def _curves(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    ways, shots = headline_choice(records, scorecard)
    headline = {"ways": str(ways), "shots": str(shots)}
    charts = []
    for by, fixed in (("shots", "ways"), ("ways", "shots")):
        lines = []
        for mode in MODE_WORDS:
            found = [
                (headline | dict(score.slice), score)
                for score in scorecard.scores
                if score.name == mode and set(score.slice) in (set(), {"ways", "shots"})
            ]
            for group in sorted({at[fixed] for at, _ in found}, key=int):
                some = sorted((int(at[by]), score) for at, score in found if at[fixed] == group)
                if len(some) > 1:
                    lines.append(_line(f"{mode}, {group} {fixed}", some))
        if lines:
            text = "Bands are t intervals over tasks."
            charts.append(CurveChart(f"Accuracy by {by}", text, tuple(lines), by, "accuracy"))
    return Section("Ways and shots", "", tuple(charts)) if charts else None


def _line(name: str, points: list[tuple[int, Score]]) -> Line:
    lows = [score.interval.low if score.interval else score.value for _, score in points]
    highs = [score.interval.high if score.interval else score.value for _, score in points]
    return Line(name, [float(x) for x, _ in points], [score.value for _, score in points], lows, highs)


def _points(score: Score) -> str:
    span = f" ({score.interval.low:.3f} to {score.interval.high:.3f})" if score.interval else ""
    return f"{score.value:.3f} of accuracy{span}"
