"""One self-contained page of a run: scores, what was left out, readings, the benchmark's sections, provenance.

Nothing on it depends on the time of drawing, so the same run gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from hardlook.contract.scorecard import Reading, Scorecard
from hardlook.contract.sections import Gallery, Section
from hardlook.report.behind_averages import behind_averages
from hardlook.report.cards import Card, Wording, card_of
from hardlook.report.charts import draw
from hardlook.report.galleries import Pictures, Records, draw_gallery
from hardlook.report.guide import reading_guide
from hardlook.report.markup import element, inline, plain, prose
from hardlook.report.names import named_blocks
from hardlook.report.numerals import counted, numeral
from hardlook.report.scorecard_tables import all_scores_table, headline_scores, left_out_table, said_once
from hardlook.report.tables import Cell, html_table, small_print
from hardlook.report.templates import fill

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

    `pictures` holds the pictures of a unit, or the reason why there are none; `explanations` says what each score
    means in a sentence; `failures` are rows with the same keys (say unit, error, remedy); the date is taken from
    the provenance (`date`, `finished`, `started` or `created`) where none is given. `titles` are names of scores
    for people, and `headline` names the scores that get a card (all those over all units when empty). `records` holds
    what opens below a unit's pictures, and `again` is the command that makes the run again.

    >>> page = render_page(Scorecard("toss", "1", "planted"), [Section("Notes", "None.")], title="TOSS")
    >>> page.startswith("<!doctype html>"), "https://" in page
    (True, False)
    """
    from markupsafe import Markup

    provenance = provenance or {}
    wording = Wording(titles or {}, explanations or {}, higher_is_better or {})
    chosen = headline_scores(scorecard, headline)[:_MOST_CARDS]
    return fill(
        "template.html",
        run=True,
        kind="Evaluation report",
        title=plain(title) or f"{scorecard.benchmark}: {scorecard.model}",
        facts=_facts(scorecard, date or _date(provenance)),
        summary=Markup(prose(summary)),
        contents=[*_BEFORE, *_contents(sections), *_AFTER, _PROVENANCE],
        behind=behind_averages(scorecard, titles),
        cards=[_card(card_of(score, wording)) for score in chosen],
        guide=[(term, Markup(inline(text))) for term, text in reading_guide(scorecard, chosen)],
        more_headlines=_more(len(scorecard.headline) - len(chosen)),
        units=_units(scorecard),
        left_out=Markup(_left_out(scorecard)),
        readings=[_reading(reading) for reading in scorecard.readings],
        sections=_sections(sections, pictures or {}, records or {}, named=True),
        all_scores=Markup(_all_scores(scorecard)),
        failures=Markup(_failures(failures)),
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

    `kind` is the word above the title.
    `pictures` holds the pictures of each unit that a gallery shows, or the reason why there are none; `records` what
    opens below them.

    >>> "What was left out" in render_study([Section("Dials", "All as meant.")], title="Calibration")
    False
    """
    from markupsafe import Markup

    return fill(
        "template.html",
        run=False,
        kind=kind,
        title=plain(title),
        facts=[],
        summary=Markup(prose(summary)),
        contents=[*_contents(sections), _PROVENANCE],
        sections=_sections(sections, pictures or {}, records or {}, named=False),
        again="",
        provenance=json.dumps(provenance or {}, indent=2, ensure_ascii=False, default=str),
    )


def _card(card: Card) -> dict[str, object]:
    from markupsafe import Markup

    texts = {"meaning": Markup(inline(card.meaning)), "comparable": Markup(inline(card.comparable))}
    return {**vars(card), "bar": Markup(card.bar), **texts}


def _sections(
    sections: Sequence[Section], pictures: Pictures, records: Records, *, named: bool
) -> list[dict[str, object]]:
    """The sections as the template wants them; more than two galleries become boxes, the first of each section open."""
    from markupsafe import Markup

    names = iter(named_blocks(sections))
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
        texts = {"title": Markup(inline(section.title)), "text": Markup(prose(section.text))}
        drawn.append({"key": f"s{index}", "blocks": blocks, **texts})
    return drawn


def _facts(scorecard: Scorecard, date: str) -> list[tuple[str, str]]:
    facts = [("Benchmark", f"{scorecard.benchmark} {scorecard.version}".strip()), ("Model", scorecard.model)]
    planned, scored = (numeral(count, 0) for count in (scorecard.units.planned, scorecard.units.scored))
    facts.append(("Units", planned if scored == planned else f"{scored} of {planned}"))
    return facts + ([("Date", date)] if date else [])


def _date(provenance: Mapping[str, object]) -> str:
    """The day of the run: the time of day is in the provenance."""
    said = next((str(provenance[name]) for name in _DATES if provenance.get(name)), "")
    return said.split("T")[0]


def _contents(sections: Sequence[Section]) -> list[tuple[str, str]]:
    return [(f"s{index}", plain(section.title)) for index, section in enumerate(sections, start=1)]


def _more(count: int) -> str:
    return f"{counted(count, 'more score')} over all units in the table of all scores." if count > 0 else ""


def _units(scorecard: Scorecard) -> str:
    units = scorecard.units
    failed = "none failed" if not units.failed else f"{numeral(units.failed, 0)} failed"
    return f"{counted(units.planned, 'unit')} planned, {numeral(units.scored, 0)} scored, {failed}."


def _left_out(scorecard: Scorecard) -> str:
    if not scorecard.left_out:
        return element("p", "Nothing was left out of the scores.")
    table = left_out_table(scorecard)
    return html_table("left-out", table.columns, table.rows, title=table.title) + small_print("table", "left-out")


def _reading(reading: Reading) -> dict[str, Markup | str]:
    from markupsafe import Markup

    others = [choice for choice in reading.choices if choice != reading.value]
    notes = [f"Not run: {', '.join(others)}." if others else ""]
    if reading.default:
        notes.append("This is the default." if reading.default == reading.value else f"Default: {reading.default}.")
    meaning = Markup(inline(reading.meaning))
    return {"name": reading.name, "value": reading.value, "meaning": meaning, "others": " ".join(filter(None, notes))}


def _all_scores(scorecard: Scorecard) -> str:
    table = all_scores_table(scorecard)
    said, columns, rows = said_once(table.columns, table.rows, ("reading", "comparable"))
    words = element("p", inline(said)) if said else ""
    note = small_print("table", "all-scores")
    return words + note + html_table("all-scores", columns, rows, decimals=table.decimals, title=table.title)


def _failures(failures: Sequence[Mapping[str, object]]) -> str:
    if not failures:
        return ""
    columns = list(dict.fromkeys(key for row in failures for key in row))
    rows = [[_cell(row.get(column)) for column in columns] for row in failures]
    return html_table("failures", columns, rows, title="Failures")


def _cell(value: object) -> Cell:
    return value if value is None or isinstance(value, str | int | float) else str(value)
