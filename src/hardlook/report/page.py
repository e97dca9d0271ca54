"""One self-contained page of a run: scores, what was left out, readings, the benchmark's sections, provenance.

Nothing on it depends on the time of drawing, so the same run gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from hardlook.contract.scorecard import Reading, Scorecard
from hardlook.contract.sections import Block, Gallery, Section
from hardlook.report.cards import Card, Wording, card_of, score_decimals
from hardlook.report.charts import draw
from hardlook.report.galleries import Pictures, draw_gallery
from hardlook.report.markup import element, inline, plain, prose
from hardlook.report.numerals import counted, numeral
from hardlook.report.tables import Cell, html_table
from hardlook.report.templates import fill

if TYPE_CHECKING:
    from markupsafe import Markup

_MOST_CARDS = 12
_BEFORE = (("scores", "Scores"), ("left-out", "What was left out"), ("readings", "Which readings ran"))
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
) -> str:
    """The page as HTML.

    `pictures` holds the pictures of a unit, or the reason why there are none; `explanations` says what each score
    means in a sentence; `failures` are rows with the same keys (say unit, error, remedy); the date is taken from
    the provenance (`date`, `finished`, `started` or `created`) where none is given. `titles` are names of scores
    for people, and `headline` names the scores that get a card (all those over all units when empty).

    >>> page = render_page(Scorecard("toss", "1", "planted"), [Section("Notes", "None.")], title="TOSS")
    >>> page.startswith("<!doctype html>"), "https://" in page
    (True, False)
    """
    from markupsafe import Markup

    provenance, pictures = provenance or {}, pictures or {}
    wording = Wording(titles or {}, explanations or {}, higher_is_better or {})
    chosen = [score for score in scorecard.headline if not headline or score.name in headline][:_MOST_CARDS]
    drawn = [_section(section, index, pictures) for index, section in enumerate(sections, start=1)]
    return fill(
        "template.html",
        run=True,
        title=plain(title) or f"{scorecard.benchmark}: {scorecard.model}",
        facts=_facts(scorecard, date or _date(provenance)),
        summary=Markup(prose(summary)),
        contents=[*_BEFORE, *_contents(sections), *_AFTER, _PROVENANCE],
        cards=[_card(card_of(score, wording)) for score in chosen],
        more_headlines=_more(len(scorecard.headline) - len(chosen)),
        units=_units(scorecard),
        left_out=Markup(_left_out(scorecard)),
        readings=[_reading(reading) for reading in scorecard.readings],
        sections=drawn,
        all_scores=Markup(_all_scores(scorecard)),
        failures=Markup(_failures(failures)),
        provenance=json.dumps(provenance, indent=2, ensure_ascii=False, default=str),
    )


def render_study(
    sections: Sequence[Section],
    *,
    title: str,
    summary: str = "",
    provenance: Mapping[str, object] | None = None,
    pictures: Pictures | None = None,
) -> str:
    """A page that is not about one run, such as a calibration: sections and provenance, without scorecard.

    `pictures` holds the pictures of each unit that a gallery shows, or the reason why there are none.

    >>> "What was left out" in render_study([Section("Dials", "All as meant.")], title="Calibration")
    False
    """
    from markupsafe import Markup

    return fill(
        "template.html",
        run=False,
        title=plain(title),
        facts=[],
        summary=Markup(prose(summary)),
        contents=[*_contents(sections), _PROVENANCE],
        sections=[_section(section, index, pictures or {}) for index, section in enumerate(sections, start=1)],
        provenance=json.dumps(provenance or {}, indent=2, ensure_ascii=False, default=str),
    )


def _card(card: Card) -> dict[str, object]:
    from markupsafe import Markup

    texts = {"meaning": Markup(inline(card.meaning)), "comparable": Markup(inline(card.comparable))}
    return {**vars(card), "bar": Markup(card.bar), **texts}


def _section(section: Section, index: int, pictures: Pictures) -> dict[str, object]:
    from markupsafe import Markup

    key = f"s{index}"
    blocks = [Markup(_block(block, f"{key}b{place}", pictures)) for place, block in enumerate(section.blocks, start=1)]
    return {"key": key, "title": Markup(inline(section.title)), "text": Markup(prose(section.text)), "blocks": blocks}


def _block(block: Block, key: str, pictures: Pictures) -> str:
    return draw_gallery(block, pictures, key=key) if isinstance(block, Gallery) else draw(block, key=key)


def _facts(scorecard: Scorecard, date: str) -> list[tuple[str, str]]:
    facts = [("Benchmark", f"{scorecard.benchmark} {scorecard.version}".strip()), ("Model", scorecard.model)]
    facts.append(("Units", numeral(scorecard.units.planned, 0)))
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
    rows = [(item.what, item.count, item.why, ", ".join(item.examples)) for item in scorecard.left_out]
    return html_table("left-out", ("what", "count", "why", "for example"), rows, title="What was left out")


def _reading(reading: Reading) -> dict[str, Markup | str]:
    from markupsafe import Markup

    others = [choice for choice in reading.choices if choice != reading.value]
    notes = [f"Not run: {', '.join(others)}." if others else ""]
    if reading.default:
        notes.append("This is the default." if reading.default == reading.value else f"Default: {reading.default}.")
    meaning = Markup(inline(reading.meaning))
    return {"name": reading.name, "value": reading.value, "meaning": meaning, "others": " ".join(filter(None, notes))}


def _all_scores(scorecard: Scorecard) -> str:
    """Every score as a row, its value with the decimals that suit all the scores of that name."""
    decimals: dict[str, int] = {}
    for score in scorecard.scores:
        decimals[score.name] = max(decimals.get(score.name, 0), score_decimals(score))
    rows: list[tuple[Cell, ...]] = []
    for score in scorecard.scores:
        sliced = ", ".join(f"{key}: {value}" for key, value in score.slice.items()) or "all units"
        bounds = (score.interval.low, score.interval.high) if score.interval else (None, None)
        rows.append((score.name, sliced, float(score.value), *bounds, score.n, score.reading, score.comparable))
    columns = ("score", "slice", "value", "low", "high", "n", "reading", "comparable")
    kept = [index for index in range(len(columns)) if index < 3 or any(row[index] not in (None, "") for row in rows)]
    return html_table(
        "all-scores",
        [columns[index] for index in kept],
        [[row[index] for index in kept] for row in rows],
        decimals=max(decimals.values(), default=3),
        title="All scores and slices",
    )


def _failures(failures: Sequence[Mapping[str, object]]) -> str:
    if not failures:
        return ""
    columns = list(dict.fromkeys(key for row in failures for key in row))
    rows = [[_cell(row.get(column)) for column in columns] for row in failures]
    return html_table("failures", columns, rows, title="Failures")


def _cell(value: object) -> Cell:
    return value if value is None or isinstance(value, str | int | float) else str(value)
