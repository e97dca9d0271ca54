"""The runs of a leaderboard: their names, what sets them apart from the first run, and where their scores stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hardlook.contract.benchmark import Benchmark
from hardlook.contract.options import parse_options
from hardlook.contract.published import PlacesScores
from hardlook.errors import HardlookError
from hardlook.leaderboards.method_names import name_runs
from hardlook.leaderboards.run_files import GatheredRun
from hardlook.leaderboards.settings import differences, first_run, settings_of

Place = Mapping[str, str]
Marks = Callable[[str], Sequence[str]]
TRANSDUCTIVE = "transductive"


@dataclass(frozen=True)
class Entrant:
    """A run with its name and data, why it has no rank (empty where it has), and the place of its overall scores."""

    run: GatheredRun
    method: str
    flags: tuple[str, ...]
    place: Place
    data: str

    @property
    def readings(self) -> str:
        """The readings that ran, as they are given on a command line."""
        return ", ".join(f"{reading.name}={reading.value}" for reading in self.run.scorecard.readings)


def make_entrants(
    benchmark: Benchmark, runs: Sequence[GatheredRun], marks: Marks | None = None
) -> tuple[tuple[Entrant, ...], Entrant]:
    """All entrants in the order of their runs, and the one that the others are held against."""
    settings = [settings_of(run, benchmark.card.role) for run in runs]
    first = first_run(settings)
    named = [(run.scorecard.model, (run.manifest["model"] or {}).get("args", {}), run.folder) for run in runs]
    models = {model for model, _, _ in named}
    transductive = {model for model in models if marks and TRANSDUCTIVE in marks(model)}
    entrants = []
    for run, name, these in zip(runs, name_runs(named), settings, strict=True):
        flags, units = list(differences(these, settings[first])), run.scorecard.units
        if units.failed:
            flags.append(f"{units.failed} of {units.planned} units failed")
        if (run.scorecard.model in transductive) != (runs[first].scorecard.model in transductive):
            flags.append("this run or the first is transductive: it sees all queries of a task together")
        entrants.append(Entrant(run, name, tuple(flags), _place(benchmark, run), data_words(run.manifest["options"])))
    return tuple(entrants), entrants[first]


def _place(benchmark: Benchmark, run: GatheredRun) -> Place:
    if not isinstance(benchmark, PlacesScores):
        return {}
    try:
        options = parse_options(benchmark.options, dict(run.manifest["options"]))
    except HardlookError:
        return {}
    return dict(benchmark.published_slice(run.scorecard, options))


def data_words(options: Mapping[str, object]) -> str:
    """Which data ran, by the names of folders and files, without where they lie.

    >>> data_words({"data": {"voc": "/data/VOC2012"}, "gt": None}), data_words({"data": {}})
    ('voc=VOC2012', 'planted world')
    """
    given = options.get("data")
    paths = dict(given) if isinstance(given, Mapping) else {}
    if options.get("gt"):
        paths["gt"] = options["gt"]
    named = [f"{name}={str(path).rstrip('/').rpartition('/')[2]}" for name, path in paths.items()]
    return ", ".join(named) or "planted world"
