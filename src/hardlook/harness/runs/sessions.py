"""Which processes work on a run: what each of them is, who works on it now, and `run.json`.

One small file per process, gathered into `run.json`. While a process works on a run it holds a lock on the file
`.running` in its folder (a shard: on `.running-i-of-N`), which the system releases when the process ends, however it
ends. Where the file system has no locks, two processes may do the same work; the records stay right. A run in an object
store is claimed there, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import socket
import sys
import uuid
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import hardlook
from hardlook import fingerprints
from hardlook.cloud import run_folders as cloud
from hardlook.cloud.addresses import name_addresses
from hardlook.errors import ChangedRun, DamagedFile, RunError, RunWarning
from hardlook.harness.checked_json import format_checked_json, parse_checked_json
from hardlook.harness.runs.folder import RUN_SCHEMA, RunFolder, write_atomically, write_if_absent
from hardlook.harness.runs.plan import Plan
from hardlook.harness.runs.record_store import iterate_answered_units, list_parts, read_part
from hardlook.harness.runs.relative_paths import DIRECTORY
from hardlook.harness.scorecard import note_to_json

# Libraries that can change a record; their versions are noted.
_VERSIONED = ("numpy", "scipy", "opencv-python-headless", "polars", "torch", "onnxruntime", "transformers", "ray")


@lru_cache(maxsize=1)
def code_fingerprint() -> str:
    """Hash of the package's own source."""
    return fingerprints.hash_sources(Path(hardlook.__file__).parent.rglob("*.py"))


@dataclass
class Session:
    """The work of one process on a run; `outcome` is running, finished, waiting (other shards), stopped or failed."""

    engine: str
    shard: str = ""
    threads: int = 1
    command: list[str] = field(default_factory=lambda: list(sys.argv))
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    ended: str = ""
    outcome: str = "running"
    answered: int = 0
    failed: int = 0
    split_batches: int = 0
    halved_batches: int = 0
    hardware: dict[str, Any] = field(default_factory=lambda: describe_hardware())
    versions: dict[str, str] = field(default_factory=lambda: list_versions())
    code: str = field(default_factory=lambda: code_fingerprint())
    """Hash of the package's source."""
    model_code: str = ""
    """Hash of the model's source; empty for stored predictions."""
    answers: str = ""
    """The fingerprint of the records that it made."""
    batch_size: int = 0
    id: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}")

    def save(self, folder: RunFolder) -> None:
        """Write this session's file."""
        write_atomically(folder.sessions_path / f"{self.id}.json", format_checked_json(asdict(self)))

    def end(self, folder: RunFolder, outcome: str) -> None:
        """Note how it ended, here and in `run.json`."""
        self.outcome, self.ended = outcome, datetime.now(UTC).isoformat(timespec="seconds")
        self.save(folder)
        gather_sessions(folder)


@contextlib.contextmanager
def claim_run(folder: RunFolder, shard: tuple[int, int] | None = None, answers: str = "") -> Iterator[None]:
    """Hold a run, or one shard of it, while this process works on it; an error where another process holds it."""
    whole = folder.path / ".running"
    own = folder.path / f".running-{shard[0]}-of-{shard[1]}" if shard else whole
    with contextlib.ExitStack() as opened:
        with folder.locked():
            held = opened.enter_context(own.open("a+"))
            if not _lock(held, shared=False):
                raise _under_way_error(folder, [own] if shard else sorted(folder.path.glob(".running*")))
            if shard and not _lock(opened.enter_context(whole.open("a+")), shared=True):
                raise _under_way_error(folder, [whole])
            holder = {"process": os.getpid(), "host": socket.gethostname(), "answers": answers, "command": sys.argv}
            held.truncate(0)
            held.write(json.dumps({**holder, "since": datetime.now(UTC).isoformat(timespec="seconds")}))
            held.flush()
        with cloud.claim(folder.path, shard, holder):
            yield


