"""The page and the document of `hardlook clicks difficulty`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.commands.clicks.run_differences import differences, differences_in_words
from hardlook.contract.sections import DistributionChart, Example, Gallery, ScatterChart, Section, Spot, Table
from hardlook.errors import HardlookError
from hardlook.report.numerals import counted
from hardlook.stats import spearman

if TYPE_CHECKING:
    from hardlook.commands.clicks.joined_runs import JoinedRuns
    from hardlook.contract.sections import Picture

SHOWN = 6
TABLED = 500


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
        "differences": {one.setting: list(one.values) for one in differences(joined.runs)},
        "clicks_of": joined.who,
        "in_words": in_words(joined),
        "instances": [
            {
                "instance": joined.units[place],
                "dataset": joined.datasets[place],
                "difficulty": _number(joined.difficulty[place]),
                "mean": joined.mean[:, place].tolist(),
                "std": joined.std[:, place].tolist(),
            }
            for place in joined.hardest_first.tolist()
        ],
    }


def in_words(joined: JoinedRuns) -> list[str]:
    """What was found."""
    hardest, easiest = (joined.hardest_first[place] for place in (0, -1))
    finite = joined.difficulty[np.isfinite(joined.difficulty)]
    text = f"{counted(len(joined.units), 'instance')} that all {len(joined.runs)} runs have, by {joined.who}."
    if len(finite):
        text += (
            f" The median difficulty is {np.median(finite):.3f}; the hardest is {joined.units[hardest]}, the easiest "
            f"{joined.units[easiest]}."
        )
    words = [text]
    if lost := len(joined.difficulty) - len(finite):
        which = "it counts" if lost == 1 else "they count"
        words.append(f"On {counted(lost, 'instance')} no click of any run found anything: {which} as the hardest.")
    if any(joined.alone):
        each = ", ".join(
            f"{count} of {run.name}" for run, count in zip(joined.runs, joined.alone, strict=True) if count
        )
        words.append(f"Left out, since another run lacks them: {each}.")
    return [*words, *differences_in_words(joined)]


def difficulty_sections(joined: JoinedRuns, words: Sequence[str]) -> list[Section]:
    """What the page shows."""
    hardest, easiest = _extremes(joined)
    scatter = ScatterChart(
        "Mean against spread",
        "One spot an instance: mean IoU after one click, and its standard deviation over clicks, both averaged over "
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
    datasets = sorted(set(joined.datasets))
    own = np.array(joined.datasets)
    finite = np.isfinite(joined.difficulty)
    spread = DistributionChart(
        "Difficulty by dataset",
        "Standard deviation over mean; instances without any are left out of this chart.",
        [(name, joined.difficulty[finite & (own == name)].tolist()) for name in datasets],
        axis="difficulty",
    )
    galleries = [
        Gallery(
            "The hardest instances",
            f"Pictures of {joined.widest.name}, whose clicks matter most.",
            _examples(joined, hardest),
        )
    ]
    if easiest:
        caption = "Of all instances, here it matters least which click is made."
        galleries.append(Gallery("The easiest instances", caption, _examples(joined, easiest)))
    text = "Clicks are numbered in their order, green for positive and red for negative ones. In the last picture of a "
    text += "row green is what all masks agree on after one click, and dots are those clicks."
    return [
        Section("What this means", "\n\n".join(words), (scatter, spread)),
        Section("Do the runs agree", "", (_agreement(joined), _runs(joined), *_differences(joined))),
        Section("Instances to look at", text, galleries),
        Section("Every instance", "", (_instances(joined),)),
    ]


def difficulty_pictures(joined: JoinedRuns, sections: Sequence[Section]) -> dict[str, Sequence[Picture] | str]:
    """The pictures of the run that spreads most, or the reason why there are none."""
    from hardlook.benchmarks import find_benchmark
    from hardlook.contract.options import parse_options
    from hardlook.runs.folder import RunFolder
    from hardlook.runs.record_store import read_records

    galleries = [block for section in sections for block in section.blocks if isinstance(block, Gallery)]
    wanted = list(dict.fromkeys(example.unit for gallery in galleries for example in gallery.examples))
    folder = RunFolder(joined.widest.folder)
    manifest, benchmark = folder.read_manifest(), find_benchmark("rclicks")
    try:
        units = {unit.id: unit for unit in benchmark.units(parse_options(benchmark.options, manifest["options"]))}
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


def _agreement(joined: JoinedRuns) -> Table:
    own = np.divide(joined.std, joined.mean, out=np.full_like(joined.std, np.inf), where=joined.mean > 0)
    rows = []
    for one in range(len(own)):
        for other in range(one + 1, len(own)):
            both = np.isfinite(own[one]) & np.isfinite(own[other])
            value = _number(float(spearman(own[one][both], own[other][both]))) if both.sum() > 2 else None
            rows.append((joined.runs[one].name, joined.runs[other].name, int(both.sum()), value))
    return Table(
        "Rank correlation of the runs' difficulties",
        "Spearman's: 1 where two models find the same instances hard.",
        ("run", "other run", "instances", "Spearman"),
        rows,
    )


def _runs(joined: JoinedRuns) -> Table:
    rows = [
        (run.name, run.model, run.clicks, len(run.table), alone, float(mean.mean()), float(std.mean()))
        for run, alone, mean, std in zip(joined.runs, joined.alone, joined.mean, joined.std, strict=True)
    ]
    columns = ("run", "model", "clicks", "instances", "left out", "mean IoU after one click", "mean spread")
    return Table("The runs", "Left out are instances that another run lacks.", columns, rows)


def _differences(joined: JoinedRuns) -> tuple[Table, ...]:
    found = differences(joined.runs)
    columns = ("setting", *(run.name for run in joined.runs))
    rows = [(one.setting, *one.values) for one in found]
    return (Table("What differs between the runs", "", columns, rows),) if found else ()


def _extremes(joined: JoinedRuns) -> tuple[list[int], list[int]]:
    """Places of the hardest and of the easiest, no instance among both; without a difficulty none is easy."""
    order = joined.hardest_first.tolist()
    hardest = order[: min(SHOWN, -(-len(order) // 2))]
    left = [place for place in order[len(hardest) :] if math.isfinite(joined.difficulty[place])]
    return hardest, left[::-1][:SHOWN]


def _instances(joined: JoinedRuns) -> Table:
    order = joined.hardest_first.tolist()
    rows = [
        (
            joined.units[place],
            _number(joined.difficulty[place]),
            float(joined.mean[:, place].mean()),
            float(joined.std[:, place].mean()),
        )
        for place in order[:TABLED]
    ]
    caption = (
        "Hardest first." if len(order) <= TABLED else f"The {TABLED} hardest; difficulty.csv has all {len(order)}."
    )
    return Table("Difficulty", caption, ("instance", "difficulty", "mean IoU", "spread"), rows)


def _examples(joined: JoinedRuns, places: Sequence[int]) -> list[Example]:
    return [
        Example(
            joined.units[place],
            "; ".join(
                f"{run.name}: IoU {joined.mean[row, place]:.2f} with a spread of {joined.std[row, place]:.2f}"
                for row, run in enumerate(joined.runs)
            )
            + ".",
        )
        for place in places
    ]


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
