"""`hardlook clicks difficulty`: which instances clicks decide, over the runs of several models."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands import study_flags
from hardlook.errors import OptionError
from hardlook.export.plain_values import json_text

if TYPE_CHECKING:
    from hardlook.commands.clicks.joined_runs import JoinedRuns


def difficulty(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished `hardlook run rclicks`.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for page.html, difficulty.csv and difficulty.json.")],
    as_json: study_flags.Json = False,
) -> None:
    """How hard each instance is to click on: the spread of the IoU after one click over its mean, over several models.

    Spread and mean are averaged over the runs first. Instances that not all runs have are left out and counted.

    [bold]Example[/bold]

      hardlook clicks difficulty runs/mobile-sam runs/grabcut --out difficulty
    """
    from hardlook.commands.clicks.joined_runs import join_runs, read_run

    if len({run.resolve() for run in runs}) < len(runs):
        raise OptionError("a run is given twice", remedy="give each run once")
    joined = join_runs([read_run(run) for run in runs])
    document = write_difficulty(joined, out)
    words = "\n\n".join([*document["in_words"], f"table: {out / 'difficulty.csv'}\npage: {out / 'page.html'}"])
    typer.echo(json_text(document) if as_json else words)


def write_difficulty(joined: JoinedRuns, out: Path) -> dict[str, Any]:
    """Write the table, the numbers and the page; return the numbers."""
    from hardlook.commands.clicks.difficulty_page import (
        difficulty_document,
        difficulty_pictures,
        difficulty_sections,
    )
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    document = difficulty_document(joined)
    sections = difficulty_sections(joined, document["in_words"])
    page = render_study(
        sections,
        title="Which instances clicks decide",
        summary="The spread of the IoU after one click over its mean, by instance, over the runs of several models.",
        provenance={name: document[name] for name in ("schema", "hardlook", "runs", "clicks_of")},
        pictures=difficulty_pictures(joined, sections),
    )
    write_whole(out / "difficulty.csv", _table(joined))
    write_whole(out / "difficulty.json", json_text(document))
    write_whole(out / "page.html", page)
    return document


def _table(joined: JoinedRuns) -> str:
    """Hardest first; the difficulty is empty where no click found anything."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    own = [f"{kind} {run.name}" for run in joined.runs for kind in ("mean", "std")]
    writer.writerow(("instance", "dataset", "difficulty", "mean", "std", *own))
    for place in joined.hardest_first.tolist():
        each = [value for run in range(len(joined.runs)) for value in (joined.mean[run, place], joined.std[run, place])]
        numbers = [joined.difficulty[place], joined.mean[:, place].mean(), joined.std[:, place].mean(), *each]
        writer.writerow((joined.units[place], joined.datasets[place], *(_number(value) for value in numbers)))
    return text.getvalue()


def _number(value: float) -> str:
    return f"{value:.6g}" if value < float("inf") else ""
