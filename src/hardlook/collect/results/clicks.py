"""The results of a clicks study: validated answers, excluded participants, click tables and comparisons of crowds.

Tables of clicks have RClicks' columns. A click at (x, y) becomes the whole numbers of its pixel, and rows are sorted by
what was clicked, so that their order does not reveal who clicked. Crowds are compared by device and by display mode;
distances are relative to the bounding box of the region to click.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from hardlook.collect.results.answers import (
    BATCH_CLASSES,
    DURATIONS,
    EXCLUDED,
    POINTER_CONFLICT,
    SCREEN,
    VALID,
    RevalidatedAnswers,
    classify_answers,
    classify_batches,
    count_classes,
    revalidate_answers,
    unpack_circumstances,
    unpack_durations,
)
from hardlook.collect.results.exclusion_rules import (
    ExclusionRules,
    find_excluded,
    find_unknown_participants,
    parse_rules,
)
from hardlook.collect.results.quality import measure_images, measure_participants
from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import ClickTask
from hardlook.collect.study.validity import ClickValidator
from hardlook.data.click_file import COLUMNS, ClickTable, check_clicks, write_clicks
from hardlook.errors import DataError, OptionError
from hardlook.metrics.click_sets import WassersteinReading
from hardlook.metrics.regions import find_bounding_box
from hardlook.rclicks.click_evaluation.stem_scores import summarise_rows
from hardlook.rclicks.user_clicks.comparison import (
    PAIR_METRICS,
    ClickSetComparison,
    ClickSets,
    compare_click_sets,
    split_by_label,
)

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

DEVICES = ("pc", "mobile")

TEXT = "text"

_NAMES = ("dataset", "image_stem", "object_stem", "model_type", "click_type", "full_stem", "width", "height")

_ORDER = ("dataset", "full_stem", "mode", "device", "received", "key")

FROM_FILE, FROM_STORE, NO_RULES = "a file", "the dashboard", "none"


@dataclass(frozen=True, eq=False)
class CollectedClicks:
    """Everything in an export: `quality` is the frame of `measure_participants`, `rules_from` the source of the rules.

    `mode` is the requested display mode, None for all; with `all_clicks` the files hold invalid clicks too. `wd` is the
    reading of WD.
    """

    study: Study
    validated: RevalidatedAnswers
    quality: pl.DataFrame
    rules: ExclusionRules
    rules_from: str
    mode: str | None
    all_clicks: bool
    wd: WassersteinReading

    @cached_property
    def excluded(self) -> dict[str, str]:
        """Excluded participants by id, with the reasons."""
        return find_excluded(self.quality, self.rules)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each participant by id."""
        return dict(self.quality.select("participant", "number").iter_rows())

    @cached_property
    def table(self) -> ClickTable:
        """The clicks of clicks.csv."""
        return build_click_table(self.study, self.validated.answers, self.excluded, self.mode, not self.all_clicks)

    @cached_property
    def previews(self) -> Previews | None:
        """The clicks of previews.csv; None with one display mode."""
        if len(self.study.settings.modes) < 2:
            return None
        return build_preview_table(self.study, self.validated.answers, self.excluded, not self.all_clicks)

    @cached_property
    def answer_classes(self) -> dict[str, int]:
        """How many answers are valid and how many are left out for each reason; they add up to all answers."""
        return count_classes(classify_answers(self.validated.answers, self.excluded, self.mode))

    @cached_property
    def batch_classes(self) -> dict[str, int]:
        """The same of batches."""
        return count_classes(classify_batches(self.validated.batches, self.excluded), BATCH_CLASSES)

    @cached_property
    def classified(self) -> pl.DataFrame:
        """The answers with their class, for all display modes."""
        return classify_answers(self.validated.answers, self.excluded)

    @cached_property
    def valid(self) -> pl.DataFrame:
        """The answers that count, in all display modes."""
        return self.classified.filter(pl.col("class") == VALID)

    @cached_property
    def images(self) -> pl.DataFrame:
        """One row per task and display mode; valid clicks are those of participants that are not excluded."""
        counted = pl.col("batch_valid") & ~pl.col("participant").is_in(list(self.excluded))
        return measure_images(self.study, self.validated.answers.with_columns(counted))

    @cached_property
    def devices(self) -> dict[str, ClickSetComparison]:
        """PC against mobile by display mode."""
        return compare_devices(self.study, self.valid, self.wd)

    @cached_property
    def modes(self) -> dict[str, ClickSetComparison]:
        """Display modes against text."""
        return compare_modes(self.study, self.valid, self.wd)

    @cached_property
    def device_summary(self) -> dict[str, Any]:
        """Means of `devices` with intervals."""
        return summarise_comparisons(self.devices)

    @cached_property
    def mode_summary(self) -> dict[str, Any]:
        """Means of `modes` with intervals."""
        return summarise_comparisons(self.modes)

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """Participants that the rules name and that are not in the study."""
        return find_unknown_participants(self.quality, self.rules)


