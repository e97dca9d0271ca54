"""The leaderboard of one benchmark: its runs and the published rows, ranked by every headline score.

Rows are ranked as far as they can be compared; the others are listed between them without a rank. Runs are ranked
together where units, data, settings and readings are the same. What belongs to the method itself (the model, stored
predictions, the encoder of a few-shot learner) may differ.

>>> rows = [Row("run", "b", 0.4), Row("published", "c", 0.9, flags=("of other images",)), Row("run", "a", 0.5)]
>>> [(row.method, row.rank) for row in rank_rows(rows, ScoreMeaning("miou", "mIoU", ""))]
[('c', None), ('a', 1), ('b', 2)]
"""

from __future__ import annotations

import difflib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hardlook.errors import HardlookError, OptionError
from hardlook.harness.benchmark import Benchmark, BenchmarkCard, ScoreMeaning
from hardlook.harness.costs import MeasuredRun
from hardlook.harness.options import parse_options
from hardlook.harness.published import PublishedResult
from hardlook.harness.runs.scoring import name_stored_method
from hardlook.harness.scorecard import Score
from hardlook.harness.sections import Section
from hardlook.report.formatting import format_slice
from hardlook.report.leaderboard.runs import LeaderboardRun, SkippedRun
from hardlook.report.score_display import get_bounds

Kind = Literal["run", "published"]
Slice = Mapping[str, str]
Settings = Mapping[str, Any]
ModelMarks = Callable[[str], Sequence[str]]
NOT_COMPARABLE = "not comparable"

# Options that change neither the units nor the input of a model, and paths, which have fingerprints.
_FREE = {"resamples", "level", "interval"} | {
    "compare",
    "keep_predictions",
    "prompts_a_call",
    "reading",
    "data",
    "gt",
    "gt_masks",
    "preset",
}

# Parts of the method, by the role of the model under test.
_METHOD = {"few-shot-learner": {"encoder", "encoder_args", "encoder model"}}


