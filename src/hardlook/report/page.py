"""Self-contained HTML pages: of a run, with scores, readings and sections; and of studies, with sections only.

Nothing on a page depends on the time of rendering, so that the same run gives the same bytes.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.scorecard import Reading, Score, Scorecard
from hardlook.harness.sections import Gallery, Section, Table
from hardlook.report.block_names import name_blocks
from hardlook.report.charts import draw
from hardlook.report.charts.palette import stylesheet
from hardlook.report.formatting import format_count, format_level, format_number, pluralize
from hardlook.report.galleries import Pictures, Records, draw_gallery
from hardlook.report.html_tables import draw_block_name, draw_html_table
from hardlook.report.json_values import dump_json
from hardlook.report.markup import element, render_inline, render_paragraphs, strip_backticks
from hardlook.report.score_display import build_card, format_score_interval
from hardlook.report.scorecard_tables import (
    build_all_scores_table,
    build_left_out_table,
    build_noted_table,
    build_other_scores_table,
    factor_out_constant_columns,
)
from hardlook.report.statements import choose_headline_scores, describe_run, describe_slices

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_MAX_PLAIN_GALLERIES = 2

# The guide of the documentation: a heading of docs/report.md.
GUIDE = "report/#how-to-read-a-report"
_GUIDE_IN_PAGE = "#how-to-read"

_SCORES, _HIDDEN = ("scores", "Scores"), ("slices", "What the averages hide")
_AFTER = (
    ("left-out", "What was left out"),
    ("all-scores", "All scores and slices"),
    ("failures", "Failures"),
    ("about", "About this run"),
)
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
    """The page as HTML: sentences, at most four cards and the first section; everything else is folded.

    `pictures` has the pictures of each unit, or the reason why there are none; `records` what opens below them.
    `meanings` are those of the scores: the ones marked as headline get a card, all others are in a folded table.
    `failures` are rows with the same keys, such as unit, error, remedy. The date is taken from the provenance (`date`,
    `finished`, `started` or `created`) where none is given. `again` is the command that repeats the run.

    >>> page = render_page(Scorecard("toss", "1", "planted"), [Section("Notes", "None.")], title="TOSS")
    >>> page.startswith("<!doctype html>"), "https://" in page
    (True, False)
    """
    from markupsafe import Markup

    provenance = provenance or {}
    known = {meaning.name: meaning for meaning in meanings}
    chosen = choose_headline_scores(scorecard, meanings)
    others = [score for score in scorecard.headline if score not in chosen]
    hidden = describe_slices(scorecard, {name: meaning.title for name, meaning in known.items()})
    units = scorecard.units
    failed = "none failed" if not units.failed else f"{format_number(units.failed, 0)} failed"
    return render_template(
        "template.html",
        run=True,
        kind="Evaluation report",
        title=strip_backticks(title) or f"{scorecard.benchmark}: {scorecard.model}",
        lead=[Markup(render_inline(sentence)) for sentence in describe_run(scorecard, meanings)],
        facts=_list_facts(scorecard, date or _find_date(provenance)),
        summary="",
        about=Markup(render_paragraphs(summary)),
        contents=[_SCORES, *([_HIDDEN] if hidden else ()), *_list_contents(sections), *_AFTER],
        behind=hidden,
        cards=[build_card(score, known.get(score.name)) for score in chosen],
        guide=find_guide_address() or _GUIDE_IN_PAGE,
        terms=[(term, Markup(render_inline(text))) for term, text in _TERMS],
        caption=explain_interval(chosen or scorecard.headline),
        others=Markup(_draw_other_scores(others, known)),
        others_title=f"{format_count(len(others), 'other score')} over all units",
        units=f"{format_count(units.planned, 'unit')} planned, {format_number(units.scored, 0)} scored, {failed}.",
        left_out_names=[f"{format_number(item.count, 0)} {item.what}" for item in scorecard.left_out],
        warnings=[Markup(render_inline(f"{note.what}: {note.why}")) for note in scorecard.noted if note.warning],
        left_out=Markup(_draw_left_out(scorecard)),
        readings=[_prepare_reading(reading) for reading in scorecard.readings],
        sections=_draw_sections(sections, pictures or {}, records or {}, named=True, folded=True),
        all_scores=Markup(_draw_all_scores(scorecard)),
        all_scores_count=format_count(len(scorecard.scores), "score"),
        failures=Markup(_draw_failures(failures)),
        failures_count=format_count(len(failures), "unit") if failures else "none",
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
    lead: Sequence[str] = (),
    about: str = "",
    folded: bool = False,
) -> str:
    """A page that is not about one run, such as a calibration: sections and provenance, without scorecard.

    `kind` is the word above the title, `lead` the sentences below it. `pictures` has the pictures of each unit, or the
    reason why there are none; `records` what opens below them. If `folded`, sections after the first are closed at
    first, and `about` is with the provenance.

    >>> "What was left out" in render_study([Section("Dials", "All as meant.")], title="Calibration")
    False
    """
    from markupsafe import Markup

    return render_template(
        "template.html",
        run=False,
        kind=kind,
        title=strip_backticks(title),
        lead=[Markup(render_inline(sentence)) for sentence in lead],
        facts=[],
        summary=Markup(render_paragraphs(summary)),
        about=Markup(render_paragraphs(about)),
        folded=folded,
        contents=[*_list_contents(sections), _PROVENANCE],
        sections=_draw_sections(sections, pictures or {}, records or {}, named=False, folded=folded),
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
    sections: Sequence[Section], pictures: Pictures, records: Records, *, named: bool, folded: bool
) -> list[dict[str, object]]:
    """The sections as values of the template; more than two galleries become boxes, the first of each section open.

    If `folded`, all sections but the first are.
    """
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
        words = {"count": _count_blocks(section), "teaser": Markup(render_inline(_find_first_sentence(section.text)))}
        drawn.append({"key": f"s{index}", "blocks": blocks, "folded": folded and index > 1, **texts, **words})
    return drawn


def _count_blocks(section: Section) -> str:
    """What a folded section holds, such as `2 charts, 1 table, 6 units`."""
    galleries = [block for block in section.blocks if isinstance(block, Gallery)]
    tables = sum(isinstance(block, Table) for block in section.blocks)
    counts = {
        "chart": len(section.blocks) - len(galleries) - tables,
        "table": tables,
        "unit": sum(len(gallery.examples) for gallery in galleries),
    }
    return ", ".join(format_count(count, noun) for noun, count in counts.items() if count)


def _find_first_sentence(text: str) -> str:
    """The first sentence of a text, in one line.

    >>> _find_first_sentence("The IoU is 0.3 (cat) at the lowest. More.")
    'The IoU is 0.3 (cat) at the lowest.'
    """
    return re.split(r"(?<=[.!?])\s", " ".join(text.split()), maxsplit=1)[0]


def find_guide_address() -> str:
    """Where the published documentation says how to read a report; empty while the package names no address."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        named = metadata("hardlook").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    addresses = [link.partition(",")[2].strip() for link in named if link.lower().startswith("documentation,")]
    return next((f"{address.rstrip('/')}/{GUIDE}" for address in addresses if address.startswith("https://")), "")


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


