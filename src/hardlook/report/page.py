"""Self-contained HTML pages: of a run, with scores, readings and sections; and of studies, with sections only.

Nothing on a page depends on the time of rendering, so that the same run gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from hardlook.harness.scorecard import Reading, Scorecard
from hardlook.harness.sections import Gallery, Section
from hardlook.report.block_names import name_blocks
from hardlook.report.charts import draw
from hardlook.report.formatting import format_count, format_number
from hardlook.report.galleries import Pictures, Records, draw_gallery
from hardlook.report.html_tables import Cell, draw_block_name, draw_html_table
from hardlook.report.markup import element, render_inline, render_paragraphs, strip_backticks
from hardlook.report.page_texts import build_reading_guide, find_slice_extremes
from hardlook.report.score_cards import Card, ScoreTexts, build_card
from hardlook.report.scorecard_tables import (
    build_all_scores_table,
    build_left_out_table,
    factor_out_constant_columns,
    list_headline_scores,
)
from hardlook.report.templates import render_template

if TYPE_CHECKING:
    from markupsafe import Markup


_MOST_CARDS = 12

_MOST_PLAIN_GALLERIES = 2

_BEFORE = (
    ("scores", "Scores"),
    ("guide", "How to read this"),
    ("left-out", "What was left out"),
    ("readings", "Which readings ran"),
)

_AFTER = (("all-scores", "All scores and slices"), ("failures", "Failures"))

_PROVENANCE = ("provenance", "Provenance")

_DATES = ("date", "finished", "started", "created")


def render_page(
    scorecard: Scorecard,
    sections: Sequence[Section],
    *,
    title: str = "",
    summary: str = "",
    provenance: Mapping[str, object] | None = None,
    pictures: Pictures | None = None,
    explanations: Mapping[str, str] | None = None,
    higher_is_better: Mapping[str, bool] | None = None,
    failures: Sequence[Mapping[str, object]] = (),
    date: str = "",
    titles: Mapping[str, str] | None = None,
    headline: Collection[str] = (),
    records: Records | None = None,
    again: str = "",
) -> str:
    """The page as HTML.

    `pictures` has the pictures of each unit, or the reason why there are none; `records` what opens below them.
    `titles` and `explanations` are texts on scores by name, and `headline` names the scores that get a card (all those
    over all units when empty). `failures` are rows with the same keys, such as unit, error, remedy. The date is taken
    from the provenance (`date`, `finished`, `started` or `created`) where none is given. `again` is the command that
    repeats the run.

    >>> page = render_page(Scorecard("toss", "1", "planted"), [Section("Notes", "None.")], title="TOSS")
    >>> page.startswith("<!doctype html>"), "https://" in page
    (True, False)
    """
    from markupsafe import Markup

    provenance = provenance or {}
    wording = ScoreTexts(titles or {}, explanations or {}, higher_is_better or {})
    chosen = list_headline_scores(scorecard, headline)[:_MOST_CARDS]
    return render_template(
        "template.html",
        run=True,
        kind="Evaluation report",
        title=strip_backticks(title) or f"{scorecard.benchmark}: {scorecard.model}",
        facts=_list_facts(scorecard, date or _find_date(provenance)),
        summary=Markup(render_paragraphs(summary)),
        contents=[*_BEFORE, *_list_contents(sections), *_AFTER, _PROVENANCE],
        behind=find_slice_extremes(scorecard, titles),
        cards=[_prepare_card(build_card(score, wording)) for score in chosen],
        guide=[(term, Markup(render_inline(text))) for term, text in build_reading_guide(scorecard, chosen)],
        more_headlines=_describe_more_scores(len(scorecard.headline) - len(chosen)),
        units=_describe_units(scorecard),
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


def _prepare_card(card: Card) -> dict[str, object]:
    from markupsafe import Markup

    texts = {"meaning": Markup(render_inline(card.meaning)), "comparable": Markup(render_inline(card.comparable))}
    return {**vars(card), "bar": Markup(card.bar), **texts}


def _draw_sections(
    sections: Sequence[Section], pictures: Pictures, records: Records, *, named: bool
) -> list[dict[str, object]]:
    """The sections as values of the template; more than two galleries become boxes, the first of each section open."""
    from markupsafe import Markup

    names = iter(name_blocks(sections))
    boxed = sum(isinstance(block, Gallery) for section in sections for block in section.blocks) > _MOST_PLAIN_GALLERIES
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
    planned, scored = (format_number(count, 0) for count in (scorecard.units.planned, scorecard.units.scored))
    facts.append(("Units", planned if scored == planned else f"{scored} of {planned}"))
    return facts + ([("Date", date)] if date else [])


def _find_date(provenance: Mapping[str, object]) -> str:
    """The day of the run: the time of day is in the provenance."""
    date = next((str(provenance[name]) for name in _DATES if provenance.get(name)), "")
    return date.split("T")[0]


def _list_contents(sections: Sequence[Section]) -> list[tuple[str, str]]:
    return [(f"s{index}", strip_backticks(section.title)) for index, section in enumerate(sections, start=1)]


def _describe_more_scores(count: int) -> str:
    return f"{format_count(count, 'more score')} over all units in the table of all scores." if count > 0 else ""


def _describe_units(scorecard: Scorecard) -> str:
    units = scorecard.units
    failed = "none failed" if not units.failed else f"{format_number(units.failed, 0)} failed"
    return f"{format_count(units.planned, 'unit')} planned, {format_number(units.scored, 0)} scored, {failed}."


def _draw_left_out(scorecard: Scorecard) -> str:
    if not scorecard.left_out:
        return element("p", "Nothing was left out of the scores.")
    table = build_left_out_table(scorecard)
    return draw_html_table("left-out", table.columns, table.rows, title=table.title) + draw_block_name(
        "table", "left-out"
    )


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
    rows = [[_cell(row.get(column)) for column in columns] for row in failures]
    return draw_html_table("failures", columns, rows, title="Failures")


def _cell(value: object) -> Cell:
    return value if value is None or isinstance(value, str | int | float) else str(value)
