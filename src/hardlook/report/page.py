"""Self-contained HTML pages: of a run, with scores, readings and sections; and of studies, with sections only.

Nothing on a page depends on the time of rendering, so that the same run gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.scorecard import Reading, Score, Scorecard
from hardlook.harness.sections import Gallery, Section
from hardlook.report.block_names import name_blocks
from hardlook.report.charts import draw
from hardlook.report.formatting import format_count, format_number, pluralize
from hardlook.report.galleries import Pictures, Records, draw_gallery
from hardlook.report.html_tables import draw_block_name, draw_html_table
from hardlook.report.json_values import dump_json
from hardlook.report.markup import element, render_inline, render_paragraphs, strip_backticks
from hardlook.report.score_display import build_card, choose_score_decimals, format_score_interval
from hardlook.report.scorecard_tables import (
    build_all_scores_table,
    build_left_out_table,
    build_noted_table,
    factor_out_constant_columns,
    list_headline_scores,
)
from hardlook.report.slice_statements import describe_slices
from hardlook.report.templates import render_template

if TYPE_CHECKING:
    from markupsafe import Markup

_MAX_CARDS, _MAX_PLAIN_GALLERIES = 12, 2

_BEFORE = (
    ("scores", "Scores"),
    ("guide", "How to read this"),
    ("left-out", "What was left out"),
    ("readings", "Which readings ran"),
)
_AFTER = (("all-scores", "All scores and slices"), ("failures", "Failures"))
_PROVENANCE = ("provenance", "Provenance")


def render_page(
    scorecard: Scorecard,
    sections: Sequence[Section],
    *,
    title: str = "",
    summary: str = "",
    provenance: Mapping[str, object] | None = None,
    pictures: Pictures | None = None,
    meanings: Sequence[ScoreMeaning] = (),
    failures: Sequence[Mapping[str, object]] = (),
    date: str = "",
    records: Records | None = None,
    again: str = "",
) -> str:
    """The page as HTML.

    `pictures` has the pictures of each unit, or the reason why there are none; `records` what opens below them.
    `meanings` are those of the scores that get a card; all scores over all units get one when it is empty. `failures`
    are rows with the same keys, such as unit, error, remedy. The date is taken from the provenance (`date`, `finished`,
    `started` or `created`) where none is given. `again` is the command that repeats the run.

    >>> page = render_page(Scorecard("toss", "1", "planted"), [Section("Notes", "None.")], title="TOSS")
    >>> page.startswith("<!doctype html>"), "https://" in page
    (True, False)
    """
    from markupsafe import Markup

    provenance = provenance or {}
    known = {meaning.name: meaning for meaning in meanings}
    chosen = list_headline_scores(scorecard, known)[:_MAX_CARDS]
    units, more = scorecard.units, len(scorecard.headline) - len(chosen)
    failed = "none failed" if not units.failed else f"{format_number(units.failed, 0)} failed"
    return render_template(
        "template.html",
        run=True,
        kind="Evaluation report",
        title=strip_backticks(title) or f"{scorecard.benchmark}: {scorecard.model}",
        facts=_list_facts(scorecard, date or _find_date(provenance)),
        summary=Markup(render_paragraphs(summary)),
        contents=[*_BEFORE, *_list_contents(sections), *_AFTER, _PROVENANCE],
        behind=describe_slices(scorecard, {name: meaning.title for name, meaning in known.items()}),
        cards=[build_card(score, known.get(score.name)) for score in chosen],
        guide=[(term, Markup(render_inline(text))) for term, text in build_reading_guide(scorecard, chosen)],
        more_headlines=f"{format_count(more, 'more score')} over all units in the table of all scores." if more else "",
        units=f"{format_count(units.planned, 'unit')} planned, {format_number(units.scored, 0)} scored, {failed}.",
        left_out=Markup(_draw_left_out(scorecard)),
        readings=[_prepare_reading(reading) for reading in scorecard.readings],
        sections=_draw_sections(sections, pictures or {}, records or {}, named=True),
        all_scores=Markup(_draw_all_scores(scorecard)),
        failures=Markup(_draw_failures(failures)),
        again=again,
        provenance=json.dumps(provenance, indent=2, ensure_ascii=False, default=str),
    )


def render_study(
    sections: Sequence[Section],
    *,
    title: str,
    kind: str = "Study",
    summary: str = "",
    provenance: Mapping[str, object] | None = None,
    pictures: Pictures | None = None,
    records: Records | None = None,
) -> str:
    """A page that is not about one run, such as a calibration: sections and provenance, without scorecard.

    `kind` is the word above the title. `pictures` has the pictures of each unit, or the reason why there are none;
    `records` what opens below them.

    >>> "What was left out" in render_study([Section("Dials", "All as meant.")], title="Calibration")
    False
    """
    from markupsafe import Markup

    return render_template(
        "template.html",
        run=False,
        kind=kind,
        title=strip_backticks(title),
        facts=[],
        summary=Markup(render_paragraphs(summary)),
        contents=[*_list_contents(sections), _PROVENANCE],
        sections=_draw_sections(sections, pictures or {}, records or {}, named=False),
        again="",
        provenance=json.dumps(provenance or {}, indent=2, ensure_ascii=False, default=str),
    )


def write_study(
    out: Path, name: str, document: dict[str, Any], sections: Sequence[Section], **content: Any
) -> dict[str, Any]:
    """Write the page of a study and its numbers as NAME.html and NAME.json; `content` is that of `render_study`."""
    from hardlook.harness.runs.folder import write_atomically

    write_atomically(out / f"{name}.json", dump_json(document))
    write_atomically(out / f"{name}.html", render_study(sections, **content))
    return document


def _draw_sections(
    sections: Sequence[Section], pictures: Pictures, records: Records, *, named: bool
) -> list[dict[str, object]]:
    """The sections as values of the template; more than two galleries become boxes, the first of each section open."""
    from markupsafe import Markup

    names = iter(name_blocks(sections))
    boxed = sum(isinstance(block, Gallery) for section in sections for block in section.blocks) > _MAX_PLAIN_GALLERIES
    drawn: list[dict[str, object]] = []
    for index, section in enumerate(sections, start=1):
        blocks, first = [], True
        for place, block in enumerate(section.blocks, start=1):
            key = f"s{index}b{place}"
            if isinstance(block, Gallery):
                opened = first if boxed else None
                first = False
                blocks.append(Markup(draw_gallery(block, pictures, key=key, records=records, opened=opened)))
            else:
                name = next(names)
                blocks.append(Markup(draw(block, key=key, name=name if named else "")))
        texts = {"title": Markup(render_inline(section.title)), "text": Markup(render_paragraphs(section.text))}
        drawn.append({"key": f"s{index}", "blocks": blocks, **texts})
    return drawn


def _list_facts(scorecard: Scorecard, date: str) -> list[tuple[str, str]]:
    facts = [("Benchmark", f"{scorecard.benchmark} {scorecard.version}".strip()), ("Model", scorecard.model)]
    planned, scored = format_number(scorecard.units.planned, 0), format_number(scorecard.units.scored, 0)
    facts.append(("Units", planned if scored == planned else f"{scored} of {planned}"))
    return facts + ([("Date", date)] if date else [])


def _find_date(provenance: Mapping[str, object]) -> str:
    """The day of the run: the time of day is in the provenance."""
    names = ("date", "finished", "started", "created")
    return next((str(provenance[name]).split("T")[0] for name in names if provenance.get(name)), "")


def _list_contents(sections: Sequence[Section]) -> list[tuple[str, str]]:
    return [(f"s{index}", strip_backticks(section.title)) for index, section in enumerate(sections, start=1)]


def _draw_left_out(scorecard: Scorecard) -> str:
    drawn = element("p", "Nothing was left out of the scores.")
    if scorecard.left_out:
        table = build_left_out_table(scorecard)
        drawn = draw_html_table("left-out", table.columns, table.rows, title=table.title)
        drawn += draw_block_name("table", "left-out")
    if scorecard.noted:
        table = build_noted_table(scorecard)
        drawn += element("h3", table.title) + element("p", table.caption)
        drawn += draw_html_table("noted", table.columns, table.rows, title=table.title)
        drawn += draw_block_name("table", "noted")
    return drawn


def _prepare_reading(reading: Reading) -> dict[str, Markup | str]:
    from markupsafe import Markup

    others = [choice for choice in reading.choices if choice != reading.value]
    notes = [f"Not run: {', '.join(others)}." if others else ""]
    if reading.default:
        notes.append("This is the default." if reading.default == reading.value else f"Default: {reading.default}.")
    meaning = Markup(render_inline(reading.meaning))
    return {"name": reading.name, "value": reading.value, "meaning": meaning, "others": " ".join(filter(None, notes))}


def _draw_all_scores(scorecard: Scorecard) -> str:
    table = build_all_scores_table(scorecard)
    sentence, columns, rows = factor_out_constant_columns(table.columns, table.rows, ("reading", "comparable"))
    text = element("p", render_inline(sentence)) if sentence else ""
    note = draw_block_name("table", "all-scores")
    return text + note + draw_html_table("all-scores", columns, rows, decimals=table.decimals, title=table.title)


def _draw_failures(failures: Sequence[Mapping[str, object]]) -> str:
    if not failures:
        return ""
    columns = list(dict.fromkeys(key for row in failures for key in row))
    rows = [
        [cell if cell is None or isinstance(cell, str | int | float) else str(cell) for cell in map(row.get, columns)]
        for row in failures
    ]
    return draw_html_table("failures", columns, rows, title="Failures")


_COMPARABLE = (
    "Whether a number can be compared with a published one. It can when data, units and readings are those of the "
    "paper. Where it says why not, the difference to the paper is not the model's alone. A score without a published "
    "counterpart says so."
)
_READINGS = (
    "Papers sometimes say one thing and compute another. Each such choice has a name and a value, listed under "
    '"Which readings ran". Numbers under different readings do not compare.'
)
_SLICES = (
    "A slice is the part of the units that shares a property, such as a class or a context. A slice of few units has a "
    "wide interval. Among many slices some look extreme by chance alone, so look at the interval before the rank."
)
_LEFT_OUT = 'Units that could not be scored are counted under "What was left out", with the reason.'
_EXPORT = (
    "Every chart has its numbers behind it. Charts and tables have a name in small print: `hardlook figure RUN NAME` "
    "writes a chart as SVG, PDF, PNG or CSV, `hardlook table RUN NAME` writes a table as LaTeX, Markdown or CSV."
)


def build_reading_guide(scorecard: Scorecard, chosen: Sequence[Score] = ()) -> list[tuple[str, str]]:
    """Terms and their explanations, in reading order; the first of the chosen scores with an interval is the example.

    >>> [term for term, _ in build_reading_guide(Scorecard("toss", "1", "planted"))][:2]
    ['Interval', 'n']
    """
    example = next((score for score in (*chosen, *scorecard.headline) if format_score_interval(score)), None)
    terms = [("Interval", _explain_interval(example)), ("n", _explain_count(example)), ("Comparable", _COMPARABLE)]
    if scorecard.readings:
        terms.append(("Readings", _READINGS))
    if any(score.slice for score in scorecard.scores):
        terms.append(("Slices", _SLICES))
    return [*terms, ("Left out", _LEFT_OUT), ("Figures and tables", _EXPORT)]


def _explain_interval(score: Score | None) -> str:
    if score is None or score.interval is None:
        return "No score of this run has an interval: too few units, or none was requested. Read the values with care."
    resampled = pluralize(score.interval.resampled)
    return (
        f"How far a score would move if other {resampled} had been drawn. `{score.name}` is "
        f"{format_number(score.value, choose_score_decimals(score))}, its interval {format_score_interval(score)}. Of "
        f"intervals made this way about {100 * score.interval.level:g} in 100 hold the value that endlessly many "
        f"{resampled} of this kind would give. The draw of the data is covered; training the model again, or data of "
        "another kind, is not."
    )


def _explain_count(score: Score | None) -> str:
    text = "How many units a score is computed from."
    if score is not None and score.interval is not None and score.interval.n != score.n:
        text += (
            f" Units that belong together are drawn together: `{score.name}` is computed from "
            f"{format_number(score.n, 0)} units, its interval from "
            f"{format_count(score.interval.n, score.interval.resampled)}."
        )
    return f"{text} With four times the units an interval is about half as wide."
