"""What the report of MetaCoCo shows: modes, contexts, concepts, errors, curves, and the published tables.

Tasks in which context decided: answered well in their supports' context and badly outside of it.

The pictures of a task: a support of each class, then queries: wrongly answered ones where there are any.

Single tasks of MetaCoCo: how many of their queries were answered rightly, and what the others were taken for.

A run beside the published tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.harness.benchmark import Quality, Unit
from hardlook.harness.records import Record
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.sections import (
    Block,
    CurveChart,
    Dot,
    DotChart,
    Example,
    Gallery,
    HeatMap,
    Line,
    Picture,
    Section,
    Table,
    score_dot,
)
from hardlook.metacoco.options import MODE_WORDS, pooled_modes, same_tasks
from hardlook.metacoco.published import ACCURACY_TABLES, Flags, list_accuracies
from hardlook.metacoco.scores import MISLED, headline_choice
from hardlook.metacoco.units import TaskUnit, open_images

if TYPE_CHECKING:
    import polars as pl


SHOWN = 4

LEAVING = {
    "swapped": "Tasks that another class's context misled most",
    "ood": "Tasks that leaving the context cost most",
}


def context_galleries(records: pl.DataFrame, ways: int, shots: int) -> Section | None:
    """The tasks of these ways and shots that lose most from iid to swapped and to ood; None where none loses."""
    import polars as pl

    chosen = records.filter((pl.col("ways") == ways) & (pl.col("shots") == shots))
    home = chosen.filter(pl.col("mode") == "iid").select("index", home="correct", asked="queries")
    blocks = []
    for mode, title in LEAVING.items():
        both = chosen.filter(pl.col("mode") == mode).join(home, on="index")
        lost = both.with_columns(loss=pl.col("home") / pl.col("asked") - pl.col("correct") / pl.col("queries"))
        worst = lost.filter(pl.col("loss") > 0).sort("loss", "unit", descending=[True, False]).head(SHOWN)
        examples = [
            Example(
                row["unit"],
                f"{row['correct']} of {row['queries']} right, and {row['home']} of {row['asked']} in the supports' "
                "context.",
            )
            for row in worst.iter_rows(named=True)
        ]
        if examples:
            text = "A support of each class, then wrongly answered queries. The same supports served in both."
            blocks.append(Gallery(title, text, tuple(examples)))
    return Section("Where context decided", "", tuple(blocks)) if blocks else None


MOST_QUERIES = 5


def draw_unit(unit: Unit, record: Record) -> Sequence[Picture]:
    """Labels say what is shown, where, and for a query what was answered."""
    task: TaskUnit = unit.payload
    opened = open_images(task.settings.source)
    concepts, contexts = record["concepts"].split("\n"), record["contexts"].split("\n")
    pictures = []
    for way, concept in enumerate(concepts):
        place = record["support_context"][way]
        where = contexts[place] if place >= 0 else "several contexts"
        row = record["support"][way * task.shots]
        pictures.append(Picture(f"support: {concept}, {where}", opened.read(row)))
    each = len(record["query"]) // len(concepts)
    for place in _queries(record["predicted"], each):
        concept, answer = concepts[place // each], concepts[record["predicted"][place]]
        where = contexts[record["query_context"][place]]
        pictures.append(Picture(f"{concept}, {where}: answered {answer}", opened.read(record["query"][place])))
    return pictures


def _queries(predicted: Sequence[int], each: int) -> list[int]:
    """Places of the queries to show: wrong ones of every class in turn, right ones where none is wrong.

    >>> _queries([0, 1, 1, 0, 0, 0], each=3), _queries([0, 0, 1, 1], each=2)
    ([1, 3, 2, 4, 5], [0, 2, 1, 3])
    """
    wrong = [place for place, answer in enumerate(predicted) if answer != place // each]
    turns: dict[int, int] = {}
    ordered = []
    for place in wrong or range(len(predicted)):
        turn = turns[place // each] = turns.get(place // each, -1) + 1
        ordered.append((turn, place))
    return [place for _, place in sorted(ordered)[:MOST_QUERIES]]


QUALITIES = (Quality("task-accuracy", "accuracy of the task"),)

MOST_NAMED = 6


def describe_unit(record: Record) -> str:
    r"""What was asked, how many answers are right, and how the others went wrong, in words.

    >>> record = {"mode": "iid", "shots": 1, "correct": 2, "queries": 4, "concepts": "cat\ndog"}
    >>> describe_unit(record | {"support_context": [0, 1], "query_context": [0, 0, 1, 1], "predicted": [1, 1, 1, 1]})
    'Of 4 queries about cat, dog (iid, 1 shot) 2 are right; most often cat is called dog (2 times).'
    """
    concepts = str(record["concepts"]).split("\n")
    named = ", ".join(concepts[:MOST_NAMED])
    named += f" and {len(concepts) - MOST_NAMED} more" if len(concepts) > MOST_NAMED else ""
    shots = f"{record['shots']} {'shot' if record['shots'] == 1 else 'shots'}"
    right = "is" if record["correct"] == 1 else "are"
    words = (
        f"Of {record['queries']} queries about {named} ({record['mode']}, {shots}) {record['correct']} {right} right"
    )
    each = len(record["predicted"]) // len(concepts)
    wrong = [
        (place // each, answer, context)
        for place, (answer, context) in enumerate(zip(record["predicted"], record["query_context"], strict=True))
        if answer != place // each
    ]
    if not wrong:
        return f"{words}."
    # The most frequent one, of equally frequent ones the first by class.
    (asked, answered), times = min(Counter(pair[:2] for pair in wrong).items(), key=lambda one: (-one[1], one[0]))
    asked_as, called = concepts[asked], concepts[answered]
    often = (
        f"most often {asked_as} is called {called} ({times} times)" if times > 1 else f"{asked_as} is called {called}"
    )
    words += f"; {often}"
    shown = record["support_context"]
    if record["mode"] not in MISLED or min(shown) < 0:
        return f"{words}."
    led = sum(shown[answer] == context for _, answer, context in wrong)
    say = "names" if led == 1 else "name"
    return f"{words}; {led} of {len(wrong)} wrong answers {say} a class shown in the query's context."


def leaderboard_section(records: pl.DataFrame, scorecard: Scorecard) -> Section:
    """Tables 2, 3, 6 and 7 of the paper, below this run's blind accuracies, a row for each number of ways."""
    ours = _blind(records, scorecard)
    name = scorecard.model or "this run"
    first = [
        (name, "", ways, "", *(_value(ours.get((ways, shots))) for shots in (1, 5)), "this run")
        for ways in sorted({ways for ways, shots in ours if shots in (1, 5)})
    ]
    rows = [
        (
            row.method + (f" on {row.built_on}" if row.built_on else ""),
            row.backbone or "",
            row.ways,
            _marks(row.flags),
            row.one_shot.value,
            row.five_shot.value,
            f"Table {row.table}",
        )
        for name in ACCURACY_TABLES
        for row in list_accuracies(name)
    ]
    table = Table(
        "Published accuracies",
        "Tasks drawn without regard to context, as we infer. Rows of this run are of other images unless MetaCoCo's "
        "own were run. GL: pretrained on global labels; LL: trained on tasks; TT: trains on the supports at test time; "
        "a question mark where the paper's mark cannot be settled.",
        ("method", "backbone", "ways", "uses", "1 shot", "5 shots", "where from"),
        (*first, *rows),
    )
    return Section("Beside the published tables", _describe_ours(ours, bool(first)), (table,))


