"""`hardlook demo`: every benchmark on the embedded world, with models that need nothing but the core install."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from hardlook.contract.sections import Section
    from hardlook.report.index import IndexEntry
    from hardlook.runs.scoring import ScoredRun

ROWS_AT_A_GLANCE = 12


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("demo")(demo)


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for index.html and the runs.")] = Path("demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print where the pages are as JSON.")] = False,
) -> None:
    """Run each benchmark on the planted world, good model and faulty model, and calibrate it.

    [bold]Example[/bold]

      hardlook demo --out demo
    """
    from hardlook.benchmarks import BUILT_IN
    from hardlook.report.index import render_index
    from hardlook.runs.folder import write_whole

    entries: list[IndexEntry] = []
    for name in BUILT_IN:
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
    typer.echo(json.dumps({"index": str(where), "pages": pages}) if as_json else f"\nopen {where}")


def _benchmark(name: str, out: Path) -> list[IndexEntry]:
    from hardlook.benchmarks import find_benchmark
    from hardlook.commands.calibrate import write_calibration
    from hardlook.commands.reporting import write_report
    from hardlook.report.charts import draw_svg
    from hardlook.report.index import IndexEntry
    from hardlook.runs.calibration import calibrate, calibration_section

    card = find_benchmark(name).card
    entries = []
    for title, model, arguments in _models(card):
        folder = f"{name}-{title}"
        typer.echo(f"{name}: {model} {_words(arguments)}", err=True)
        scored = _run(name, out / folder, model, arguments)
        write_report(scored)
        titles = {score.name: score.title for score in card.scores if score.headline}
        scores = [
            replace(score, name=titles[score.name]) for score in scored.scorecard.headline if score.name in titles
        ]
        sentence = f"{card.summary} Model: `{model}` {_words(arguments)}."
        thumbnail = _thumbnail(scored.benchmark.sections(scored.records, scored.scorecard), folder)
        entries.append(IndexEntry(f"{card.title}: {title} model", sentence, f"{folder}/report.html", scores, thumbnail))
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


def _thumbnail(sections: Sequence[Section], key: str) -> str:
    """The first chart that is small enough to be read at a glance."""
    from hardlook.contract.sections import DotChart
    from hardlook.report.charts import draw_svg

    for section in sections:
        for block in section.blocks:
            if isinstance(block, DotChart) and len(block.rows) <= ROWS_AT_A_GLANCE:
                return draw_svg(block, key=key)
    return ""


def _words(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in arguments.items())
