"""Answers kept as they come, a line each, so that a stopped evaluation goes on where it was.

A line carries the fingerprint of what gave the answer: other models, draws or data find no answer of theirs in it.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "answers.jsonl"
>>> AnswerFile(path).add("uniform of today", "planted/scene-0-0", [{"ks": 0.5}])
>>> AnswerFile(path).get("uniform of today", "planted/scene-0-0"), AnswerFile(path).get("another", "scene")
([{'ks': 0.5}], None)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]


class AnswerFile:
    """All answers of a file; new ones are added to its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[tuple[str, str], Rows] = {}
        if path.is_file():
            lines = path.read_text(encoding="utf-8").split("\n")
            # What follows the last line end is a line that a killed process left unfinished.
            for line in lines[:-1]:
                self._take(line)
            if lines[-1]:
                path.write_text("".join(f"{line}\n" for line in lines[:-1]), encoding="utf-8")

    def get(self, fingerprint: str, key: str) -> Rows | None:
        """The rows of one answer, None where there is none."""
        return self._rows.get((fingerprint, key))

    def add(self, fingerprint: str, key: str, rows: Rows) -> None:
        """Keep an answer."""
        self._rows[fingerprint, key] = rows
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"answers": fingerprint, "key": key, "rows": rows}) + "\n")

    def _take(self, line: str) -> None:
        answer = json.loads(line)
        self._rows[answer["answers"], answer["key"]] = answer["rows"]
