"""A static site of leaderboards: one folder of plain files that any web space can serve.

`index.html` lists the leaderboards and every run with its headline scores; each run has its report and its scores. All
links are relative, and nothing is loaded from elsewhere.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from hardlook.errors import OptionError
from hardlook.harness.runs.folder import RunFolder, write_atomically
from hardlook.report.compare.differences import list_headline_names
from hardlook.report.index import IndexEntry, render_index
from hardlook.report.leaderboard.board import Leaderboard
from hardlook.report.leaderboard.report import describe_leader, write_pages

MARK = ".hardlook-site"
"""The file by which a folder is known as a site, so that it may be written again."""


def write_site(boards: Sequence[Leaderboard], root: Path, site: Path) -> Path:
    """Write the site of the runs below `root` into a folder that is empty, new, or such a site; return its first page.

    Of a run without a report the link leads to its scores; `hardlook report` makes one.
    """
    if site.exists() and not site.is_dir():
        raise OptionError("this is a file, not a folder", file=site, remedy="choose a folder for --site")
    if site.is_dir() and any(site.iterdir()) and not (site / MARK).is_file():
        remedy = "choose a new or empty folder for --site"
        raise OptionError("this folder holds something else than a leaderboard site", file=site, remedy=remedy)
    if site.resolve() == root.resolve() or root.resolve().is_relative_to(site.resolve()):
        raise OptionError("the site would be written over the runs", file=site, remedy="choose another --site")
    # Runs that are gone since the last time must not stay on the site.
    shutil.rmtree(site / "runs", ignore_errors=True)
    for old in site.glob("leaderboard*.html"):
        old.unlink()
    write_atomically(site / MARK, "")
    pages, _ = write_pages(boards, site)
    own = pages if len(boards) == 1 else pages[1:]
    entries = []
    for board, page in zip(boards, own, strict=True):
        leader = describe_leader(board.rankings[0]) if board.rankings else board.card.summary
        sentence = f"Runs: {len(board.entries)}. {leader}"
        entries.append(IndexEntry(f"Leaderboard: {board.card.title}", sentence, quote(page.name)))
    for board in boards:
        entries += [_copy_run(board, place, root, site) for place in range(len(board.entries))]
    text = "Every run has its report, with intervals, slices and pictures, and its scores as JSON beside it."
    write_atomically(site / "index.html", render_index(entries, title="Leaderboards", text=text))
    return site / "index.html"


def _copy_run(board: Leaderboard, place: int, root: Path, site: Path) -> IndexEntry:
    """Copy the report and the scores of a run; its entry on the first page."""
    entry = board.entries[place]
    run, card = entry.run, board.card
    source = RunFolder(root / run.folder if (root / run.folder).is_dir() else root)
    # Numbered, since folders of different depth may have the same name.
    name = f"{card.name}-{place + 1:03}"
    titles = {score.name: score.title for score in card.scores}
    headline = list_headline_names(card)
    scores = [replace(one, name=titles[one.name]) for one in run.scorecard.headline if one.name in headline]
    write_atomically(site / "runs" / name / "scores.json", source.scores_path.read_bytes())
    sentence = f"{card.title}. {run.date}, {run.scorecard.units.scored} units. Folder: `{run.folder}`."
    href = f"runs/{quote(name)}/scores.json"
    if source.report_path.is_file():
        write_atomically(site / "runs" / name / "report.html", source.report_path.read_bytes())
        href = f"runs/{quote(name)}/report.html"
    else:
        sentence += " It has no report; the link leads to its scores."
    return IndexEntry(entry.method, sentence, href, scores)
