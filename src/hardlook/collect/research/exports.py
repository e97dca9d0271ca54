"""The export page: files are written in the background into a temporary folder and packed, one export at a time."""

from __future__ import annotations

import logging
import re
import tempfile
import threading
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.collect.research.requests import Parameters
from hardlook.collect.study.folder import Study
from hardlook.errors import HardlookError

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store


Advance = Callable[[int], None]

# Writes the files of an export into a folder, and reports the number of tasks done.
Write = Callable[[Path, Advance], object]
MAX_LISTED = 40


@dataclass(frozen=True)
class ExportState:
    """The state of an export: `done` of `of` tasks, times in seconds, sizes in bytes, `files` as (name, bytes)."""

    running: bool = False
    began: float = 0.0
    ended: float = 0.0
    done: int = 0
    of: int = 0
    problem: str = ""
    archive: Path | None = None
    size: int = 0
    files: tuple[tuple[str, int], ...] = ()


class ExportJob:
    """Runs one export at a time; a new one replaces the last, whose files are deleted."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._state = ExportState()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._outdated = False

    @property
    def state(self) -> ExportState:
        """The current state."""
        with self._lock:
            return self._state

    def start(self, write: Write, tasks: int) -> bool:
        """Start an export unless one is running; whether it started. `tasks` is how many `write` will report in all."""
        with self._lock:
            if self._state.running:
                return False
            self._state, self._outdated = ExportState(running=True, began=self.clock(), of=tasks), False
        threading.Thread(target=self._run, args=(write,), name="export", daemon=True).start()
        return True

    def discard(self) -> None:
        """Remove the files that were made, and those that are being made: somebody in them was deleted."""
        with self._lock:
            self._outdated = self._state.running
            if not self._outdated:
                self._state = ExportState()
            before, self._folder = self._folder, None
        if before is not None:
            before.cleanup()

    def _run(self, write: Write) -> None:
        folder = tempfile.TemporaryDirectory(prefix="hardlook-export-")
        root = Path(folder.name)
        try:
            write(root / "files", self._advance)
            archive = root / "files.zip"
            files = write_archive(root / "files", archive)
        except Exception as error:
            folder.cleanup()
            logging.getLogger(__name__).exception("an export failed")
            self._end(problem=_describe_error(error))
        else:
            with self._lock:
                # An open file stays readable after its folder is gone, so a download of the last export completes.
                before, self._folder = (folder, None) if self._outdated else (self._folder, folder)
            if before is folder:
                self._end(problem="A participant was deleted while the files were made; make them again.")
            else:
                self._end(archive=archive, size=archive.stat().st_size, files=files)
            if before is not None:
                before.cleanup()

    def _advance(self, tasks: int) -> None:
        with self._lock:
            self._state = replace(self._state, done=self._state.done + tasks)

    def _end(self, **outcome: Any) -> None:
        with self._lock:
            self._state = replace(self._state, running=False, ended=self.clock(), **outcome)


def write_archive(folder: Path, archive: Path) -> tuple[tuple[str, int], ...]:
    """Write all files below a folder to a zip file and list them as (posix path, bytes); equal files, equal archive.

    >>> with tempfile.TemporaryDirectory() as name:
    ...     _ = Path(name, "a.txt").write_text("text")
    ...     write_archive(Path(name), Path(name, "a.zip"))
    (('a.txt', 4),)
    """
    paths = (path for path in folder.rglob("*") if path.is_file())
    files = sorted((path.relative_to(folder).as_posix(), path.stat().st_size) for path in paths)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, _ in files:
            # Without the date of writing, which says nothing about the content.
            opened.writestr(zipfile.ZipInfo(name), (folder / name).read_bytes(), zipfile.ZIP_DEFLATED)
    return tuple(files)


def _describe_error(error: Exception) -> str:
    if isinstance(error, HardlookError):
        named = f" ({Path(error.file).name})" if error.file else ""
        return f"{error.what}{named}" + (f"; {error.remedy}." if error.remedy else ".")
    return f"{type(error).__name__}; see the server's log."


def build_export_view(study: Study, job: ExportJob) -> dict[str, Any]:
    """The values of the template `export.html`."""
    state = job.state
    seconds = (job.clock() if state.running else state.ended) - state.began
    return {
        "modes": study.settings.modes if len(study.settings.modes) > 1 else (),
        "state": state,
        "seconds": f"{max(seconds, 0):.0f}",
        "made": format_time(state.ended),
        "name": archive_name(study, state),
        "size": format_size(state.size),
        "listing": [(name, format_size(size)) for name, size in state.files[:MAX_LISTED]],
    }


def start_export(study: Study, store: Store, job: ExportJob, parameters: Parameters) -> None:
    """Start the export that the form describes, unless one is running already."""
    from hardlook.collect.results.export import export_study

    mode = parameters.get_choice("mode", study.settings.modes, "") or None
    all_clicks = parameters.get_choice("all_clicks", ("yes",), "") == "yes"

    def write(out: Path, advance: Advance) -> object:
        return export_study(study, store, out, mode=mode, all_clicks=all_clicks, advance=advance)

    job.start(write, sum(not task.training for task in study.tasks))


def archive_name(study: Study, state: ExportState) -> str:
    """The name that a browser saves the files under: letters, digits and hyphens, whatever the title is.

    >>> from types import SimpleNamespace
    >>> archive_name(SimpleNamespace(settings=SimpleNamespace(title="Cups <&> ..")), ExportState(ended=0.0))
    'cups-19700101-0000.zip'
    """
    word = re.sub(r"[^a-z0-9]+", "-", study.settings.title.lower()).strip("-")[:40] or "study"
    return f"{word}-{datetime.fromtimestamp(state.ended, UTC):%Y%m%d-%H%M}.zip"


def format_time(seconds: float) -> str:
    """A time in UTC, since researchers may be anywhere.

    >>> format_time(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_size(size: int) -> str:
    """A file size.

    >>> format_size(900), format_size(5300), format_size(7_300_000)
    ('900 B', '5 kB', '7.3 MB')
    """
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
