"""The runs below a folder, from `run.json`, `scores.json` and `cost.json`; unusable ones are listed with the reason.

>>> import tempfile
>>> collect_runs(Path(tempfile.mkdtemp())).runs
{}
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hardlook.errors import DataError, HardlookError, RunError
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.costs import read_cost
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.scorecard import Scorecard

SCORE_AGAIN = "`hardlook score` writes it again"
RESTORE_MANIFEST = "restore its run.json, or run it again"
_SET_ASIDE = re.compile(r"\.old-\d+$")


@dataclass(frozen=True)
class LeaderboardRun:
    """A run as read from its files; `folder` is relative to the searched folder.

    `cost` is the content of its `cost.json`, None where there is none; `cost_problem` why it cannot be used.
    """

    folder: str
    manifest: Mapping[str, Any]
    scorecard: Scorecard
    cost: Mapping[str, Any] | None = None
    cost_problem: str = ""

    @property
    def date(self) -> str:
        """The day on which it was started, UTC."""
        return str(self.manifest["created"])[:10]


@dataclass(frozen=True)
class SkippedRun:
    """A run folder that is in no leaderboard; `benchmark` is empty where even that cannot be read."""

    folder: str
    benchmark: str
    why: str
    remedy: str = ""

    def describe(self) -> str:
        """The reason, and the remedy."""
        return self.why + (f"; {self.remedy}" if self.remedy else "")


@dataclass(frozen=True)
class CollectedRuns:
    """Usable runs by the name of their benchmark, earliest first, the benchmarks themselves, and what was left out."""

    runs: Mapping[str, tuple[LeaderboardRun, ...]]
    benchmarks: Mapping[str, Benchmark]
    left_out: tuple[SkippedRun, ...]

    def list_skipped(self, benchmark: str) -> tuple[SkippedRun, ...]:
        """The skipped runs on the page of a benchmark: its own, and those of no benchmark that has a page."""
        return tuple(one for one in self.left_out if one.benchmark == benchmark or one.benchmark not in self.runs)


def collect_runs(root: Path, benchmark: str | None = None) -> CollectedRuns:
    """Every run below `root`, or those of one benchmark."""
    if not root.is_dir():
        raise DataError("there is no such folder", file=root, remedy="give the folder that holds the run folders")
    wanted = find_benchmark(benchmark).card.name if benchmark else None
    runs: dict[str, list[LeaderboardRun]] = {}
    found: dict[str, Benchmark] = {}
    known: dict[str, Benchmark | SkippedRun] = {}
    left_out: list[SkippedRun] = []

    def unreadable(error: OSError) -> None:
        why = f"the folder cannot be read ({error.strerror})"
        left_out.append(SkippedRun(_format_folder(Path(error.filename), root), "", why, "grant read permission"))

    for path in find_run_folders(root, unreadable):
        folder = _format_folder(path, root)
        read = _read_run(RunFolder(path), folder, known, found)
        name = read.scorecard.benchmark if isinstance(read, LeaderboardRun) else read.benchmark
        if wanted and name and name != wanted:
            continue
        if isinstance(read, SkippedRun):
            left_out.append(read)
        else:
            runs.setdefault(name, []).append(read)
    ordered = {
        name: tuple(sorted(some, key=lambda run: (str(run.manifest["created"]), run.folder)))
        for name, some in sorted(runs.items())
    }
    return CollectedRuns(ordered, {name: found[name] for name in ordered}, tuple(left_out))


def find_run_folders(root: Path, unreadable: Callable[[OSError], None] | None = None) -> Iterator[Path]:
    """Folders with a `run.json`, sorted by name, each once; links are followed, and runs are not searched for runs."""
    seen: set[tuple[int, int]] = set()
    for folder, inner, files in os.walk(root, onerror=unreadable, followlinks=True):
        # A link can lead to a parent folder, and several links to one run.
        stat = Path(folder).stat()
        if (stat.st_dev, stat.st_ino) in seen:
            inner.clear()
            continue
        seen.add((stat.st_dev, stat.st_ino))
        inner.sort()
        if "run.json" in files:
            inner.clear()
            yield Path(folder)


def _format_folder(path: Path, root: Path) -> str:
    """The path below the root as valid Unicode: other bytes become replacement characters."""
    name = str(path.relative_to(root)) if path != root else path.resolve().name
    return os.fsencode(name).decode("utf-8", "replace")


def _read_run(
    run: RunFolder, folder: str, known: dict[str, Benchmark | SkippedRun], found: dict[str, Benchmark]
) -> LeaderboardRun | SkippedRun:
    name = ""
    try:
        manifest = read_manifest(run)
        requested = name = manifest["benchmark"]["name"]
        if requested not in known:
            known[requested] = _load_benchmark(requested, found)
        benchmark = known[requested]
        if isinstance(benchmark, SkippedRun):
            return SkippedRun(folder, requested, benchmark.why, benchmark.remedy)
        name, version = benchmark.card.name, manifest["benchmark"].get("version")
        if _SET_ASIDE.search(run.path.name):
            return SkippedRun(folder, name, "set aside by --new")
        if version != benchmark.card.version:
            why = f"made by version {version} of {name}, this is version {benchmark.card.version}"
            return SkippedRun(folder, name, why, "run it again, or use the hardlook version that run.json names")
        scorecard = read_scorecard(run)
    except HardlookError as error:
        return SkippedRun(folder, name, error.what, error.remedy or "")
    if (scorecard.benchmark, scorecard.version) != (name, version):
        why = f"scores.json is of {scorecard.benchmark} {scorecard.version}"
        return SkippedRun(folder, name, why, SCORE_AGAIN)
    units = scorecard.units
    if units.scored + units.failed < units.planned:
        why = f"unfinished: {units.scored} of {units.planned} units are scored"
        return SkippedRun(folder, name, why, "resume it: repeat the same `hardlook run`")
    return LeaderboardRun(folder, manifest, scorecard, *_read_cost(run, benchmark))


def _read_cost(run: RunFolder, benchmark: Benchmark) -> tuple[Mapping[str, Any] | None, str]:
    """What the run's model costs, and why that cannot be used; no run is left out for it."""
    if benchmark.cost_measure is None:
        return None, ""
    try:
        return read_cost(run.path, benchmark.cost_measure), ""
    except HardlookError as error:
        return None, error.what