@dataclass(frozen=True)
class Row:
    """A value of a method in the slice `where`; `comparable` is its own text on comparing, `flags` deny it a rank.

    `costs` are those of the method, by the titles of their columns.
    """

    kind: Kind
    method: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    reading: str = ""
    comparable: str = ""
    flags: tuple[str, ...] = ()
    where: Slice = field(default_factory=dict)
    source: str = ""
    folder: str = ""
    date: str = ""
    rank: int | None = None
    costs: Mapping[str, float] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a heading and a text: why there is no rank, then what makes the row comparable or not.

        >>> Row("run", "net", 0.5, comparable="not comparable: fewer folds", flags=("2 of 20 units failed",)).notes
        (('no rank', '2 of 20 units failed'), ('beside the paper', 'not comparable: fewer folds'))
        """
        reasons = [*self.flags, *(["the score is undefined"] if math.isnan(self.value) else [])]
        own = [self.comparable] if self.comparable and self.comparable not in self.flags else []
        heading = "beside the paper" if self.kind == "run" else "published"
        return (*(("no rank", reason) for reason in reasons), *((heading, text) for text in own))

    @property
    def note(self) -> str:
        """The texts of all notes."""
        return "; ".join(text for _, text in self.notes)


@dataclass(frozen=True)
class ScoreRanking:
    """All rows of a score in one slice, best first, or highest first where the score is not ranked."""

    meaning: ScoreMeaning
    where: Slice
    rows: tuple[Row, ...]

    def of(self, kind: Kind) -> list[Row]:
        """The rows of that kind, in their order."""
        return [row for row in self.rows if row.kind == kind]

    def label(self, row: Row) -> str:
        """A row's name in a chart: its method, and its slice where that is not this ranking's."""
        other = row.kind == "published" and dict(row.where) != dict(self.where) and row.where
        return f"{row.method}, {format_slice(row.where)}" if other else row.method


@dataclass(frozen=True)
class Leaderboard:
    """The content of a leaderboard; `first` is the run that the others are compared with."""

    card: BenchmarkCard
    entries: tuple[RunEntry, ...]
    first: RunEntry
    rankings: tuple[ScoreRanking, ...]
    slices: tuple[ScoreRanking, ...]
    left_out: tuple[SkippedRun, ...]
    costs: Section | None = None


def build_leaderboard(
    benchmark: Benchmark,
    runs: Sequence[LeaderboardRun],
    left_out: Sequence[SkippedRun] = (),
    *,
    sort: str | None = None,
    marks: ModelMarks | None = None,
) -> Leaderboard:
    """Rank the runs; `sort` is the score that comes first; `marks` gives the marks of a model, such as transductive."""
    card = benchmark.card
    entries, first = make_run_entries(benchmark, runs, marks)
    scores = choose_scores(card, sort)
    overall = [_rank_overall(card, meaning, entries, first) for meaning in scores]
    rankings = [ranking for ranking in overall if ranking.of("run")]
    slices = [ranking for meaning in scores for ranking in _rank_slices(card, meaning, entries, first)]
    slices += _rank_other_datasets(benchmark, scores, entries, first, marks)
    costs = _build_costs(benchmark, entries)
    return Leaderboard(card, entries, first, tuple(rankings), tuple(slices), tuple(left_out), costs)


def _build_costs(benchmark: Benchmark, entries: Sequence[RunEntry]) -> Section | None:
    """What the methods cost, beside their scores; None where that was measured of none."""
    if benchmark.cost_measure is None:
        return None
    runs = [entry.run for entry in entries]
    # Names of methods may hold whole paths, too long for a chart.
    return benchmark.cost_measure.build_section(
        [MeasuredRun(run.folder, run.scorecard, run.cost, run.cost_problem) for run in runs]
    )


def choose_scores(card: BenchmarkCard, sort: str | None = None) -> list[ScoreMeaning]:
    """The headline scores, the one to sort by first; all scores where none is a headline."""
    headline = [meaning for meaning in card.scores if meaning.headline] or list(card.scores)
    if sort is None:
        return headline
    chosen = next((meaning for meaning in card.scores if meaning.name == sort), None)
    if chosen is None:
        names = [meaning.name for meaning in card.scores]
        near = difflib.get_close_matches(sort, names, n=3) or names
        raise OptionError(f"--sort {sort}: {card.name} has no such score", remedy=f"one of {', '.join(near)}")
    return [chosen, *(meaning for meaning in headline if meaning != chosen)]


def rank_rows(rows: Iterable[Row], meaning: ScoreMeaning) -> tuple[Row, ...]:
    """Sort rows, best first, and rank those without flags: equal values share a rank, undefined values come last.

    By a score that is not `ranked` no row has a rank, and the highest comes first.
    """
    sign = -1 if meaning.higher_is_better or not meaning.ranked else 1

    def order(row: Row) -> tuple[bool, float, bool, tuple[str, ...]]:
        known = not math.isnan(row.value)
        texts = (row.kind, row.method, row.folder, row.source, *row.flags)
        return not known, sign * row.value if known else 0.0, bool(row.flags), texts

    result, count, rank, before = [], 0, 0, math.nan
    for row in sorted(rows, key=order):
        if row.flags or math.isnan(row.value) or not meaning.ranked:
            result.append(replace(row, rank=None))
            continue
        count += 1
        rank = rank if row.value == before else count
        before = row.value
        result.append(replace(row, rank=rank))
    return tuple(result)


def is_comparable_with_paper(text: str) -> bool:
    """Whether a score's own text declares it comparable with the published ones, without an unchecked condition.

    >>> is_comparable_with_paper("comparable with the published table: the same pairs")
    True
    >>> is_comparable_with_paper("Comparable with the paper's tables where the images are the same validation set.")
    False
    """
    text = text.lower()
    return text.startswith("comparable") and " where " not in text and "provided" not in text


def explain_unranked(texts: Sequence[str]) -> str:
    """Why published rows have no rank beside runs whose scores have these texts on comparability.

    >>> explain_unranked(["not comparable: fewer folds"])
    'the runs here cannot be compared with what is published: fewer folds'
    """
    text = next(filter(None, texts), "")
    if not text:
        return "the runs here do not say that they can be compared with it"
    if text.lower().startswith(f"{NOT_COMPARABLE}: "):
        return f"the runs here cannot be compared with what is published: {text.partition(': ')[2]}"
    return f"the runs here say: {text[:1].lower()}{text[1:].rstrip('.')}"


def _rank_overall(
    card: BenchmarkCard, meaning: ScoreMeaning, entries: Sequence[RunEntry], first: RunEntry
) -> ScoreRanking:
    """Scores over all units beside the published rows of the first run's slice, or other rows where it has none."""
    rows = [
        _make_row(score, entry, entry.where)
        for entry in entries
        for score in entry.run.scorecard.headline
        if score.name == meaning.name
    ]
    published = [row for row in card.published() if meaning.name in row.values]
    chosen = [row for row in published if row.where == first.where] or [row for row in published if not row.where]
    return _add_published(meaning, first.where, rows, chosen or published)


