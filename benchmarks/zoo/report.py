"""`report`: scores with intervals, a ranking with ties, families, pairs of a method and what it is built on.

A score is the mean over seeds of a method's trainings. Its interval adds two variances: over tasks, which all trainings
share (the jackknife of hardlook's scores), and over seeds, by Welch's formula, as `hardlook compare` adds them. With
one seed the second is unknown, and the interval is over tasks alone. Differences of two methods are paired by task.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.harness.sections import ScatterChart, Spot
from hardlook.harness.stats import holm, rank_models
from hardlook.harness.stats.bootstrap import measure_spread, ratio
from hardlook.harness.stats.jackknife import Spread, add_variances, jackknife_bounds
from hardlook.harness.tally import DIFFERENCE, SHARE
from hardlook.metacoco.published import list_rows
from hardlook.metacoco.scores import GAPS, MISLEADING_MODES
from hardlook.report.charts.standalone import standalone_svg
from hardlook.training.recipes import parse_budget

MODES = ("blind", "iid", "ood", "swapped")
SCORES = (*MODES, "gap", "swapped-gap", "attraction", "excess-attraction")
ATTRACTED_IN = MISLEADING_MODES[0]  # the mode whose attraction is the headline, as in `hardlook run metacoco`
PAPER_TABLES = ("table-6", "table-2", "table-3")
TOKENS = "vit-small"
PAPER_BACKBONES = {"conv64f": "Conv64F", "resnet12": "ResNet12", "resnet18": "ResNet18"}

Sums = NDArray[np.float64]
Key = tuple[str, float]


@dataclass(frozen=True)
class ZooScore:
    """A score of a method at a correlation: value and bounds (None where there are none), seeds and tasks behind it."""

    name: str
    value: float
    low: float | None
    high: float | None
    seeds: int
    tasks: int


@dataclass(frozen=True, eq=False)
class Trainings:
    """All trainings of one method at one correlation, tested on one set.

    `sums` has for each mode an array (seeds, tasks, 4): right answers, all answers, attracted errors, and the errors
    that would be attracted by chance.
    """

    method: str
    family: str
    correlation: float
    seeds: tuple[int, ...]
    sums: Mapping[str, Sums]
    lines: Sequence[Mapping[str, Any]]

    def columns(self) -> Sums:
        """(seeds, tasks, modes * 4) in the order of `MODES`."""
        return np.concatenate([self.sums[mode] for mode in MODES], axis=2)


def compute_scores(totals: Sums) -> Sums:
    """(m, modes * 4) sums to (m, scores), in the order of `SCORES`.

    >>> one = np.array([[8.0, 10, 0, 0, 9, 10, 0, 0, 6, 10, 2, 1, 5, 10, 0, 0]])
    >>> compute_scores(one).round(2).tolist()
    [[0.8, 0.9, 0.6, 0.5, 0.3, 0.4, 0.5, 0.25]]
    """
    parts = totals.reshape(len(totals), len(MODES), 4)
    accuracy = {mode: ratio(parts[:, place, :2]) for place, mode in enumerate(MODES)}
    misled = parts[:, MODES.index(ATTRACTED_IN)]
    errors = np.where(misled[:, 1] - misled[:, 0] > 0, misled[:, 1] - misled[:, 0], np.nan)
    gaps = [accuracy[first] - accuracy[second] for first, second in (GAPS["gap"], GAPS["swapped-gap"])]
    attraction = misled[:, 2] / errors
    return np.stack([*accuracy.values(), *gaps, attraction, attraction - misled[:, 3] / errors], axis=1)


RANGES = np.array([DIFFERENCE if name.endswith("gap") or name.startswith("excess") else SHARE for name in SCORES])


def measure_error(columns: Sums, statistic: Callable[[Sums], Sums]) -> tuple[Sums, Spread]:
    """Scores (k,) of sums (seeds, tasks, columns), and their spread over tasks and, with several, over seeds."""
    seeds, tasks, _ = columns.shape
    if seeds == 1:
        values = statistic(columns[0].sum(0)[None])[0]
        return values, measure_spread(statistic, columns[0], np.array([tasks]))
    each = np.stack([statistic(one.sum(0)[None])[0] for one in columns])

    def average(totals: Sums) -> Sums:
        parts = totals.reshape(len(totals), seeds, -1)
        return np.asarray(np.stack([statistic(parts[:, place]) for place in range(seeds)]).mean(0))

    spread = measure_spread(average, columns.transpose(1, 0, 2).reshape(tasks, -1), np.array([tasks]))
    return each.mean(0), add_variances(spread, [(each.var(0, ddof=1) / seeds, seeds - 1)])


def score_trainings(given: Trainings, level: float = 0.95) -> dict[str, ZooScore]:
    """Every score of a method with its interval."""
    columns = given.columns()
    seeds, tasks, _ = columns.shape
    values, spread = measure_error(columns, compute_scores)
    low, high = jackknife_bounds(values, spread, level, RANGES, tasks)
    return {
        name: ZooScore(name, float(values[k]), _or_none(low[k]), _or_none(high[k]), seeds, tasks)
        for k, name in enumerate(SCORES)
    }


def compare_trainings(one: Trainings, other: Trainings, name: str, level: float = 0.95) -> tuple[ZooScore, float]:
    """`one` less `other` in a score, paired by task, with its interval, and the p-value that there is no difference.

    Seeds are paired by their number, since equal ones share tasks and order of training; those of one method only are
    left out, unless the two have none in common.
    """
    place = SCORES.index(name)
    first, second = one.columns(), other.columns()
    if common := [seed for seed in one.seeds if seed in other.seeds]:
        first, second = (
            columns[[each.seeds.index(seed) for seed in common]] for columns, each in ((first, one), (second, other))
        )
    else:
        fewer = min(len(first), len(second))
        first, second = first[:fewer], second[:fewer]
    width = first.shape[2]

    def difference(totals: Sums) -> Sums:
        found = compute_scores(totals[:, :width]) - compute_scores(totals[:, width:])
        return found[:, place : place + 1]

    values, spread = measure_error(np.concatenate([first, second], axis=2), difference)
    low, high = jackknife_bounds(values, spread, level, (-2, 2), first.shape[1])
    score = ZooScore(name, float(values[0]), _or_none(low[0]), _or_none(high[0]), len(first), first.shape[1])
    p = float(spread.p_values(values)[0])
    return score, p if np.isfinite(p) else 1.0


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def read_results(
    paths: Sequence[Path], test_set: str, seeds: Sequence[int] = (), backbone: str = "conv64f"
) -> tuple[dict[Key, Trainings], list[dict[str, Any]]]:
    """Trainings by method and correlation on a test set, of some seeds or all, and the lines of those that failed.

    Of one backbone; methods that need tokens have one of their own and count with any.
    """
    grouped: dict[Key, dict[int, dict[str, dict[str, Any]]]] = {}
    failed = []
    for path in paths:
        for line in _read_lines(path):
            if (seeds and line["seed"] not in seeds) or line["backbone"] not in (backbone, TOKENS):
                continue
            if "error" in line:
                failed.append(line)
            elif line["set"] == test_set:
                of_method = grouped.setdefault((line["method"], line["correlation"]), {})
                of_method.setdefault(line["seed"], {})[line["mode"]] = line
    found = {}
    # Tasks are paired by number: all trainings count with those that all of them have.
    lengths = [
        len(line["correct"])
        for of_method in grouped.values()
        for modes in of_method.values()
        for line in modes.values()
    ]
    tasks = min(lengths, default=0)
    for (method, correlation), by_seed in sorted(grouped.items()):
        whole = {seed: modes for seed, modes in sorted(by_seed.items()) if set(modes) == set(MODES)}
        if not whole:
            continue
        sums = {mode: np.stack([_sum(modes[mode])[:tasks] for modes in whole.values()]) for mode in MODES}
        first = [modes["blind"] for modes in whole.values()]
        found[method, correlation] = Trainings(
            method, first[0]["family"], correlation, tuple(whole), sums, tuple(first)
        )
    if not found:
        lines = [line for path in paths for line in _read_lines(path)]
        held = sorted({f"{line['set']} by {line['backbone']}" for line in lines if "set" in line})
        what = f"no results on {test_set!r} by {backbone}"
        raise DataError(what, file=paths[0], remedy=f"there are results on {', '.join(held)}")
    return found, failed


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of results, which may be compressed (`.gz`)."""
    try:
        stored = path.read_bytes()
        text = (gzip.decompress(stored) if path.suffix == ".gz" else stored).decode()
        return [json.loads(line) for line in text.splitlines() if line]
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataError(f"no results of `run`: {error}", file=path, remedy="run the study's `run` again") from error


