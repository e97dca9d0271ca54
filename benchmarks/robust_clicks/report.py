"""What the study found: tables of training clicks against test clicks, paired differences, curves and pictures.

Every statistic is one value per object and seed, of the functions that score a run of RClicks. Its mean over both has
two errors: objects of one image vary together, and seeds differ. An interval is the mean and 1.96 times the root of the
sum of both variances; the smallest effect that would be seen four times in five is 2.8 times that root.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageDraw
from numpy.typing import NDArray

import hardlook as hl
from hardlook.harness.sections import CurveChart, Line
from hardlook.metrics.click_robustness import (
    area_under_ious,
    clicks_to_reach,
    first_to_last,
    ious,
    noise_to_signal,
    rise_over_base,
)
from hardlook.report.charts.standalone import standalone_svg
from robust_clicks.plan import UNTRAINED

METRICS = ("noc-base", "noc", "dsb", "dgr", "nsr", "auc-base", "auc", "dsb-iou", "dgr-iou")
REFERENCE = "centre"
SEEN = 2.8  # standard errors: found at a level of .05 with a power of .8
Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tested:
    """A network under a click model: its objects, their images, and the counts (n, courses, rounds) of every click."""

    regime: str
    seed: int
    clicks: str
    units: tuple[str, ...]
    images: tuple[str, ...]
    intersection: NDArray[np.int64]
    union: NDArray[np.int64]
    run: Any

    def measure(self, percent: int) -> dict[str, Values]:
        """(n,) per object: each of `METRICS`; clicks are counted to `percent` IoU, areas are x 100."""
        noc = clicks_to_reach(self.intersection, self.union, percent)
        area = 100 * area_under_ious(ious(self.intersection, self.union))
        found = {
            "noc-base": noc[:, 0],
            "noc": noc[:, 1:].mean(1),
            "dsb": rise_over_base(noc[:, 1:], noc[:, 0]),
            "dgr": first_to_last(noc[:, 1:]),
            "nsr": noise_to_signal(area[:, 1:]),
            "auc-base": area[:, 0],
            "auc": area[:, 1:].mean(1),
            "dsb-iou": rise_over_base(area[:, 1:], area[:, 0], "difference"),
            "dgr-iou": first_to_last(area[:, 1:], "difference"),
        }
        return {name: np.asarray(found[name], np.float64) for name in METRICS}


def read_runs(study: Path) -> list[Tested]:
    """The finished runs of a study, in the order of their names."""
    found = []
    for folder in sorted((study / "runs").glob("*--*")):
        if not (folder / "scores.json").is_file():
            continue
        training, _, clicks = folder.name.rpartition("--")
        regime, _, seed = training.rpartition("-seed")
        run = hl.load(folder)
        records = run.records.sort("unit")
        shape = (len(records), len(records["courses"][0].split(",")), records["rounds"][0])
        counts = [np.array(records[name].to_list(), np.int64).reshape(shape) for name in ("intersection", "union")]
        units, images = (tuple(records[name].to_list()) for name in ("unit", "image"))
        found.append(Tested(regime, int(seed), clicks, units, images, counts[0], counts[1], run))
    if not found:
        raise SystemExit(f"{study}: no finished run; `python -m robust_clicks run` makes them")
    return found


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and objects with its standard error, and the standard deviation between seeds."""

    value: float
    error: float
    between_seeds: float
    seeds: int
    objects: int

    @property
    def low(self) -> float:
        """Of the interval of level .95."""
        return self.value - 1.96 * self.error

    @property
    def high(self) -> float:
        """Of the interval of level .95."""
        return self.value + 1.96 * self.error


def estimate(values: Values, images: Sequence[str]) -> Estimate:
    """The mean of values (seeds, objects).

    >>> found = estimate(np.array([[1.0, 3.0], [2.0, 4.0]]), ["a", "b"])
    >>> found.value, round(found.error, 4)  # images: 1, seeds: .5
    (2.5, 1.118)
    """
    means = values.mean(0)
    names = {name: place for place, name in enumerate(dict.fromkeys(images))}
    sums = np.zeros(len(names))
    np.add.at(sums, [names[name] for name in images], means - means.mean())
    count = len(names)
    over_images = (sums**2).sum() / len(means) ** 2 * count / (count - 1) if count > 1 else math.nan
    by_seed = values.mean(1)
    spread = float(by_seed.std(ddof=1)) if len(by_seed) > 1 else 0.0
    error = math.sqrt(over_images + spread**2 / len(by_seed))
    return Estimate(float(means.mean()), error, spread, len(by_seed), len(means))


