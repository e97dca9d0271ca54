"""All runs below a folder, from `run.json` and `scores.json` alone; what cannot be used is listed with the reason.

>>> import tempfile
>>> gather(Path(tempfile.mkdtemp())).runs
{}
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hardlook.benchmarks import find_benchmark
from hardlook.contract.benchmark import Benchmark
from hardlook.errors import DataError, HardlookError
from hardlook.leaderboards.run_files import GatheredRun, read_manifest, read_scorecard
from hardlook.runs.folder import RunFolder

_SET_ASIDE = re.compile(r"\.old-\d+$")


@dataclass(frozen=True)
class Omitted:
    """A run folder that is in no leaderboard; `benchmark` is empty where even that cannot be read."""

    folder: str
    benchmark: str
    why: str
    remedy: str = ""

    @property
    def words(self) -> str:
        """The reason, and what to do about it."""
        return self.why + (f"; {self.remedy}" if self.remedy else "")


@dataclass(frozen=True)
class Gathered:
    """Usable runs by the name of their benchmark, earliest first, the benchmarks themselves, and what was left out."""

    runs: Mapping[str, tuple[GatheredRun, ...]]
    benchmarks: Mapping[str, Benchmark]
    left_out: tuple[Omitted, ...]

    def left_out_beside(self, benchmark: str) -> tuple[Omitted, ...]:
        """What the page of a benchmark lists: its own, and those of no benchmark that has a page."""
        return tuple(one for one in self.left_out if one.benchmark == benchmark or one.benchmark not in self.runs)


def gather(root: Path, benchmark: str | None = None) -> Gathered:
    """Every run below `root`, or those of one benchmark."""
    if not root.is_dir():
        raise DataError("there is no such folder", file=root, remedy="give the folder that holds the run folders")
    wanted = find_benchmark(benchmark).card.name if benchmark else None
    runs: dict[str, list[GatheredRun]] = {}
    found: dict[str, Benchmark] = {}
    known: dict[str, Benchmark | Omitted] = {}
    left_out: list[Omitted] = []

    def unreadable(error: OSError) -> None:
        why = f"the folder cannot be read ({error.strerror})"
        left_out.append(
            Omitted(_folder_name(Path(error.filename), root), "", why, "give yourself the right to read it")
        )

    for path in run_folders(root, unreadable):
        folder = _folder_name(path, root)
        read = _read(RunFolder(path), folder, known, found)
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
    return Gathered(ordered, {name: found[name] for name in ordered}, tuple(left_out))


def run_folders(root: Path, unreadable: Callable[[OSError], None] | None = None) -> Iterator[Path]:
    """Folders with a `run.json`, in order of their names, through links too, each once; not those inside of a run."""
    seen: set[tuple[int, int]] = set()
    for place, inner, files in os.walk(root, onerror=unreadable, followlinks=True):
        # A link can lead back up, and several links to one run.
        here = Path(place).stat()
        if (here.st_dev, here.st_ino) in seen:
            inner.clear()
            continue
        seen.add((here.st_dev, here.st_ino))
        inner.sort()
        if "run.json" in files:
            inner.clear()
            yield Path(place)


def _folder_name(path: Path, root: Path) -> str:
    """Below the root, in letters that can be written: a name of other bytes is shown with a sign in their place."""
    name = str(path.relative_to(root)) if path != root else path.resolve().name
    return os.fsencode(name).decode("utf-8", "replace")


def _read(
    run: RunFolder, folder: str, known: dict[str, Benchmark | Omitted], found: dict[str, Benchmark]
) -> GatheredRun | Omitted:
    name = ""
    try:
        manifest = read_manifest(run)
        asked = name = manifest["benchmark"]["name"]
        if asked not in known:
            known[asked] = _find(asked, found)
        benchmark = known[asked]
        if isinstance(benchmark, Omitted):
            return Omitted(folder, asked, benchmark.why, benchmark.remedy)
        name, version = benchmark.card.name, manifest["benchmark"].get("version")
        if _SET_ASIDE.search(run.path.name):
            return Omitted(folder, name, "set aside by --new")
        if version != benchmark.card.version:
            why = f"made by version {version} of {name}, this is version {benchmark.card.version}"
            return Omitted(folder, name, why, "run it again, or use the hardlook version that run.json names")
        scorecard = read_scorecard(run)
    except HardlookError as error:
        return Omitted(folder, name, error.what, error.remedy or "")
    if (scorecard.benchmark, scorecard.version) != (name, version):
        why = f"scores.json is of {scorecard.benchmark} {scorecard.version}"
        return Omitted(folder, name, why, "`hardlook score` makes it anew")
    units = scorecard.units
    if units.scored + units.failed < units.planned:
        why = f"unfinished: {units.scored} of {units.planned} units are scored"
        return Omitted(folder, name, why, "finish it: give the same `hardlook run` again")
    return GatheredRun(folder, manifest, scorecard)


def _find(name: str, found: dict[str, Benchmark]) -> Benchmark | Omitted:
    """The benchmark, or why it is not there; `found` has those that runs before were of, by their own names."""
    remedy = "install the package that defines it, or stand in the folder of its module"
    try:
        benchmark = find_benchmark(name)
        own = str(benchmark.card.name)
    except HardlookError as error:
        return Omitted("", name, error.what, remedy)
    except Exception as error:
        # Someone else's module can fail in any way while it is imported.
        return Omitted("", name, f"benchmark {name!r} cannot be loaded ({type(error).__name__}: {error})", remedy)
    if found.setdefault(own, benchmark) is not benchmark:
        why = f"its benchmark {name!r} calls itself {own}, as another one does"
        return Omitted("", name, why, "rename one of them, or leave its runs out of this folder")
    return benchmark