def _sum(line: Mapping[str, Any]) -> Sums:
    """(tasks, 4): right answers, all answers, attracted errors, those by chance."""
    right, attracted, misleading = (np.array(line[name], float) for name in ("correct", "attracted", "misleading"))
    asked = np.full_like(right, line["ways"] * line["queries"])
    return np.stack([right, asked, attracted, misleading / (line["ways"] - 1)], axis=1)


def rank(found: Sequence[Trainings], name: str, *, higher_is_better: bool, alpha: float = 0.05) -> dict[str, Any]:
    """Ranks and tied sets by method: pairs differ where Holm's correction over all pairs leaves them different."""
    pairs = [(i, j) for i in range(len(found)) for j in range(i)]
    p_values = [compare_trainings(found[i], found[j], name)[1] for i, j in pairs]
    differs = np.zeros((len(found), len(found)), bool)
    for (i, j), p in zip(pairs, holm(p_values) if pairs else (), strict=True):
        differs[i, j] = differs[j, i] = p < alpha
    values = [float(compute_scores(one.columns().sum((0, 1))[None])[0, SCORES.index(name)]) for one in found]
    standings = rank_models([one.method for one in found], values, differs, higher_is_better=higher_is_better)
    return {one.model: one for one in standings}


@lru_cache(maxsize=1)
def read_methods() -> dict[str, dict[str, str]]:
    """The rows of `methods.csv` by method: what it is built on, and its name in the paper."""
    text = Path(__file__).with_name("methods.csv").read_text(encoding="utf-8")
    return {row["method"]: row for row in csv.DictReader(io.StringIO(text))}


