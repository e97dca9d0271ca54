"""The report of MetaCoCo: modes, contexts, errors, concepts, curves, the published tables, and single tasks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hardlook.harness.benchmark import Quality, Unit
from hardlook.harness.published import fraction
from hardlook.harness.records import Record
from hardlook.harness.rounding import format_fixed
from hardlook.harness.scorecard import Score, Scorecard, find_score
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
from hardlook.harness.verdicts import describe_kind, judge
from hardlook.metacoco.published import ACCURACY_TABLES, list_rows
from hardlook.metacoco.scores import MISLEADING_MODES, find_headline_setting
from hardlook.metacoco.tasks.eligibility import has_common_supports
from hardlook.metacoco.units import TaskUnit, load_images

if TYPE_CHECKING:
    import polars as pl

QUALITIES = (Quality("task-accuracy", "accuracy of the task"),)

MODE_LABELS = {
    "iid": "iid: the support's context",
    "blind": "blind: any context",
    "ood": "ood: other contexts",
    "swapped": "swapped: another class's context",
    "shared": "shared: one context for all",
}

GALLERIES = {
    "swapped": "Tasks that another class's context misled most",
    "ood": "Tasks that leaving the context cost most",
}

MAX_CONTEXTS, MAX_CONCEPTS = 24, 40  # rows of the heat map of contexts, of the charts of concepts
MAX_TASKS, MAX_QUERIES, MAX_NAMES = 4, 5, 6  # per gallery, per task's pictures, per caption
BY_CHANCE = "by chance"


def build_sections(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections, those without content left out."""
    headline = find_headline_setting(records, scorecard)
    sections = [
        _build_modes(scorecard),
        _build_contexts(scorecard),
        _build_errors(scorecard),
        _build_concepts(scorecard),
        _build_curves(scorecard, headline),
        _build_leaderboard(scorecard, headline),
        _build_galleries(records, *headline),
    ]
    return [section for section in sections if section is not None]


def _build_modes(scorecard: Scorecard) -> Section:
    rows = [(mode, score) for mode in MODE_LABELS if (score := find_score(scorecard, mode))]
    chart = DotChart(
        "Accuracy by how the queries' context relates to their support's",
        f"{_describe_common_tasks(scorecard)}Lines are t intervals over tasks.",
        tuple(score_dot(score, MODE_LABELS[mode]) for mode, score in rows),
        axis="accuracy",
    )
    gap = find_score(scorecard, "gap")
    if gap is None:
        return Section("What context is worth", "Run the modes iid and ood to see what context is worth.", (chart,))
    verdict = judge(gap)
    words = {
        "equal": f"No loss shows when queries leave their support's context ({_format_gap(gap)}). {verdict.why}",
        "above": f"Leaving the support's context costs {_format_gap(gap)}: part of what was learned is the context.",
        "below": f"Queries in other contexts are easier, by {_format_gap(gap)}.",
    }
    text = words.get(verdict.side) or f"The gap when queries leave their context is {_format_gap(gap)}. {verdict.why}"
    return Section("What context is worth", text, (chart,))


def _describe_common_tasks(scorecard: Scorecard) -> str:
    """What the modes' tasks have in common; "" where there is one mode.

    >>> from hardlook.harness.scorecard import Score
    >>> scores = Score("iid", 1, 9), Score("ood", 1, 9), Score("shared", 1, 9)
    >>> _describe_common_tasks(Scorecard("metacoco", "1", "", scores))
    'Rows iid, ood are the same tasks: same classes, same supports, other queries. Tasks of shared have their own. '
    """
    modes, common = _find_modes(scorecard)
    if len(modes) < 2:
        return ""
    text = ""
    if len(common) > 1:
        rows = "Every row is of" if len(common) == len(modes) else f"Rows {', '.join(common)} are"
        text = f"{rows} the same tasks: same classes, same supports, other queries. "
    if "blind" in modes and "blind" not in common:
        text += "Tasks of blind have supports of their own, drawn without regard to context. "
    if "shared" in modes:
        text += "Tasks of shared have their own. " if text else "Tasks of shared have classes of their own. "
    return text


def _describe_pooled_modes(scorecard: Scorecard) -> str:
    """Which modes' queries a cell of two contexts holds: `shared` and supports of mixed contexts have no cells.

    >>> from hardlook.harness.scorecard import Score
    >>> scores = Score("iid", 1, 9), Score("blind", 1, 9), Score("ood", 1, 9)
    >>> _describe_pooled_modes(Scorecard("metacoco", "1", "", scores))
    "Cells join the queries of iid, blind, ood; the diagonal, in the support's context, those of iid, blind. "
    """
    _, common = _find_modes(scorecard)
    inside = [mode for mode in common if mode in ("iid", "blind")]
    diagonal = f"; the diagonal, in the support's context, those of {', '.join(inside)}" if inside else ""
    return f"Cells {'join' if len(common) > 1 else 'hold'} the queries of {', '.join(common)}{diagonal}. "