def collect_clicks(
    study: Study,
    store: Store,
    rules: ExclusionRules | None = None,
    *,
    mode: str | None = None,
    all_clicks: bool = False,
    wd: WassersteinReading = "released",
    advance: Callable[[int], None] = lambda tasks: None,
) -> CollectedClicks:
    """Read the store and validate everything; without `rules` those set on the dashboard apply."""
    if mode is not None and mode not in study.settings.modes:
        remedy = f"choose one of {', '.join(study.settings.modes)}"
        raise OptionError(f"the study has no display mode {mode!r}", remedy=remedy)
    chosen = parse_rules(store.rules()) if rules is None else rules
    rules_from = NO_RULES if not chosen.active_rules() else FROM_STORE if rules is None else FROM_FILE
    with store.one_snapshot():
        answers, batches, people, checks = (
            store.answers(),
            store.batches(),
            store.participants(),
            store.check_answers(),
        )
    validated = revalidate_answers(study, answers, batches, advance)
    quality = measure_participants(study, validated.answers, validated.batches, people, checks)
    return CollectedClicks(study, validated, quality, chosen, rules_from, mode, all_clicks, wd)


@dataclass(frozen=True, eq=False)
class Previews:
    """The clicks by display mode; `ambiguous_stems` are full stems that several datasets share."""

    table: ClickTable
    ambiguous_stems: tuple[str, ...]
    left_out: int


def build_click_table(
    study: Study,
    answers: pl.DataFrame,
    excluded: Collection[str],
    mode: str | None = None,
    valid_only: bool = True,
) -> ClickTable:
    """The clicks as RClicks' table: valid ones of participants that are not excluded.

    With `mode` those of one display mode, otherwise of all. Without `valid_only` also clicks outside, and of batches
    that do not count.
    """
    return check_clicks(_format_columns(_select_clicks(study, answers, excluded, mode, valid_only)))


def build_preview_table(
    study: Study, answers: pl.DataFrame, excluded: Collection[str], valid_only: bool = True
) -> Previews:
    """The clicks of all display modes, with the mode in place of the dataset."""
    chosen = _select_clicks(study, answers, excluded, None, valid_only)
    datasets = Counter(stem for _, stem in {(task.dataset, task.full_stem) for task in list_click_tasks(study)})
    ambiguous_stems = sorted(stem for stem, count in datasets.items() if count > 1)
    kept = chosen.filter(~pl.col("full_stem").is_in(ambiguous_stems)).with_columns(pl.col("mode").alias("dataset"))
    table = check_clicks(_format_columns(kept.sort(_ORDER)))
    return Previews(table, tuple(ambiguous_stems), chosen.height - kept.height)


def list_all_clicks(
    study: Study, answers: pl.DataFrame, excluded: Collection[str], numbers: Mapping[str, int], mode: str | None = None
) -> pl.DataFrame:
    """One row per answer: participant's number, exact position, class, and all measured times.

    `numbers` are the participants' by id. Times are in milliseconds, `after_s` in seconds since the first answer of
    the participant; the table contains no id of the database and no time of day.
    """
    classified = _join_tasks(study, classify_answers(answers, excluded, mode))
    known = unpack_circumstances(unpack_durations(classified))
    number = pl.col("participant").replace_strict(numbers, return_dtype=pl.Int64)
    first = pl.col("received").min().over("participant")
    return known.sort(_ORDER).select(
        number.alias("participant"),
        *("device", "dataset", "full_stem", "click_type", "mode", "x", "y", "inside", "near", "class"),
        pl.col("batch_number").alias("batch"),
        *("batch_state", "batch_valid", "position", "shows", "early", "reaction_ms"),
        *(pl.col(name).alias(f"{name}_ms") for name in DURATIONS),
        *("pointer", *SCREEN, "hidden", "restarts"),
        (pl.col("received") - first).alias("after_s"),
        POINTER_CONFLICT.fill_null(False).alias("pointer_conflict"),
    )


def _select_clicks(
    study: Study, answers: pl.DataFrame, excluded: Collection[str], mode: str | None, valid_only: bool
) -> pl.DataFrame:
    known = classify_answers(answers, excluded, mode)
    if valid_only:
        wanted = pl.col("class") == VALID
    else:
        wanted = (pl.col("class") != EXCLUDED) & pl.col("mode").is_in(study.settings.modes if mode is None else [mode])
    return _join_tasks(study, known.filter(wanted)).sort(_ORDER)


