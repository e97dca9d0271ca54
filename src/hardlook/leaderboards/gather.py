"""All runs below a folder, from `run.json` and `scores.json` alone; what cannot be used is listed with the reason.

>>> import tempfile
>>> gather(Path(tempfile.mkdtemp())).runs
{}
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardlook.benchmarks import find_benchmark
from hardlook.contract.benchmark import Benchmark
from hardlook.contract.scorecard import Scorecard
from hardlook.errors import DataError, HardlookError, OptionError
from hardlook.runs.folder import RunFolder

_SET_ASIDE = re.compile(r"\.old-\d+$")


@dataclass(frozen=True)
class GatheredRun:
    """A run as its two files tell it; `folder` is relative to where the search began."""

    folder: str
    manifest: Mapping[str, Any]
    scorecard: Scorecard

    @property
    def date(self) -> str:
        """The day on which it began, UTC."""
        return str(self.manifest["created"])[:10]


@dataclass(frozen=True)
class Omitted:
    """A run folder that is in no leaderboard; `benchmark` is empty where even that cannot be read."""

    folder: str
    benchmark: str
    why: str


@dataclass(frozen=True)
class Gathered:
    """Usable runs by the name of their benchmark, earliest first, the benchmarks themselves, and what was left out."""

    runs: Mapping[str, tuple[GatheredRun, ...]]
    benchmarks: Mapping[str, Benchmark]
    left_out: tuple[Omitted, ...]


def gather(root: Path, benchmark: str | None = None) -> Gathered:
    """Every run below `root`, or those of one benchmark."""
    if not root.is_dir():
        raise DataError("there is no such folder", file=root, remedy="give the folder that holds the run folders")
    wanted = find_benchmark(benchmark).card.name if benchmark else None
    runs: dict[str, list[GatheredRun]] = {}
    known: dict[str, Benchmark | str] = {}
    left_out = []
    for path in run_folders(root):
        folder = str(path.relative_to(root)) if path != root else path.resolve().name
        read = _read(RunFolder(path), folder, known)
        name = read.scorecard.benchmark if isinstance(read, GatheredRun) else read.benchmark
        if wanted and name and name != wanted:
            continue
        if isinstance(read, Omitted):
            left_out.append(read)
        else:
            runs.setdefault(name, []).append(read)
    ordered = {
        name: tuple(sorted(some, key=lambda run: (str(run.manifest["created"]), run.folder)))
        for name, some in sorted(runs.items())
    }
    found = {one.card.name: one for one in known.values() if not isinstance(one, str)}
    return Gathered(ordered, {name: found[name] for name in ordered}, tuple(left_out))


def run_folders(root: Path) -> Iterator[Path]:
    """Folders with a `run.json`, in order of their names; nothing inside of a run is looked at."""
    for place, inner, files in os.walk(root):
        inner.sort()
        if "run.json" in files:
            inner.clear()
            yield Path(place)


def _read(run: RunFolder, folder: str, known: dict[str, Benchmark | str]) -> GatheredRun | Omitted:
    try:
        manifest = run.read_manifest()
        asked = str(manifest["benchmark"]["name"])
    except HardlookError as error:
        return Omitted(folder, "", error.what)
    except (OSError, KeyError, TypeError, UnicodeDecodeError) as error:
        return Omitted(folder, "", f"run.json cannot be read ({error})")
    if asked not in known:
        known[asked] = _find(asked)
    benchmark = known[asked]
    if isinstance(benchmark, str):
        return Omitted(folder, asked, benchmark)
    name, version = benchmark.card.name, manifest["benchmark"].get("version")
    if _SET_ASIDE.search(run.path.name):
        return Omitted(folder, name, "set aside by --new")
    if version != benchmark.card.version:
        return Omitted(folder, name, f"made by version {version} of {name}, this is version {benchmark.card.version}")
    try:
        scorecard = Scorecard.from_json(run.scores_path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Omitted(folder, name, "not scored yet: the run is unfinished, or `hardlook score` has to be given")
    except json.JSONDecodeError as error:
        return Omitted(folder, name, f"scores.json is not valid JSON ({error})")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return Omitted(folder, name, f"scores.json cannot be read ({error})")
    if (scorecard.benchmark, scorecard.version) != (name, version):
        return Omitted(folder, name, f"scores.json is of {scorecard.benchmark} {scorecard.version}")
    units = scorecard.units
    if units.scored + units.failed < units.planned:
        return Omitted(folder, name, f"unfinished: {units.scored} of {units.planned} units are scored")
    return GatheredRun(folder, manifest, scorecard)


def _find(name: str) -> Benchmark | str:
    """The benchmark, or why it is not there."""
    try:
        return find_benchmark(name)
    except OptionError as error:
        return error.what
