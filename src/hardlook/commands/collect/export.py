"""`hardlook collect export`: what came in as files, with a report of its quality."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from hardlook.commands import study_flags
from hardlook.commands.collect.stored_study import Database, StudyFolder, stored_study
from hardlook.commands.printing import print_json

if TYPE_CHECKING:
    from hardlook.metrics.click_distances import WassersteinReading


def export(
    study: StudyFolder,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for the files, report.json and page.html; STUDY/export without it."),
    ] = None,
    mode: Annotated[
        str | None, typer.Option("--mode", help="Only clicks of this display mode in clicks.csv; all without it.")
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", help="JSON of exclusion rules, in place of those that were set on the dashboard."),
    ] = None,
    all_clicks: Annotated[
        bool, typer.Option("--all-clicks", help="Invalid clicks too, of participants that no rule leaves out.")
    ] = False,
    reading: Annotated[
        list[str] | None, typer.Option("--reading", help="wd=released|paper; repeatable.", show_default=False)
    ] = None,
    database: Database = "",
    as_json: study_flags.Json = False,
    quiet: study_flags.Quiet = False,
) -> None:
    """Write what came in: clicks.csv in RClicks' columns, reviews or ratings, and a report of their quality.

    Validity is computed from the masks. Rules are least_inside, least_reaction_ms, most_early_share, most_late_ms,
    most_dropped_batches, least_answers and participants; an empty object leaves out nobody.

    [bold]Examples[/bold]

      hardlook collect export study

      hardlook collect export study --out collected --mode cut-out --rules rules.json

      hardlook collect export study --out collected --database postgresql://someone@localhost/study
    """
    from hardlook.collect.results.exclusions import read_rules
    from hardlook.collect.results.export import export_study
    from hardlook.commands.build.inputs import showing_progress
    from hardlook.commands.clicks.readings import EVALUATION, chosen_readings

    out = out or study / "export"
    chosen = read_rules(rules) if rules else None
    readings = chosen_readings(reading, {"wd": EVALUATION["wd"]})
    with stored_study(study, database) as (opened, store), showing_progress(quiet) as start:
        # Clicks alone are judged task by task; all else is done before a bar is drawn.
        tasks = sum(not task.training for task in opened.tasks) if opened.settings.kind == "clicks" else 0
        advance = start(tasks, 0)
        found = export_study(
            opened,
            store,
            out,
            chosen,
            mode=mode,
            all_clicks=all_clicks,
            wd=cast("WassersteinReading", readings["wd"]),
            advance=lambda done: advance(done, 0),
        )
    if as_json:
        print_json({**found.document, "out": str(out)})
    else:
        typer.echo("\n\n".join([*found.words, f"page: {out / 'page.html'}"]))