def _rank_slices(
    card: BenchmarkCard, meaning: ScoreMeaning, entries: Sequence[RunEntry], first: RunEntry
) -> list[ScoreRanking]:
    """Slices that runs and published rows share, except the one that the first run's overall scores are of."""
    published: dict[tuple[tuple[str, str], ...], list[PublishedResult]] = {}
    for result in card.published():
        if meaning.name in result.values and result.where and result.where != first.where:
            published.setdefault(tuple(sorted(result.where.items())), []).append(result)
    rows: dict[tuple[tuple[str, str], ...], list[Row]] = {}
    for entry in entries if published else ():
        for score in entry.run.scorecard.scores:
            if score.name == meaning.name and score.slice:
                where = {**entry.where, **score.slice}
                key = tuple(sorted(where.items()))
                if key in published:
                    rows.setdefault(key, []).append(_make_row(score, entry, where))
    return [_add_published(meaning, dict(key), some, published[key]) for key, some in sorted(rows.items())]


def _rank_other_datasets(
    benchmark: Benchmark,
    scores: Sequence[ScoreMeaning],
    entries: Sequence[RunEntry],
    first: RunEntry,
    marks: ModelMarks | None,
) -> list[ScoreRanking]:
    """Runs on data other than the first run's that are published, too: those of one dataset are ranked together."""
    published = [result.where for result in benchmark.card.published()]
    others: dict[str, list[LeaderboardRun]] = {}
    for entry in entries:
        if entry.where and entry.where != first.where and entry.where in published:
            others.setdefault(_dump(entry.where), []).append(entry.run)
    rankings = []
    for runs in others.values():
        own, own_first = make_run_entries(benchmark, runs, marks)
        overall = (_rank_overall(benchmark.card, meaning, own, own_first) for meaning in scores)
        rankings += [ranking for ranking in overall if ranking.of("run") and ranking.of("published")]
    return rankings


def _add_published(
    meaning: ScoreMeaning, where: Slice, rows: list[Row], published: Sequence[PublishedResult]
) -> ScoreRanking:
    unflagged = [row for row in rows if not row.flags]
    comparable = any(is_comparable_with_paper(row.comparable) for row in unflagged)
    for result in published:
        flags = []
        if result.where != where:
            flags.append(f"of other units: {format_slice(result.where) or 'all units of the paper'}")
        if result.comparable.lower().startswith(NOT_COMPARABLE):
            flags.append(result.comparable)
        elif not comparable:
            flags.append(explain_unranked([row.comparable for row in unflagged]))
        value, about = result.values[meaning.name], (result.comparable, tuple(flags), result.where, result.source)
        rows.append(Row("published", result.method, value, None, None, None, "", *about, costs=result.costs))
    return ScoreRanking(meaning, where, rank_rows(rows, meaning))


def _make_row(score: Score, entry: RunEntry, where: Slice) -> Row:
    about = (score.reading, score.comparable, entry.flags, where, "", entry.run.folder, entry.run.date)
    low, high = get_bounds(score)
    return Row("run", entry.method, score.value, low, high, score.n, *about, costs=entry.costs)


@dataclass(frozen=True)
class RunEntry:
    """A run with its name and data, why it has no rank (empty where it has), and the slice of its overall scores."""

    run: LeaderboardRun
    method: str
    flags: tuple[str, ...]
    where: Mapping[str, str]
    data: str
    costs: Mapping[str, float] = field(default_factory=dict)


def make_run_entries(
    benchmark: Benchmark, runs: Sequence[LeaderboardRun], marks: ModelMarks | None = None
) -> tuple[tuple[RunEntry, ...], RunEntry]:
    """All entries in the order of their runs, and the one that the others are compared with."""
    settings = [collect_settings(run, benchmark.card.role) for run in runs]
    first = find_first_run(settings)
    methods = [name_stored_method(run.manifest, benchmark) for run in runs]
    arguments = [(run.manifest["model"] or {}).get("args", {}) for run in runs]
    named = list(zip(methods, arguments, (run.folder for run in runs), strict=True))
    models = {run.scorecard.model for run in runs}
    transductive = {model for model in models if marks and "transductive" in marks(model)}
    entries = []
    for run, name, own in zip(runs, name_runs(named), settings, strict=True):
        flags, units = list(describe_differences(own, settings[first])), run.scorecard.units
        if units.failed:
            flags.append(f"{units.failed} of {units.planned} units failed")
        if (run.scorecard.model in transductive) != (runs[first].scorecard.model in transductive):
            flags.append("this run or the first is transductive: it sees all queries of a task together")
        where, data = find_published_slice(benchmark, run), describe_data(run.manifest["options"])
        measure = benchmark.cost_measure
        costs = {} if measure is None or run.cost is None else measure.read(run.cost)
        entries.append(RunEntry(run, name, tuple(flags), where, data, costs))
    return tuple(entries), entries[first]


