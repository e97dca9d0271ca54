"""Instances worth looking at: where clicks decide, where they do not, and what remains badly segmented."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.difficulty import Difficulty
from hardlook.benchmarks.rclicks.played import Played
from hardlook.contract.sections import Example, Gallery, Section

SHOWN = 6


def galleries(table: Played, difficulty: Difficulty) -> Section:
    """The hardest, the easiest, those that clicks off the centre cost most, and the worst at the end."""
    order = np.argsort(-difficulty.ratio, kind="stable")
    best, groups = table.iou[:, :, -1].max(1), table.iou[:, table.groups].mean((1, 2))
    lost = table.iou[:, table.base].mean(1) - groups
    blocks = (
        Gallery(
            "The hardest instances",
            f"Highest spread over mean of the IoU after one click, over {difficulty.who}.",
            _examples(table, order[:SHOWN], difficulty),
        ),
        Gallery(
            "The easiest instances",
            "Lowest spread over mean: it matters least which click it is.",
            _examples(table, order[SHOWN:][::-1][:SHOWN], difficulty),
        ),
        Gallery(
            "Clicks off the centre cost most",
            "Mean IoU of the centre rule less that of the groups, highest first.",
            _examples(table, np.argsort(-lost, kind="stable")[:SHOWN], difficulty),
        ),
        Gallery(
            "Worst at the end",
            "Lowest IoU after the last click, of the best course.",
            _examples(table, np.argsort(best, kind="stable")[:SHOWN], difficulty),
        ),
    )
    text = "Clicks are numbered in their order, green for positive and red for negative ones. In the last picture of "
    text += "a row green is what all masks agree on after one click, and dots are those clicks."
    return Section("Instances to look at", text, blocks)


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
