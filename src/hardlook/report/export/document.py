"""The exported document of a run, without its records; and the scorecard read back from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import hardlook
from hardlook.errors import DataError
from hardlook.harness import scorecard
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.report.export.block_data import build_section_data
from hardlook.report.json_values import dump_json, to_json_value

if TYPE_CHECKING:
    from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
    from hardlook.harness.runs.scoring import ScoredRun


SCHEMA = "hardlook.export/1"

# The keys of an interval: in a row, and in scores.json.
_INTERVAL = {
    "low": "low",
    "high": "high",
    "level": "level",
    "method": "method",
    "resampled": "resampled",
    "resampled_n": "n",
}

_EVERY_BYTE = " (every byte)"

_DATA = "data "


def build_document(scored: ScoredRun) -> dict[str, Any]:
    """What `hardlook export --no-records` writes, as a dict of JSON values in the order of the schema."""
    manifest, card, scorecard = scored.manifest, scored.benchmark.card, scored.scorecard
    titles = {score.name: score.title for score in card.scores}
    sections = scored.benchmark.report(scored.records, scorecard)
    return {
        "schema": SCHEMA,
        "hardlook": {"exported_by": hardlook.__version__, "run_by": manifest.get("code", {}).get("hardlook")},
        "created": manifest["created"],
        "benchmark": _build_benchmark(card, scorecard.benchmark, scorecard.version),
        "model": _build_model(manifest["model"], scorecard.model),
        "options": to_json_value(scored.options.model_dump(mode="json")),
        "readings": [to_json_value(asdict(reading)) for reading in scorecard.readings],
        "data": list_data_fingerprints(manifest["answers"]["parts"]),
        "fingerprints": {
            "answers": manifest["answers"]["fingerprint"],
            "units": manifest["answers"]["parts"].get("units"),
        },
        "units": asdict(scorecard.units),
        "left_out": [to_json_value(asdict(left)) for left in scorecard.left_out],
        "scores": [build_score_row(score, titles.get(score.name, score.name)) for score in scorecard.scores],
        "failures": scored.failures.select("unit", "stage", "error", "at").to_dicts(),
        "sections": build_section_data(sections),
    }


def list_data_fingerprints(parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The data of a run by name, from the fingerprinted parts of its answers.

    >>> list_data_fingerprints({"threads": 1, "data voc (every byte)": "5f2d"})
    [{'name': 'voc', 'fingerprint': '5f2d', 'every_byte': True}]
    """
    named = {name.removeprefix(_DATA): value for name, value in parts.items() if name.startswith(_DATA)}
    return [
        {"name": name.removesuffix(_EVERY_BYTE), "fingerprint": str(value), "every_byte": name.endswith(_EVERY_BYTE)}
        for name, value in named.items()
    ]


def _build_benchmark(card: BenchmarkCard, name: str, version: str) -> dict[str, Any]:
    return {
        "name": name,
        "version": version,
        "title": card.title,
        "summary": card.summary,
        "role": card.role,
        "citation": card.citation,
        "data_licence": card.data_licence,
        "scores": [_build_meaning(score) for score in card.scores],
        "qualities": [asdict(quality) for quality in card.qualities],
    }


def _build_meaning(score: ScoreMeaning) -> dict[str, Any]:
    """The meaning of a score with the keys of the schema."""
    fields = asdict(score)
    return fields | {"directed": fields.pop("ranked"), "turned": fields.pop("inverted_slices")}


def _build_model(identity: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """The model's name, arguments and identity; stored predictions have no identity."""
    if identity is None:
        return {"name": name, "args": {}, "identity": None}
    known = {key: to_json_value(identity.get(key)) for key in ("role", "source", "weights", "device")}
    return {"name": name, "args": to_json_value(identity["args"]), "identity": known}


def build_score_row(score: Score, title: str) -> dict[str, Any]:
    """A score as a flat row; without an interval, everything about it is None.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> score = Score("miou", 0.5, 10, Interval(0.4, 0.6, 0.95, "percentile", 10, "image"), {"class": "cat"})
    >>> row = build_score_row(score, "Mean IoU")
    >>> row["low"], row["resampled"], row["slice"]
    (0.4, 'image', {'class': 'cat'})
    """
    interval = {key: getattr(score.interval, field, None) for key, field in _INTERVAL.items()}
    row = {"name": score.name, "title": title, "slice": dict(score.slice), "value": score.value, "n": score.n}
    fields: dict[str, Any] = to_json_value(
        {**row, **interval, "reading": score.reading, "comparable": score.comparable}
    )
    return fields


def read_scorecard(document: Mapping[str, Any]) -> Scorecard:
    """The scorecard of an exported document, equal to that of the run's `scores.json`.

    >>> read_scorecard({"schema": "something/1"})
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
        "scores": [_restore_score(row) for row in document["scores"]],
        **{key: document[key] for key in ("readings", "left_out", "units")},
    }
    return Scorecard.from_json(dump_json(kept))


def _restore_score(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as in scores.json, where an interval is an object."""
    interval = None if row["method"] is None else {field: row[key] for key, field in _INTERVAL.items()}
    return {key: row[key] for key in ("name", "value", "n", "slice", "reading", "comparable")} | {"interval": interval}
