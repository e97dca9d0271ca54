"""The files of an export, made in the background in a temporary folder and packed; one at a time, the last is kept."""

from __future__ import annotations

import logging
import tempfile
import threading
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hardlook.errors import HardlookError

Advance = Callable[[int], None]
# Writes the files of an export into a folder, telling how many tasks it has judged.
Write = Callable[[Path, Advance], object]


@dataclass(frozen=True)
class ExportState:
    """How far it is: `done` of `of` tasks; `files` are (name, bytes) of what was packed; times in seconds."""

    running: bool = False
    began: float = 0.0
    ended: float = 0.0
    done: int = 0
    of: int = 0
    problem: str = ""
    archive: Path | None = None
    files: tuple[tuple[str, int], ...] = ()


class ExportJob:
    """Makes one export at a time; a new one replaces the last, whose files go when nobody reads them any more."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._state = ExportState()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def state(self) -> ExportState:
        """How far it is now."""
        with self._lock:
            return self._state

    def start(self, write: Write, tasks: int) -> bool:
        """Begin, unless one is being made; whether it began. `tasks` is how many `write` will have done at its end."""
        with self._lock:
            if self._state.running:
                return False
            self._state = ExportState(running=True, began=self.clock(), of=tasks)
        threading.Thread(target=self._work, args=(write,), name="export", daemon=True).start()
        return True

    def _work(self, write: Write) -> None:
        folder = tempfile.TemporaryDirectory(prefix="hardlook-export-")
        root = Path(folder.name)
        try:
            write(root / "files", self._advance)
            archive = pack(root / "files", root / "files.zip")
            files = tuple(sizes(root / "files"))
        except Exception as error:
            folder.cleanup()
            logging.getLogger(__name__).exception("an export failed")
            self._end(problem=_in_words(error))
        else:
            # An open file stays readable after its folder is gone, so a download of the last one ends well.
            before, self._folder = self._folder, folder
            self._end(archive=archive, files=files)
            if before is not None:
                before.cleanup()

    def _advance(self, tasks: int) -> None:
        with self._lock:
            self._state = replace(self._state, done=self._state.done + tasks)

    def _end(self, *, problem: str = "", archive: Path | None = None, files: tuple[tuple[str, int], ...] = ()) -> None:
        with self._lock:
            ended = self.clock()
            self._state = replace(
                self._state, running=False, ended=ended, problem=problem, archive=archive, files=files
            )


def sizes(folder: Path) -> list[tuple[str, int]]:
    """The files below a folder as (posix path, bytes), sorted."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return sorted((path.relative_to(folder).as_posix(), path.stat().st_size) for path in found)


def pack(folder: Path, archive: Path) -> Path:
    """All files below a folder as a zip file; equal files give an equal archive.

    >>> with tempfile.TemporaryDirectory() as name:
    ...     _ = Path(name, "a.txt").write_text("text")
    ...     with zipfile.ZipFile(pack(Path(name), Path(name, "a.zip"))) as opened:
    ...         opened.namelist()
    ['a.txt']
    """
    listed = sizes(folder)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, _ in listed:
            # The date of a file says when it was packed, and nothing of what is in it.
            opened.writestr(zipfile.ZipInfo(name), (folder / name).read_bytes(), zipfile.ZIP_DEFLATED)
    return archive


def _in_words(error: Exception) -> str:
    if isinstance(error, HardlookError):
        named = f" ({Path(error.file).name})" if error.file else ""
        return f"{error.what}{named}" + (f"; {error.remedy}." if error.remedy else ".")
    return f"{type(error).__name__}; the server's log says more."
