"""The page that links the reports of several runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from hardlook.report.index import IndexEntry
    from hardlook.runs.scoring import ScoredRun

# Not index.html: the folder may have one of its own.
INDEX = "reports.html"


def index_path(runs: Sequence[Path]) -> Path:
    """Where the index of these runs lies when nothing else is said: in the folder that holds them all.

    >>> index_path([Path("runs/a"), Path("runs/b")]), index_path([Path("a/b"), Path("c")])
    (PosixPath('runs/reports.html'), PosixPath('reports.html'))
    """
    parents = [os.path.abspath(run.parent) for run in runs]  # noqa: PTH100 - links are kept as they are named
    common = Path(os.path.relpath(os.path.commonpath(parents)))
    return common / INDEX


def page_at(out: Path, *, several: bool) -> Path:
    """The page that `--out` names: itself where it ends like a page, else a page in the folder of that name.

    >>> page_at(Path("small.html"), several=False), page_at(Path("pages"), several=True)
    (PosixPath('small.html'), PosixPath('pages/reports.html'))
    """
    if out.suffix.lower() in (".html", ".htm"):
        return out
    return out / (INDEX if several else "report.html")


def entry_of(scored: ScoredRun, page: Path, index: Path) -> IndexEntry:
    """A run's entry: its headline scores, a small chart, and a link that holds when both move together."""
    from hardlook.report.index import IndexEntry, glance

    card = scored.benchmark.card
    titles = {score.name: score.title for score in card.scores if score.headline} or {
        score.name: score.title for score in card.scores
    }
    scores = [replace(score, name=titles[score.name]) for score in scored.scorecard.headline if score.name in titles]
    counts = scored.scorecard.units
    left = f", {counts.failed} failed" if counts.failed else ""
    sentence = f"{card.summary} {counts.scored} of {counts.planned} units scored{left}. Folder: `{scored.folder.path}`."
    href = quote(Path(os.path.relpath(page, index.parent)).as_posix())
    sections = scored.benchmark.sections(scored.records, scored.scorecard)
    # The folder makes the key, so that ids differ between entries of one benchmark.
    drawn = glance(sections, key=f"run-{quote(href, safe='').replace('%', '-')}")
    return IndexEntry(f"{card.title}: {scored.scorecard.model}", sentence, href, scores, drawn)
