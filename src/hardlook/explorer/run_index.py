"""The runs below a folder: found by their `run.json`, named by their path, addressed by a key.

A client never sends a path: it sends the key of a run that was found here. Links are not followed, and a run whose
files lead out of the folder is not opened.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hardlook.errors import HardlookError
from hardlook.report.numerals import numeral
from hardlook.runs.folder import RunFolder

FRESH_SECONDS = 3.0
MOST_FOLDERS = 100_000
_MOST_BYTES = 64 << 20


ScoreRow = tuple[str, float, float | None, float | None]


@dataclass(frozen=True)
class ListedRun:
    """A run as the index shows it; `problem` says why it cannot be opened, or is empty.

    `name` is its path below the served folder. `scores` are (name, value, low, high) over all units, and `scored` is
    how many units they rest on; None where there are no scores.
    """

    key: str
    name: str
    folder: RunFolder
    manifest: dict[str, Any] = field(default_factory=dict)
    scores: tuple[ScoreRow, ...] = ()
    problem: str = ""
    scored: int | None = None

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return str(self.manifest["benchmark"]["name"]) if self.manifest else ""

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.manifest["model"]["name"]) if self.manifest.get("model") else "stored predictions"

    @property
    def units(self) -> str:
        """How many units there are, and how many of them the scores rest on where these are fewer."""
        planned = int(self.manifest["units"])
        part = f"{numeral(self.scored, 0)} of " if self.scored is not None and self.scored < planned else ""
        return f"{part}{numeral(planned, 0)}"

    @property
    def settings(self) -> str:
        """The model's arguments that are set to something, in words."""
        args = self.manifest["model"].get("args") if self.manifest.get("model") else None
        shown = args.items() if isinstance(args, dict) else ()
        return ", ".join(f"{name}={value}" for name, value in shown if value not in (None, 0, 0.0, ""))


class RunIndex:
    """Looks for runs again when what it found is some seconds old."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._lock = threading.Lock()
        self._found: tuple[ListedRun, ...] = ()
        self._looked = -FRESH_SECONDS
        self.cut = False

    def runs(self) -> tuple[ListedRun, ...]:
        """All runs, by name."""
        with self._lock:
            if time.monotonic() - self._looked >= FRESH_SECONDS:
                self._found = tuple(sorted(self._look(), key=lambda run: run.name))
                self._looked = time.monotonic()
            return self._found

    def find(self, key: str) -> ListedRun | None:
        """The run with that key, or None."""
        return next((run for run in self.runs() if run.key == key), None)

    def _look(self) -> list[ListedRun]:
        found = []
        self.cut = False
        for count, (folder, inner, names) in enumerate(os.walk(self.root)):
            if count >= MOST_FOLDERS:
                self.cut = True
                break
            if "run.json" in names:
                found.append(_listed(self.root, Path(folder)))
                inner.clear()
            inner[:] = [name for name in inner if not name.startswith(".")]
        return found


def inside(root: Path, path: Path) -> bool:
    """Whether the path, links resolved, lies in the folder.

    >>> inside(Path("/runs"), Path("/runs/a/../b")), inside(Path("/runs"), Path("/runs/../etc"))
    (True, False)
    """
    return path.resolve().is_relative_to(root)


def _listed(root: Path, path: Path) -> ListedRun:
    name = path.relative_to(root).as_posix()
    name = root.name if name == "." else name
    key = hashlib.blake2b(name.encode(errors="surrogateescape"), digest_size=6).hexdigest()
    # A file name need not be text; what cannot be shown is shown as a mark.
    shown = name.encode(errors="surrogateescape").decode(errors="replace")
    folder = RunFolder(path)
    named = (folder.manifest_path, folder.records_path, folder.scores_path, folder.failures_path)
    if any(not inside(root, one) for one in named):
        return ListedRun(key, shown, folder, problem="it is a link to something outside the served folder")
    try:
        if folder.manifest_path.stat().st_size > _MOST_BYTES:
            return ListedRun(key, shown, folder, problem="its run.json is too large to be one")
        manifest = folder.read_manifest()
        if problem := _strange(manifest):
            return ListedRun(key, shown, folder, problem=problem)
    except HardlookError as error:
        return ListedRun(key, shown, folder, problem=error.what)
    except (OSError, RecursionError) as error:
        return ListedRun(key, shown, folder, problem=f"its run.json cannot be read ({type(error).__name__})")
    scores, scored = _scores(folder)
    return ListedRun(key, shown, folder, manifest, scores, scored=scored)


def _strange(manifest: dict[str, Any]) -> str:
    """What in a manifest is not as it must be, in words: others may have written it."""
    benchmark, model, answers = manifest["benchmark"], manifest["model"], manifest["answers"]
    if not isinstance(benchmark, dict) or not {"name", "version"} <= set(benchmark):
        return "its run.json names no benchmark"
    if model is not None and (not isinstance(model, dict) or "name" not in model):
        return "its run.json names no model"
    if not isinstance(answers, dict) or not isinstance(answers.get("fingerprint"), str):
        return "its run.json has no fingerprint of the answers"
    if not isinstance(manifest["options"], dict) or not isinstance(manifest["units"], int):
        return "its run.json has no options, or no number of units"
    return ""


def _scores(folder: RunFolder) -> tuple[tuple[ScoreRow, ...], int | None]:
    try:
        document = json.loads(folder.scores_path.read_text(encoding="utf-8"))
        rows = [row for row in document["scores"] if not row["slice"] and row["value"] is not None]
        found = tuple((str(row["name"]), float(row["value"]), *_bounds(row["interval"])) for row in rows)
        return found, int(document["units"]["scored"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # A run without scores is still worth looking at: its page says that there are none.
        return (), None


def _bounds(interval: dict[str, Any] | None) -> tuple[float | None, float | None]:
    low, high = (interval.get("low"), interval.get("high")) if interval else (None, None)
    return (float(low), float(high)) if low is not None and high is not None else (None, None)
