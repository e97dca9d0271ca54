"""The numbers of `hardlook clicks evaluate` as files: a CSV row per model and slice, one per stem, and one document."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from hardlook.rclicks.click_evaluation.stem_scores import METRICS, GroupScores, StemScores
from hardlook.report.estimates import estimate_to_json, finite_or_none

if TYPE_CHECKING:
    from hardlook.rclicks.click_evaluation.evaluation import ClickEvaluation


ALL = "all"


def scored_slices(evaluation: ClickEvaluation) -> Iterable[tuple[str, str, str, GroupScores]]:
    """Model, column, value and scores: all stems first, then every slice."""
    for name, scores in evaluation.overall.items():
        yield name, ALL, "", scores
    for column, by_model in evaluation.slices.items():
        for name, groups in by_model.items():
            for group in groups:
                yield name, column, group.group[column], group


def slice_table(evaluation: ClickEvaluation) -> str:
    """`table.csv`: a row per model and slice, with intervals."""
    measured = [f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")]
    rows = [
        (model, column, value, group.stems, *_cells(group), group.ks_undefined, group.fell_back)
        for model, column, value, group in scored_slices(evaluation)
    ]
    return _csv(("model", "slice", "value", "stems", *measured, "ks_undefined", "fell_back"), rows)


def stem_table(evaluation: ClickEvaluation) -> str:
    """`per_stem.csv`: a row per model, stem and device."""
    names = [field.name for field in fields(StemScores)]
    rows = [(model, *asdict(row).values()) for model, found in evaluation.results.rows.items() for row in found]
    return _csv(("model", *names), rows)


def evaluation_document(evaluation: ClickEvaluation, given: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """All numbers as JSON values; undefined ones are null."""
    import hardlook

    return {
        "schema": "hardlook.clicks-evaluation/1",
        "hardlook": hardlook.__version__,
        **given,
        "models": {name: one.facts() for name, one in evaluation.models.items()},
        "in_words": list(words),
        "scores": [
            {"model": model, "slice": column, "value": value, **_document(group)}
            for model, column, value, group in scored_slices(evaluation)
        ],
        "best": [
            {
                "metric": one.metric,
                "model": one.best,
                "leads": {
                    name: {**(estimate_to_json(lead) or {}), "better": one.beats(name)}
                    for name, lead in one.leads.items()
                },
            }
            for one in evaluation.rankings
        ],
        "pc_against_mobile": [{**group.group, **_document(group)} for group in evaluation.devices],
        "modes_against_text": {mode: _document(group) for mode, group in evaluation.mode_scores.items()},
        "left_out": [asdict(note) for note in evaluation.left_out],
    }


def _document(group: GroupScores) -> dict[str, Any]:
    scores = {metric: estimate_to_json(estimate) for metric, estimate in group.scores.items()}
    return {"stems": group.stems, **scores, "ks_undefined": group.ks_undefined, "fell_back": group.fell_back}


def _cells(group: GroupScores) -> list[float | None]:
    estimates = [group.scores[metric] for metric in METRICS]
    return [
        finite_or_none(value)
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
