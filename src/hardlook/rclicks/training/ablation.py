"""The blur of clicks as an ablation: networks trained with several sigmas, evaluated on the same people's clicks.

The paper's Table 7 does it with twelve sigmas on the validation part of TETRIS.

>>> parse_sigmas("5, .5"), len(parse_sigmas(""))
((0.5, 5.0), 12)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardlook.errors import DataError, OptionError
from hardlook.harness.published import PublishedTable
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.progress import open_progress
from hardlook.harness.scorecard import note_to_json
from hardlook.harness.sections import Section, Table
from hardlook.models.named_model import build_named
from hardlook.rclicks.click_evaluation.evaluation import RESAMPLES, EvaluationSettings, RowCache, evaluate_models
from hardlook.rclicks.click_evaluation.report import HEADS, SCALE, format_csv
from hardlook.rclicks.click_evaluation.stem_scores import (
    HIGHER_IS_BETTER,
    METRICS,
    GroupScores,
    Readings,
    summarise_rows,
)
from hardlook.rclicks.published import published_numbers
from hardlook.rclicks.training.folder import TrainedFolder
from hardlook.rclicks.user_clicks.loading import build_left_out_section, note_unread
from hardlook.report.estimates import estimate_to_json
from hardlook.report.formatting import format_count
from hardlook.report.json_values import dump_json


@dataclass(frozen=True)
class SigmaScores:
    """A sigma in pixels of 1920x1080, its training, and the scores of its network on the validation stems."""

    sigma: float
    trained: TrainedFolder
    scores: GroupScores


def parse_sigmas(text: str) -> tuple[float, ...]:
    """Sigmas from a text with commas, ascending; without a text the paper's twelve."""
    if not text:
        return tuple(float(row) for row in published_numbers().rows("table-7"))
    try:
        sigmas = tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError:
        raise OptionError(
            f"--sigma {text}: not numbers", remedy="numbers separated by commas, such as 1,5,20"
        ) from None
    if not all(0 < sigma < float("inf") for sigma in sigmas):
        raise OptionError(f"--sigma {text}: a blur is above 0", remedy="numbers above 0, such as 1,5,20")
    return sigmas


def evaluate_sigmas(
    trained: Mapping[float, TrainedFolder], out: Path, *, draws: int, seed: int, device: str, quiet: bool
) -> tuple[list[SigmaScores], tuple[tuple[str, str], ...]]:
    """Every network's scores on the stems that all trainings validated on; unreadable stems, each with the reason.

    What has been evaluated is kept in `answers.jsonl`.
    """
    splits = [one.split for one in trained.values()]
    shared = set.intersection(*({stem.key for stem in split.validation} for split in splits))
    sources = [stem.source for stem in splits[0].validation if stem.key in shared]
    models = {
        f"{sigma:g}": build_named("clickability", "click-model", {"path": str(one.result.checkpoint), "device": device})
        for sigma, one in trained.items()
    }
    settings = EvaluationSettings(draws, seed, Readings(), f"validation of {splits[0].fingerprint}")
    with open_progress(quiet) as start:
        advance = start(len(sources), 0)
        results = evaluate_models(sources, models, settings, RowCache(out / "answers.jsonl"), advance)
    scored = []
    for sigma, one in trained.items():
        rows = results.get_stem_rows(f"{sigma:g}")
        if not rows:
            what = "no validation stem could be read" + (f": {results.unread[0][1]}" if results.unread else "")
            raise DataError(what, remedy="check --data")
        scored.append(SigmaScores(sigma, one, summarise_rows(rows, METRICS, resamples=RESAMPLES, seed=seed)[0]))
    return scored, results.unread


def write_ablation(
    scored: Sequence[SigmaScores], unread: Sequence[tuple[str, str]], out: Path, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Write page.html, table.csv and ablation.json; return the numbers."""
    import hardlook
    from hardlook.report.page import render_study

    split = scored[0].trained.split
    notes = [*split.left_out, *([note_unread(unread)] if unread else [])]
    printed = published_numbers().tables["table-7"]
    words = _describe(scored)
    document = {
        "schema": "hardlook.clicks-ablation/1",
        "hardlook": hardlook.__version__,
        "settings": dict(given),
        "in_words": words,
        "rows": [
            {
                "sigma": one.sigma,
                "stems": one.scores.stems,
                "best_epoch": one.trained.result.best_epoch,
                **{metric: estimate_to_json(one.scores.scores[metric]) for metric in METRICS},
            }
            for one in scored
        ],
        "published": [dict(zip(printed.columns, row, strict=True)) for row in printed.rows],
        "left_out": [note_to_json(note) for note in notes],
    }
    cells = [(one.sigma, one.scores.stems, *(one.scores.scores[metric].value for metric in METRICS)) for one in scored]
    sections = [
        Section("Sigma", " ".join(words), _build_tables(cells, printed)),
        *([build_left_out_section("What was left out", notes)] if notes else []),
    ]
    page = render_study(
        sections,
        title="The blur of clicks",
        summary="Clickability networks trained on click maps of several sigmas, evaluated on the same clicks.",
        provenance={name: document[name] for name in ("schema", "hardlook", "settings")},
        pictures={},
    )
    write_atomically(out / "table.csv", format_csv(("sigma", "stems", *METRICS), cells))
    write_atomically(out / "ablation.json", dump_json(document))
    write_atomically(out / "page.html", page)
    return document


def _build_tables(cells: Sequence[Sequence[float]], printed: PublishedTable) -> tuple[Table, Table]:
    caption = "KS, NSS and PDE: higher is better; PL1 and WD: lower. Sigma in pixels of 1920x1080."
    columns = ("sigma", "stems", *HEADS)
    beside = "As printed: the whole training part of TETRIS, evaluated on its 500 validation images. " + printed.note
    return (
        Table("Here", caption, columns, [_scale(row, 2) for row in cells], 3),
        Table(printed.title, beside.strip(), ("sigma", *HEADS), [_scale(row, 1) for row in printed.rows], 3),
    )


def _scale(row: Sequence[Any], first: int) -> tuple[Any, ...]:
    """A row whose metrics, from the column `first`, are in the units that pages show: PDE x 10^5."""
    return (*row[:first], *(value * SCALE[metric] for value, metric in zip(row[first:], METRICS, strict=True)))


def _describe(scored: Sequence[SigmaScores]) -> list[str]:
    best = []
    for metric in METRICS:
        values = [one.scores.scores[metric].value for one in scored]
        highest = max(values) if HIGHER_IS_BETTER[metric] else min(values)
        equal = [f"{one.sigma:g}" for one, value in zip(scored, values, strict=True) if value == highest]
        best.append(f"{metric.upper()} {' and '.join(equal)}")
    listed = ", ".join(best)
    split = scored[0].trained.split
    who = "simulated people" if split.planted else "people"
    return [
        f"{format_count(len(scored), 'network')} trained on the clicks of {who} on "
        f"{format_count(len(split.training), 'stem')} and evaluated on {scored[0].scores.stems}. The best sigma by "
        f"metric: {listed}. The paper chose 5."
    ]


def settings_to_json(trained: TrainedFolder) -> dict[str, Any]:
    """The settings that all trainings of an ablation share."""
    return {name: value for name, value in trained.settings.items() if name != "sigma"}