_TERMS = (
    (
        "Interval",
        "How far a score would move if other images (or what it says) had been drawn. It does not cover another "
        "training of the model, or data of another kind.",
    ),
    ("n", "How many units a score is computed from. With four times the units an interval is about half as wide."),
    (
        "Comparable",
        "Whether data, units and readings are those of the paper, so that its number can be set beside it.",
    ),
    ("Slice", "The units that share a property, such as a class. Among many slices some look extreme by chance alone."),
    (
        "Names in small print",
        "`hardlook figure RUN NAME` writes a chart as SVG, PDF, PNG or CSV, `hardlook table RUN NAME` a table as "
        "LaTeX, Markdown or CSV.",
    ),
    ("More", "The page `docs/report.md` of the documentation, section `How to read a report`."),
)


def explain_interval(scores: Sequence[Score]) -> str:
    """One line on the intervals of the cards, in the words of the first score that has one.

    >>> explain_interval([])
    'No score of this run has an interval: too few units, or none was requested. Read the values with care.'
    """
    made = next((score.interval for score in scores if score.interval and format_score_interval(score)), None)
    if made is None:
        return "No score of this run has an interval: too few units, or none was requested. Read the values with care."
    others = pluralize(made.resampled)
    share = f"{format_level(made.level)} interval"
    return f"{share}: how far a score would move if other {others} had been drawn. n: units that it is computed from."


def _draw_other_scores(scores: Sequence[Score], known: Mapping[str, ScoreMeaning]) -> str:
    """The scores over all units that have no card, as a table; empty where there are none."""
    if not scores:
        return ""
    table = build_other_scores_table(scores, known)
    sentence, columns, rows = factor_out_constant_columns(table.columns, table.rows, ("reading", "comparable"))
    text = element("p", render_inline(sentence)) if sentence else ""
    return text + draw_html_table("other-scores", columns, rows, decimals=table.decimals, title=table.title)


def render_template(template: str, **values: object) -> str:
    """Fill in the template of that file name; texts are escaped, `Markup` is not.

    The stylesheet, the script and the Content-Security-Policy are added here. The policy names the script by its hash,
    so that a script in a label could not run even if escaping failed.
    """
    from markupsafe import Markup

    style, script = stylesheet() + _read("style.css"), _read("table.js") + _read("folding.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return _load_template(template).render(style=Markup(style), script=Markup(script), policy=Markup(policy), **values)


@functools.cache
def _load_template(name: str) -> Template:
    """The template of that file name, compiled."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(_read(name))


def _read(name: str) -> str:
    # The hash is that of what the browser parses, which has no carriage returns.
    return files("hardlook.report").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")
