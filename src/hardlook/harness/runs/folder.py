"""The run folder: the files of a run and how they are written.

docs/run-folder.md describes each file. Files are written under a temporary name and renamed, so a reader or a second
process sees the old file or the new one, never half of one, also after a kill or a crash of the machine. JSON files
contain their own checksum; a file without one, of an earlier version, is read as it is.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hardlook.cloud import run_folders as cloud
from hardlook.errors import DamagedFile, OptionError, RunError
from hardlook.harness.checked_json import parse_checked_json

RUN_SCHEMA = "hardlook.run/1"

OWN_NAMES = cloud.OWN_NAMES

# A full disk, a full quota, and a limit on the size of files.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Not every file system can sync a folder.
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF)


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
        self.damaged_path = path / "damaged"  # damaged files that were set aside
        self.parts_path = path / "parts"  # the runs of single folds that this run was joined from

    def exists(self) -> bool:
        """Whether this folder holds a run."""
        return self.manifest_path.is_file()

    def read_manifest(self) -> dict[str, Any]:
        """The content of `run.json`; a `DamagedFile` where it is not what was written."""
        try:
            manifest = parse_checked_json(self.manifest_path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise RunError("there is no run here", file=self.path, remedy=self._suggest_run()) from None
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged_manifest(f"is not valid JSON ({error})") from None
        except ValueError as error:
            raise self._damaged_manifest(str(error)) from None
        schema = manifest.get("schema") if isinstance(manifest, dict) else None
        if schema != RUN_SCHEMA:
            raise RunError(
                f"run.json has schema {schema!r}, this version reads {RUN_SCHEMA!r}", file=self.manifest_path
            )
        if problem := find_manifest_problem(manifest):
            raise self._damaged_manifest(problem)
        return dict(manifest)

    def _damaged_manifest(self, problem: str) -> DamagedFile:
        return DamagedFile(
            f"run.json {problem}",
            file=self.manifest_path,
            remedy="repeat the `hardlook run` of this folder: it writes run.json again and keeps the records",
        )

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
            with cloud.locked(self.path):
                yield

    def set_file_aside(self, path: Path) -> Path:
        """Move a damaged file of this run into its folder `damaged`, under a free name; nothing is ever deleted."""
        make_folder(self.damaged_path)
        number = 1
        while (aside := self.damaged_path / f"{path.name}.{number}").exists():
            number += 1
        cloud.move_file(path, aside)
        path.rename(aside)
        _sync_folder(path.parent)
        _sync_folder(self.damaged_path)
        return aside

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
        if (moved := cloud.move_folder_aside(self.path)) is not None:
            return moved
        path, number = self.path.resolve(), 1
        while (aside := path.with_name(f"{path.name}.old-{number}")).exists():
            number += 1
        path.rename(aside)
        return aside


def find_manifest_problem(manifest: Mapping[str, Any]) -> str:
    """What makes the content of a `run.json` unusable; empty where nothing does.

    >>> find_manifest_problem({"benchmark": {"name": "toss"}})
    'lacks answers, batch_size, created, model, options, units'
    """
    kinds = {"benchmark": dict, "options": dict, "answers": dict, "units": int, "batch_size": int, "created": str}
    if missing := sorted({*kinds, "model"} - set(manifest)):
        return f"lacks {', '.join(missing)}"
    for name, kind in kinds.items():
        if not isinstance(manifest[name], kind) or isinstance(manifest[name], bool):
            return f"cannot be used: {name} is not {'an object' if kind is dict else f'of type {kind.__name__}'}"
    benchmark, model, answers = manifest["benchmark"], manifest["model"], manifest["answers"]
    if not isinstance(benchmark.get("name"), str) or not isinstance(benchmark.get("version"), str):
        return "cannot be used: the benchmark has no name, or no version"
    if model is not None and not (isinstance(model, dict) and isinstance(model.get("name"), str)):
        return "cannot be used: model is not an object with a name"
    if not isinstance(answers.get("parts", {}), dict):
        return "cannot be used: parts of answers is not an object"
    if not isinstance(answers.get("fingerprint"), str):
        return "cannot be used: answers has no fingerprint"
    rows = manifest.get("left_out", [])
    names = {"what", "count", "why", "examples"}
    if not isinstance(rows, list) or not all(isinstance(row, dict) and set(row) - {"kept"} == names for row in rows):
        return "cannot be used: left_out is not a list of notes"
    return ""


def refuse_part_of_run(target: Path, name: str = "--out") -> None:
    """Raise an error where a file that is to be written is, or lies in, one of the files and folders of a run."""
    place = target.resolve()
    for folder in place.parents:
        if place.relative_to(folder).parts[0] in OWN_NAMES and RunFolder(folder).exists():
            raise OptionError(f"{name} would replace a part of the run", file=target, remedy="choose another name")


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file so that it exists whole or not at all, also after a crash of the machine.

    Where there is no space for it, the `OSError` says how much it needs. A file of a run in an object store is there
    before it is here.
    """
    with _written_temporary(path, content) as temporary:
        cloud.upload(path, content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
        _sync_folder(path.parent)


def write_if_absent(path: Path, content: str) -> bool:
    """Write a file unless it exists, safe against other processes; return whether this call wrote it."""
    with _written_temporary(path, content) as temporary:
        if not cloud.create(path, content.encode()):
            return False
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError:
            # No hard links on this file system: exclusive creation still has one winner.
            try:
                with path.open("xb") as stream:
                    stream.write(content.encode())
                    stream.flush()
                    os.fsync(stream.fileno())
            except FileExistsError:
                return False
        _sync_folder(path.parent)
    return True


@contextlib.contextmanager
def _written_temporary(path: Path, content: bytes | str) -> Iterator[Path]:
    """A file beside `path` with this content on disk; it is removed at the end if it was not renamed."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    try:
        make_folder(path.parent)
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        yield temporary
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        raise OSError(error.errno, _describe_space(error, path, len(data)), str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def _describe_space(error: OSError, path: Path, needed: int) -> str:
    what = f"{error.strerror or 'no space left'}: this file needs {_format_bytes(needed)}"
    try:
        return f"{what}, and its file system has {_format_bytes(shutil.disk_usage(path.parent).free)} free"
    except OSError:
        return what


def _format_bytes(count: int) -> str:
    """A number of bytes in the largest fitting unit.

    >>> _format_bytes(900), _format_bytes(12_345_678)
    ('900 bytes', '12.3 MB')
    """
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def is_read_only_error(error: OSError) -> bool:
    """Whether a file could not be written because its folder or file system is read-only."""
    return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, on disk also after a crash of the machine."""
    cloud.refuse_address(path)
    missing = []
    while not path.is_dir():
        missing.append(path)
        if path.parent == path:
            break
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(path: Path) -> None:
    """Bring the names in a folder to disk: a rename is lost in a crash until then."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # A system that opens no folders, or one that may be written but not read.
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


def suggest_repair(run: Path) -> str:
    """What to do about a damaged file of a run."""
    return f"`{shlex.join(['hardlook', 'verify', str(run), '--repair'])}` sets it aside and evaluates what is missing"