def find_published(method: str, backbone: str, shots: int) -> tuple[float, str] | None:
    """The paper's 5-way accuracy in percent and on which backbone: this one where printed, else the first printed."""
    name = read_methods().get(method, {}).get("paper", "")
    rows = [(row, table) for table in PAPER_TABLES for row in list_rows(table) if name and row["method"] == name]
    same = [pair for pair in rows if pair[0].get("backbone") == PAPER_BACKBONES.get(backbone)]
    for row, table in [*same, *rows]:
        return float(row["1 shot" if shots == 1 else "5 shots"]), row.get("backbone") or f"Table {table[-1]}"
    return None


def compare_published(method: str, base: str, shots: int) -> float | None:
    """The paper's accuracy of a method less that of its base in the same table, on the same backbone, in points."""
    names = [read_methods().get(one, {}).get("paper", "") for one in (method, base)]
    column = "1 shot" if shots == 1 else "5 shots"
    for table in PAPER_TABLES:
        rows = list_rows(table)
        for row in (row for row in rows if row["method"] == names[0] and names[0]):
            for other in (other for other in rows if other["method"] == names[1]):
                if row.get("backbone") == other.get("backbone"):
                    return float(row[column]) - float(other[column])
    return None


def write_report(
    results: Sequence[Path],
    *,
    csv_path: Path | None = None,
    picture: Path | None = None,
    test_set: str = "caltech101",
    level: float = 0.95,
    seeds: Sequence[int] = (),
    backbone: str = "conv64f",
) -> str:
    """Markdown with all tables; writes the scores as CSV and the picture where asked."""
    found, failed = read_results(results, test_set, seeds, backbone)
    scores = {key: score_trainings(one, level) for key, one in found.items()}
    if csv_path:
        csv_path.write_text(format_csv(found, scores, test_set), encoding="utf-8")
    correlations = sorted({correlation for _, correlation in found})
    if picture:
        svg = standalone_svg(draw_gaps(scores, found, correlations), width=200, filled=True)
        picture.write_text(svg, encoding="utf-8")
    sections = [
        describe_runs(found, failed),
        *(tabulate_methods(found, scores, one) for one in correlations),
        tabulate_families(found, scores, correlations),
        tabulate_pairs(found, correlations, level),
    ]
    if len(correlations) > 1:
        sections.append(tabulate_changes(found, correlations[0], correlations[-1], level))
    return "\n\n".join(sections) + "\n"


