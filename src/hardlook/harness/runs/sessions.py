"""Which processes worked on a run: one small file per process, gathered into `run.json`."""

from __future__ import annotations

import json
import os
import platform
import sys
import uuid
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import hardlook
from hardlook import fingerprints
from hardlook.harness.runs.folder import RUN_SCHEMA, RunFolder, write_atomically, write_if_absent
from hardlook.harness.runs.plan import Plan

# Libraries that can change a record; their versions are noted.
_VERSIONED = ("numpy", "scipy", "opencv-python-headless", "polars", "torch", "onnxruntime", "transformers", "ray")


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
    hardware: dict[str, Any] = field(default_factory=lambda: describe_hardware())
    versions: dict[str, str] = field(default_factory=lambda: list_versions())
    id: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}")

    def save(self, folder: RunFolder) -> None:
        """Write this session's file."""
        write_atomically(folder.sessions_path / f"{self.id}.json", json.dumps(asdict(self), indent=1))

    def end(self, folder: RunFolder, outcome: str) -> None:
        """Note how it ended, here and in `run.json`."""
        self.outcome, self.ended = outcome, datetime.now(UTC).isoformat(timespec="seconds")
        self.save(folder)
        gather_sessions(folder)


def start_manifest(folder: RunFolder, plan: Plan) -> dict[str, Any]:
    """Write `run.json` unless another process just did, and return its content."""
    document = {
        "schema": RUN_SCHEMA,
        "benchmark": {"name": plan.job.benchmark, "version": plan.benchmark.card.version},
        "model": asdict(plan.identity) if plan.identity else None,
        "options": plan.options.model_dump(mode="json"),
        "seed": plan.options.seed,
        "units": len(plan.units),
        "left_out": [asdict(one) for one in getattr(plan.units, "left_out", ())],
        "batch_size": plan.parts["batch size"],
        "answers": {"fingerprint": plan.answers, "parts": dict(plan.parts)},
        "code": {"hardlook": hardlook.__version__, "fingerprint": code_fingerprint()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "sessions": [],
    }
    write_if_absent(folder.manifest_path, json.dumps(document, indent=1, default=str))
    return folder.read_manifest()


def gather_sessions(folder: RunFolder) -> None:
    """Put all sessions into `run.json`; one that cannot be read is listed as unreadable."""
    with folder.locked():
        manifest = folder.read_manifest()
        manifest["sessions"] = [_read(path) for path in sorted(folder.sessions_path.glob("*.json"))]
        write_atomically(folder.manifest_path, json.dumps(manifest, indent=1))


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except ValueError:
        return {"id": path.stem, "outcome": "unreadable"}


def code_fingerprint() -> str:
    """Hash of the package's own source."""
    return fingerprints.hash_sources(Path(hardlook.__file__).parent.rglob("*.py"))


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
