"""The run folder: where everything about a run lies, written whole or not at all.

docs/run-folder.md describes each file. Files are written beside their place and moved into it, so a reader, a
second process or a kill at any moment sees the old file or the new one, never half of one.

>>> import tempfile
>>> folder = RunFolder(Path(tempfile.mkdtemp()) / "run")
>>> folder.exists()
False
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardlook.errors import RunError

RUN_SCHEMA = "hardlook.run/1"

OWN_NAMES = {"run.json", "records", "failures", "failures.parquet", "sessions", "scores.json", "report.html"}


@dataclass(frozen=True)
class RunFolder:
    """Paths of a run."""

    path: Path

    @property
    def manifest_path(self) -> Path:
        """`run.json`: what ran, on what, with which fingerprints."""
        return self.path / "run.json"

    @property
    def records_path(self) -> Path:
        """`records/`: Parquet parts, one row a unit."""
        return self.path / "records"

    @property
    def failure_parts_path(self) -> Path:
        """`failures/`: what went wrong, as it happened."""
        return self.path / "failures"

    @property
    def failures_path(self) -> Path:
        """`failures.parquet`: the units that have no record, with their last error."""
        return self.path / "failures.parquet"

    @property
    def sessions_path(self) -> Path:
        """`sessions/`: one file a process that worked on the run."""
        return self.path / "sessions"

    @property
    def scores_path(self) -> Path:
        """`scores.json`: the scorecard."""
        return self.path / "scores.json"

    @property
    def report_path(self) -> Path:
        """`report.html`: the page."""
        return self.path / "report.html"

    def exists(self) -> bool:
        """Whether a run lies here."""
        return self.manifest_path.is_file()

    def read_manifest(self) -> dict[str, Any]:
        """The content of `run.json`."""
        try:
            manifest: Any = json.loads(self.manifest_path.read_text())
        except (FileNotFoundError, NotADirectoryError):
            raise RunError("there is no run here", file=self.path, remedy=self._where_runs_are()) from None
        except ValueError as error:
            raise RunError(
                f"run.json is not valid JSON ({error})",
                file=self.manifest_path,
                remedy="take it from a copy of the folder; without it run again, into another folder",
            ) from None
        schema = manifest.get("schema") if isinstance(manifest, dict) else None
        if schema != RUN_SCHEMA:
            raise RunError(
                f"run.json has schema {schema!r}, this version reads {RUN_SCHEMA!r}", file=self.manifest_path
            )
        missing = sorted({"benchmark", "model", "options", "units", "batch_size", "answers", "created"} - set(manifest))
        if missing:
            raise RunError(f"run.json lacks {', '.join(missing)}", file=self.manifest_path)
        found: dict[str, Any] = manifest
        return found

    def _where_runs_are(self) -> str:
        """What to give instead of this folder: the runs right below it, else the folder of a run."""
        below = sorted(found.parent for found in self.path.glob("*/run.json")) if self.path.is_dir() else []
        if not below:
            return "give the folder of `--out`"
        more = f" and {len(below) - 3} more" if len(below) > 3 else ""
        return f"give one of the runs in it: {', '.join(map(str, below[:3]))}{more}"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock while changing a file that other processes change too.

        File systems without locks exist; there the worst case is a session missing from `run.json` until the next.
        """
        with (self.path / ".lock").open("w") as stream:
            with contextlib.suppress(ImportError, OSError):
                import fcntl

                fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def check_is_run_folder(self) -> None:
        """Refuse to put a run into a file, or into a folder that holds something else."""
        if self.path.exists() and not self.path.is_dir():
            raise RunError("this is a file, not a folder", file=self.path, remedy="choose a folder for --out")
        if self.path.is_dir() and not self.exists():
            strangers = sorted(p.name for p in self.path.iterdir() if not p.name.startswith("."))
            if set(strangers) - OWN_NAMES:
                raise RunError(
                    f"the folder holds other things ({', '.join(strangers[:4])})",
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


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file so that it is there whole or not at all, also after a crash of the machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    try:
        with beside.open("wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_once(path: Path, content: str) -> bool:
    """Write a file unless it exists, also against another process at the same moment; True when we wrote it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    try:
        beside.write_text(content)
        try:
            os.link(beside, path)
        except FileExistsError:
            return False
        except OSError:
            # No hard links on this file system: exclusive creation still has one winner.
            with path.open("x") as stream:
                stream.write(content)
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    return True