def format_csv(found: Mapping[Key, Trainings], scores: Mapping[Key, Mapping[str, ZooScore]], test_set: str) -> str:
    """One row per method, correlation and score."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    common = ("family", "backbone", "image_size", "ways", "shots", "queries", "images", "parameters")
    writer.writerow(
        ["set", "method", "correlation", *common, "score", "value", "low", "high", "seeds", "tasks", "train_seconds"]
    )
    for key, one in found.items():
        line = one.lines[0]
        seconds = np.mean([each["train_seconds"] for each in one.lines])
        for score in scores[key].values():
            bounds = ["" if bound is None else f"{bound:.4f}" for bound in (score.low, score.high)]
            numbers = [f"{score.value:.4f}", *bounds, score.seeds, score.tasks, f"{seconds:.1f}"]
            writer.writerow(
                [test_set, one.method, f"{one.correlation:g}", *(line[name] for name in common), score.name, *numbers]
            )
    return text.getvalue()


def describe_runs(found: Mapping[Key, Trainings], failed: Sequence[Mapping[str, Any]]) -> str:
    """What ran, in a sentence or two; failed trainings by name."""
    line = next(iter(found.values())).lines[0]
    methods = len({method for method, _ in found})
    seeds = sorted({seed for one in found.values() for seed in one.seeds})
    trainings = sum(len(one.seeds) for one in found.values())
    tasks = {one.sums["blind"].shape[1] for one in found.values()}
    images = parse_budget(line["budget"]).images
    budget = f"{images:,} images" if images else line["budget"]
    text = (
        f"{methods} methods, {trainings} trainings (seeds {', '.join(map(str, seeds))}), each on a budget of "
        f"{budget} at {line['image_size']} pixels; {line['ways']}-way {line['shots']}-shot tasks with "
        f"{line['queries']} queries per class, {min(tasks)} tasks per mode."
    )
    if failed:
        listed = sorted({f"{one['method']} (correlation {one['correlation']:g}): {one['error']}" for one in failed})
        text += f" {len(failed)} trainings failed: {'; '.join(listed)}."
    return text


def tabulate_methods(
    found: Mapping[Key, Trainings], scores: Mapping[Key, Mapping[str, ZooScore]], correlation: float
) -> str:
    """All methods at one correlation, by ood accuracy, with tied sets and the paper's numbers."""
    chosen = [one for (_, value), one in found.items() if value == correlation]
    places = rank(chosen, "ood", higher_is_better=True)
    rows = []
    for one in sorted(chosen, key=lambda one: list(places).index(one.method)):
        own, line = scores[one.method, correlation], one.lines[0]
        printed = find_published(one.method, line["backbone"], line["shots"])
        name = f"{one.method} ({TOKENS})" if line["backbone"] == TOKENS else one.method
        rows.append(
            [
                str(places[one.method].rank),
                f"{name} {_marks(places[one.method].sets)}",
                one.family,
                *(format_score(own[mode]) for mode in ("ood", "iid", "swapped", "blind", "gap", "attraction")),
                f"{printed[0]:.1f} ({printed[1]})" if printed else "",
            ]
        )
    title = f"Correlation {correlation:g} in training, by ood accuracy (methods that share a letter do not differ):"
    head = ["rank", "method", "family", "ood", "iid", "swapped", "blind", "gap", "attraction", "paper, blind, %"]
    return f"{title}\n\n{format_table(head, rows)}"


def _marks(sets: Sequence[str]) -> str:
    return f"({sets[0]}-{sets[-1]})" if len(sets) > 1 else f"({sets[0]})"


def tabulate_families(
    found: Mapping[Key, Trainings], scores: Mapping[Key, Mapping[str, ZooScore]], correlations: Sequence[float]
) -> str:
    """Means over the methods of a family; the smallest gap first."""
    rows = []
    for correlation in correlations:
        families = sorted({one.family for (_, value), one in found.items() if value == correlation})
        lines = []
        for family in families:
            own = [scores[key] for key, one in found.items() if key[1] == correlation and one.family == family]
            means = {name: [one[name].value for one in own] for name in ("gap", "swapped-gap", "ood", "iid")}
            cells = [
                f"{_short(float(np.mean(values)))} ({_short(min(values))} to {_short(max(values))})"
                for values in means.values()
            ]
            lines.append((np.mean(means["gap"]), [f"{correlation:g}", family, str(len(own)), *cells]))
        rows += [cells for _, cells in sorted(lines, key=lambda line: line[0])]
    title = (
        "Families, the one that loses least when the context changes first (mean of its methods, lowest to highest):"
    )
    head = ["correlation", "family", "methods", "gap", "swapped gap", "ood", "iid"]
    return f"{title}\n\n{format_table(head, rows)}"


