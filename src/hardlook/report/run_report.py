"""The report of a run: builds its sections, loads the pictures that its galleries show, and writes its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hardlook.errors import HardlookError
from hardlook.harness.benchmark import draw_nothing
from hardlook.harness.sections import Block, Gallery, Picture, Section
from hardlook.models.registry import MARKS, find
from hardlook.report.formatting import format_count, format_number
from hardlook.report.notable_units import build_notable_units_section

if TYPE_CHECKING:
    from hardlook.harness.runs.scoring import ScoredRun
    from hardlook.report.galleries import UnitRecord

EXAMPLES = 6


def write_report(scored: ScoredRun, *, examples: int = EXAMPLES, out: Path | None = None) -> Path:
    """Write the page to `out`, or as `report.html` into the run folder; at most `examples` units per gallery."""
    from hardlook.harness.runs.folder import write_atomically
    from hardlook.harness.runs.rerun_command import build_rerun_command
    from hardlook.report.page import render_page

    card = scored.benchmark.card
    sections = build_report_sections(scored, examples)
    shown = list_shown_units(sections)
    pictures = load_unit_pictures(scored, shown)
    _report_missing_pictures(scored, [why for why in pictures.values() if isinstance(why, str)])
    page = render_page(
        scored.scorecard,
        sections,
        title=f"{_name_models(scored)} on {card.title}",
        summary=_describe_run(scored),
        provenance=scored.manifest,
        pictures=pictures,
        meanings=card.scores,
        failures=scored.failures.select("unit", "stage", "error", "at").to_dicts(),
        date=scored.manifest["created"][:10],
        records=_build_unit_records(scored, shown),
        again=build_rerun_command(scored.manifest),
    )
    path = out or scored.folder.report_path
    write_atomically(path, page)
    return path


def build_report_sections(scored: ScoredRun, examples: int = EXAMPLES) -> list[Section]:
    """The benchmark's sections and the notable units, every gallery cut to `examples` units; none for 0."""
    own = scored.build_sections()
    sections = [limited for section in own if (limited := _limit_galleries(section, examples))]
    more = build_notable_units_section(scored, examples, list_shown_units(sections))
    return [*sections, more] if more else sections


def list_shown_units(sections: Sequence[Section]) -> list[str]:
    """The units that galleries show, each once, in order."""
    galleries = [block for section in sections for block in section.blocks if isinstance(block, Gallery)]
    return list(dict.fromkeys(example.unit for gallery in galleries for example in gallery.examples))


def _limit_galleries(section: Section, examples: int) -> Section | None:
    """The section with short galleries; None where it had only galleries and none is wanted."""
    blocks: list[Block] = []
    for block in section.blocks:
        if isinstance(block, Gallery) and examples:
            blocks.append(replace(block, examples=tuple(block.examples[:examples])))
        elif not isinstance(block, Gallery):
            blocks.append(block)
    return replace(section, blocks=tuple(blocks)) if blocks or not section.blocks else None


def _build_unit_records(scored: ScoredRun, units: Sequence[str]) -> dict[str, UnitRecord]:
    """What opens below each example: the record without pictures, and the command that evaluates the unit again."""
    from hardlook.harness.runs.rerun_command import build_rerun_command
    from hardlook.report.galleries import UnitRecord, format_record_fields

    return {
        unit: UnitRecord(format_record_fields(record), build_rerun_command(scored.manifest, unit))
        for unit, record in scored.find_records(units).items()
    }


def list_model_marks(name: str) -> tuple[str, ...]:
    """The marks of a model's card; none where the model is not installed here.

    >>> list_model_marks("soft-k-means"), list_model_marks("planted-segmenter"), list_model_marks("gone:Model")
    (('GL', 'TT', 'transductive'), (), ())
    """
    try:
        return find(name).card.marks
    except HardlookError:
        return ()


def _name_models(scored: ScoredRun) -> str:
    """The model, and those that it works with, such as an encoder."""
    others = scored.options.list_other_models(scored.scorecard.model)
    beside = ", ".join(f"{role} {name}" for role, name in others.items())
    return f"{scored.scorecard.model or 'answers'}{f' with the {beside}' if beside else ''}"


def _describe_run(scored: ScoredRun) -> str:
    card, counts = scored.benchmark.card, scored.scorecard.units
    model, parts = scored.manifest["model"], scored.manifest.get("joined")
    settings = ", ".join(
        f"{name}={value}" for name, value in (model["args"] if model else {}).items() if value not in (None, "")
    )
    marks = ", ".join(f"{mark} ({MARKS[mark]})" for mark in list_model_marks(model["name"])) if model else ""
    return (
        f"{card.summary} {format_number(counts.scored, 0)} of {format_count(counts.planned, 'unit')} were scored, "
        f"{format_number(counts.failed, 0)} failed."
        + (f" Joined from {len(parts)} runs: {', '.join(row['folder'] for row in parts)}." if parts else "")
        + (f" The model's settings: {settings}." if settings else "")
        + (f" Its marks: {marks}." if marks else "")
        + (f" Source: {card.citation}" if card.citation else "")
    )


def _report_missing_pictures(scored: ScoredRun, reasons: Sequence[str]) -> None:
    """Print a note: on the page the reasons are below the units, in galleries that may be closed."""
    if reasons:
        count = f"{format_count(len(reasons), 'unit is', 'units are')} shown without pictures"
        typer.echo(f"{scored.folder.path}: {count}: {' '.join(reasons[0].split())}", err=True)


def load_unit_pictures(scored: ScoredRun, wanted: Sequence[str]) -> dict[str, Sequence[Picture] | str]:
    """By unit its pictures, or the reason why there are none."""
    if not wanted or getattr(scored.benchmark, "pictures", None) is draw_nothing:
        return {name: () for name in wanted}
    try:
        chosen = set(wanted)
        units = {unit.id: unit for unit in scored.list_units() if unit.id in chosen}
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
