"""`hardlook report RUN...` writes the pages of runs and an index of several; `hardlook score RUN` their scores.

`hardlook join RUN...` makes one run of several. All read the stored records and need no model. Where units have no
record, a warning goes to standard error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from hardlook.api.running import join as join_folders
from hardlook.api.runs import describe_problems
from hardlook.cli import arguments
from hardlook.cli.printing import print_output, print_scores, run_warnings_as_notes
from hardlook.cloud.addresses import format_path
from hardlook.cloud.run_folders import open_run
from hardlook.errors import OptionError
from hardlook.harness.runs.folder import RunFolder, is_read_only_error, write_atomically
from hardlook.harness.runs.record_store import write_failures
from hardlook.harness.runs.scoring import ScoredRun, score_run
from hardlook.report.index import IndexEntry, draw_preview, render_index
from hardlook.report.run_report import write_report

FINISHED_WITH_FAILURES = 3


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Run folders.")],
    examples: Annotated[
        int, typer.Option("--examples", min=0, help="Units a gallery shows at most; 0 leaves galleries out.")
    ] = 6,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The page of one run, or the index of several; or a folder for it.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the pages as JSON.")] = False,
) -> None:
    """Write `report.html` into run folders, from their records.

    A page is one file that loads nothing. Several runs get a page each, and an index with links to
    them in the folder that contains them all. Of a read-only run folder the page goes to `--out`; without it
    the scores are printed instead.

    Examples:
      hardlook report runs/first

      hardlook report runs/first runs/second --examples 12 --out overview.html
    """
    runs = list(dict.fromkeys(map(open_run, runs)))
    several = len(runs) > 1
    place = None if out is None else page_path(out, several=several)
    index = (place or index_path(runs)) if several else None
    pages, entries = [], []
    for run in runs:
        scored = read_scored_run(run)
        page = _write_page(scored, examples, place, index, as_json)
        pages.append(
            {"run": format_path(run), "report": page and format_path(page), "bytes": page and page.stat().st_size}
        )
        if index is not None and page is not None:
            entries.append(index_entry(scored, page, index))
    if entries and index is not None:
        write_atomically(index, render_index(entries, text="Each report is one file that loads nothing."))
    else:
        index = None
    if as_json:
        print_output(json.dumps({"pages": pages, "index": None if index is None else format_path(index)}))
        return
    for page_of_run in pages:
        if page_of_run["report"]:
            typer.echo(page_of_run["report"])
    if index is not None:
        typer.echo(format_path(index))


def _write_page(scored: ScoredRun, examples: int, place: Path | None, index: Path | None, as_json: bool) -> Path | None:
    """Write a run's page to its place; for a read-only folder beside the index, or print the scores and return None."""
    try:
        return write_report(scored, examples=examples, out=None if index else place)
    except OSError as error:
        if (index is None and place is not None) or not is_read_only_error(error):
            raise
    if index is not None and place is not None:
        name = "-".join(part for part in scored.folder.path.parts if part not in ("/", ".", ".."))
        return write_report(scored, examples=examples, out=index.with_name(f"{name}.html"))
    typer.echo(f"{scored.folder.path}: read-only, no page was written; --out FILE.html writes it elsewhere", err=True)
    if not as_json:
        print_scores(scored.scorecard, scored.benchmark, as_json=False)
    return None


# Not index.html: the folder may have one of its own.
INDEX = "reports.html"


def index_path(runs: Sequence[Path]) -> Path:
    """The default path of the index of these runs: in the folder that contains them all.

    >>> index_path([Path("runs/a"), Path("runs/b")]), index_path([Path("a/b"), Path("c")])
    (PosixPath('runs/reports.html'), PosixPath('reports.html'))
    """
    parents = [os.path.abspath(run.parent) for run in runs]  # noqa: PTH100 - links are kept as they are named
    common = Path(os.path.relpath(os.path.commonpath(parents)))
    return common / INDEX


def page_path(out: Path, *, several: bool) -> Path:
    """The page that `--out` names: `--out` itself where it ends in .html or .htm, else a page in that folder.

    >>> page_path(Path("small.html"), several=False), page_path(Path("pages"), several=True)
    (PosixPath('small.html'), PosixPath('pages/reports.html'))
    """
    if out.suffix.lower() in (".html", ".htm"):
        return out
    return out / (INDEX if several else "report.html")