def collect_settings(run: LeaderboardRun, role: str) -> Settings:
    """Everything that must be the same for two runs to be ranked together, as a flat dict."""
    method = _METHOD.get(role, set())
    parts = run.manifest["answers"].get("parts", {})
    settings: dict[str, Any] = {"units": parts.get("units", "")}
    for name, value in parts.items():
        source = name.removeprefix("data ")
        if name.startswith("data ") and not source.startswith("pred") and source not in method:
            settings[name] = value
    for name, value in run.manifest["options"].items():
        if name not in _FREE | method and not name.startswith("pred"):
            settings[f"option {name}"] = value
    for reading in run.scorecard.readings:
        settings[f"reading {reading.name}"] = reading.value
    return settings


def find_first_run(settings: Sequence[Settings]) -> int:
    """The run that the others are compared with: the earliest of the largest group with the same settings.

    >>> find_first_run([{"units": "b"}, {"units": "a"}, {"units": "a"}])
    1
    """
    groups: dict[str, list[int]] = {}
    for index, one in enumerate(settings):
        groups.setdefault(_dump(one), []).append(index)
    return max(groups.values(), key=lambda group: (len(group), -group[0]))[0]


def describe_differences(settings: Settings, first: Settings) -> tuple[str, ...]:
    """How settings differ from those of the first run; a setting that only one of the two has is not compared.

    >>> describe_differences({"units": "a", "option rounds": 8}, {"units": "a", "option rounds": 20})
    ('other settings than the first run: rounds=8',)
    """
    differing = [name for name in settings if name in first and _dump(settings[name]) != _dump(first[name])]

    def select(start: str) -> list[str]:
        return [name.removeprefix(start) for name in differing if name.startswith(start)]

    def text(value: Any) -> str:
        return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)

    flags = []
    if "units" in differing:
        flags.append("other units than the first run")
    else:
        if names := select("data "):
            flags.append(f"other data than the first run: {', '.join(names)}")
        if names := select("option "):
            values = ", ".join(f"{name}={text(settings[f'option {name}'])}" for name in names)
            flags.append(f"other settings than the first run: {values}")
    if names := select("reading "):
        values = ", ".join(f"{name}={settings[f'reading {name}']}" for name in names)
        flags.append(f"other readings than the first run: {values}")
    return tuple(flags)


def name_runs(runs: Sequence[tuple[str, Mapping[str, Any], str]]) -> list[str]:
    """A name for each (model, arguments, folder): the model, its differing arguments, and the folder where needed.

    >>> name_runs([("net", {"k": 1, "seed": 0}, "a"), ("net", {"k": 2, "seed": 0}, "b"), ("other", {}, "c")])
    ['net k=1', 'net k=2', 'other']
    >>> name_runs([("net", {}, "a"), ("net", {}, "b")])
    ['net (a)', 'net (b)']
    """
    values: dict[str, dict[str, set[str]]] = {}
    counts = Counter(model for model, _, _ in runs)
    for model, arguments, _ in runs:
        for key, value in arguments.items():
            values.setdefault(model, {}).setdefault(key, set()).add(str(value))
    names = []
    for model, arguments, _ in runs:
        differing = [key for key in arguments if len(values[model][key]) > 1] if counts[model] > 1 else []
        names.append(" ".join([model, *(f"{key}={arguments[key]}" for key in differing)]))
    repeated = Counter(names)
    return [f"{name} ({run[2]})" if repeated[name] > 1 else name for name, run in zip(names, runs, strict=True)]


def describe_data(options: Mapping[str, object]) -> str:
    """The data of a run, by the names of folders and files, without their paths.

    >>> describe_data({"data": {"voc": "/data/VOC2012"}, "gt": None}), describe_data({"data": {}})
    ('voc=VOC2012', 'planted world')
    """
    given = options.get("data")
    paths = dict(given) if isinstance(given, Mapping) else {}
    if options.get("gt"):
        paths["gt"] = options["gt"]
    named = [f"{name}={str(path).rstrip('/').rpartition('/')[2]}" for name, path in paths.items()]
    return ", ".join(named) or "planted world"


def find_published_slice(benchmark: Benchmark, run: LeaderboardRun) -> Mapping[str, str]:
    """The slice of the published rows that a run's scores over all units stand beside."""
    if benchmark.published_slice is None:
        return {}
    try:
        options = parse_options(benchmark.options, dict(run.manifest["options"]))
    except HardlookError:
        return {}
    return dict(benchmark.published_slice(run.scorecard, options))


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
