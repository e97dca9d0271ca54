"""From a scored run to its page: pictures are fetched for the units that galleries show, and for no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hardlook.commands.reports.units_to_look_at import light_records, units_to_look_at
from hardlook.contract.sections import Block, Gallery, Picture, Section
from hardlook.errors import HardlookError
from hardlook.models.card import MARKS
from hardlook.report.numerals import counted, numeral

if TYPE_CHECKING:
    from hardlook.contract.benchmark import BenchmarkCard
    from hardlook.report.unit_records import UnitRecord
    from hardlook.runs.scoring import ScoredRun


EXAMPLES = 6


def write_report(scored: ScoredRun, *, examples: int = EXAMPLES, out: Path | None = None) -> Path:
    """Write the page to `out`, or as `report.html` into the run folder; at most `examples` units a gallery."""
    from hardlook.report.page import render_page
    from hardlook.runs.again import command_again
    from hardlook.runs.folder import write_whole

    card = scored.benchmark.card
    sections = shown_sections(scored, examples)
    shown = shown_units(sections)
    pictures = _pictures(scored, shown)
    _say_without_pictures(scored, [why for why in pictures.values() if isinstance(why, str)])
    page = render_page(
        scored.scorecard,
        sections,
        title=f"{scored.scorecard.model or 'answers'} on {card.title}",
        summary=_summary(scored),
        provenance=scored.manifest,
        pictures=pictures,
        explanations=meanings(card),
        higher_is_better={score.name: score.higher_is_better for score in card.scores if score.directed},
        titles={score.name: score.title for score in card.scores},
        headline=[score.name for score in card.scores],
        failures=scored.failures.select("unit", "stage", "error", "at").to_dicts(),
        date=scored.manifest["created"][:10],
        records=_records(scored, shown),
        again=command_again(scored.manifest),
    )
    path = out or scored.folder.report_path
    write_whole(path, page)
    return path


def shown_sections(scored: ScoredRun, examples: int = EXAMPLES) -> list[Section]:
    """The benchmark's sections and the units to look at, every gallery cut to `examples` units; none for 0."""
    own = scored.benchmark.sections(scored.records, scored.scorecard)
    sections = [bounded for section in own if (bounded := _bounded(section, examples))]
    more = units_to_look_at(scored, examples, shown_units(sections))
    return [*sections, more] if more else sections


def shown_units(sections: Sequence[Section]) -> list[str]:
    """The units that galleries show, each once, in order."""
    galleries = [block for section in sections for block in section.blocks if isinstance(block, Gallery)]
    return list(dict.fromkeys(example.unit for gallery in galleries for example in gallery.examples))


def _bounded(section: Section, examples: int) -> Section | None:
    """The section with short galleries; None where nothing but galleries was in it and none is wanted."""
    blocks: list[Block] = []
    for block in section.blocks:
        if isinstance(block, Gallery) and examples:
            blocks.append(replace(block, examples=tuple(block.examples[:examples])))
        elif not isinstance(block, Gallery):
            blocks.append(block)
    return replace(section, blocks=tuple(blocks)) if blocks or not section.blocks else None


def _records(scored: ScoredRun, units: Sequence[str]) -> dict[str, UnitRecord]:
    """What opens below each example: the record without pictures, and the command that answers the unit again."""
    from hardlook.report.unit_records import UnitRecord, record_fields
    from hardlook.runs.again import command_again

    return {
        unit: UnitRecord(record_fields(record), command_again(scored.manifest, unit))
        for unit, record in light_records(scored, units).items()
    }


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
        f"{name}={value}" for name, value in (model["args"] if model else {}).items() if value not in (None, "")
    )
    marks = ", ".join(f"{mark} ({MARKS[mark]})" for mark in model_marks(model["name"])) if model else ""
    return (
        f"{card.summary} {numeral(counts.scored, 0)} of {counted(counts.planned, 'unit')} were scored, "
        f"{numeral(counts.failed, 0)} failed."
        + (f" The model's settings: {settings}." if settings else "")
        + (f" Its marks: {marks}." if marks else "")
        + (f" Source: {card.citation}" if card.citation else "")
    )


def _say_without_pictures(scored: ScoredRun, reasons: Sequence[str]) -> None:
    """The page says it below each unit, in galleries that may be closed; so it is said here once."""
    if reasons:
        said = f"{counted(len(reasons), 'unit is', 'units are')} shown without pictures"
        typer.echo(f"{scored.folder.path}: {said}: {' '.join(reasons[0].split())}", err=True)


def _pictures(scored: ScoredRun, wanted: Sequence[str]) -> dict[str, Sequence[Picture] | str]:
    if not wanted:
        return {}
    try:
        units = {unit.id: unit for unit in scored.benchmark.units(scored.options)}
    except (HardlookError, OSError) as error:
        return {name: f"the data cannot be read any more: {error}" for name in wanted}
    records = scored.whole_records(list(wanted))
    found: dict[str, Sequence[Picture] | str] = {}
    for name in wanted:
        if name not in units:
            found[name] = "the data do not hold this unit any more."
            continue
        try:
            found[name] = scored.benchmark.pictures(units[name], records[name])
        except (HardlookError, OSError, KeyError) as error:
            found[name] = str(error)
    return found
