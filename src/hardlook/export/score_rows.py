"""Scores as flat rows, and the scorecard read back from them.

>>> from hardlook.stats.intervals import Interval
>>> score = Score("miou", 0.5, 10, Interval(0.4, 0.6, 0.95, "percentile", 10, "image"), {"class": "cat"})
>>> row = score_row(score, "Mean IoU")
>>> row["low"], row["resampled"], row["slice"]
(0.4, 'image', {'class': 'cat'})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hardlook.contract import scorecard
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.errors import DataError
from hardlook.export.plain_values import json_text, plain

SCHEMA = "hardlook.export/1"
# Of an interval: its key in a row, and in scores.json.
_INTERVAL = {
    "low": "low",
    "high": "high",
    "level": "level",
    "method": "method",
    "resampled": "resampled",
    "resampled_n": "n",
}


def score_row(score: Score, title: str) -> dict[str, Any]:
    """One score; where there is no interval, everything about it is None."""
    made = {key: getattr(score.interval, field, None) for key, field in _INTERVAL.items()}
    row = {"name": score.name, "title": title, "slice": dict(score.slice), "value": score.value, "n": score.n}
    told: dict[str, Any] = plain({**row, **made, "reading": score.reading, "comparable": score.comparable})
    return told


def scorecard_of(document: Mapping[str, Any]) -> Scorecard:
    """The scorecard of an exported document, equal to that of the run's `scores.json`.

    >>> scorecard_of({"schema": "something/1"})
    Traceback (most recent call last):
    ...
    hardlook.errors.DataError: expected a document of schema 'hardlook.export/1', got 'something/1'
    """
    if document.get("schema") != SCHEMA:
        raise DataError(f"expected a document of schema {SCHEMA!r}, got {document.get('schema')!r}")
    kept = {
        "schema": scorecard.SCHEMA,
        "benchmark": document["benchmark"]["name"],
        "version": document["benchmark"]["version"],
        "model": document["model"]["name"],
        "scores": [_stored(row) for row in document["scores"]],
        **{key: document[key] for key in ("readings", "left_out", "units")},
    }
    return Scorecard.from_json(json_text(kept))


def _stored(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as in scores.json, where an interval is an object of its own."""
    interval = None if row["method"] is None else {field: row[key] for key, field in _INTERVAL.items()}
    return {key: row[key] for key in ("name", "value", "n", "slice", "reading", "comparable")} | {"interval": interval}
