"""From a scored run to its page: pictures are fetched for the units that galleries show, and for no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.contract.sections import Gallery, Picture, Section
from hardlook.errors import HardlookError
from hardlook.models.card import MARKS

if TYPE_CHECKING:
    from hardlook.contract.benchmark import BenchmarkCard
    from hardlook.runs.scoring import ScoredRun


def write_report(scored: ScoredRun) -> None:
    """Write `report.html` into the run folder."""
    from hardlook.report.page import render_page
    from hardlook.runs.folder import write_whole

    card = scored.benchmark.card
    sections = scored.benchmark.sections(scored.records, scored.scorecard)
    page = render_page(
        scored.scorecard,
        sections,
        title=f"{card.title}: {scored.scorecard.model}",
        summary=_summary(scored),
        provenance=scored.manifest,
        pictures=_pictures(scored, sections),
        explanations=meanings(card),
        higher_is_better={score.name: score.higher_is_better for score in card.scores},
        titles={score.name: score.title for score in card.scores},
        headline=[score.name for score in card.scores],
        failures=scored.failures.select("unit", "stage", "error", "at").to_dicts(),
        date=scored.manifest["created"][:10],
    )
    write_whole(scored.folder.report_path, page)


def meanings(card: BenchmarkCard) -> dict[str, str]:
    """Score name to its sentence."""
    return {score.name: score.meaning for score in card.scores}


def model_marks(name: str) -> tuple[str, ...]:
    """The marks of a model's card; none where the model is not installed here.

    >>> model_marks("soft-k-means"), model_marks("planted-segmenter"), model_marks("gone:Model")
    (('GL', 'TT', 'transductive'), (), ())
    """
    from hardlook.models.registry import find

    try:
        return find(name).card.marks
    except HardlookError:
        return ()


def _summary(scored: ScoredRun) -> str:
    card, counts = scored.benchmark.card, scored.scorecard.units
    model = scored.manifest["model"]
    settings = ", ".join(
        f"{name}={value}" for name, value in (model["args"] if model else {}).items() if value is not None
    )
    marks = ", ".join(f"{mark} ({MARKS[mark]})" for mark in model_marks(model["name"])) if model else ""
    return (
        f"{card.summary} {counts.scored} of {counts.planned} units were scored, {counts.failed} failed."
        + (f" The model's settings: {settings}." if settings else "")
        + (f" Its marks: {marks}." if marks else "")
        + (f" Source: {card.citation}" if card.citation else "")
    )


def _pictures(scored: ScoredRun, sections: Sequence[Section]) -> dict[str, Sequence[Picture] | str]:
    galleries = [block for section in sections for block in section.blocks if isinstance(block, Gallery)]
    wanted = list(dict.fromkeys(example.unit for gallery in galleries for example in gallery.examples))
    if not wanted:
        return {}
    try:
        units = {unit.id: unit for unit in scored.benchmark.units(scored.options)}
    except (HardlookError, OSError) as error:
        return {name: f"the data cannot be read any more: {error}" for name in wanted}
    records = scored.whole_records(wanted)
    found: dict[str, Sequence[Picture] | str] = {}
    for name in wanted:
        try:
            found[name] = scored.benchmark.pictures(units[name], records[name])
        except (HardlookError, OSError, KeyError) as error:
            found[name] = f"no picture: {error}"
    return found
