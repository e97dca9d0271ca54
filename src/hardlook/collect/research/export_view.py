"""The export page: how far the files are, what they are, and what may be chosen."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hardlook.collect.research.export_job import Advance, ExportJob, ExportState, Write
from hardlook.collect.research.parameters import Asked
from hardlook.collect.study.folder import Study

if TYPE_CHECKING:
    from pathlib import Path

    from hardlook.collect.store.store import Store

MOST_LISTED = 40


def export_view(study: Study, job: ExportJob) -> dict[str, Any]:
    """What the template `export.html` shows."""
    state = job.state
    listed = state.files[:MOST_LISTED]
    seconds = (job.clock() if state.running else state.ended) - state.began
    return {
        "modes": study.settings.modes if len(study.settings.modes) > 1 else (),
        "state": {
            "running": state.running,
            "ready": state.archive is not None,
            "problem": state.problem,
            "seconds": f"{max(seconds, 0):.0f}",
            "done": min(state.done, state.of),
            "of": state.of if state.done else 0,
            "made": clock_time(state.ended),
            "name": archive_name(study, state),
            "size": in_bytes(state.archive.stat().st_size) if state.archive else "",
            "listing": [(name, in_bytes(size)) for name, size in listed],
            "more": len(state.files) - len(listed),
        },
    }


def start_export(study: Study, store: Store, job: ExportJob, asked: Asked) -> bool:
    """Begin to make the files that the form asks for; False where they are being made already."""
    from hardlook.collect.results.export import export_study

    mode = asked.choice("mode", study.settings.modes, "") or None
    every = asked.choice("all_clicks", ("yes",), "") == "yes"

    def write(out: Path, advance: Advance) -> object:
        return export_study(study, store, out, mode=mode, all_clicks=every, advance=advance)

    chosen: Write = write
    return job.start(chosen, sum(not task.training for task in study.tasks))


def archive_name(study: Study, state: ExportState) -> str:
    """The name that a browser saves the files under: letters, digits and hyphens, whatever the title is.

    >>> from types import SimpleNamespace
    >>> archive_name(SimpleNamespace(settings=SimpleNamespace(title="Cups <&> ..")), ExportState(ended=0.0))
    'cups-19700101-0000.zip'
    """
    word = re.sub(r"[^a-z0-9]+", "-", study.settings.title.lower()).strip("-")[:40] or "study"
    return f"{word}-{datetime.fromtimestamp(state.ended, UTC):%Y%m%d-%H%M}.zip"


def clock_time(seconds: float) -> str:
    """A time of day in words, in UTC, since researchers sit anywhere.

    >>> clock_time(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def in_bytes(size: int) -> str:
    """A file's size in words.

    >>> in_bytes(900), in_bytes(5300), in_bytes(7_300_000)
    ('900 B', '5 kB', '7.3 MB')
    """
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