def _find_modes(scorecard: Scorecard) -> tuple[list[str], list[str]]:
    """The modes that have scores, and those of them that have the same supports."""
    names = {score.name for score in scorecard.scores if not score.slice}
    modes = [mode for mode in MODE_LABELS if mode in names]
    blind = next((one.value for one in scorecard.readings if one.name == "blind-supports"), "ours")
    return modes, [mode for mode in modes if has_common_supports(mode, blind)]


def _format_gap(score: Score) -> str:
    span = (
        f" ({format_fixed(score.interval.low, 3)} to {format_fixed(score.interval.high, 3)})" if score.interval else ""
    )
    return f"{format_fixed(score.value, 3)} of accuracy{span}"


def _build_contexts(scorecard: Scorecard) -> Section | None:
    cells = {
        (score.slice["support context"], score.slice["query context"]): score
        for score in scorecard.scores
        if score.name == "accuracy" and set(score.slice) == {"support context", "query context"}
    }
    queries: Counter[str] = Counter()
    for pair, score in cells.items():
        for name in pair:
            queries[name] += score.n
    names = sorted(name for name, _ in queries.most_common(MAX_CONTEXTS))
    if len(names) < 2:
        return None
    heat = HeatMap(
        "Accuracy by support context and query context",
        "Rows: the context of the class's supports. Columns: the context of the query. "
        + _describe_pooled_modes(scorecard)
        + (f"The {len(names)} most frequent contexts of {len(queries)}." if len(queries) > len(names) else ""),
        names,
        names,
        [[cells[row, column].value if (row, column) in cells else math.nan for column in names] for row in names],
        row_axis="support context",
        column_axis="query context",
    )
    apart = [score for pair, score in cells.items() if pair[0] != pair[1]]
    keys = ("support context", "query context")
    text = describe_kind(scorecard, apart, "accuracy from one context to another", keys, " to ")
    return Section("From which context to which", text, (heat,))


def _build_errors(scorecard: Scorecard) -> Section | None:
    rows: list[Dot] = []
    modes = [mode for mode in MISLEADING_MODES if find_score(scorecard, mode)]
    for mode in modes:
        where = {} if mode == modes[0] else {"mode": mode}  # that of the first mode is the headline
        share = find_score(scorecard, "attraction", **where)
        chance = find_score(scorecard, "attraction-chance", **where)
        if share and chance:
            rows += [score_dot(share, "answered class was shown there", mode), score_dot(chance, BY_CHANCE, mode)]
    if not rows:
        return None
    chart = DotChart(
        "Errors that go to a class shown in the query's context",
        "Of all wrong answers, the share whose class was shown in the context of the query, and what it would be if "
        "errors fell on all wrong classes equally.",
        tuple(rows),
        axis="share of errors",
    )
    excess = find_score(scorecard, "excess-attraction")
    text = ""
    if all(dot.value == 0 for dot in rows if dot.label == BY_CHANCE):
        text = "No wrong class was shown in a query's context, so no error could follow it."
    elif excess and excess.interval:
        verdict = judge(excess)
        words = {"above": "Errors follow context.", "below": "Errors avoid the query's context."}
        value, low, high = (
            format_fixed(number, 3, sign=True) for number in (excess.value, excess.interval.low, excess.interval.high)
        )
        text = f"{words.get(verdict.side, verdict.why)} Beyond chance: {value} ({low} to {high})."
    return Section("Where wrong answers go", text, (chart,))


def _build_concepts(scorecard: Scorecard) -> Section | None:
    by_mode: dict[str, dict[str, Score]] = {}
    for score in scorecard.scores:
        if score.name == "accuracy" and set(score.slice) == {"concept", "mode"}:
            by_mode.setdefault(score.slice["mode"], {})[score.slice["concept"]] = score
    mode = next((one for one in ("ood", "blind", *by_mode) if one in by_mode), None)
    if mode is None:
        return None
    ranked = sorted(by_mode[mode].items(), key=lambda one: one[1].value)[:MAX_CONCEPTS]
    some = f"The {len(ranked)} lowest of {len(by_mode[mode])} concepts. " if len(ranked) < len(by_mode[mode]) else ""
    chart = DotChart(
        f"Accuracy of each concept in {mode} tasks",
        f"{some}Lowest first; intervals resample tasks.",
        tuple(score_dot(score, name) for name, score in ranked),
        axis="accuracy",
    )
    blocks: list[Block] = [chart]
    if len(by_mode) > 1:
        modes = [one for one in MODE_LABELS if one in by_mode]
        names = [name for name, _ in ranked]
        blocks.append(
            HeatMap(
                "Accuracy of each concept in each mode",
                f"{some}A row that darkens only at iid is a concept known by its context.",
                names,
                modes,
                [[by_mode[one][name].value if name in by_mode[one] else math.nan for one in modes] for name in names],
                row_axis="concept",
                column_axis="mode",
            )
        )
    return Section("Which concepts", "", tuple(blocks))


