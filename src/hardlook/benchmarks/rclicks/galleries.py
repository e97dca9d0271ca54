"""Instances in which the click decided: where people's clicks part, and where leaving the centre costs most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.difficulty import Difficulty
from hardlook.benchmarks.rclicks.played import Played
from hardlook.contract.sections import Example, Gallery, Section

SHOWN = 6


def galleries(table: Played, difficulty: Difficulty) -> Section:
    """The instances whose outcome hangs most on the click, and those that clicks off the centre cost most."""
    order = np.argsort(-difficulty.ratio, kind="stable")
    lost = table.iou[:, table.base].mean(1) - table.iou[:, table.groups].mean((1, 2))
    costly = np.argsort(-lost, kind="stable")[: min(SHOWN, int((lost > 0).sum()))]
    shown = (
        Gallery(
            "Where it matters most which click it is",
            f"Highest spread over mean of the IoU after one click, over {difficulty.who}.",
            _examples(table, order[:SHOWN], difficulty),
        ),
        Gallery(
            "Clicks off the centre cost most",
            "Mean IoU of the centre rule less that of the groups, highest first.",
            _examples(table, costly, difficulty),
        ),
    )
    text = "Clicks are numbered in their order, green for positive and red for negative ones. In the last picture of "
    text += "a row green is what all masks agree on after one click, and dots are those clicks."
    blocks = tuple(gallery for gallery in shown if gallery.examples)
    return Section("Where the click decided", text, blocks)


def _examples(table: Played, rows: NDArray[np.int64], difficulty: Difficulty) -> tuple[Example, ...]:
    return tuple(
        Example(
            table.units[row],
            f"After one click IoU {difficulty.mean[row]:.2f}, spread {difficulty.deviation[row]:.2f}; "
            f"at the end {table.iou[row, table.base, -1]:.2f} by the centre rule, "
            f"{table.iou[row, table.groups, -1].min():.2f} to {table.iou[row, table.groups, -1].max():.2f} by groups.",
        )
        for row in rows.tolist()
    )
