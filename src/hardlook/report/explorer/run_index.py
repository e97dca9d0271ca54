"""The runs below a folder: found by their `run.json`, named by their path, addressed by a key.

A client never sends a path: it sends the key of a run from this index. Links are not followed, and a run whose files
lead out of the folder is not opened.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hardlook.errors import HardlookError
from hardlook.harness.checked_json import parse_checked_json
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.scoring import get_model_name
from hardlook.report.formatting import format_number

# For so long what was read from disk is not read again.
FRESH_SECONDS = 3.0
MAX_FOLDERS = 100_000
_MAX_MANIFEST_BYTES = 64 << 20
ScoreRow = tuple[str, float, float | None, float | None]


@dataclass(frozen=True)
class ListedRun:
    """A run as the index shows it; `problem` says why it cannot be opened, or is empty.

    `name` is its path below the served folder, `method` its model with those that it works with. `scores` are (name,
    value, low, high) over all units, and `scored` is the number of units behind them; None where there are no scores.
    """

    key: str
    name: str
    folder: RunFolder
    manifest: dict[str, Any] = field(default_factory=dict)
    scores: tuple[ScoreRow, ...] = ()
    problem: str = ""
    scored: int | None = None
    method: str = ""

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return str(self.manifest["benchmark"]["name"]) if self.manifest else ""

    @property
    def units(self) -> str:
        """The number of units, and how many of them were scored where these are fewer."""
        planned = int(self.manifest["units"])
        part = f"{format_number(self.scored, 0)} of " if self.scored is not None and self.scored < planned else ""
        return f"{part}{format_number(planned, 0)}"

    @property
    def settings(self) -> str:
        """The model's arguments that are neither empty nor zero, as a text."""
        args = self.manifest["model"].get("args") if self.manifest.get("model") else None
        shown = args.items() if isinstance(args, dict) else ()
        return ", ".join(f"{name}={value}" for name, value in shown if value not in (None, 0, 0.0, ""))


class RunIndex:
    """The runs below a folder, searched again after some seconds; `cut` where there were too many folders.

    `name_method` makes a run's `method` from its `run.json`.
    """

    def __init__(self, root: Path, name_method: Callable[[dict[str, Any]], str] = get_model_name) -> None:
        self.root = root.resolve()
        self._name_method = name_method
        self._lock = threading.Lock()
        self._runs: tuple[ListedRun, ...] = ()
        self._read_at = -FRESH_SECONDS
        self.cut = False

    def runs(self) -> tuple[ListedRun, ...]:
        """All runs, by name."""
        with self._lock:
            if time.monotonic() - self._read_at >= FRESH_SECONDS:
                self._runs = tuple(sorted(self._search(), key=lambda run: run.name))
                self._read_at = time.monotonic()
            return self._runs

    def find(self, key: str) -> ListedRun | None:
        """The run with that key, or None."""
        return next((run for run in self.runs() if run.key == key), None)

    def _search(self) -> list[ListedRun]:
        runs = []
        self.cut = False
        for count, (folder, inner, names) in enumerate(os.walk(self.root)):
            if count >= MAX_FOLDERS:
                self.cut = True
                break
            if "run.json" in names:
                run = _read_run(self.root, Path(folder))
                runs.append(replace(run, method=self._name_method(run.manifest)) if run.manifest else run)
                inner.clear()
            inner[:] = [name for name in inner if not name.startswith(".")]
        return runs


def is_inside(root: Path, path: Path) -> bool:
    """Whether the path, links resolved, lies in the folder.

    >>> is_inside(Path("/runs"), Path("/runs/a/../b")), is_inside(Path("/runs"), Path("/runs/../etc"))
    (True, False)
    """
    return path.resolve().is_relative_to(root)


def _read_run(root: Path, path: Path) -> ListedRun:
    name = path.relative_to(root).as_posix()
    name = root.name if name == "." else name
    key = hashlib.blake2b(name.encode(errors="surrogateescape"), digest_size=6).hexdigest()
    # A file name need not be valid Unicode: other bytes become replacement characters.
    shown = name.encode(errors="surrogateescape").decode(errors="replace")
    folder = RunFolder(path)
    paths = (folder.manifest_path, folder.records_path, folder.scores_path, folder.failures_path)
    if any(not is_inside(root, path) for path in paths):
        return ListedRun(key, shown, folder, problem="it is a link to something outside the served folder")
    try:
        if folder.manifest_path.stat().st_size > _MAX_MANIFEST_BYTES:
            return ListedRun(key, shown, folder, problem="its run.json is too large to be one")
        manifest = folder.read_manifest()
    except HardlookError as error:
        return ListedRun(key, shown, folder, problem=error.what)
    except (OSError, RecursionError) as error:
        return ListedRun(key, shown, folder, problem=f"its run.json cannot be read ({type(error).__name__})")
    scores, scored = _read_scores(folder)
    return ListedRun(key, shown, folder, manifest, scores, scored=scored)


def _read_scores(folder: RunFolder) -> tuple[tuple[ScoreRow, ...], int | None]:
    try:
        document = parse_checked_json(folder.scores_path.read_text(encoding="utf-8"))
        rows = [row for row in document["scores"] if not row["slice"] and row["value"] is not None]
        scores = tuple((str(row["name"]), float(row["value"]), *_get_bounds(row["interval"])) for row in rows)
        return scores, int(document["units"]["scored"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        # A run without scores can still be opened: its page says that there are none.
        return (), None


def _get_bounds(interval: dict[str, Any] | None) -> tuple[float | None, float | None]:
    low, high = (interval or {}).get("low"), (interval or {}).get("high")
    return (float(low), float(high)) if low is not None and high is not None else (None, None)