def _lock(stream: IO[str], *, shared: bool) -> bool:
    """Lock an open file without waiting; False where another process has locked it."""
    try:
        import fcntl

        fcntl.flock(stream, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except (ImportError, OSError):
        return True
    return True


def _under_way_error(folder: RunFolder, claims: Sequence[Path]) -> RunError:
    holders = [(path, holder) for path in claims if (holder := _read_json(path)) and not _is_free(path)]
    path, holder = holders[0] if holders else (claims[0], {})
    who = f"process {holder.get('process', 'unknown')} on {holder.get('host', 'an unknown machine')}"
    return RunError(
        f"a run is under way in this folder: {who}, since {holder.get('since', 'an unknown time')}",
        file=folder.path,
        remedy="wait for it; or end that process (its records are kept) and repeat this command; or start each process "
        f"with its own --shard i/N to share the work. If that process is gone and this stays, delete {path}",
    )


def _is_free(claim: Path) -> bool:
    with contextlib.suppress(OSError), claim.open("a+") as stream:
        return _lock(stream, shared=True)
    return True


def _list_other_claims(folder: RunFolder, answers: str) -> list[Path]:
    """The claims of living processes that make records with another fingerprint."""
    claims = sorted(folder.path.glob(".running*"))
    return [path for path in claims if _read_json(path).get("answers", answers) != answers and not _is_free(path)]


def start_manifest(folder: RunFolder, plan: Plan) -> dict[str, Any]:
    """Write `run.json` unless there is one, and return its content.

    A damaged one is set aside and written again. One of another plan is replaced as long as no unit was answered.
    """
    document = {
        "schema": RUN_SCHEMA,
        "benchmark": {"name": plan.job.benchmark, "version": plan.benchmark.card.version},
        "model": _describe_model(plan),
        "options": name_addresses(plan.options.model_dump(mode="json")),
        "seed": plan.options.seed,
        "units": len(plan.units),
        "left_out": [note_to_json(one) for one in getattr(plan.units, "left_out", ())],
        "batch_size": plan.parts["batch size"],
        "answers": {"fingerprint": plan.answers, "parts": dict(plan.parts)},
        "code": {"hardlook": hardlook.__version__, "fingerprint": code_fingerprint()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        DIRECTORY: str(Path.cwd()),
        "sessions": [],
    }
    with folder.locked():
        try:
            stored = folder.read_manifest() if folder.exists() else None
        except DamagedFile as error:
            _set_damaged_manifest_aside(folder, plan.answers, error)
            stored = None
        if stored is None:
            if write_if_absent(folder.manifest_path, format_checked_json(document)):
                set_other_records_aside(folder, plan.answers)
        elif stored["answers"]["fingerprint"] != plan.answers and not _has_records(folder):
            if not _list_other_claims(folder, plan.answers):
                write_atomically(folder.manifest_path, format_checked_json(document))
        return folder.read_manifest()


def _describe_model(plan: Plan) -> dict[str, Any] | None:
    if plan.identity is None:
        return None
    return asdict(plan.identity) | ({"object": plan.model_object} if plan.model_object else {})


def _has_records(folder: RunFolder) -> bool:
    return bool(list_parts(folder.records_path))


def _set_damaged_manifest_aside(folder: RunFolder, answers: str, error: DamagedFile) -> None:
    if _has_records(folder) and not any(map(len, iterate_answered_units(folder, answers))):
        raise ChangedRun(
            f"{error.what}, and the records of this folder are of another model, other data or other options",
            file=folder.manifest_path,
            remedy="repeat the command that made them (sessions/*.json has it), or add --new to set them aside",
        )
    aside = folder.set_file_aside(folder.manifest_path)
    warnings.warn(f"{error.what}; it was moved to {aside} and written again", RunWarning, stacklevel=2)


def set_other_records_aside(folder: RunFolder, answers: str) -> None:
    """Without a `run.json` the records that lie here count only where this run would make the same ones."""
    for part in list_parts(folder.records_path):
        if answers not in (found := read_part(part, ["answers"])["answers"]):
            aside = folder.set_file_aside(part)
            warnings.warn(f"{len(found)} records of another run were moved to {aside}", RunWarning, stacklevel=2)


def gather_sessions(folder: RunFolder) -> None:
    """Put all sessions into `run.json`; one that cannot be read there or in its own file is listed as unreadable."""
    with folder.locked():
        manifest = folder.read_manifest()
        manifest["sessions"] = list_sessions(folder, manifest)
        write_atomically(folder.manifest_path, format_checked_json(manifest))


def list_sessions(folder: RunFolder, manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The sessions of a run by their files, or, where a file is damaged or gone, as `run.json` has them."""
    listed = manifest.get("sessions")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    known = {row["id"]: row for row in rows if isinstance(row.get("id"), str)}
    for path in sorted(folder.sessions_path.glob("*.json")):
        if row := _read_json(path):
            known[path.stem] = row
        else:
            known.setdefault(path.stem, {"id": path.stem, "outcome": "unreadable"})
    return [known[name] for name in sorted(known)]


def _read_json(path: Path) -> dict[str, Any]:
    """The content of a JSON file; empty where it cannot be read."""
    try:
        document = parse_checked_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def describe_mixed_code(sessions: Sequence[dict[str, Any]], answers: str) -> str:
    """A sentence where sessions that made records of this fingerprint ran different code; else empty.

    >>> rows = [{"answered": 3, "code": "aaa"}, {"answered": 2, "code": "bbb"}, {"answered": 4}]
    >>> describe_mixed_code(rows, "")
    'its records were made by different versions of the code of hardlook (aaa, bbb)'
    >>> describe_mixed_code([rows[0], {"answered": 0, "code": "bbb", "outcome": "failed"}], "")
    ''
    """
    made = [row for row in sessions if row.get("answers", answers) == answers]
    answering = [row for row in made if row.get("answered") or row.get("outcome") == "running"]
    mixed = []
    for key, name in (("code", "hardlook"), ("model_code", "the model")):
        found = sorted({str(row[key])[:8] for row in answering if row.get(key)})
        if len(found) > 1:
            mixed.append(f"{name} ({', '.join(found)})")
    if not mixed:
        return ""
    return f"its records were made by different versions of the code of {' and of '.join(mixed)}"


def describe_hardware() -> dict[str, Any]:
    """Processor, cores, memory and GPU (where torch is loaded already; it is not imported for this)."""
    facts: dict[str, Any] = {"machine": platform.machine(), "system": platform.system(), "cores": os.cpu_count()}
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        facts["memory_gib"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        facts["gpu"] = torch.cuda.get_device_name()
    return facts


def list_versions() -> dict[str, str]:
    """Versions of Python, hardlook and the libraries that can change a record."""
    found = {"python": platform.python_version(), "hardlook": hardlook.__version__}
    for package in _VERSIONED:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
