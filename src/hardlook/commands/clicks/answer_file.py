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

from hardlook.errors import RunError
from hardlook.runs.folder import write_whole

Rows = list[dict[str, Any]]


class AnswerFile:
    """All answers of a file; new ones are added to its end. A damaged line is a `RunError` with its number."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[tuple[str, str], Rows] = {}
        if path.is_file():
            *whole, rest = path.read_bytes().split(b"\n")
            for number, line in enumerate(whole, 1):
                self._take(line, number)
            # What follows the last line end is a line that a killed process left unfinished.
            if rest:
                write_whole(path, b"".join(line + b"\n" for line in whole))

    def get(self, fingerprint: str, key: str) -> Rows | None:
        """The rows of one answer, None where there is none."""
        return self._rows.get((fingerprint, key))

    def add(self, fingerprint: str, key: str, rows: Rows) -> None:
        """Keep an answer."""
        self._rows[fingerprint, key] = rows
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"answers": fingerprint, "key": key, "rows": rows}) + "\n")

    def _take(self, line: bytes, number: int) -> None:
        try:
            answer = json.loads(line)
            fingerprint, key, rows = answer["answers"], answer["key"], answer["rows"]
            if not (isinstance(fingerprint, str) and isinstance(key, str) and isinstance(rows, list)):
                raise TypeError("another kind of value than expected")
        # A line that is no JSON or no UTF-8 is a ValueError, one without a part a KeyError.
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"line {number} is damaged: {error}",
                file=self._path,
                remedy="delete this line, and its answer is made again; or choose another --out",
            ) from error
        self._rows[fingerprint, key] = rows