def _find_mode_scores(scorecard: Scorecard, mode: str, headline: tuple[int, int]) -> dict[tuple[int, int], Score]:
    """The accuracies of a mode by ways and shots; `headline` are those of the score without a slice."""
    ways, shots = headline
    return {
        (int(score.slice.get("ways", ways)), int(score.slice.get("shots", shots))): score
        for score in scorecard.scores
        if score.name == mode and set(score.slice) in (set(), {"ways", "shots"})
    }


def _build_curves(scorecard: Scorecard, headline: tuple[int, int]) -> Section | None:
    charts = []
    for by, fixed, place in (("shots", "ways", 0), ("ways", "shots", 1)):
        lines = []
        for mode in MODE_LABELS:
            found = _find_mode_scores(scorecard, mode, headline)
            for group in sorted({choice[place] for choice in found}):
                points = sorted((choice[1 - place], score) for choice, score in found.items() if choice[place] == group)
                if len(points) > 1:
                    lines.append(_draw_line(f"{mode}, {group} {fixed}", points))
        if lines:
            text = "Bands are t intervals over tasks."
            charts.append(CurveChart(f"Accuracy by {by}", text, tuple(lines), by, "accuracy"))
    return Section("Ways and shots", "", tuple(charts)) if charts else None


def _draw_line(name: str, points: list[tuple[int, Score]]) -> Line:
    lows = [score.interval.low if score.interval else math.nan for _, score in points]
    highs = [score.interval.high if score.interval else math.nan for _, score in points]
    return Line(name, [float(x) for x, _ in points], [score.value for _, score in points], lows, highs)


def _build_leaderboard(scorecard: Scorecard, headline: tuple[int, int]) -> Section:
    """Tables 2, 3, 6 and 7 of the paper below this run's blind accuracies, one row per number of ways."""
    ours = _find_mode_scores(scorecard, "blind", headline)
    values = {choice: score.value for choice, score in ours.items()}
    first = [
        (scorecard.model or "this run", "", ways, "", values.get((ways, 1)), values.get((ways, 5)), "this run")
        for ways in sorted({ways for ways, shots in ours if shots in (1, 5)})
    ]
    rows = [
        (
            row["method"] + (f" on {row['built on']}" if row.get("built on") else ""),
            row.get("backbone") or "",
            ways,
            _format_marks(row),
            fraction(row["1 shot"]),
            fraction(row["5 shots"]),
            f"Table {name.removeprefix('table-')}",
        )
        for name, ways in ACCURACY_TABLES.items()
        for row in list_rows(name)
    ]
    caption = (
        "Tasks drawn without regard to context, as we infer. Rows of this run are of other images unless MetaCoCo's "
        "own were run. GL: pretrained on global labels; LL: trained on tasks; TT: trains on the supports at test time; "
        "a question mark where the paper's mark cannot be settled."
    )
    columns = ("method", "backbone", "ways", "uses", "1 shot", "5 shots", "where from")
    table = Table("Published accuracies", caption, columns, (*first, *rows))
    return Section("Beside the published tables", _describe_comparability(ours, bool(first)), (table,))


def _format_marks(row: dict[str, Any]) -> str:
    """The marks of a published row: what the method uses, with a question mark where the cell is empty."""
    marks = {name: row[name] for name in ("GL", "LL", "TT") if name in row}
    return " ".join(name + ("?" if mark is None else "") for name, mark in marks.items() if mark != 0)


def _describe_comparability(ours: dict[tuple[int, int], Score], shown: bool) -> str:
    if not ours:
        return "This run has no blind tasks."
    if not shown:
        return "The paper has 1 and 5 shots, this run's blind tasks have others."
    grouped: dict[str, list[str]] = {}
    for (ways, shots), score in sorted(ours.items()):
        grouped.setdefault(score.comparable, []).append(f"{ways}-way {shots}-shot")
    if len(grouped) == 1:
        only = next(iter(grouped))
        return only[:1].upper() + only[1:] + "."
    return " ".join(f"{', '.join(where)}: {words}." for words, where in grouped.items())


