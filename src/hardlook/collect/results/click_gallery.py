"""Pictures with people's clicks on them: by device, by display mode, and where people missed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from hardlook.collect.results.answer_classes import CLASSES, VALID
from hardlook.collect.results.click_comparisons import DEVICES
from hardlook.collect.results.collected_clicks import CollectedClicks
from hardlook.collect.study.settings import DISPLAY_MODES
from hardlook.collect.study.tasks import ClickTask
from hardlook.collect.study.validity import Judge
from hardlook.contract.sections import Example, Gallery, Picture
from hardlook.data.images import read_image
from hardlook.errors import DataError
from hardlook.regions.close_ups import close_up
from hardlook.report.numerals import counted

if TYPE_CHECKING:
    from hardlook.clicks.device_comparison import PairScores

SHOWN = 4
BY_DEVICE, BY_MODE, MISSED = "by device", "by display mode", "what was left out"
# What a gallery splits the clicks of a task by.
_COLUMNS = {BY_DEVICE: "device", BY_MODE: "mode", MISSED: "class"}
_CROWDS = {BY_DEVICE: DEVICES, BY_MODE: DISPLAY_MODES, MISSED: CLASSES}


class ClickGalleries:
    """The galleries of a report, and the pictures that they show; a unit's name says which part of it is shown."""

    def __init__(self, collected: CollectedClicks) -> None:
        self.collected = collected
        self.pictures: dict[str, Sequence[Picture] | str] = {}
        self._judge = Judge(collected.study)
        self._tasks = {
            (task.dataset, task.full_stem): task
            for task in collected.study.tasks
            if isinstance(task, ClickTask) and not task.training
        }

    def devices(self) -> Gallery | None:
        """Images whose two crowds are most and least alike; those with most clicks where no test ran."""
        rows = [(mode, row) for mode, found in self.collected.devices.items() for row in found.rows]
        examples = []
        for mode, row in _extremes(rows):
            text = f"{row.clicks} clicks on a PC and {row.other_clicks} on a mobile device: {verdict(row)}."
            examples.append(self._example((row.dataset, row.full_stem), BY_DEVICE, text, mode))
        if not examples:
            for task, mode, count in self._most_clicked():
                text = f"{counted(count, 'valid click')}; no test was made."
                examples.append(self._example((task.dataset, task.full_stem), BY_DEVICE, text, mode))
        caption = "Valid clicks by device: the most alike first, then the least alike."
        return Gallery("Clicks by device", caption, examples) if examples else None

    def modes(self) -> Gallery | None:
        """Images whose clicks after one way of showing are most and least like those after words."""
        rows = [(mode, row) for mode, found in self.collected.modes.items() for row in found.rows]
        examples = [
            self._example((row.dataset, row.full_stem), BY_MODE, f"{mode} against text: {verdict(row)}.")
            for mode, row in _extremes(rows)
        ]
        unique = list({example.unit: example for example in examples}.values())
        caption = "Valid clicks by display mode: the most alike first, then the least alike."
        return Gallery("Clicks by display mode", caption, unique) if unique else None

    def missed(self) -> Gallery | None:
        """Images with the lowest share of clicks inside: a hard object, or a mask that is wrong."""
        worst = self.collected.images.filter(pl.col("inside") < 1).sort("inside", "dataset", "full_stem", "mode")
        examples = [
            self._example(
                (row["dataset"], row["full_stem"]),
                MISSED,
                f"{100 * row['inside']:.0f} % of {counted(row['pc'] + row['mobile'], 'click')} lie inside.",
                row["mode"],
            )
            for row in worst.head(SHOWN).iter_rows(named=True)
        ]
        caption = "Lowest share of clicks inside. A mask that is wrong shows here."
        return Gallery("Where people missed", caption, examples) if examples else None

    def _example(self, name: tuple[str, str], kind: str, text: str, mode: str | None = None) -> Example:
        several = len(self.collected.study.settings.modes) > 1 and mode is not None
        unit = f"{'/'.join(name)} ({f'{mode}, ' if several else ''}{kind})"
        if unit not in self.pictures:
            try:
                self.pictures[unit] = self._drawn(self._tasks[name], kind, mode)
            except DataError as error:
                self.pictures[unit] = str(error)
        return Example(unit, text)

    def _drawn(self, task: ClickTask, kind: str, mode: str | None) -> list[Picture]:
        collected = self.collected
        answers = collected.classified.filter(pl.col("task") == task.id)
        if mode is not None:
            answers = answers.filter(pl.col("mode") == mode)
        if kind != MISSED:
            answers = answers.filter(pl.col("class") == VALID)
        mask, image = self._judge.mask(task.id), read_image(collected.study.file(task.image))
        edge = answers.with_columns(pl.col("x").clip(0, task.width - 1), pl.col("y").clip(0, task.height - 1))
        close = close_up(mask, points=edge.select("x", "y").iter_rows())
        part, region = close.cut(image), close.cut(mask)
        found, column = [], _COLUMNS[kind]
        for name in (name for name in _CROWDS[kind] if name in edge[column]):
            clicks = edge.filter(pl.col(column) == name)
            points = close.moved(clicks.select(pl.col("x", "y").floor()).iter_rows())
            dots = [(x, y, task.click_type != "fp") for x, y in points]
            label = f"{name}: {counted(len(dots), 'click')}"
            found.append(Picture(label, part, mask=region, points=dots, ordered=False))
        return found

    def _most_clicked(self) -> list[tuple[ClickTask, str, int]]:
        counts = (
            self.collected.valid.group_by("task", "mode")
            .len()
            .sort("len", "task", "mode", descending=[True, False, False])
        )
        by_id = self.collected.study.by_id
        found = [(by_id[task], mode, count) for task, mode, count in counts.head(SHOWN).iter_rows()]
        return [(task, mode, count) for task, mode, count in found if isinstance(task, ClickTask)]


def verdict(row: PairScores) -> str:
    """What the test says of two crowds, and how far apart they are."""
    test = f"no test ({row.why})" if row.why else f"{'alike' if row.ks else 'told apart'} (p {row.p:.2f})"
    return f"{test}; PL1 {row.pl1:.2f}, WD {row.wd:.3f}"


def _extremes(rows: Sequence[tuple[str, PairScores]]) -> list[tuple[str, PairScores]]:
    order = sorted(rows, key=lambda one: (not one[1].ks, -one[1].p if one[1].p == one[1].p else 1.0, one[0]))
    return list(dict.fromkeys([*order[:SHOWN], *order[-SHOWN:]]))