def stack(runs: Sequence[Tested], regime: str, clicks: str, metric: str, percent: int) -> dict[int, Values]:
    """Values (n,) by seed of a regime under a click model."""
    return {one.seed: one.measure(percent)[metric] for one in runs if (one.regime, one.clicks) == (regime, clicks)}


def list_cells(runs: Sequence[Tested], percent: int) -> list[dict[str, Any]]:
    """A row per training clicks, test clicks and metric: mean over objects and seeds with its interval."""
    rows = []
    for regime, clicks in dict.fromkeys((one.regime, one.clicks) for one in runs):
        images = next(one.images for one in runs if one.clicks == clicks)
        for metric in METRICS:
            found = estimate(np.stack(list(stack(runs, regime, clicks, metric, percent).values())), images)
            rows.append({"training": regime, "test": clicks, "metric": metric, **_show(found)})
    return rows


def list_differences(runs: Sequence[Tested], percent: int) -> list[dict[str, Any]]:
    """Paired differences from the training on centre clicks, of the seeds that both have, object by object."""
    rows = []
    for regime, clicks in dict.fromkeys((one.regime, one.clicks) for one in runs):
        if regime in (REFERENCE, UNTRAINED):
            continue
        images = next(one.images for one in runs if one.clicks == clicks)
        for metric in METRICS:
            own, base = (stack(runs, name, clicks, metric, percent) for name in (regime, REFERENCE))
            if not (seeds := sorted(own.keys() & base.keys())):
                continue
            found = estimate(np.stack([own[seed] - base[seed] for seed in seeds]), images)
            smallest = {"smallest_effect": SEEN * found.error}
            rows.append({"training": regime, "less": REFERENCE, "test": clicks, "metric": metric, **_show(found)})
            rows[-1] |= smallest
    return rows


def _show(found: Estimate) -> dict[str, Any]:
    return {
        "value": found.value, "low": found.low, "high": found.high, "between_seeds": found.between_seeds,
        "seeds": found.seeds, "objects": found.objects,
    }  # fmt: skip


def draw_curves(runs: Sequence[Tested], clicks: str) -> CurveChart:
    """Mean IoU against clicks of every training, by the centre rule and by the least probable group."""
    lines = []
    for regime in dict.fromkeys(one.regime for one in runs):
        chosen = [one for one in runs if (one.regime, one.clicks) == (regime, clicks)]
        if not chosen:
            continue
        values = np.stack([ious(one.intersection, one.union).mean(0) for one in chosen]).mean(0)
        steps = [float(step) for step in range(1, values.shape[1] + 1)]
        lines += [
            Line(f"{regime}: {who}", steps, values[course].tolist())
            for course, who in ((0, "centre clicks"), (1, f"{clicks} G1"))
        ]
    return CurveChart(f"IoU against clicks, test clicks: {clicks}", "", lines, "clicks", "mean IoU")


def draw_examples(runs: Sequence[Tested], clicks: str, count: int = 3, side: int = 220) -> PIL.Image.Image:
    """Of some objects, evenly over their order: the last mask of the worst group for each training of one seed."""
    seed = min(one.seed for one in runs if one.regime != UNTRAINED)
    chosen = [one for one in runs if (one.clicks, one.seed) == (clicks, seed)]
    units = [chosen[0].units[place] for place in np.linspace(0, len(chosen[0].units) - 1, count + 2).astype(int)[1:-1]]
    sheet = PIL.Image.new("RGB", ((len(chosen) + 1) * side, 18 + len(units) * side), "white")
    pen = PIL.ImageDraw.Draw(sheet)
    for column, title in enumerate(["object", *(one.regime for one in chosen)]):
        pen.text((column * side + 4, 3), title, fill="black")
    for row, unit in enumerate(units):
        for column, one in enumerate(chosen):
            pictures = one.run.unit(unit).pictures
            shown = [pictures[0], pictures[2]] if column == 0 else [pictures[2]]
            for offset, picture in enumerate(shown, start=column + (column > 0)):
                tile = PIL.Image.fromarray(_paint(picture)).convert("RGB")
                tile.thumbnail((side - 6, side - 6))
                sheet.paste(tile, (offset * side + 3, 18 + row * side + 3))
    return sheet