def _blind(records: pl.DataFrame, scorecard: Scorecard) -> dict[tuple[int, int], Score]:
    """Blind accuracies by ways and shots."""
    ways, shots = headline_choice(records, scorecard)
    return {
        (int(score.slice.get("ways", ways)), int(score.slice.get("shots", shots))): score
        for score in scorecard.scores
        if score.name == "blind" and set(score.slice) in (set(), {"ways", "shots"})
    }


def _value(score: Score | None) -> float | None:
    return score.value if score else None


def _marks(flags: Flags | None) -> str:
    if flags is None:
        return ""
    named = {"GL": flags.pretrained, "LL": flags.episodic, "TT": flags.adapts}
    return " ".join(name + ("" if mark else "?") for name, mark in named.items() if mark is not False)


def _describe_ours(ours: dict[tuple[int, int], Score], shown: bool) -> str:
    if not ours:
        return "This run has no blind tasks."
    if not shown:
        return "The paper has 1 and 5 shots, this run's blind tasks have others."
    said: dict[str, list[str]] = {}
    for (ways, shots), score in sorted(ours.items()):
        said.setdefault(score.comparable, []).append(f"{ways}-way {shots}-shot")
    if len(said) == 1:
        only = next(iter(said))
        return only[:1].upper() + only[1:] + "."
    return " ".join(f"{', '.join(where)}: {words}." for words, where in said.items())


MOST_CONTEXTS, MOST_CONCEPTS = 24, 40

BY_CHANCE = "by chance"


def build_sections(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections, those without content left out."""
    found = [
        _modes(scorecard),
        _contexts(scorecard),
        _errors(scorecard),
        _concepts(scorecard),
        _curves(records, scorecard),
    ]
    found += [leaderboard_section(records, scorecard), context_galleries(records, *headline_choice(records, scorecard))]
    return [section for section in found if section is not None]


def _score(scorecard: Scorecard, name: str, **where: str) -> Score | None:
    return next((one for one in scorecard.scores if one.name == name and dict(one.slice) == where), None)


def _modes(scorecard: Scorecard) -> Section:
    rows = [(mode, score) for mode in MODE_WORDS if (score := _score(scorecard, mode))]
    chart = DotChart(
        "Accuracy by how the queries' context relates to their support's",
        f"{same_tasks(scorecard)}Lines are t intervals over tasks.",
        tuple(score_dot(score, MODE_WORDS[mode]) for mode, score in rows),
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
            rows += [score_dot(share, "answered class was shown there", mode), score_dot(chance, BY_CHANCE, mode)]
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
        tuple(score_dot(score, name) for name, score in ranked),
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