def _join_tasks(study: Study, answers: pl.DataFrame) -> pl.DataFrame:
    rows = [(task.id, *(getattr(task, name) for name in _NAMES)) for task in list_click_tasks(study)]
    kinds = {name: pl.Int64 if name in ("width", "height") else pl.String for name in _NAMES}
    named = pl.DataFrame(rows, {"task": pl.String, **kinds}, orient="row")
    return answers.join(named, on="task", how="inner", maintain_order="left")


def list_click_tasks(study: Study) -> list[ClickTask]:
    """The tasks of a clicks study without those of the training round."""
    return [task for task in study.tasks if isinstance(task, ClickTask) and not task.training]


def _format_columns(clicks: pl.DataFrame) -> pl.DataFrame:
    return clicks.with_columns(
        pl.col("x", "y").floor(), pl.col("width").alias("w"), pl.col("height").alias("h")
    ).select(COLUMNS)


def write_pixel_clicks(path: Path, table: ClickTable) -> None:
    """Write a table of clicks with whole coordinates: 12, not 12.0."""
    write_clicks(path, ClickTable(table.frame.with_columns(pl.col("x", "y").cast(pl.Int64))))


def compare_devices(
    study: Study, clicks: pl.DataFrame, reading: WassersteinReading = "released"
) -> dict[str, ClickSetComparison]:
    """PC against mobile by display mode; empty if the study has one device only.

    `clicks` are answers that count, with the columns task, mode, device, x and y; `reading` is that of WD.
    """
    if not set(DEVICES) <= set(study.settings.devices):
        return {}
    return {
        mode: compare_click_sets(
            _group_clicks(study, clicks.filter(pl.col("mode") == mode), "device"), *DEVICES, reading=reading
        )
        for mode in study.settings.modes
    }


def compare_modes(
    study: Study, clicks: pl.DataFrame, reading: WassersteinReading = "released"
) -> dict[str, ClickSetComparison]:
    """Each other display mode against the text mode, over all devices; empty without a text mode or without another.

    Arguments as in `compare_devices`; a mode is compared on the tasks that have clicks in it.
    """
    modes = study.settings.modes
    if TEXT not in modes:
        return {}
    sets = list(_group_clicks(study, clicks, "mode"))
    return {
        mode: compare_click_sets((one for one in sets if mode in one.clicks), mode, TEXT, reading=reading)
        for mode in modes
        if mode != TEXT
    }


def _group_clicks(study: Study, clicks: pl.DataFrame, crowd: str) -> Iterable[ClickSets]:
    validator = ClickValidator(study)
    grouped = clicks.group_by("task", maintain_order=True).agg("x", "y", pl.col(crowd).alias("crowd"))
    for name, xs, ys, crowds in grouped.sort("task").iter_rows():
        task = study.by_id[name]
        box = find_bounding_box(validator.mask(name))
        if not isinstance(task, ClickTask) or box is None:
            raise DataError("the region to click is empty", file=study.path, unit=name, remedy="make the study anew")
        points = [(float(x // 1), float(y // 1)) for x, y in zip(xs, ys, strict=True)]
        yield ClickSets(
            task.dataset,
            task.full_stem,
            (box.width, box.height),
            split_by_label(points, crowds),
            task.click_type,
            task.subject,
        )


def summarise_comparisons(comparisons: Mapping[str, ClickSetComparison]) -> dict[str, Any]:
    """Means over stems by name, with intervals over images; null if no stem has enough clicks.

    >>> summarise_comparisons({"text": ClickSetComparison((), 3)})
    {'text': {'stems': 0, 'too_few': 3, 'ks_undefined': 0, 'ks': None, 'pl1': None, 'wd': None}}
    """
    document: dict[str, Any] = {}
    for name, comparison in comparisons.items():
        whole = next(iter(summarise_rows(comparison.rows, PAIR_METRICS)), None)
        document[name] = {
            "stems": len(comparison.rows),
            "too_few": comparison.too_few,
            "ks_undefined": sum(row.ks_undefined for row in comparison.rows),
            **{metric: _summarise_estimate(whole.scores[metric]) if whole else None for metric in PAIR_METRICS},
        }
    return document


def _summarise_estimate(estimate: Any) -> dict[str, float | None]:
    low, high = (estimate.interval.low, estimate.interval.high) if estimate.interval.defined else (None, None)
    return {"value": estimate.value, "low": low, "high": high}
