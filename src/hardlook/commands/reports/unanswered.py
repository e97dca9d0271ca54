"""A word on standard error where scores rest on a part of a run's units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hardlook.report.numerals import counted

if TYPE_CHECKING:
    from hardlook.contract.scorecard import UnitCounts
    from hardlook.runs.scoring import ScoredRun


def say_unanswered(scored: ScoredRun) -> None:
    """Say how many units of the run have no answer; nothing where all have one."""
    if words := unanswered(scored.scorecard.units):
        typer.echo(f"{scored.folder.path}: {words}", err=True)


def unanswered(counts: UnitCounts) -> str:
    """How many units failed or wait, and what to do; empty where every unit is scored.

    >>> from hardlook.contract.scorecard import UnitCounts
    >>> unanswered(UnitCounts(planned=24, scored=15, failed=1))
    '15 of 24 units are scored: 1 failed, 8 not answered yet; the same `hardlook run` again goes on with them'
    >>> unanswered(UnitCounts(24, 24, 0))
    ''
    """
    waiting = counts.planned - counts.scored - counts.failed
    parts = [
        f"{count} {what}" for count, what in ((counts.failed, "failed"), (waiting, "not answered yet")) if count > 0
    ]
    if not parts:
        return ""
    scored = f"{counts.scored} of {counted(counts.planned, 'unit')} are scored"
    return f"{scored}: {', '.join(parts)}; the same `hardlook run` again goes on with them"
