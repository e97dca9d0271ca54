"""The quality report of a clicks study: its report.json, its page, and pictures with people's clicks.

Participants appear by number; neither report.json nor the page holds their ids in the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

import hardlook
from hardlook.collect.results.answers import BATCH_CLASSES, CLASS_MEANINGS, CLASSES, VALID
from hardlook.collect.results.clicks import DEVICES, NO_RULES, TEXT, CollectedClicks, list_click_tasks
from hardlook.collect.study.settings import DISPLAY_MODES
from hardlook.collect.study.tasks import ClickTask
from hardlook.collect.study.validity import ClickValidator
from hardlook.data.images import read_image
from hardlook.errors import DataError
from hardlook.harness.rounding import format_fixed, format_percent
from hardlook.harness.sections import Block, DistributionChart, Example, Gallery, Picture, Section, Table
from hardlook.harness.verdicts import CANNOT_TELL, MIN_CLUSTERS
from hardlook.metrics.regions import crop_around
from hardlook.rclicks.user_clicks.comparison import MIN_SET_SIZE, PAIR_METRICS
from hardlook.report.formatting import format_count, format_interval, format_number
from hardlook.report.json_values import to_json_value

if TYPE_CHECKING:
    from hardlook.rclicks.user_clicks.comparison import PairScores

SCHEMA = "hardlook.collected-clicks/1"

_SETTINGS = ("modes", "devices", "batch_size", "least_inside", "click_radius")

# The most rows of a table; the most images at each end of a ranking (most and least alike) that a gallery shows.
_MAX_TABLE_ROWS, _MAX_GALLERY_IMAGES = 500, 4

_PEOPLE_COLUMNS = {
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
    "hidden": "page hidden",
}

_IMAGE_COLUMNS = {
    "image": "image and object",
    "mode": "display mode",
    "pc": "PC",
    "mobile": "mobile",
    "valid_pc": "valid PC",
    "valid_mobile": "valid mobile",
    "inside": "share inside",
}

# Each gallery splits the clicks of a task by one column: the column, and its values in order.
_BY_DEVICE, _BY_MODE, _MISSED = "by device", "by display mode", "what was left out"
_SPLITS = {_BY_DEVICE: ("device", DEVICES), _BY_MODE: ("mode", DISPLAY_MODES), _MISSED: ("class", CLASSES)}


def build_document(collected: CollectedClicks, files: Sequence[str]) -> dict[str, Any]:
    """The content of report.json; it holds no time stamp, so the same answers give the same bytes."""
    study, validated, previews = collected.study, collected.validated, collected.previews
    return {
        "schema": SCHEMA,
        "hardlook": hardlook.__version__,
        "study": {
            "title": study.settings.title,
            "kind": study.settings.kind,
            "fingerprint": study.fingerprint,
            "round": study.made.get("round", 1),
            **{name: to_json_value(getattr(study.settings, name)) for name in _SETTINGS},
        },
        "mode": collected.mode,
        "all_clicks": collected.all_clicks,
        "readings": {"wd": collected.wd},
        "in_words": describe_results(collected),
        "answers": {"all": validated.answers.height, **collected.answer_classes},
        "batches": {"all": validated.batches.height, **collected.batch_classes},
        "written": {
            "clicks": len(collected.table),
            "clipped": collected.table.clipped,
            "previews": len(previews.table) if previews else None,
            "previews_left_out": previews.left_out if previews else None,
        },
        "judged_otherwise": {"answers": validated.changed_answers, "batches": validated.changed_batches},
        "rules": {"from": collected.rules_from, **_list_rules(collected)},
        "excluded": {str(collected.numbers[one]): why for one, why in collected.excluded.items()},
        "unknown_participants": len(collected.unknown),
        "participants": to_json_value(collected.quality.drop("participant").to_dicts()),
        "images": to_json_value(collected.images.drop("item").to_dicts()),
        "pc_against_mobile": collected.device_summary,
        "modes_against_text": collected.mode_summary,
        "left_out_of_study": list(study.made.get("left_out", ())),
        "files": list(files),
    }


def _list_rules(collected: CollectedClicks) -> dict[str, Any]:
    rules = collected.rules.active_rules()
    if "participants" in rules:
        named = (collected.numbers.get(name, name) for name in rules["participants"] if name not in collected.unknown)
        rules["participants"] = sorted({str(name) for name in named}, key=int)
    return rules


def describe_results(collected: CollectedClicks) -> list[str]:
    """The report in a few sentences."""
    validated, answers = collected.validated, collected.answer_classes
    total = validated.answers.height
    if not total:
        return ["There are no answers yet. The files have their columns and no rows."]
    active = collected.quality.filter(pl.col("answers") > 0).height
    left = ", ".join(f"{format_number(answers[name], 0)} {name}" for name in CLASSES if name != VALID and answers[name])
    sentences = [
        f"{format_count(total, 'answer')} of {format_count(active, 'participant')}: "
        f"{format_number(answers[VALID], 0)} valid" + (f"; left out: {left}." if left else "; none left out.")
    ]
    if collected.all_clicks:
        sentences.append(f"clicks.csv holds {format_count(len(collected.table), 'click')}, invalid ones too.")
    if len(collected.study.settings.modes) > 1 and collected.mode is None:
        sentences.append("clicks.csv holds the clicks of all display modes together; `--mode NAME` selects one mode.")
    if collected.previews and (ambiguous := len(collected.previews.ambiguous_stems)):
        sentences.append(
            f"{format_count(ambiguous, 'full stem')} of several datasets {'is' if ambiguous == 1 else 'are'} left "
            f"out of previews.csv, with {format_count(collected.previews.left_out, 'click')}: the file names display "
            "modes, not datasets."
        )
    if validated.changed_answers or validated.changed_batches:
        sentences.append(
            f"{format_count(validated.changed_answers, 'answer')} and "
            f"{format_count(validated.changed_batches, 'batch', 'batches')} are judged differently than when they "
            "arrived: settings or masks have changed since."
        )
    if collected.rules_from != NO_RULES:
        people = format_count(len(collected.excluded), "participant")
        sentences.append(f"Rules of exclusion from {collected.rules_from} leave out {people}.")
    if collected.unknown:
        people = format_count(len(collected.unknown), "participant")
        verb = "is" if len(collected.unknown) == 1 else "are"
        sentences.append(f"The rules name {people} that {verb} not in the study.")
    for mode, row in collected.device_summary.items():
        shown = f" ({mode})" if len(collected.devices) > 1 else ""
        sentences.append(f"PC against mobile{shown}: {_describe_summary(row)}")
    for mode, row in collected.mode_summary.items():
        sentences.append(f"{mode} against {TEXT}: {_describe_summary(row)}")
    return sentences


def _describe_summary(row: Mapping[str, Any]) -> str:
    if not row["stems"]:
        return f"no image has {MIN_SET_SIZE} clicks of both."
    ks, pl1, wd = (row[name]["value"] for name in ("ks", "pl1", "wd"))
    low, high = row["ks"]["low"], row["ks"]["high"]
    bounds = (
        f" ({format_fixed(100 * low, 0)} to {format_fixed(100 * high, 0)})"
        if low is not None and high is not None
        else ""
    )
    text = f"alike on {format_percent(ks)}{bounds} of {format_count(row['stems'], 'image')} by KS, "
    text += f"PL1 {format_fixed(pl1, 3)}, WD {format_fixed(wd, 3)}."
    if row["stems"] < MIN_CLUSTERS:
        text += f" {CANNOT_TELL} more: a verdict needs {MIN_CLUSTERS} images."
    return text


def build_sections(collected: CollectedClicks, galleries: ClickGalleries) -> list[Section]:
    """The sections of the page; a section without data says so."""
    return [
        _build_overview(collected),
        _build_participants(collected),
        _build_images(collected, galleries),
        _build_devices(collected, galleries),
        *([_build_modes(collected, galleries)] if len(collected.study.settings.modes) > 1 else []),
        *_build_study_notes(collected),
    ]


def _build_overview(collected: CollectedClicks) -> Section:
    answers, batches = collected.answer_classes, collected.batch_classes
    total = collected.validated.answers.height
    answer_table = Table(
        "Answers by class",
        "Each answer is in one row; the rows above the last add up to it.",
        ("class", "answers", "meaning"),
        [*((name, answers[name], CLASS_MEANINGS[name]) for name in CLASSES), ("all", total, "")],
    )
    batch_table = Table(
        "Batches by class",
        f"A batch counts when at least a share of {collected.study.settings.least_inside:g} of its clicks lies inside.",
        ("class", "batches"),
        [*((name, batches[name]) for name in BATCH_CLASSES), ("all", collected.validated.batches.height)],
    )
    return Section(
        "What was collected",
        "\n\n".join(describe_results(collected)),
        (answer_table, batch_table, *_build_rules(collected)),
    )


def _build_rules(collected: CollectedClicks) -> tuple[Block, ...]:
    if collected.rules_from == NO_RULES:
        return ()
    rules = {name: value for name, value in collected.rules.active_rules().items() if name != "participants"}
    rows: list[tuple[str, str | int]] = [(name, f"{value:g}") for name, value in rules.items()]
    if collected.rules.participants:
        rows.append(("participants named", len(collected.rules.participants)))
    listed = Table("Rules of exclusion", f"They come from {collected.rules_from}.", ("rule", "value"), rows)
    excluded = [(collected.numbers[one], why) for one, why in collected.excluded.items()]
    caption = "With every rule that excludes the participant."
    people = Table("Participants left out", caption, ("participant", "why"), excluded)
    return (listed, people) if excluded else (listed,)


def _build_participants(collected: CollectedClicks) -> Section:
    people = collected.quality.filter(pl.col("answers") > 0)
    idle = collected.quality.height - people.height
    if not people.height:
        return Section("Participants", f"{format_count(idle, 'participant')} joined; none has answered yet.")
    text = (
        "Participants are numbered in the order of joining. Lateness is the median difference between the measured and "
        "the planned duration of a phase, over all answers. A dropped batch is complete with too few clicks inside; a "
        "batch given up was returned before its end."
    )
    if idle:
        verb = "is" if idle == 1 else "are"
        text += f" {format_count(idle, 'participant')} joined without an answer and {verb} not listed."
    listed = people.with_columns(pl.col("reaction_ms", "late_ms").round().cast(pl.Int64)).select(*_PEOPLE_COLUMNS)
    columns = tuple(_PEOPLE_COLUMNS.values())
    table = Table("Each participant", "", columns, listed.head(_MAX_TABLE_ROWS).rows(), decimals=2)
    noted = _note_truncation(text, people.height, "participants.csv")
    return Section("Participants", noted, (*_build_participant_charts(collected, people), table))


def _build_participant_charts(collected: CollectedClicks, people: pl.DataFrame) -> list[Block]:
    known = people.with_columns(pl.col("device").fill_null("unknown"))
    inside, late = _group_by_device(known, "inside"), _group_by_device(known, "late_ms")
    caption = f"A batch counts if its share is at least {collected.study.settings.least_inside:g}."
    charts: list[Block] = [DistributionChart("Share inside by participant", caption, inside, "share of clicks inside")]
    if reaction := _group_by_device(collected.validated.answers, "reaction_ms"):
        caption = "From the moment clicks are accepted to the click. A very short time means a click without looking."
        charts.append(DistributionChart("Reaction time of answers", caption, reaction, "milliseconds"))
    # Fractions of a millisecond are noise and need no chart.
    if any(value >= 1 for _, values in late for value in values):
        caption = "The median over a participant's phases. Two frames at 60 Hz are 33 ms."
        charts.append(DistributionChart("Lateness by participant", caption, late, "milliseconds"))
    return charts


def _group_by_device(frame: pl.DataFrame, column: str) -> list[tuple[str, list[float]]]:
    parts = frame.drop_nulls(column).partition_by("device", as_dict=True)
    return sorted((str(name[0]), part[column].to_list()) for name, part in parts.items())


def _build_images(collected: CollectedClicks, galleries: ClickGalleries) -> Section:
    settings, images = collected.study.settings, collected.images
    wanted = format_count(settings.target_answers, "valid click")
    text = f"{wanted} of each image, display mode and device are wanted. Those with the fewest come first."
    fewest = pl.min_horizontal(f"valid_{device}" for device in settings.devices)
    named = images.with_columns(pl.concat_str("dataset", "full_stem", separator="/").alias("image"))
    listed = named.sort(fewest, "dataset", "full_stem", "mode").select(*_IMAGE_COLUMNS)
    caption = "Valid clicks are those of participants that no rule excludes."
    columns = tuple(_IMAGE_COLUMNS.values())
    table = Table("Clicks by image and device", caption, columns, listed.head(_MAX_TABLE_ROWS).rows(), decimals=2)
    missed = galleries.build_missed_gallery()
    return Section("Images", _note_truncation(text, images.height, "images.csv"), (*missed, table))


def _build_devices(collected: CollectedClicks, galleries: ClickGalleries) -> Section:
    gallery = galleries.build_device_gallery()
    if not collected.devices:
        return Section("PC against mobile", "The study collects on one device only.", gallery)
    table = _build_comparison("PC against mobile", collected.device_summary)
    text = (
        f"On images with at least {MIN_SET_SIZE} valid clicks of both. KS is the share of images on which the "
        "two-sample test finds no difference between the two sets of clicks (p above .05). PL1 and WD are distances "
        f"relative to the box of the region to click, WD by the reading `{collected.wd}`. Two random halves of one set "
        "have a distance above 0 too."
    )
    return Section("PC against mobile", text, (table, *gallery))


def _build_modes(collected: CollectedClicks, galleries: ClickGalleries) -> Section:
    title = "Display modes against text"
    if not collected.modes:
        return Section(title, f"The study has no display mode {TEXT}, which the others are compared with.")
    text = "The text mode shows no picture of the target. A mode that biases where people click differs from it."
    table = _build_comparison(title, collected.mode_summary)
    return Section(title, text, (table, *galleries.build_mode_gallery()))


def _build_comparison(title: str, summary: Mapping[str, Any]) -> Table:
    rows = []
    for name, row in summary.items():
        scores = (_format_estimate(row[metric]) for metric in PAIR_METRICS)
        rows.append((name, row["stems"], row["too_few"], *scores, row["ks_undefined"]))
    caption = f"Means over images, with 95 % intervals. Left out: images with fewer than {MIN_SET_SIZE} clicks of one."
    names = (metric.upper() for metric in PAIR_METRICS)
    return Table(title, caption, ("display mode", "images", "left out", *names, "without a test"), rows)


def _format_estimate(estimate: Mapping[str, float | None] | None) -> str | None:
    if estimate is None:
        return None
    interval = format_interval(estimate["low"], estimate["high"], 3)
    return format_number(estimate["value"], 3) + (f" ({interval})" if interval else "")


def _build_study_notes(collected: CollectedClicks) -> list[Section]:
    titles = {"left_out": "Left out when the study was made", "counted": "Noted when the study was made"}
    tables = []
    for name, title in titles.items():
        notes = collected.study.made.get(name, ())
        rows = [(str(note.get("what")), note.get("count"), str(note.get("why"))) for note in notes]
        if rows:
            tables.append(Table(title, "", ("what", "count", "why"), rows))
    return [Section("How the study was made", "", tables)] if tables else []


def _note_truncation(text: str, rows: int, file: str) -> str:
    if rows <= _MAX_TABLE_ROWS:
        return text
    return f"{text} The table holds {_MAX_TABLE_ROWS} of {rows} rows; all are in `{file}`."


class ClickGalleries:
    """Builds the galleries of a report and collects their pictures, by unit.

    A gallery with nothing to show is an empty list. A unit's name says which of its clicks are shown.
    """

    def __init__(self, collected: CollectedClicks) -> None:
        self.collected = collected
        self.pictures: dict[str, Sequence[Picture] | str] = {}
        self._validator = ClickValidator(collected.study)
        self._tasks = {(task.dataset, task.full_stem): task for task in list_click_tasks(collected.study)}

    def build_device_gallery(self) -> list[Gallery]:
        """Images whose clicks on the two devices are most and least alike; those with most clicks if no test ran."""
        rows = [(mode, row) for mode, found in self.collected.devices.items() for row in found.rows]
        examples = []
        for mode, row in _select_extremes(rows):
            text = f"{row.clicks} clicks on a PC and {row.other_clicks} on a mobile device: {describe_pair(row)}."
            examples.append(self._add_example((row.dataset, row.full_stem), _BY_DEVICE, text, mode))
        if not examples:
            counts = self.collected.valid.group_by("task", "mode").len()
            most = counts.sort("len", "task", "mode", descending=[True, False, False]).head(_MAX_GALLERY_IMAGES)
            for task_id, mode, count in most.iter_rows():
                task, text = (
                    self.collected.study.by_id[task_id],
                    f"{format_count(count, 'valid click')}; no test was run.",
                )
                assert isinstance(task, ClickTask)
                examples.append(self._add_example((task.dataset, task.full_stem), _BY_DEVICE, text, mode))
        caption = "Valid clicks by device: the most alike first, then the least alike."
        return [Gallery("Clicks by device", caption, examples)] if examples else []

    def build_mode_gallery(self) -> list[Gallery]:
        """Images whose clicks in one display mode are most and least like those in the text mode."""
        rows = [(mode, row) for mode, found in self.collected.modes.items() for row in found.rows]
        examples = [
            self._add_example((row.dataset, row.full_stem), _BY_MODE, f"{mode} against text: {describe_pair(row)}.")
            for mode, row in _select_extremes(rows)
        ]
        unique = list({example.unit: example for example in examples}.values())
        caption = "Valid clicks by display mode: the most alike first, then the least alike."
        return [Gallery("Clicks by display mode", caption, unique)] if unique else []

    def build_missed_gallery(self) -> list[Gallery]:
        """Images with the lowest share of clicks inside: a hard object, or a mask that is wrong."""
        worst = self.collected.images.filter(pl.col("inside") < 1).sort("inside", "dataset", "full_stem", "mode")
        examples = [
            self._add_example(
                (row["dataset"], row["full_stem"]),
                _MISSED,
                f"{format_percent(row['inside'])} of {format_count(row['pc'] + row['mobile'], 'click')} lie inside.",
                row["mode"],
            )
            for row in worst.head(_MAX_GALLERY_IMAGES).iter_rows(named=True)
        ]
        caption = "Lowest share of clicks inside. A mask that is wrong shows here."
        return [Gallery("Where people missed", caption, examples)] if examples else []

    def _add_example(self, name: tuple[str, str], kind: str, text: str, mode: str | None = None) -> Example:
        several = len(self.collected.study.settings.modes) > 1 and mode is not None
        unit = f"{'/'.join(name)} ({f'{mode}, ' if several else ''}{kind})"
        if unit not in self.pictures:
            try:
                self.pictures[unit] = self._draw_pictures(self._tasks[name], kind, mode)
            except DataError as error:
                self.pictures[unit] = str(error)
        return Example(unit, text)

    def _draw_pictures(self, task: ClickTask, kind: str, mode: str | None) -> list[Picture]:
        collected = self.collected
        answers = collected.classified.filter(pl.col("task") == task.id)
        if mode is not None:
            answers = answers.filter(pl.col("mode") == mode)
        if kind != _MISSED:
            answers = answers.filter(pl.col("class") == VALID)
        mask, image = self._validator.mask(task.id), read_image(collected.study.file(task.image))
        clipped = answers.with_columns(pl.col("x").clip(0, task.width - 1), pl.col("y").clip(0, task.height - 1))
        crop = crop_around(mask, points=clipped.select("x", "y").iter_rows())
        cut_image, cut_mask = crop.cut(image), crop.cut(mask)
        pictures, (column, values) = [], _SPLITS[kind]
        for name in values:
            clicks = clipped.filter(pl.col(column) == name)
            if clicks.is_empty():
                continue
            points = crop.moved(clicks.select(pl.col("x", "y").floor()).iter_rows())
            dots = [(x, y, task.click_type != "fp") for x, y in points]
            label = f"{name}: {format_count(len(dots), 'click')}"
            pictures.append(Picture(label, cut_image, mask=cut_mask, points=dots, ordered=False))
        return pictures


def _select_extremes(rows: Sequence[tuple[str, PairScores]]) -> list[tuple[str, PairScores]]:
    order = sorted(rows, key=lambda one: (not one[1].ks, -one[1].p if one[1].p == one[1].p else 1.0, one[0]))
    return list(dict.fromkeys([*order[:_MAX_GALLERY_IMAGES], *order[-_MAX_GALLERY_IMAGES:]]))


def describe_pair(row: PairScores) -> str:
    """The result of the two-sample test on a pair of click sets, and their distances."""
    test = f"no test ({row.why})" if row.why else f"{'alike' if row.ks else 'different'} (p {format_fixed(row.p, 2)})"
    return f"{test}; PL1 {format_fixed(row.pl1, 2)}, WD {format_fixed(row.wd, 3)}"
