"""IoU against clicks: the centre rule, the extreme groups and the mean of all, then every group in a heat map."""

from __future__ import annotations

import numpy as np

from hardlook.benchmarks.rclicks.dataset_means import tally_datasets
from hardlook.benchmarks.rclicks.played import Played
from hardlook.contract.sections import CurveChart, HeatMap, Line
from hardlook.contract.tally import Draws, Entry, estimates_of

RESAMPLES = 400


def iou_curves(table: Played) -> CurveChart:
    """The centre rule, the least and the most probable group, and the mean over groups, with bands."""
    groups = table.groups
    lines = {
        "centre": table.iou[:, table.base],
        table.courses[groups[0]]: table.iou[:, groups[0]],
        "all groups": table.iou[:, groups].mean(1),
        table.courses[groups[-1]]: table.iou[:, groups[-1]],
    }
    rounds = table.iou.shape[2]
    drawn = []
    for name, values in lines.items():
        tally = tally_datasets(values, table, [Entry("iou", len(table))] * rounds, ("rclicks", "curves"))
        band = estimates_of(tally, Draws(resamples=RESAMPLES))
        low, high = [one.interval.low for one in band], [one.interval.high for one in band]
        drawn.append(Line(name, tuple(range(1, rounds + 1)), [one.value for one in band], low, high))
    return CurveChart(
        "IoU against clicks",
        "Mean IoU, over datasets where there are several. The first group clicks in the places that the click model "
        "finds least probable, the last in the most probable ones. Bands: 95 %, over images.",
        tuple(drawn),
        x_axis="clicks",
        y_axis="IoU",
    )


def group_map(table: Played) -> HeatMap:
    """Mean IoU of every course after some of its clicks."""
    rounds = table.iou.shape[2]
    shown = sorted({round(step) for step in np.linspace(1, rounds, min(rounds, 8))})
    flat = table.iou.reshape(len(table), -1)
    tally = tally_datasets(flat, table, [Entry("iou", len(table))] * flat.shape[1], ("rclicks", "map"))
    means = tally.values()[0].reshape(len(table.courses), rounds)
    return HeatMap(
        "IoU of every group",
        "Rows from the centre rule to the most probable group, columns by number of clicks.",
        ("centre", *table.courses[1:]) if table.courses[0] == "base" else table.courses,
        tuple(str(step) for step in shown),
        tuple(tuple(float(means[place, step - 1]) for step in shown) for place in range(len(table.courses))),
        row_axis="who clicks",
        column_axis="clicks",
        decimals=3,
    )