def _load_benchmark(name: str, found: dict[str, Benchmark]) -> Benchmark | SkippedRun:
    """The benchmark, or why it cannot be used; `found` has those of the earlier runs, by their own names."""
    remedy = "install the package that defines it, or start in the folder of its module"
    try:
        benchmark = find_benchmark(name)
        own = str(benchmark.card.name)
    except HardlookError as error:
        return SkippedRun("", name, error.what, remedy)
    except Exception as error:
        # The import of a user's module can fail in any way.
        return SkippedRun("", name, f"benchmark {name!r} cannot be loaded ({type(error).__name__}: {error})", remedy)
    if found.setdefault(own, benchmark) is not benchmark:
        why = f"its benchmark {name!r} has the name {own}, as another one has"
        return SkippedRun("", name, why, "rename one of them, or leave its runs out of this folder")
    return benchmark


def read_manifest(run: RunFolder) -> dict[str, Any]:
    """The content of `run.json`; an error says what is wrong with it."""
    try:
        manifest = run.read_manifest()
    except RunError as error:
        raise RunError(error.what, file=error.file, remedy=error.remedy or RESTORE_MANIFEST) from None
    except OSError as error:
        raise RunError(f"run.json cannot be read ({error.strerror})", file=run.manifest_path) from None
    problem = _find_invalid_text(manifest)
    if not isinstance((manifest["model"] or {}).get("args", {}), dict):
        problem = "the model's args are not an object"
    if problem:
        raise RunError(f"run.json cannot be used: {problem}", file=run.manifest_path, remedy=RESTORE_MANIFEST)
    return manifest


def read_scorecard(run: RunFolder) -> Scorecard:
    """The content of `scores.json`, with infinite values as undefined; an error says what is wrong with it."""
    path = run.scores_path
    try:
        text = path.read_text(encoding="utf-8")
        scorecard = Scorecard.from_json(text)
        problem = _find_invalid_text(json.loads(text)) if "\\ud" in text.lower() else ""
        problem = problem or _find_scorecard_problem(scorecard)
    except FileNotFoundError:
        why = "not scored yet: there is no scores.json"
        raise RunError(why, remedy="resume the run, or score what it has by `hardlook score`") from None
    except OSError as error:
        raise RunError(f"scores.json cannot be read ({error.strerror})", file=path) from None
    except json.JSONDecodeError as error:
        raise RunError(f"scores.json is not valid JSON ({error})", file=path, remedy=SCORE_AGAIN) from None
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = f"it lacks {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    if problem:
        raise RunError(f"scores.json cannot be read ({problem})", file=path, remedy=SCORE_AGAIN)
    scores = scorecard.scores
    known = (one if math.isfinite(one.value) else replace(one, value=math.nan, interval=None) for one in scores)
    return replace(scorecard, scores=tuple(known))


def _find_scorecard_problem(scorecard: Scorecard) -> str:
    for score in scorecard.scores:
        numbers = (score.value, score.n, *((score.interval.low, score.interval.high) if score.interval else ()))
        numeric = all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers)
        if not numeric or not all(isinstance(one, str) for one in (score.name, score.reading, score.comparable)):
            return f"score {score.name!r} is not made of numbers and texts"
        if not isinstance(score.slice, dict) or not all(isinstance(value, str) for value in score.slice.values()):
            return f"the slice of score {score.name!r} is not made of texts"
    units = scorecard.units
    counted = all(isinstance(count, int) for count in (units.planned, units.scored, units.failed))
    return "" if counted and isinstance(scorecard.model, str) else "the units are not counted, or the model has no name"


def _find_invalid_text(value: Any) -> str:
    """JSON can hold lone surrogates, which cannot be encoded."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "a text in it is not Unicode"
    return ""
