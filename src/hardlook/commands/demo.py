"""`hardlook demo`: every benchmark on the embedded world, with models that need nothing but the core install."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.export.plain_values import json_text

if TYPE_CHECKING:
    from hardlook.report.index import IndexEntry
    from hardlook.runs.scoring import ScoredRun

SWAPS = 999


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("demo")(demo)


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for index.html and the runs.")] = Path("demo"),
    benchmark: Annotated[
        list[str] | None, typer.Option("--benchmark", help="Only this one; repeatable.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print where the pages are as JSON.")] = False,
) -> None:
    """Run each benchmark on the planted world, with a sound and a faulty model, compare the two, and calibrate it.

    [bold]Examples[/bold]

      hardlook demo --out demo

      hardlook demo --benchmark rclicks --out demo-rclicks
    """
    from hardlook.benchmarks import BUILT_IN, find_benchmark
    from hardlook.report.index import render_index
    from hardlook.runs.folder import write_whole

    entries: list[IndexEntry] = []
    for name in [find_benchmark(asked).card.name for asked in benchmark or BUILT_IN]:
        entries += _benchmark(name, out)
    page = render_index(
        entries,
        title="hardlook on the planted world",
        text="Every benchmark, run on scenes whose truth is known, with planted models whose faults are known. "
        "Open a report to see which classes, contexts and images a mean hides.",
    )
    write_whole(out / "index.html", page)
    where = (out / "index.html").resolve()
    pages = [entry.href for entry in entries]
    typer.echo(json_text({"index": str(where), "pages": pages}) if as_json else f"\nopen {where}")


def _benchmark(name: str, out: Path) -> list[IndexEntry]:
    from hardlook.benchmarks import find_benchmark
    from hardlook.commands.calibrate import write_calibration
    from hardlook.commands.reports.reporting import write_report
    from hardlook.report.charts import draw_svg
    from hardlook.report.index import IndexEntry, glance
    from hardlook.runs.calibration import calibrate, calibration_section

    card = find_benchmark(name).card
    entries, runs = [], []
    for title, model, arguments in _models(card):
        folder = f"{name}-{title}"
        typer.echo(f"{name}: {model} {_words(arguments)}", err=True)
        scored = _run(name, out / folder, model, arguments)
        write_report(scored)
        runs.append(scored)
        titles = {score.name: score.title for score in card.scores if score.headline}
        scores = [
            replace(score, name=titles[score.name]) for score in scored.scorecard.headline if score.name in titles
        ]
        sentence = f"{card.summary} Model: `{model}` {_words(arguments)}."
        thumbnail = glance(scored.benchmark.sections(scored.records, scored.scorecard), key=folder)
        entries.append(IndexEntry(f"{card.title}: {title} model", sentence, f"{folder}/report.html", scores, thumbnail))
    entries.append(_comparison(name, runs, out))
    typer.echo(f"{name}: calibration", err=True)
    calibration = calibrate(name, card.calibrated)
    write_calibration(calibration, out / f"{name}-calibration")
    chart: Any = calibration_section(calibration).blocks[0]
    sentence = "Faults of planted models turned from 0 to 1: does the score follow them, and nothing else?"
    href = f"{name}-calibration/calibration.html"
    entries.append(
        IndexEntry(f"{card.title}: calibration", sentence, href, (), draw_svg(chart, key=f"{name}-calibration"))
    )
    return entries


def _comparison(name: str, runs: list[ScoredRun], out: Path) -> IndexEntry:
    """Does the faulty model lose: a sentence of the first headline score, and the page."""
    from hardlook.commands.compare.files import PAGE, compare_runs, write_comparison
    from hardlook.comparison.verdicts import meaning_of, sentence
    from hardlook.report.index import IndexEntry

    typer.echo(f"{name}: comparison", err=True)
    card, folder = runs[0].benchmark.card, f"{name}-comparison"
    compared = compare_runs(runs, names=("sound", "faulty"), swaps=SWAPS)
    write_comparison(compared, runs, out / folder / PAGE)
    first = compared.headline[0]
    return IndexEntry(
        f"{card.title}: sound against faulty", sentence(first, meaning_of(card, first.name)), f"{folder}/{PAGE}"
    )


def _run(name: str, folder: Path, model: str, arguments: dict[str, Any]) -> ScoredRun:
    from hardlook.errors import ChangedRun
    from hardlook.runs.execute import Conduct
    from hardlook.runs.launch import launch
    from hardlook.runs.progress import progress_for

    try:
        done = launch(name, out=folder, model=model, model_args=arguments, show_progress=progress_for)
    except ChangedRun:
        # A demo of an earlier version lies here: it is set aside, as `--new` would.
        conduct = Conduct(new=True)
        done = launch(name, out=folder, model=model, model_args=arguments, conduct=conduct, show_progress=progress_for)
    assert done.scored is not None
    return done.scored


def _models(card: Any) -> list[tuple[str, str, dict[str, Any]]]:
    first = next(dial for dial in card.dials if dial.moves)
    return [("sound", first.model, dict(first.arguments(0.0))), ("faulty", first.model, dict(first.arguments(0.3)))]


def _words(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in arguments.items())
