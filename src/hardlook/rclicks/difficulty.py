"""How hard instances are to click on, over runs of several models: page and files of `hardlook clicks difficulty`.

Difficulty is the spread of the IoU after one click over its mean; both are averaged over runs first. People's clicks
are used where every run has at least two on every instance, else those of the clicking groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import HardlookError, RunError
from hardlook.harness.rounding import format_fixed
from hardlook.harness.sections import DistributionChart, Example, Gallery, ScatterChart, Section, Spot, Table
from hardlook.harness.stats import spearman
from hardlook.metrics.click_robustness import instance_difficulty
from hardlook.rclicks.click_evaluation.report import format_csv
from hardlook.rclicks.report import GALLERY_TEXT
from hardlook.rclicks.scores import BY_GROUPS, ClickResults, difficulty_by_groups, measure_difficulty, read_results
from hardlook.report.estimates import finite_or_none
from hardlook.report.formatting import format_count
from hardlook.report.json_values import dump_json

if TYPE_CHECKING:
    from hardlook.harness.sections import Picture

Numbers = NDArray[np.float64]
SHOWN = 6  # instances per gallery
TABLED = 500  # instances in the page's table
# The options that say how a run was clicked on, and their names on the page.
SETTINGS = {
    "clicks": "click model",
    "clicks_args": "arguments of the click model",
    "groups": "groups",
    "group_rule": "group rule",
    "rounds": "rounds",
    "perfect": "rule after a perfect mask",
    "seed": "seed",
}
AFFECTING_GROUPS = ("click model", "arguments of the click model", "groups", "group rule")


@dataclass(frozen=True)
class ClickRun:
    """A run's folder, a unique name, its model and its results.

    `options` are those it was started with, `planned` counts its instances, answered or not, and `people_file` is the
    fingerprint of the file of people's clicks, "" where there is none.
    """

    folder: Path
    name: str
    model: str
    table: ClickResults = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    planned: int
    people_file: str = ""

    @property
    def clicks(self) -> str:
        """The click model."""
        return str(self.options.get("clicks", ""))


@dataclass(frozen=True)
class JoinedRuns:
    """The instances that all runs have: `mean` and `std` (runs, N) of the IoU after one click, in [0, 1].

    `who` says whose clicks; per run, `alone` counts its instances that another run lacks, and `clicked` those of the
    N on which people clicked twice or more.
    """

    runs: tuple[ClickRun, ...]
    units: tuple[str, ...]
    datasets: tuple[str, ...]
    mean: Numbers
    std: Numbers
    who: str
    alone: tuple[int, ...]
    clicked: tuple[int, ...]

    @cached_property
    def difficulty(self) -> Numbers:
        """(N,) mean deviation over mean of means; infinite where no click of any run found anything."""
        ratio = instance_difficulty(self.mean, self.std)
        return np.where(np.isnan(ratio), np.inf, ratio)

    @property
    def widest(self) -> ClickRun:
        """The run whose IoUs spread most; its pictures are shown."""
        return self.runs[int(np.argmax(self.std.mean(1)))]

    @property
    def hardest_first(self) -> NDArray[np.int64]:
        """(N,) indices; equal ones by name."""
        return np.asarray(np.argsort(-self.difficulty, kind="stable"), np.int64)


def read_run(folder: Path) -> ClickRun:
    """The answers of a run of RClicks; one without answers, or of another benchmark, is a `RunError`."""
    from hardlook.harness.runs.scoring import get_model_name, read_run_records

    manifest, records = read_run_records(folder, "rclicks")
    if not len(records):
        raise RunError("the run has no answer yet", file=folder, remedy="give its command again to finish it")
    people = str(manifest["answers"].get("parts", {}).get("data user_clicks", ""))
    options, planned = manifest["options"], manifest["units"]
    return ClickRun(folder, folder.name, get_model_name(manifest), read_results(records), options, planned, people)


def join_runs(runs: Sequence[ClickRun]) -> JoinedRuns:
    """The runs on the instances that all of them have; none in common is a `RunError`."""
    if len(runs) < 2:
        raise RunError("one run alone", remedy="give two or more; the report of a run has its own hard instances")
    shared = sorted(set.intersection(*(set(run.table.units) for run in runs)))
    if not shared:
        remedy = "run all models on the same data with the same --seed and --at-most"
        raise RunError("the runs have no instance in common", file=runs[-1].folder, remedy=remedy)
    tables = [run.table.select(np.isin(run.table.units, shared)) for run in runs]
    found = [measure_difficulty(table) for table in tables]
    if len({one.clicks for one in found}) > 1:
        found = [difficulty_by_groups(table) for table in tables]
    names = [run.name for run in runs]
    return JoinedRuns(
        tuple(
            run if names.count(run.name) == 1 else replace(run, name=f"{run.folder.resolve().parent.name}/{run.name}")
            for run in runs
        ),
        tables[0].units,
        tuple(tables[0].dataset.tolist()),
        np.stack([one.mean for one in found]),
        np.stack([one.deviation for one in found]),
        found[0].clicks,
        tuple(len(run.table) - len(shared) for run in runs),
        tuple(sum(len(ious) >= 2 for ious in table.people) for table in tables),
    )


def write_difficulty(joined: JoinedRuns, out: Path) -> dict[str, Any]:
    """Write the table, the numbers and the page; return the numbers."""
    from hardlook.harness.runs.folder import write_atomically
    from hardlook.report.page import render_study

    document = difficulty_document(joined)
    sections = build_sections(joined, document["in_words"])
    page = render_study(
        sections,
        title="Which instances clicks decide",
        summary="The spread of the IoU after one click over its mean, by instance, over the runs of several models.",
        provenance={name: document[name] for name in ("schema", "hardlook", "runs", "clicks_of")},
        pictures=draw_examples(joined, sections),
    )
    write_atomically(out / "difficulty.csv", _format_csv(joined))
    write_atomically(out / "difficulty.json", dump_json(document))
    write_atomically(out / "page.html", page)
    return document


def difficulty_document(joined: JoinedRuns) -> dict[str, Any]:
    """All numbers as JSON values; an instance on which no click found anything has no difficulty."""
    import hardlook

    return {
        "schema": "hardlook.clicks-difficulty/1",
        "hardlook": hardlook.__version__,
        "runs": [
            {
                "name": run.name,
                "folder": str(run.folder),
                "model": run.model,
                "clicks": run.clicks,
                "answered": len(run.table),
                "planned": run.planned,
                "alone": alone,
            }
            for run, alone in zip(joined.runs, joined.alone, strict=True)
        ],
        "differences": find_differences(joined.runs),
        "clicks_of": joined.who,
        "in_words": describe_difficulty(joined),
        "instances": [
            {
                "instance": joined.units[place],
                "dataset": joined.datasets[place],
                "difficulty": finite_or_none(joined.difficulty[place]),
                "mean": joined.mean[:, place].tolist(),
                "std": joined.std[:, place].tolist(),
            }
            for place in joined.hardest_first.tolist()
        ],
    }


def describe_difficulty(joined: JoinedRuns) -> list[str]:
    """The main results in sentences."""
    hardest, easiest = (joined.units[joined.hardest_first[place]] for place in (0, -1))
    finite = joined.difficulty[np.isfinite(joined.difficulty)]
    words = [f"{format_count(len(joined.units), 'instance')} that all {len(joined.runs)} runs have, by {joined.who}."]
    if len(finite):
        median = f"The median difficulty is {format_fixed(float(np.median(finite)), 3)}"
        words[0] += f" {median}; the hardest is {hardest}, the easiest {easiest}."
    if lost := len(joined.difficulty) - len(finite):
        which = "it counts" if lost == 1 else "they count"
        words.append(f"On {format_count(lost, 'instance')} no click of any run found anything: {which} as the hardest.")
    if any(joined.alone):
        each = [f"{count} of {run.name}" for run, count in zip(joined.runs, joined.alone, strict=True) if count]
        words.append(f"Left out, since another run lacks them: {', '.join(each)}.")
    return [*words, *describe_differences(joined)]


def build_sections(joined: JoinedRuns, words: Sequence[str]) -> list[Section]:
    """What the page shows."""
    order = joined.hardest_first.tolist()
    # No instance is among both, and one without a difficulty is not easy.
    hardest, rest = np.split(order, [min(SHOWN, -(-len(order) // 2))])
    easiest = rest[np.isfinite(joined.difficulty[rest])][::-1][:SHOWN]
    scatter = ScatterChart(
        "Mean against spread",
        "One spot per instance: mean IoU after one click, and its standard deviation over clicks, both averaged over "
        "runs. Hard instances are at the upper left.",
        [
            Spot(float(mean), float(std), unit, dataset)
            for mean, std, unit, dataset in zip(
                joined.mean.mean(0), joined.std.mean(0), joined.units, joined.datasets, strict=True
            )
        ],
        x_axis="mean IoU after one click",
        y_axis="standard deviation",
    )
    own, finite = np.array(joined.datasets), np.isfinite(joined.difficulty)
    spread = DistributionChart(
        "Difficulty by dataset",
        "Standard deviation over mean; instances without any are left out of this chart.",
        [(name, joined.difficulty[finite & (own == name)].tolist()) for name in sorted(set(joined.datasets))],
        axis="difficulty",
    )
    galleries = [
        Gallery(
            "The hardest instances",
            f"Pictures of {joined.widest.name}, whose clicks matter most.",
            _make_examples(joined, hardest),
        )
    ]
    if len(easiest):
        caption = "Of all instances, here it matters least which click is made."
        galleries.append(Gallery("The easiest instances", caption, _make_examples(joined, easiest)))
    runs = [
        (run.name, run.model, run.clicks, len(run.table), alone, float(mean.mean()), float(std.mean()))
        for run, alone, mean, std in zip(joined.runs, joined.alone, joined.mean, joined.std, strict=True)
    ]
    columns = ("run", "model", "clicks", "instances", "left out", "mean IoU after one click", "mean spread")
    ran = Table("The runs", "Left out are instances that another run lacks.", columns, runs)
    tables = [_agreement_table(joined), ran]
    if found := find_differences(joined.runs):
        rows = [(setting, *values) for setting, values in found.items()]
        tables.append(Table("What differs between the runs", "", ("setting", *(run.name for run in joined.runs)), rows))
    return [
        Section("What this means", "\n\n".join(words), (scatter, spread)),
        Section("Do the runs agree", "", tables),
        Section("Instances to look at", GALLERY_TEXT, galleries),
        Section("Every instance", "", (_instance_table(joined),)),
    ]


def draw_examples(joined: JoinedRuns, sections: Sequence[Section]) -> dict[str, Sequence[Picture] | str]:
    """The pictures of the run that spreads most, or the reason why there are none."""
    from hardlook.harness.registry import find_benchmark
    from hardlook.harness.runs.folder import RunFolder
    from hardlook.harness.runs.record_store import read_records
    from hardlook.harness.runs.scoring import list_stored_units

    galleries = [block for section in sections for block in section.blocks if isinstance(block, Gallery)]
    wanted = list(dict.fromkeys(example.unit for gallery in galleries for example in gallery.examples))
    folder = RunFolder(joined.widest.folder)
    manifest, benchmark = folder.read_manifest(), find_benchmark("rclicks")
    try:
        units = {unit.id: unit for unit in list_stored_units(benchmark, manifest)}
    except (HardlookError, OSError) as error:
        return {name: f"the data cannot be read any more: {error}" for name in wanted}
    columns = ["unit", *(column.name for column in benchmark.schema.columns)]
    records = read_records(folder, benchmark.schema, manifest["answers"]["fingerprint"], columns, wanted)
    found: dict[str, Sequence[Picture] | str] = {}
    for record in records.iter_rows(named=True):
        try:
            found[record["unit"]] = benchmark.pictures(units[record["unit"]], record)
        except (HardlookError, OSError, KeyError) as error:
            found[record["unit"]] = f"no picture: {error}"
    return found


def find_differences(runs: Sequence[ClickRun]) -> dict[str, list[str]]:
    """The settings that are not the same in all runs, in a fixed order, with the value in each run."""
    settings = {
        title: ["none" if (value := run.options.get(name)) in (None, "") else str(value) for run in runs]
        for name, title in SETTINGS.items()
    }
    # A file is known by its content: one file may lie at two places, and change at one.
    settings["people"] = [
        f"{Path(run.options['user_clicks']).name} {run.people_file[:8]}" if run.people_file else run.table.whose
        for run in runs
    ]
    return {setting: values for setting, values in settings.items() if len(set(values)) > 1}


def describe_differences(joined: JoinedRuns) -> list[str]:
    """Sentences on unfinished runs, settings that differ, and people's clicks that are not used."""
    words = []
    for run in joined.runs:
        if len(run.table) < run.planned:
            have = "has" if len(run.table) == 1 else "have"
            answered = f"{len(run.table)} of its {format_count(run.planned, 'instance')} {have} an answer"
            words.append(f"The run {run.name} is not finished: {answered}.")
    found = find_differences(joined.runs)
    if found:
        described = (f"{setting} ({_list_by_run(joined, values)})" for setting, values in found.items())
        words.append(f"The runs differ in {'; '.join(described)}.")
    if joined.who == BY_GROUPS and any(setting in found for setting in AFFECTING_GROUPS):
        words[-1] += " The groups' clicks count here, so this shifts their spreads."
    if joined.who == BY_GROUPS and any(joined.clicked):
        total = len(joined.units)
        if all(count == total for count in joined.clicked):
            whose = _list_by_run(joined, [run.table.whose for run in joined.runs])
            why = f"they are of different people ({whose})"
        else:
            have = _list_by_run(joined, [f"{count} of {total}" for count in joined.clicked])
            why = f"not every run has two or more of them on every instance ({have})"
        words.append(f"People's clicks are not used, since {why}: those of the groups count instead.")
    return words


