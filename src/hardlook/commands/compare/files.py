"""From run folders to a comparison, its page and its file: what `compare` and runs of several models share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.commands.reports.reporting import model_marks

if TYPE_CHECKING:
    from hardlook.comparison import Comparison
    from hardlook.runs.scoring import ScoredRun

EXAMPLES = 6
PAGE, NUMBERS = "comparison.html", "comparison.json"


def read_runs(folders: Sequence[Path], changes: dict[str, Any] | None = None) -> list[ScoredRun]:
    """The runs, scored without intervals where a comparison makes its own."""
    from hardlook.benchmarks import find_benchmark
    from hardlook.contract.benchmark import Tallied
    from hardlook.runs.folder import RunFolder
    from hardlook.runs.scoring import score_run

    runs = []
    for path in folders:
        folder = RunFolder(path)
        manifest = folder.read_manifest()
        own = dict(changes or {})
        if isinstance(find_benchmark(manifest["benchmark"]["name"]), Tallied) and "resamples" in manifest["options"]:
            own["resamples"] = 0
        runs.append(score_run(folder, own))
    return runs


def compare_runs(
    runs: Sequence[ScoredRun],
    *,
    names: Sequence[str] | None = None,
    swaps: int | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    show_progress: Callable[[int, int], Any] | None = None,
) -> Comparison:
    """Compare runs as their own options draw intervals, models named with the mark that readers must know."""
    from hardlook.comparison import compare

    drawn = max(int(run.manifest["options"].get("resamples") or 0) for run in runs) if runs else 0
    return compare(
        runs,
        names=names or marked_names(runs),
        swaps=swaps,
        resamples=drawn or None,
        alpha=alpha,
        seed=seed,
        show_progress=show_progress,
    )


def marked_names(runs: Sequence[ScoredRun]) -> list[str]:
    """Names of the models; scores of transductive ones are not comparable with others', so their names say it."""
    from hardlook.comparison.model_names import model_names

    found = []
    for run, name in zip(runs, model_names(runs), strict=True):
        marks = model_marks(run.manifest["model"]["name"]) if run.manifest["model"] else ()
        found.append(f"{name} (transductive)" if "transductive" in marks else name)
    return found


def write_comparison(
    comparison: Comparison,
    runs: Sequence[ScoredRun],
    page: Path,
    *,
    examples: int = EXAMPLES,
    summary: str = "",
    more: Sequence[Any] = (),
) -> dict[str, Any]:
    """Write the page, and the numbers beside it; return the numbers. `more` are sections that come last."""
    from hardlook.comparison.differing_units import count_units, unit_qualities
    from hardlook.comparison.document import document_of
    from hardlook.comparison.sections import show
    from hardlook.comparison.side_by_side import pictures_of
    from hardlook.comparison.unit_sections import shown_models
    from hardlook.contract.sections import Gallery
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    card, models = comparison.benchmark.card, comparison.models
    qualities = unit_qualities(runs, models, comparison.units.ids)
    counts = [count_units(qualities, one, other) for one, other in combinations(models, 2)] if qualities else []
    document = document_of(comparison, runs, counts)
    sections = [*show(comparison, runs, qualities, examples=examples), *more]
    galleries = [block for section in sections for block in section.blocks if isinstance(block, Gallery)]
    wanted = {
        example.unit: shown_models(qualities, example.unit)
        for gallery in galleries
        for example in gallery.examples
        if qualities is not None
    }
    between = " and ".join(models) if len(models) == 2 else f"{len(models)} models"
    html = render_study(
        sections,
        kind="Comparison",
        title=f"{card.title}: {between}",
        summary=f"{card.summary} {comparison.notes[0]} {summary}".strip(),
        provenance={
            key: document[key] for key in ("schema", "benchmark", "models", "readings", "alpha", "swaps", "seed")
        },
        pictures=pictures_of(dict(zip(models, runs, strict=True)), wanted),
    )
    write_whole(page, html)
    numbers = page.with_name(NUMBERS) if page.stem in ("comparison", "report") else page.with_suffix(".json")
    write_whole(numbers, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return document