def _build_galleries(records: pl.DataFrame, ways: int, shots: int) -> Section | None:
    """The tasks of these ways and shots that lose most from iid to swapped and to ood; None where none loses."""
    import polars as pl

    chosen = records.filter((pl.col("ways") == ways) & (pl.col("shots") == shots))
    inside = chosen.filter(pl.col("mode") == "iid").select("index", iid="correct", iid_queries="queries")
    blocks = []
    for mode, title in GALLERIES.items():
        both = chosen.filter(pl.col("mode") == mode).join(inside, on="index")
        lost = both.with_columns(loss=pl.col("iid") / pl.col("iid_queries") - pl.col("correct") / pl.col("queries"))
        worst = lost.filter(pl.col("loss") > 0).sort("loss", "unit", descending=[True, False]).head(MAX_TASKS)
        examples = [
            Example(
                row["unit"],
                f"{row['correct']} of {row['queries']} right, and {row['iid']} of {row['iid_queries']} in the "
                "supports' context.",
            )
            for row in worst.iter_rows(named=True)
        ]
        if examples:
            text = "A support of each class, then wrongly answered queries. Both have the same supports."
            blocks.append(Gallery(title, text, tuple(examples)))
    return Section("Where context decided", "", tuple(blocks)) if blocks else None


def draw_unit(unit: Unit, record: Record) -> Sequence[Picture]:
    """One support per class, then queries (wrongly answered ones where there are any), with contexts and answers."""
    task: TaskUnit = unit.payload
    images = load_images(task.settings.source)
    concepts, contexts = record["concepts"].split("\n"), record["contexts"].split("\n")
    pictures = []
    for way, concept in enumerate(concepts):
        place = record["support_context"][way]
        where = contexts[place] if place >= 0 else "several contexts"
        pictures.append(Picture(f"support: {concept}, {where}", images.read(record["support"][way * task.shots])))
    each = len(record["query"]) // len(concepts)
    for place in choose_queries(record["predicted"], each):
        concept, answer = concepts[place // each], concepts[record["predicted"][place]]
        where = contexts[record["query_context"][place]]
        pictures.append(Picture(f"{concept}, {where}: answered {answer}", images.read(record["query"][place])))
    return pictures


def choose_queries(predicted: Sequence[int], each: int) -> list[int]:
    """Positions of the queries to show: wrong ones of each class in turn, right ones where none is wrong.

    >>> choose_queries([0, 1, 1, 0, 0, 0], each=3), choose_queries([0, 0, 1, 1], each=2)
    ([1, 3, 2, 4, 5], [0, 2, 1, 3])
    """
    wrong = [place for place, answer in enumerate(predicted) if answer != place // each]
    turns: dict[int, int] = {}
    ordered = []
    for place in wrong or range(len(predicted)):
        turn = turns[place // each] = turns.get(place // each, -1) + 1
        ordered.append((turn, place))
    return [place for _, place in sorted(ordered)[:MAX_QUERIES]]


def describe_unit(record: Record) -> str:
    r"""The task, how many answers are right, the most frequent error, and how many errors follow context.

    >>> record = {"mode": "iid", "shots": 1, "correct": 2, "queries": 4, "concepts": "cat\ndog"}
    >>> describe_unit(record | {"support_context": [0, 1], "query_context": [0, 0, 1, 1], "predicted": [1, 1, 1, 1]})
    'Of 4 queries about cat, dog (iid, 1 shot) 2 are right; most often cat is called dog (2 times).'
    """
    concepts = str(record["concepts"]).split("\n")
    named = ", ".join(concepts[:MAX_NAMES])
    named += f" and {len(concepts) - MAX_NAMES} more" if len(concepts) > MAX_NAMES else ""
    shots = f"{record['shots']} {'shot' if record['shots'] == 1 else 'shots'}"
    right = "is" if record["correct"] == 1 else "are"
    text = f"Of {record['queries']} queries about {named} ({record['mode']}, {shots}) {record['correct']} {right} right"
    each = len(record["predicted"]) // len(concepts)
    wrong = [
        (place // each, answer, context)
        for place, (answer, context) in enumerate(zip(record["predicted"], record["query_context"], strict=True))
        if answer != place // each
    ]
    if not wrong:
        return f"{text}."
    # The most frequent one, of equally frequent ones the first by class.
    (truth, answer), times = min(Counter(pair[:2] for pair in wrong).items(), key=lambda one: (-one[1], one[0]))
    concept, called = concepts[truth], concepts[answer]
    error = f"most often {concept} is called {called} ({times} times)" if times > 1 else f"{concept} is called {called}"
    text += f"; {error}"
    shown = record["support_context"]
    if record["mode"] not in MISLEADING_MODES or min(shown) < 0:
        return f"{text}."
    attracted = sum(shown[answer] == context for _, answer, context in wrong)
    verb = "names" if attracted == 1 else "name"
    return f"{text}; {attracted} of {len(wrong)} wrong answers {verb} a class shown in the query's context."
