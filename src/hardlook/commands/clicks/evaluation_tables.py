"""The numbers of `hardlook clicks evaluate` as files: a row a model and slice, a row a stem, and one document."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from hardlook.bias.estimate_words import document_of, number
from hardlook.clicks.evaluation import StemScores
from hardlook.clicks.evaluation_summary import METRICS, GroupScores

if TYPE_CHECKING:
    from hardlook.commands.clicks.evaluation_study import EvaluationStudy

ALL = "all"


def scored_slices(study: EvaluationStudy) -> Iterable[tuple[str, str, str, GroupScores]]:
    """Model, column, value and scores: all stems first, then every slice."""
    for name, scores in study.overall.items():
        yield name, ALL, "", scores
    for column, by_model in study.slices.items():
        for name, groups in by_model.items():
            for group in groups:
                yield name, column, group.group[column], group


def slice_table(study: EvaluationStudy) -> str:
    """`table.csv`: a row a model and slice, with intervals."""
    measured = [f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")]
    rows = [
        (model, column, value, group.stems, *_cells(group), group.ks_undefined, group.fell_back)
        for model, column, value, group in scored_slices(study)
    ]
    return _csv(("model", "slice", "value", "stems", *measured, "ks_undefined", "fell_back"), rows)


def stem_table(study: EvaluationStudy) -> str:
    """`per_stem.csv`: a row a model, stem and crowd."""
    names = [field.name for field in fields(StemScores)]
    rows = [(model, *asdict(row).values()) for model, found in study.judged.rows.items() for row in found]
    return _csv(("model", *names), rows)


def evaluation_document(study: EvaluationStudy, given: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """All numbers as JSON values; undefined ones are null."""
    import hardlook

    return {
        "schema": "hardlook.clicks-evaluation/1",
        "hardlook": hardlook.__version__,
        **given,
        "models": {name: one.facts() for name, one in study.models.items()},
        "in_words": list(words),
        "scores": [
            {"model": model, "slice": column, "value": value, **_document(group)}
            for model, column, value, group in scored_slices(study)
        ],
        "best": [
            {
                "metric": one.metric,
                "model": one.best,
                "leads": {
                    name: {**(document_of(lead) or {}), "better": one.beats(name)} for name, lead in one.leads.items()
                },
            }
            for one in study.standings
        ],
        "pc_against_mobile": [{**group.group, **_document(group)} for group in study.devices],
        "modes_against_text": {mode: _document(group) for mode, group in study.mode_scores.items()},
        "left_out": [asdict(note) for note in study.left_out],
    }


def _document(group: GroupScores) -> dict[str, Any]:
    scores = {metric: document_of(estimate) for metric, estimate in group.scores.items()}
    return {"stems": group.stems, **scores, "ks_undefined": group.ks_undefined, "fell_back": group.fell_back}


def _cells(group: GroupScores) -> list[float | None]:
    estimates = [group.scores[metric] for metric in METRICS]
    return [
        number(value)
        for estimate in estimates
        for value in (estimate.value, estimate.interval.low, estimate.interval.high)
    ]


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """Numbers with seven digits, texts and counts as they are, nothing for what is undefined."""
    if isinstance(value, float):
        return f"{value:.7g}" if math.isfinite(value) else ""
    return int(value) if isinstance(value, bool) else value
