"""The page of `hardlook clicks evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hardlook.bias.estimate_words import number, said
from hardlook.clicks.device_comparison import PAIR_METRICS
from hardlook.clicks.evaluation_summary import HIGHER_IS_BETTER, METRICS, GroupScores
from hardlook.commands.clicks.evaluation_pictures import device_gallery, model_galleries
from hardlook.commands.clicks.joined_clicks import unmasked_in_words
from hardlook.commands.clicks.model_pairs import TITLES, standings_in_words
from hardlook.commands.clicks.published_beside import published_sections
from hardlook.commands.clicks.readings import EVALUATION, reading_rows
from hardlook.commands.clicks.unread_stems import unread_in_words
from hardlook.contract.sections import Block, Dot, DotChart, Section, Table
from hardlook.report.numerals import counted

if TYPE_CHECKING:
    from hardlook.commands.clicks.evaluation_study import EvaluationStudy
    from hardlook.commands.clicks.judging import NamedClickModel

MEANINGS = {
    "ks": "The share of draws that a two-dimensional test cannot tell from people's clicks. Higher is better.",
    "pl1": "Mean distance between a drawn and a real click, in widths and heights of the object. Lower is better.",
    "wd": "How far drawn clicks would have to move to become the real ones, in object sizes. Lower is better.",
    "nss": "The map at people's clicks, in standard deviations above its mean. Higher is better.",
    "pde": "The map's probability at people's clicks, times 100,000. Higher is better.",
}
SCALE = {"pde": 1e5}
HEADS = tuple("PDE x 1e5" if metric == "pde" else TITLES[metric] for metric in METRICS)
NAMES = {"dataset": "dataset", "click_type": "click type", "device": "device", "display_mode": "display mode"}


def in_words(study: EvaluationStudy) -> list[str]:
    """What was found, in plain sentences."""
    first = next(iter(study.overall.values()))
    who = "simulated people" if study.planted else "people"
    models, stems = counted(len(study.models), "click model"), counted(first.stems, "stem")
    text = f"{models} against the clicks of {who} on {stems}."
    words = [text, *standings_in_words(study.standings)]
    rows = study.judged.devices.rows
    if rows:
        alike = sum(row.ks for row in rows)
        stems = counted(len(rows), "stem")
        words.append(f"Clicks on a PC and on a mobile device cannot be told apart on {alike} of {stems}.")
    words += unmasked_in_words(study.left_out)
    if study.judged.unread:
        words.append(unread_in_words(study.judged.unread))
    return words


def evaluation_sections(study: EvaluationStudy, words: Sequence[str], readings: Mapping[str, str]) -> list[Section]:
    """What the page shows."""
    sections = [
        Section("What this means", "\n\n".join(words), (_overall(study), *_charts(study))),
        *([Section("By slice", _SLICES, sliced)] if (sliced := _sliced(study)) else []),
        *published_sections(study, readings["wd"]),
        Section("Stems to look at", _LOOK, model_galleries(study)),
    ]
    if study.standings:
        sections.insert(1, Section("Which model is better", _PAIRS, (_leads(study),)))
    if study.judged.devices.rows:
        blocks = (_crowds("PC against mobile", study), device_gallery(study.judged.devices.rows))
        sections.append(Section("PC and mobile", _DEVICES, blocks))
    if study.mode_scores:
        sections.append(Section("Ways of showing the object", _MODES, (_modes(study),)))
    left = [(note.what, note.count, note.why, ", ".join(note.examples)) for note in study.left_out]
    sections.append(
        Section(
            "What was left out, and what ran",
            "" if left else "Nothing was left out.",
            (
                *([Table("Left out", "", ("what", "count", "why", "for example"), left)] if left else []),
                model_table(study.models),
                Table("Readings", "", ("name", "value", "meaning"), reading_rows(readings, EVALUATION)),
            ),
        )
    )
    return sections


def scaled(metric: str, value: float | None) -> float | None:
    """The value as the page shows it, None where it is undefined."""
    found = number(value)
    return None if found is None else found * SCALE.get(metric, 1.0)


def score_cells(group: GroupScores) -> list[float | None]:
    """The metrics of a row; their intervals are in the charts and in table.csv."""
    return [scaled(metric, group.scores[metric].value) for metric in METRICS]


def model_table(models: Mapping[str, NamedClickModel]) -> Table:
    """The click models with their settings and what they say of themselves."""
    rows = []
    for name, one in models.items():
        args = {key: value for key, value in one.identity.args.items() if value not in (None, "")}
        rows.append((name, ", ".join(f"{key}={value}" for key, value in args.items()), one.conduct()))
    return Table("Click models", "", ("model", "settings", "conduct"), rows)


def _overall(study: EvaluationStudy) -> Table:
    rows = [(name, group.stems, *score_cells(group)) for name, group in study.overall.items()]
    return Table(
        "All stems",
        f"Means over stems, {study.judging.draws} draws a stem. The charts have 95 % intervals: images are drawn anew, "
        "stems of one image together.",
        ("model", "stems", *HEADS),
        rows,
    )


def _charts(study: EvaluationStudy) -> list[Block]:
    charts: list[Block] = []
    for metric, head in zip(METRICS, HEADS, strict=True):
        sign = -1 if HIGHER_IS_BETTER[metric] else 1
        order = sorted(study.overall, key=lambda name, m=metric, s=sign: s * study.overall[name].scores[m].value)  # type: ignore[misc]
        dots = [_dot(name, metric, study.overall[name]) for name in order]
        charts.append(DotChart(head, MEANINGS[metric], dots, axis=head))
    return charts


def _dot(name: str, metric: str, group: GroupScores) -> Dot:
    one = group.scores[metric]
    value = scaled(metric, one.value)
    ends = (scaled(metric, one.interval.low), scaled(metric, one.interval.high))
    return Dot(name, float("nan") if value is None else value, *ends)


def _sliced(study: EvaluationStudy) -> list[Block]:
    """For each column that has several groups: KS with intervals, and a table of all metrics."""
    blocks: list[Block] = []
    for column, by_model in study.slices.items():
        values = sorted({group.group[column] for groups in by_model.values() for group in groups})
        if len(values) < 2:
            continue
        rows = [
            (value, name, group)
            for value in values
            for name, groups in by_model.items()
            for group in groups
            if group.group[column] == value
        ]
        dots = [replace(_dot(name, "ks", group), group=value) for value, name, group in rows]
        blocks.append(DotChart(f"KS by {NAMES[column]}", "", dots, axis="KS"))
        cells = [(value, name, group.stems, *score_cells(group)) for value, name, group in rows]
        columns = (NAMES[column], "model", "stems", *HEADS)
        blocks.append(Table(f"All metrics by {NAMES[column]}", "", columns, cells))
    return blocks


def _leads(study: EvaluationStudy) -> Table:
    rows = []
    for one in study.standings:
        for name, lead in one.leads.items():
            factor = SCALE.get(one.metric, 1.0)
            ends = (scaled(one.metric, lead.interval.low), scaled(one.metric, lead.interval.high))
            head = HEADS[METRICS.index(one.metric)]
            rows.append((head, one.best, name, factor * lead.value, *ends, one.says(name)))
    return Table(
        "The best model's lead",
        "Its value less the other's, on the same stems. For PL1 and WD a lead is below 0.",
        ("metric", "best", "other", "difference", "low", "high", "verdict"),
        rows,
    )


def _crowds(title: str, study: EvaluationStudy) -> Table:
    rows = [_crowd_row(group.group["dataset"], group) for group in study.devices]
    return Table(title, "", ("dataset", "stems", "KS", "PL1", "WD"), rows)


def _modes(study: EvaluationStudy) -> Table:
    rows = [_crowd_row(mode, group) for mode, group in study.mode_scores.items()]
    return Table("Display modes against text", "", ("display mode", "stems", "KS", "PL1", "WD"), rows)


def _crowd_row(name: str, group: GroupScores) -> tuple[str | int, ...]:
    return (name, group.stems, *(said(group.scores[metric], 3) for metric in PAIR_METRICS))


_PAIRS = (
    "Differences between models on the same stems, with 95 % intervals from resampled images. A model is called better "
    "where the interval leaves 0 out; many comparisons are made, so a narrow lead may be chance."
)
_SLICES = (
    "Click types: first is the whole object, fn what a segmentation missed, fp what it had too much. A device's row "
    "judges the models against that device's clicks alone, so it has fewer clicks a stem and a milder test; the rows "
    "are of the stems that both devices have clicks on. A later round is of one device, so it is in neither."
)
_LOOK = (
    "The first picture shows where people clicked, with the region they were asked for. The others show a model's map "
    "(brighter is likelier) with as many clicks drawn from it, and whether the test can tell this one draw from people."
)
_DEVICES = (
    "Clicks of the two devices on the same stems, with at least 10 clicks of each. KS is the share of stems on which "
    "the test cannot tell them apart."
)
_MODES = (
    "Clicks after each way of showing the object against clicks after a text. KS is the share of stems on which the "
    "test cannot tell them apart; a mode that is alike biases people least."
)
