"""The sections of a clicks study's quality report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from hardlook.clicks.device_comparison import LEAST_CLICKS, PAIR_METRICS
from hardlook.collect.results.answer_classes import BATCH_CLASSES, CLASSES, MEANING
from hardlook.collect.results.click_comparisons import TEXT
from hardlook.collect.results.click_gallery import ClickGalleries
from hardlook.collect.results.clicks_report import words
from hardlook.collect.results.collected_clicks import NO_RULES, CollectedClicks
from hardlook.contract.sections import Block, DistributionChart, Section, Table
from hardlook.report.numerals import counted, numeral, span

MOST_ROWS = 500
_PEOPLE = {
    "number": "participant",
    "device": "device",
    "answers": "answers",
    "inside": "share inside",
    "reaction_ms": "reaction, ms",
    "early": "early clicks",
    "late_ms": "lateness, ms",
    "batches": "batches",
    "valid_batches": "valid",
    "dropped_batches": "dropped",
    "given_up_batches": "given up",
    "hidden": "out of sight",
}
_IMAGES = ("image", "mode", "pc", "mobile", "valid_pc", "valid_mobile", "inside")


def quality_sections(collected: CollectedClicks, galleries: ClickGalleries) -> list[Section]:
    """All sections; those that nothing was collected for say so."""
    return [
        _collected(collected),
        _participants(collected),
        _images(collected, galleries),
        _devices(collected, galleries),
        *([_modes(collected, galleries)] if len(collected.study.settings.modes) > 1 else []),
        *_study(collected),
    ]


def _collected(collected: CollectedClicks) -> Section:
    answers, batches = collected.answer_classes, collected.batch_classes
    total = collected.judged.answers.height
    fate = Table(
        "What became of the answers",
        "Each answer is in one row; the rows above the last add up to it.",
        ("class", "answers", "meaning"),
        [*((name, answers[name], MEANING[name]) for name in CLASSES), ("all", total, "")],
    )
    of_batches = Table(
        "What became of the batches",
        f"A batch counts when a share of {collected.study.settings.least_inside:g} of its clicks lies inside.",
        ("class", "batches"),
        [*((name, batches[name]) for name in BATCH_CLASSES), ("all", collected.judged.batches.height)],
    )
    return Section("What was collected", "\n\n".join(words(collected)), (fate, of_batches, *_rules(collected)))


def _rules(collected: CollectedClicks) -> tuple[Block, ...]:
    if collected.rules_from == NO_RULES:
        return ()
    rules = {name: value for name, value in collected.rules.set_rules().items() if name != "participants"}
    listed = Table(
        "Rules of exclusion",
        f"They come from {collected.rules_from}.",
        ("rule", "value"),
        [
            *((name, f"{value:g}") for name, value in rules.items()),
            *([("participants named", len(collected.rules.participants))] * bool(collected.rules.participants)),
        ],
    )
    people = Table(
        "Participants left out",
        "All rules that a participant breaks are named.",
        ("participant", "why"),
        [(collected.numbers[one], why) for one, why in collected.excluded.items()],
    )
    return (listed, people) if collected.excluded else (listed,)


def _participants(collected: CollectedClicks) -> Section:
    people = collected.quality.filter(pl.col("answers") > 0)
    idle = collected.quality.height - people.height
    if not people.height:
        return Section("Participants", f"{counted(idle, 'participant')} joined and none has answered.")
    text = (
        "A participant goes by the order of joining. Lateness is the median, over the phases of all answers, of how "
        "far the measured duration lies from the planned one. A dropped batch is complete with too few clicks inside; "
        "a batch given up was returned."
    )
    if idle:
        text += (
            f" {counted(idle, 'participant')} joined without an answer and {'is' if idle == 1 else 'are'} not listed."
        )
    whole = pl.col("reaction_ms", "late_ms").round().cast(pl.Int64)
    table = Table(
        "Each participant",
        "",
        tuple(_PEOPLE.values()),
        people.with_columns(whole).select(*_PEOPLE).head(MOST_ROWS).rows(),
        decimals=2,
    )
    return Section("Participants", _cut(text, people.height, "participants.csv"), (*_charts(collected, people), table))


def _charts(collected: CollectedClicks, people: pl.DataFrame) -> list[Block]:
    answers = collected.judged.answers
    reaction = _by_device(answers.drop_nulls("reaction_ms"), "reaction_ms")
    known = people.with_columns(pl.col("device").fill_null("unknown"))
    late = _by_device(known.drop_nulls("late_ms"), "late_ms")
    charts: list[Block] = [
        DistributionChart(
            "Share inside by participant",
            f"Batches count from {collected.study.settings.least_inside:g} on.",
            _by_device(known.drop_nulls("inside"), "inside"),
            "share of clicks inside",
        )
    ]
    if reaction:
        caption = "From the moment that clicks count to the click. Very short ones were made without looking."
        charts.append(DistributionChart("Reaction time of answers", caption, reaction, "milliseconds"))
    # Fractions of a millisecond, blown up to the width of a chart, would look like something.
    if any(value >= 1 for _, values in late for value in values):
        caption = "Half of a participant's phases were farther from the plan than this. Two frames are 33 ms."
        charts.append(DistributionChart("Lateness by participant", caption, late, "milliseconds"))
    return charts


def _by_device(frame: pl.DataFrame, column: str) -> list[tuple[str, list[float]]]:
    parts = frame.partition_by("device", as_dict=True)
    return sorted((str(name[0]), part[column].to_list()) for name, part in parts.items())


def _images(collected: CollectedClicks, galleries: ClickGalleries) -> Section:
    images = collected.images
    wanted = collected.study.settings.target_answers
    short = images.sort(pl.min_horizontal("valid_pc", "valid_mobile"), "dataset", "full_stem", "mode")
    text = (
        f"{counted(wanted, 'valid click')} of each image, display mode and device are wanted. The neediest stand first."
    )
    table = Table(
        "Clicks by image and device",
        "Valid clicks are those of participants that no rule leaves out.",
        ("image and object", "display mode", "PC", "mobile", "valid PC", "valid mobile", "share inside"),
        short.with_columns(pl.concat_str("dataset", "full_stem", separator="/").alias("image"))
        .select(_IMAGES)
        .head(MOST_ROWS)
        .rows(),
        decimals=2,
    )
    missed = galleries.missed()
    return Section("Images", _cut(text, images.height, "images.csv"), (*([missed] if missed else []), table))


def _devices(collected: CollectedClicks, galleries: ClickGalleries) -> Section:
    gallery = galleries.devices()
    shown = [gallery] if gallery else []
    if not collected.devices:
        return Section("PC against mobile", "The study asks for one device alone.", shown)
    table = _comparison("PC against mobile", collected.devices_told)
    text = (
        f"On images with at least {LEAST_CLICKS} valid clicks of both. KS is the share of images on which the "
        "two-sample test cannot tell the crowds apart (p above .05). PL1 and WD are distances relative to the box of "
        f"the region to click, WD by the reading `{collected.wd}`. The distance between two halves of one crowd is not "
        "0 either."
    )
    return Section("PC against mobile", text, (table, *shown))


def _modes(collected: CollectedClicks, galleries: ClickGalleries) -> Section:
    title = "Display modes against words"
    if not collected.modes:
        return Section(title, f"The study has no display mode {TEXT}, which the others are compared with.")
    text = "The text mode shows no picture of the target. A mode that leads people's clicks differs from it."
    gallery = galleries.modes()
    table = _comparison(title, collected.modes_told)
    return Section(title, text, (table, *([gallery] if gallery else [])))


def _comparison(title: str, told: Mapping[str, Any]) -> Table:
    rows = [
        (name, row["stems"], row["too_few"], *(_cell(row[metric]) for metric in PAIR_METRICS), row["ks_undefined"])
        for name, row in told.items()
    ]
    caption = f"Means over images, with 95 % intervals. Left out: images with fewer than {LEAST_CLICKS} clicks of one."
    names = (metric.upper() for metric in PAIR_METRICS)
    return Table(title, caption, ("display mode", "images", "left out", *names, "without a test"), rows)


def _cell(estimate: Mapping[str, float | None] | None) -> str | None:
    if estimate is None:
        return None
    interval = span(estimate["low"], estimate["high"], 3)
    return numeral(estimate["value"], 3) + (f" ({interval})" if interval else "")


def _study(collected: CollectedClicks) -> list[Section]:
    titles = {"left_out": "Left out when the study was made", "counted": "Noted when the study was made"}
    tables = []
    for name, title in titles.items():
        notes = collected.study.made.get(name, ())
        rows = [(str(note.get("what")), note.get("count"), str(note.get("why"))) for note in notes]
        if rows:
            tables.append(Table(title, "", ("what", "count", "why"), rows))
    return [Section("How the study was made", "", tables)] if tables else []


def _cut(text: str, rows: int, file: str) -> str:
    return text if rows <= MOST_ROWS else f"{text} The table holds {MOST_ROWS} of {rows} rows; all are in `{file}`."
