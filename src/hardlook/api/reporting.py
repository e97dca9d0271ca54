"""Pages of one run or of several, with an index that links them; `hardlook report` calls this and prints."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from hardlook.harness.runs.folder import RunFolder, is_read_only_error, refuse_part_of_run, write_atomically
from hardlook.harness.runs.scoring import ScoredRun

if TYPE_CHECKING:
    from hardlook.report.index import IndexEntry

# Not index.html: the folder may have one of its own.
INDEX = "reports.html"


@dataclass(frozen=True)
class Reports:
    """The pages that were written, in the order of the runs: None of a read-only folder; and their index, if any."""

    pages: tuple[Path | None, ...]
    index: Path | None = None


def write_reports(
    folders: Sequence[Path],
    read: Callable[[Path], ScoredRun],
    *,
    examples: int = 6,
    out: Path | None = None,
    show_unwritten: Callable[[ScoredRun], None] | None = None,
) -> Reports:
    """Write the page of each run, and of several an index with links to them.

    Args:
        folders: The run folders.
        read: Scores the run of a folder. Each is read when its turn comes, so that only one is in memory.
        examples: Units that a gallery shows at most.
        out: The page of one run or the index of several, or a folder for it; else it is among the runs.
        show_unwritten: Called with a run whose folder is read-only, where its page has no other place.
    """
    from hardlook.report.index import render_index

    several = len(folders) > 1
    place = None if out is None else page_path(out, several=several)
    index = (place or index_path(folders)) if several else None
    if place is not None and (several or place.resolve() != RunFolder(folders[0]).report_path.resolve()):
        refuse_part_of_run(place)
    pages, entries = [], []
    for folder in folders:
        scored = read(folder)
        page = _write_page(scored, examples, place, index)
        pages.append(page)
        if page is None and show_unwritten is not None:
            show_unwritten(scored)
        if index is not None and page is not None:
            entries.append(index_entry(scored, page, index))
    if not entries or index is None:
        return Reports(tuple(pages))
    write_atomically(index, render_index(entries, text="Each report is one file that loads nothing."))
    return Reports(tuple(pages), index)


def _write_page(scored: ScoredRun, examples: int, place: Path | None, index: Path | None) -> Path | None:
    """Write a run's page to its place; for a read-only folder beside the index, else None."""
    from hardlook.report.run_report import write_report

    try:
        return write_report(scored, examples=examples, out=None if index else place)
    except OSError as error:
        if (index is None and place is not None) or not is_read_only_error(error):
            raise
    if index is not None and place is not None:
        name = "-".join(part for part in scored.folder.path.parts if part not in ("/", ".", ".."))
        return write_report(scored, examples=examples, out=index.with_name(f"{name}.html"))
    return None


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
    from hardlook.report.index import IndexEntry, draw_preview

    card = scored.benchmark.card
    titles = {score.name: score.title for score in card.scores if score.headline} or {
        score.name: score.title for score in card.scores
    }
    scores = [replace(score, name=titles[score.name]) for score in scored.scorecard.headline if score.name in titles]
    counts = scored.scorecard.units
    left = f", {counts.failed} failed" if counts.failed else ""
    sentence = f"{card.summary} {counts.scored} of {counts.planned} units scored{left}. Folder: `{scored.folder.path}`."
    href = quote(Path(os.path.relpath(page, index.parent)).as_posix())
    sections = scored.build_sections()
    # The folder makes the key, so that ids differ between entries of one benchmark.
    drawn, caption = draw_preview(sections, key=f"run-{quote(href, safe='').replace('%', '-')}")
    return IndexEntry(f"{card.title}: {scored.method}", sentence, href, scores, drawn, caption)