def _paint(picture: Any) -> NDArray[np.uint8]:
    """The picture with its mask in colour and its clicks as spots."""
    image = np.array(picture.image, np.float64)
    if picture.mask is not None:
        image[picture.mask] = 0.5 * image[picture.mask] + 0.5 * np.array([40, 120, 255])
    drawn = PIL.Image.fromarray(image.astype(np.uint8))
    pen = PIL.ImageDraw.Draw(drawn)
    reach = max(2, max(drawn.size) // 60)
    for x, y, positive in picture.points:
        colour = (20, 200, 60) if positive else (230, 40, 40)
        pen.ellipse((x - reach, y - reach, x + reach, y + reach), fill=colour, outline="white")
    return np.asarray(drawn)


def write_report(study: Path, docs: Path | None, *, percent: int = 90) -> str:
    """Write tables and pictures beside the study and, where `docs` is given, there; the tables as text."""
    runs = read_runs(study)
    tables = {"cells": list_cells(runs, percent), "differences": list_differences(runs, percent)}
    places = [study] if docs is None else [study, docs]
    for name, rows in tables.items():
        for place in places:
            (place / f"robust-clicks-{name}.csv").write_text(format_csv(rows))
    for clicks in dict.fromkeys(one.clicks for one in runs):
        drawing = standalone_svg(draw_curves(runs, clicks), width=200, filled=True)
        for place in [study, *([docs / "images"] if docs is not None else [])]:
            (place / f"robust-clicks-{clicks}.svg").write_text(drawing)
    examples = draw_examples(runs, runs[0].clicks)
    for place in [study, *([docs / "images"] if docs is not None else [])]:
        examples.save(place / "robust-clicks-examples.jpg", quality=85)
    return format_table(tables["cells"], percent) + "\n\n" + format_differences(tables["differences"])


def format_table(rows: Sequence[dict[str, Any]], percent: int) -> str:
    """A table in Markdown: a row per training and test, a column per metric, each with its interval."""
    shown = ("noc-base", "noc", "dsb", "dgr", "nsr", "auc-base", "auc")
    names = {"noc-base": f"NoC@{percent}, centre", "noc": f"NoC@{percent}", "dsb": "dSB %", "dgr": "dGR %",
             "nsr": "NSR %", "auc-base": "IoU-AuC, centre", "auc": "IoU-AuC"}  # fmt: skip
    lines = [f"| trained on | tested on | {' | '.join(names[one] for one in shown)} |", "|---" * (len(shown) + 2) + "|"]
    cells = {(row["training"], row["test"], row["metric"]): row for row in rows}
    for training, test in dict.fromkeys((row["training"], row["test"]) for row in rows):
        values = [cells[training, test, metric] for metric in shown]
        text = " | ".join(f"{row['value']:.2f} ({row['low']:.2f} to {row['high']:.2f})" for row in values)
        lines.append(f"| {training} | {test} | {text} |")
    return "\n".join(lines)


def format_differences(rows: Sequence[dict[str, Any]]) -> str:
    """The paired differences in Markdown, with the smallest effect that would be seen."""
    lines = ["| trained on | less | tested on | metric | difference | smallest effect |", "|---|---|---|---|---|---|"]
    for row in rows:
        value = f"{row['value']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})"
        told = (row["training"], row["less"], row["test"], row["metric"], value, f"{row['smallest_effect']:.2f}")
        lines.append(f"| {' | '.join(told)} |")
    return "\n".join(lines)


def format_csv(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as CSV; empty without any."""
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: round(value, 6) if isinstance(value, float) else value for key, value in row.items()})
    return text.getvalue()
