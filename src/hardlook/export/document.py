"""The document of a run, all but its records: what ran, on what, with which result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import hardlook
from hardlook.export.block_names import name_blocks
from hardlook.export.blocks import sections_as_data
from hardlook.export.plain_values import plain
from hardlook.export.score_rows import SCHEMA, score_row

if TYPE_CHECKING:
    from hardlook.contract.benchmark import BenchmarkCard
    from hardlook.runs.scoring import ScoredRun

_EVERY_BYTE = " (every byte)"
_DATA = "data "


def document_of(scored: ScoredRun) -> dict[str, Any]:
    """What `hardlook export --no-records` writes, as a dict of JSON values in the order of the schema."""
    manifest, card, scorecard = scored.manifest, scored.benchmark.card, scored.scorecard
    titles = {score.name: score.title for score in card.scores}
    sections = scored.benchmark.sections(scored.records, scorecard)
    return {
        "schema": SCHEMA,
        "hardlook": {"exported_by": hardlook.__version__, "run_by": manifest.get("code", {}).get("hardlook")},
        "created": manifest["created"],
        "benchmark": _benchmark(card, scorecard.benchmark, scorecard.version),
        "model": _model(manifest["model"], scorecard.model),
        "options": plain(scored.options.model_dump(mode="json")),
        "readings": [plain(asdict(reading)) for reading in scorecard.readings],
        "data": data_fingerprints(manifest["answers"]["parts"]),
        "fingerprints": {
            "answers": manifest["answers"]["fingerprint"],
            "units": manifest["answers"]["parts"].get("units"),
        },
        "units": asdict(scorecard.units),
        "left_out": [plain(asdict(left)) for left in scorecard.left_out],
        "scores": [score_row(score, titles.get(score.name, score.name)) for score in scorecard.scores],
        "failures": scored.failures.select("unit", "stage", "error", "at").to_dicts(),
        "sections": sections_as_data(sections, name_blocks(sections)),
    }


def data_fingerprints(parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The data of a run by name, from what its answers depend on.

    >>> data_fingerprints({"threads": 1, "data voc (every byte)": "5f2d"})
    [{'name': 'voc', 'fingerprint': '5f2d', 'every_byte': True}]
    """
    named = {name.removeprefix(_DATA): value for name, value in parts.items() if name.startswith(_DATA)}
    return [
        {"name": name.removesuffix(_EVERY_BYTE), "fingerprint": str(value), "every_byte": name.endswith(_EVERY_BYTE)}
        for name, value in named.items()
    ]


def _benchmark(card: BenchmarkCard, name: str, version: str) -> dict[str, Any]:
    return {
        "name": name,
        "version": version,
        "title": card.title,
        "summary": card.summary,
        "role": card.role,
        "citation": card.citation,
        "data_licence": card.data_licence,
        "scores": [asdict(score) for score in card.scores],
        "qualities": [asdict(quality) for quality in card.qualities],
    }


def _model(identity: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """The model by name, with its arguments; stored predictions have no identity."""
    if identity is None:
        return {"name": name, "args": {}, "identity": None}
    known = {key: plain(identity.get(key)) for key in ("role", "source", "weights", "device")}
    return {"name": name, "args": plain(identity["args"]), "identity": known}
