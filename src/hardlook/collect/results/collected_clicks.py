"""A clicks study as it stands: answers judged by the masks, participants measured, rules applied, crowds compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from hardlook.clicks.device_comparison import Comparison
from hardlook.collect.results.answer_classes import (
    BATCH_CLASSES,
    VALID,
    batches_with_class,
    counts_by_class,
    with_class,
)
from hardlook.collect.results.click_comparisons import compare_devices, compare_modes, comparison_document
from hardlook.collect.results.clicks_file import Previews, check_mode, clicks_table, previews_table
from hardlook.collect.results.exclusions import ExclusionRules, excluded, rules_of, unknown_names
from hardlook.collect.results.judged_again import JudgedAgain, judge_again
from hardlook.collect.results.quality import image_quality, participant_quality
from hardlook.collect.study.folder import Study
from hardlook.data.click_table import ClickTable
from hardlook.metrics.click_distances import WassersteinReading

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

FROM_FILE, FROM_STORE, NO_RULES = "a file", "the dashboard", "none"


@dataclass(frozen=True, eq=False)
class CollectedClicks:
    """All that an export says: `excluded` are participants by id with the reason, `rules_from` says whose rules ran.

    `mode` is the display mode asked for, None for all; with `all_clicks` the files hold invalid clicks too.
    `wd` is the reading of WD.
    """

    study: Study
    judged: JudgedAgain
    quality: pl.DataFrame
    rules: ExclusionRules
    rules_from: str
    excluded: Mapping[str, str]
    mode: str | None = None
    all_clicks: bool = False
    numbers: Mapping[str, int] = field(default_factory=dict)
    wd: WassersteinReading = "released"

    @cached_property
    def table(self) -> ClickTable:
        """The clicks of clicks.csv."""
        return clicks_table(self.study, self.judged.answers, self.excluded, self.mode, not self.all_clicks)

    @cached_property
    def previews(self) -> Previews | None:
        """The clicks of previews.csv; None with one display mode."""
        if len(self.study.settings.modes) < 2:
            return None
        return previews_table(self.study, self.judged.answers, self.excluded, not self.all_clicks)

    @cached_property
    def answer_classes(self) -> dict[str, int]:
        """How many answers are valid and how many are left out for each reason; they add up to all answers."""
        return counts_by_class(with_class(self.judged.answers, self.excluded, self.mode))

    @cached_property
    def batch_classes(self) -> dict[str, int]:
        """The same of batches."""
        return counts_by_class(batches_with_class(self.judged.batches, self.excluded), BATCH_CLASSES)

    @cached_property
    def classified(self) -> pl.DataFrame:
        """The answers with their class, all display modes alike."""
        return with_class(self.judged.answers, self.excluded)

    @cached_property
    def valid(self) -> pl.DataFrame:
        """The answers that count, in all display modes."""
        return self.classified.filter(pl.col("class") == VALID)

    @cached_property
    def images(self) -> pl.DataFrame:
        """A row a task and display mode; valid clicks are those of participants that are not excluded."""
        kept = ~pl.col("participant").is_in(list(self.excluded))
        return image_quality(
            self.study, self.judged.answers.with_columns((pl.col("batch_valid") & kept).alias("batch_valid"))
        )

    @cached_property
    def devices(self) -> dict[str, Comparison]:
        """PC against mobile by display mode."""
        return compare_devices(self.study, self.valid, self.wd)

    @cached_property
    def modes(self) -> dict[str, Comparison]:
        """Display modes against text."""
        return compare_modes(self.study, self.valid, self.wd)

    @cached_property
    def devices_told(self) -> dict[str, Any]:
        """Means of `devices` with intervals."""
        return comparison_document(self.devices)

    @cached_property
    def modes_told(self) -> dict[str, Any]:
        """Means of `modes` with intervals."""
        return comparison_document(self.modes)

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """Participants that the rules name and the study does not know."""
        return unknown_names(self.quality, self.rules)


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
    """Read the store and judge everything; without `rules` those that were set on the dashboard run."""
    check_mode(study, mode)
    stored = rules_of(store.rules())
    chosen = stored if rules is None else rules
    came_from = NO_RULES if not chosen.set_rules() else FROM_STORE if rules is None else FROM_FILE
    answers = store.answers()
    judged = judge_again(study, answers, store.batches(), advance)
    quality = participant_quality(study, judged.answers, judged.batches, store.participants())
    numbers = dict(zip(quality["participant"], quality["number"], strict=True))
    left_out = excluded(quality, chosen)
    return CollectedClicks(study, judged, quality, chosen, came_from, left_out, mode, all_clicks, numbers, wd)