def _list_by_run(joined: JoinedRuns, values: Sequence[str]) -> str:
    return ", ".join(f"{run.name}: {value}" for run, value in zip(joined.runs, values, strict=True))


def _agreement_table(joined: JoinedRuns) -> Table:
    own = np.divide(joined.std, joined.mean, out=np.full_like(joined.std, np.inf), where=joined.mean > 0)
    rows = []
    for (run, first), (other, second) in combinations(zip(joined.runs, own, strict=True), 2):
        both = np.isfinite(first) & np.isfinite(second)
        value = finite_or_none(spearman(first[both], second[both])) if both.sum() > 2 else None
        rows.append((run.name, other.name, int(both.sum()), value))
    caption = "Spearman's: 1 where two models find the same instances hard."
    columns = ("run", "other run", "instances", "Spearman")
    return Table("Rank correlation of the runs' difficulties", caption, columns, rows)


def _instance_table(joined: JoinedRuns) -> Table:
    order = joined.hardest_first.tolist()
    rows = [
        (
            joined.units[place],
            finite_or_none(joined.difficulty[place]),
            float(joined.mean[:, place].mean()),
            float(joined.std[:, place].mean()),
        )
        for place in order[:TABLED]
    ]
    caption = "Hardest first."
    if len(order) > TABLED:
        caption = f"The {TABLED} hardest; difficulty.csv has all {len(order)}."
    return Table("Difficulty", caption, ("instance", "difficulty", "mean IoU", "spread"), rows)


def _make_examples(joined: JoinedRuns, places: NDArray[np.int64]) -> list[Example]:
    examples = []
    for place in places:
        each = zip(joined.runs, joined.mean[:, place], joined.std[:, place], strict=True)
        texts = (
            f"{run.name}: IoU {format_fixed(mean, 2)} with a spread of {format_fixed(std, 2)}"
            for run, mean, std in each
        )
        examples.append(Example(joined.units[place], f"{'; '.join(texts)}."))
    return examples


def _format_csv(joined: JoinedRuns) -> str:
    """Hardest first; the difficulty is empty where no click found anything."""
    own = [f"{kind} {run.name}" for run in joined.runs for kind in ("mean", "std")]
    rows = []
    for place in joined.hardest_first.tolist():
        each = [value for run in range(len(joined.runs)) for value in (joined.mean[run, place], joined.std[run, place])]
        numbers = [joined.difficulty[place], joined.mean[:, place].mean(), joined.std[:, place].mean(), *each]
        cells = (f"{value:.6g}" if value < np.inf else "" for value in numbers)
        rows.append((joined.units[place], joined.datasets[place], *cells))
    return format_csv(("instance", "dataset", "difficulty", "mean", "std", *own), rows)
