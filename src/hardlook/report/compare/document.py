"""The files of a comparison: `comparison.html`, and `comparison.json` with every number for other programs.

The schema is `hardlook.comparison/1`; docs/compare.md describes its fields. Undefined and infinite numbers are null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import OptionError
from hardlook.harness.scorecard import merge_readings
from hardlook.report.compare.differences import (
    count_comparisons,
    describe_difference,
    find_score_meaning,
    list_headline_names,
)
from hardlook.report.compare.slices import find_slice_winners, find_winner_changes
from hardlook.report.json_values import dump_json, to_json_value

if TYPE_CHECKING:
    from hardlook.harness.runs.scoring import ScoredRun
    from hardlook.report.compare.comparison import Comparison
    from hardlook.report.compare.units import UnitCount

SCHEMA = "hardlook.comparison/1"
EXAMPLES = 6
PAGE, NUMBERS = "comparison.html", "comparison.json"


def choose_page(out: Path) -> Path:
    """The page that `--out` names: itself where it ends in .html or .htm, else one in that folder.

    It is an error where the page, or the numbers beside it, would replace or hide what a run folder holds.
    """
    from hardlook.harness.runs.folder import RunFolder, refuse_part_of_run

    page = out if out.suffix.lower() in (".html", ".htm") else out / PAGE
    for file in (page, choose_numbers(page)):
        if file.name == NUMBERS and RunFolder(file.parent).exists():
            raise OptionError(
                "this folder holds a run, and a comparison needs one of its own",
                file=file.parent,
                remedy="choose another folder for --out, such as comparison",
            )
        refuse_part_of_run(file)
    return page


def choose_numbers(page: Path) -> Path:
    """The file of numbers beside a page.

    >>> choose_numbers(Path("a/comparison.html")).name, choose_numbers(Path("a/nets.html")).name
    ('comparison.json', 'nets.json')
    """
    return page.with_name(NUMBERS) if page.stem in ("comparison", "report") else page.with_suffix(".json")


def write_comparison(
    comparison: Comparison,
    runs: Sequence[ScoredRun | Sequence[ScoredRun]],
    page: Path,
    *,
    examples: int = EXAMPLES,
    summary: str = "",
    more: Sequence[Any] = (),
) -> dict[str, Any]:
    """Write the page, and the numbers beside it; return the numbers. `more` are sections that come last.

    `runs` are those that were compared; of a model with several the first one shows the single units.
    """
    from hardlook.harness.runs.folder import write_atomically
    from hardlook.report.compare.report import build_sections, describe_comparison
    from hardlook.report.compare.units import choose_shown_models, compute_unit_qualities, count_units, load_pictures
    from hardlook.report.page import render_study
    from hardlook.report.run_report import list_shown_units

    card, models = comparison.benchmark.card, comparison.models
    groups: list[Sequence[ScoredRun]] = [one if isinstance(one, Sequence) else (one,) for one in runs]
    shown_runs = [group[0] for group in groups]
    others = [run for group in groups for run in group[1:]]
    qualities = compute_unit_qualities(shown_runs, models, comparison.units.ids, examples, others)
    counts = [count_units(qualities, *pair) for pair in combinations(models, 2)] if qualities else []
    document = build_document(comparison, shown_runs, counts)
    for entry, group in zip(document["models"], groups, strict=True):
        if len(group) > 1:
            entry["folders"] = [str(run.folder.path) for run in group]
    sections = [*build_sections(comparison, shown_runs, qualities, examples=examples), *more]
    shown = list_shown_units(sections) if qualities else []
    wanted = {unit: choose_shown_models(qualities, unit) for unit in shown} if qualities else {}
    between = " and ".join(models) if len(models) == 2 else f"{len(models)} models"
    html = render_study(
        sections,
        kind="Comparison",
        title=f"{card.title}: {between}",
        lead=describe_comparison(comparison),
        summary=" ".join(filter(None, (*comparison.units.describe(), summary))),
        about=card.summary,
        folded=True,
        provenance={
            key: document[key] for key in ("schema", "benchmark", "models", "readings", "alpha", "swaps", "seed")
        },
        pictures=load_pictures(dict(zip(models, shown_runs, strict=True)), wanted),
    )
    write_atomically(page, html)
    write_atomically(choose_numbers(page), dump_json(document) + "\n")
    return document


def build_document(
    comparison: Comparison, runs: Sequence[ScoredRun], counts: Sequence[UnitCount] = ()
) -> dict[str, Any]:
    """The comparison as JSON values; `counts` says how often each model is better on single units."""
    card = comparison.benchmark.card
    units = {name: value for name, value in asdict(comparison.units).items() if name not in ("ids", "count")}
    winners = find_slice_winners(comparison)
    document: dict[str, Any] = to_json_value(
        {
            "schema": SCHEMA,
            "benchmark": {"name": card.name, "version": card.version},
            "models": [
                {"name": name, "folder": str(run.folder.path), "model": run.manifest["model"]}
                for name, run in zip(comparison.models, runs, strict=True)
            ],
            "readings": {
                one.name: one.value
                for one in merge_readings(comparison.benchmark.readings(runs[0].options), runs[0].scorecard.readings)
            },
            "alpha": comparison.alpha,
            "level": 1 - comparison.alpha,
            "swaps": comparison.swaps,
            "resamples": comparison.resamples,
            "interval": comparison.interval,
            "seed": comparison.seed,
            "units": {"shared": comparison.units.count, "same": comparison.units.same, **units},
            "notes": list(comparison.notes),
            "headline": list(list_headline_names(card)),
            "sentences": [describe_difference(one, find_score_meaning(card, one.name)) for one in comparison.headline],
            "standings": {name: [asdict(place) for place in places] for name, places in comparison.standings.items()},
            "families": count_comparisons(comparison.differences),
            "differences": [asdict(one) for one in comparison.differences],
            "scores": {model: [asdict(score) for score in scores] for model, scores in comparison.scores.items()},
            "winners": [asdict(winner) for winner in winners],
            "winner_changes": [
                {
                    "name": change.winner.name,
                    "slice": change.winner.slice,
                    "winner": change.winner.leaders[0],
                    "usual": change.usual,
                    "usual_leads": "over all units" if change.overall else "in most slices",
                }
                for change in find_winner_changes(winners)
            ],
            "single_units": [asdict(count) for count in counts],
        }
    )
    return document
