"""The run folder: the files of a run and how they are written.

docs/run-folder.md describes each file. Files are written under a temporary name and renamed, so a reader or a second
process sees the old file or the new one, never half of one, also after a kill.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hardlook.errors import RunError

RUN_SCHEMA = "hardlook.run/1"

OWN_NAMES = {"run.json", "records", "failures", "failures.parquet", "sessions", "scores.json", "report.html"}


class RunFolder:
    """The paths of a run, whose folder is `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest_path = path / "run.json"  # what ran, on what, with which fingerprints
        self.records_path = path / "records"  # Parquet parts, one row per unit
        self.failure_parts_path = path / "failures"  # what went wrong, as it happened
        self.failures_path = path / "failures.parquet"  # the units that have no record, with their last error
        self.sessions_path = path / "sessions"  # one file per process that worked on the run
        self.scores_path = path / "scores.json"  # the scorecard
        self.report_path = path / "report.html"  # the page

    def exists(self) -> bool:
        """Whether this folder holds a run."""
        return self.manifest_path.is_file()

    def read_manifest(self) -> dict[str, Any]:
        """The content of `run.json`."""
        try:
            manifest: Any = json.loads(self.manifest_path.read_text())
        except (FileNotFoundError, NotADirectoryError):
            raise RunError("there is no run here", file=self.path, remedy=self._suggest_run()) from None
        except ValueError as error:
            raise RunError(
                f"run.json is not valid JSON ({error})",
                file=self.manifest_path,
                remedy="restore it from a copy of the folder, or run again into another folder",
            ) from None
        schema = manifest.get("schema") if isinstance(manifest, dict) else None
        if schema != RUN_SCHEMA:
            raise RunError(
                f"run.json has schema {schema!r}, this version reads {RUN_SCHEMA!r}", file=self.manifest_path
            )
        missing = sorted({"benchmark", "model", "options", "units", "batch_size", "answers", "created"} - set(manifest))
        if missing:
            raise RunError(f"run.json lacks {', '.join(missing)}", file=self.manifest_path)
        return dict(manifest)

    def _suggest_run(self) -> str:
        """What to give instead of this folder: one of the runs directly below it, else the folder of a run."""
        below = sorted(path.parent for path in self.path.glob("*/run.json")) if self.path.is_dir() else []
        if not below:
            return "give the folder of `--out`"
        more = f" and {len(below) - 3} more" if len(below) > 3 else ""
        return f"give one of the runs in it: {', '.join(map(str, below[:3]))}{more}"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock while changing a file that other processes change too.

        Some file systems have no locks; there a session may be missing from `run.json` until the next one ends.
        """
        with (self.path / ".lock").open("w") as stream:
            with contextlib.suppress(ImportError, OSError):
                import fcntl

                fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def check_is_run_folder(self) -> None:
        """Raise an error where the path is a file, or a folder that holds something else."""
        if self.path.exists() and not self.path.is_dir():
            raise RunError("this is a file, not a folder", file=self.path, remedy="choose a folder for --out")
        if self.path.is_dir() and not self.exists():
            names = sorted(p.name for p in self.path.iterdir() if not p.name.startswith("."))
            if set(names) - OWN_NAMES:
                raise RunError(
                    f"the folder holds other files ({', '.join(names[:4])})",
                    file=self.path,
                    remedy="choose an empty or a new folder for --out",
                )

    def set_aside(self) -> Path | None:
        """Move an earlier run to a free name beside it; nothing is ever deleted."""
        if not self.path.exists():
            return None
        path, number = self.path.resolve(), 1
        while (aside := path.with_name(f"{path.name}.old-{number}")).exists():
            number += 1
        path.rename(aside)
        return aside


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file so that it exists whole or not at all, also after a crash of the machine."""
    temporary = _temporary_path(path)
    try:
        with temporary.open("wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_if_absent(path: Path, content: str) -> bool:
    """Write a file unless it exists, safe against other processes; return whether this call wrote it."""
    temporary = _temporary_path(path)
    try:
        temporary.write_text(content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError:
            # No hard links on this file system: exclusive creation still has one winner.
            with path.open("x") as stream:
                stream.write(content)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _temporary_path(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