def index_entry(scored: ScoredRun, page: Path, index: Path) -> IndexEntry:
    """A run's entry in the index: its headline scores, a small chart and a relative link."""
    card = scored.benchmark.card
    titles = {score.name: score.title for score in card.scores if score.headline} or {
        score.name: score.title for score in card.scores
    }
    scores = [replace(score, name=titles[score.name]) for score in scored.scorecard.headline if score.name in titles]
    counts = scored.scorecard.units
    left = f", {counts.failed} failed" if counts.failed else ""
    sentence = f"{card.summary} {counts.scored} of {counts.planned} units scored{left}. Folder: `{scored.folder.path}`."
    href = quote(Path(os.path.relpath(page, index.parent)).as_posix())
    sections = scored.benchmark.report(scored.records, scored.scorecard)
    # The folder makes the key, so that ids differ between entries of one benchmark.
    drawn = draw_preview(sections, key=f"run-{quote(href, safe='').replace('%', '-')}")
    return IndexEntry(f"{card.title}: {scored.scorecard.model}", sentence, href, scores, drawn)


def score(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    reading: Annotated[
        list[str] | None, typer.Option("--reading", help="NAME=VALUE; repeatable.", show_default=False)
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE of an option that changes only scores.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the scorecard to this file.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Print every score and every slice.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print scores.json instead of a table.")] = False,
) -> None:
    """Recompute the scores of a run from its records.

    Without changes `scores.json` and `report.html` in the folder are rewritten. With another reading or option,
    or in a read-only folder, they stay as they are: the scores are printed, and written to `--out`.

    Examples:
      hardlook score runs/first

      hardlook score runs/first --reading mean-over=gt-only --set level=.9 --out gt-only.json
    """
    changes: dict[str, Any] = {
        name.replace("-", "_"): value for name, value in arguments.parse_pairs(option, "--set").items()
    }
    if "reading" in changes:
        raise OptionError("--set reading: readings have a flag of their own", remedy="--reading NAME=VALUE")
    if reading:
        changes["reading"] = arguments.parse_pairs(reading, "--reading")
    run = open_run(run)
    scored = read_scored_run(run, changes)
    if not changes:
        try:
            write_atomically(scored.folder.scores_path, scored.scorecard.to_json())
            write_failures(scored.folder, scored.manifest["answers"]["fingerprint"])
            write_report(scored)
        except OSError as error:
            if not is_read_only_error(error):
                raise
            typer.echo(f"{run}: read-only, nothing was written there; --out FILE writes the scores elsewhere", err=True)
    if out is not None:
        write_atomically(out, scored.scorecard.to_json())
    print_scores(scored.scorecard, scored.benchmark, as_json=as_json, full=full)


def read_scored_run(run: Path, changes: dict[str, Any] | None = None) -> ScoredRun:
    """Score the run of that folder, with warnings on standard error: units without a record, records of mixed code."""
    scored = score_run(RunFolder(run), changes)
    for text in describe_problems(run, scored.manifest, scored.scorecard.units):
        typer.echo(f"{format_path(run)}: {text}", err=True)
    return scored


def join(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Run folders; they are not changed.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the joined run.")],
    new: Annotated[bool, typer.Option("--new", help="Set another run in that folder aside.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print scores.json instead of a table.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Print every score and every slice.")] = False,
) -> None:
    """Make one run of runs on different units, such as those of the models of four folds.

    The runs need the same benchmark, settings and model; the weights of the model may differ, and its arguments by the
    number of the fold. The joined run has the records of all of them, is scored over all units, and can be reported,
    compared, ranked and exported like any other. Runs with units in common or with different settings are refused.

    Examples:
      hardlook join runs/fold0 runs/fold1 runs/fold2 runs/fold3 --out runs/net
    """
    with run_warnings_as_notes():
        scored = join_folders(list(runs), out, new=new).scored
    print_scores(scored.scorecard, scored.benchmark, as_json=as_json, full=full)
    if not as_json:
        typer.echo(f"\nreport: {format_path(scored.folder.report_path)}")
    if scored.scorecard.units.failed:
        failures = format_path(scored.folder.failures_path)
        typer.echo(f"{scored.scorecard.units.failed} units failed: {failures}", err=True)
        raise typer.Exit(FINISHED_WITH_FAILURES)