def tabulate_pairs(found: Mapping[Key, Trainings], correlations: Sequence[float], level: float) -> str:
    """Methods less what they are built on: ood accuracy and gap, paired by task, Holm's correction over the table."""
    pairs = []
    for correlation in correlations:
        for method, row in read_methods().items():
            both = found.get((method, correlation)), found.get((row["base"], correlation))
            if both[0] is not None and both[1] is not None:
                pairs.append((both[0], both[1]))
    tested = [[compare_trainings(*pair, name, level) for name in ("ood", "gap")] for pair in pairs]
    corrected = holm([p for found_p in tested for _, p in found_p]).reshape(-1, 2) if pairs else np.zeros((0, 2))
    rows = []
    for (one, base), ((ood, _), (gap, _)), (p_ood, p_gap) in zip(pairs, tested, corrected, strict=True):
        printed = compare_published(one.method, base.method, one.lines[0]["shots"])
        in_paper = f"{printed:+.1f}" if printed is not None else ""
        names = [f"{one.correlation:g}", one.method, base.method]
        rows.append([*names, format_difference(ood, p_ood), format_difference(gap, p_gap), in_paper])
    title = (
        "What a method adds to the one it is built on (ood accuracy: higher is better; gap: lower is better; "
        "* differs after Holm's correction over this table):"
    )
    head = ["correlation", "method", "built on", "ood", "gap", "paper, blind, points"]
    return f"{title}\n\n{format_table(head, rows)}"


def tabulate_changes(found: Mapping[Key, Trainings], low: float, high: float, level: float) -> str:
    """What correlated contexts in training do to each method's gap, largest rise first."""
    both = [
        (one, found[one.method, low])
        for (_, value), one in found.items()
        if value == high and (one.method, low) in found
    ]
    tested = [compare_trainings(*pair, "gap", level) for pair in both]
    corrected = holm([p for _, p in tested]) if tested else np.zeros(0)
    order = np.argsort([-score.value for score, _ in tested], kind="stable")
    rows = [[both[k][0].method, both[k][0].family, format_difference(tested[k][0], corrected[k])] for k in order]
    rose = sum(score.value > 0 for score, _ in tested)
    sure = sum(score.value > 0 and p < 0.05 for (score, _), p in zip(tested, corrected, strict=True))
    title = (
        f"The gap at correlation {high:g} less the gap at {low:g}: it rises in {rose} of {len(tested)} methods, "
        f"in {sure} of them by more than chance (Holm's correction):"
    )
    return f"{title}\n\n{format_table(['method', 'family', 'rise of the gap'], rows)}"


def draw_gaps(
    scores: Mapping[Key, Mapping[str, ZooScore]], found: Mapping[Key, Trainings], correlations: Sequence[float]
) -> ScatterChart:
    """The gap at the highest correlation against that at the lowest; with one of them, ood against iid accuracy."""
    low, high = correlations[0], correlations[-1]
    if low == high:
        spots = [Spot(scores[key]["iid"].value, scores[key]["ood"].value, *_name(one)) for key, one in found.items()]
        return ScatterChart("Inside and outside the context", "", spots, "iid accuracy", "ood accuracy", diagonal=True)
    spots = [
        Spot(scores[one.method, low]["gap"].value, scores[one.method, high]["gap"].value, *_name(one))
        for key, one in found.items()
        if key[1] == high and (one.method, low) in found
    ]
    axes = [f"gap, trained at correlation {correlation:g}" for correlation in (low, high)]
    return ScatterChart("What correlated contexts in training do", "", spots, axes[0], axes[1], diagonal=True)


def _name(one: Trainings) -> tuple[str, str]:
    return one.method, one.family


def format_score(score: ZooScore) -> str:
    """A value with its bounds, without leading zeros.

    >>> format_score(ZooScore("ood", 0.5123, 0.49, 0.535, seeds=3, tasks=600))
    '.512 (.490 to .535)'
    >>> format_score(ZooScore("gap", -0.02, None, None, seeds=1, tasks=1))
    '-.020'
    """
    if score.low is None or score.high is None:
        return _short(score.value)
    return f"{_short(score.value)} ({_short(score.low)} to {_short(score.high)})"


def format_difference(score: ZooScore, p: float) -> str:
    """A difference with its sign, its bounds, and a star where it is significant."""
    sign = "+" if score.value >= 0 else ""
    return f"{sign}{format_score(score)}{'*' if p < 0.05 else ''}"


def _short(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3f}"


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
