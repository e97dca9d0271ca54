"""The statistics of RClicks as one value an instance: a score is the mean of its column.

Numbers of failures are means here, too; `scores` multiplies them by the number of instances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.played import Played
from hardlook.metrics.click_counts import area_under_ious, clicks_to_reach, failures
from hardlook.metrics.click_robustness import (
    Change,
    first_to_last,
    lower_to_upper,
    lower_to_upper_half,
    noise_to_signal,
    rise_over_base,
    sample_and_deviation,
)

PERCENTS = (85, 90, 95)
TARGET = 90
COUNTED = ("nof", "nof-base", "dsb-nof", "dgr-nof", "dhh-nof")
Numbers = NDArray[np.float64]


def instance_statistics(table: Played, *, nof: str, dhh: str) -> dict[str, Numbers]:
    """Every statistic by name, (N,) each; NaN where an instance has none, such as people's clicks that it lacks.

    `nof` and `dhh` are the readings of those names.
    """
    found: dict[str, Numbers] = {}
    for percent in PERCENTS:
        noc = clicks_to_reach(table.intersection, table.union, percent).astype(np.float64)
        found[f"noc{percent}"], deviation = sample_and_deviation(noc[:, table.groups])
        found[f"noc{percent}-base"] = noc[:, table.base]
        if percent == TARGET:
            found[f"noc{percent}-std"] = deviation
            found |= _changes(noc, table, "percent", dhh, "")
    failed = failures(table.intersection, table.union, TARGET, cast("Literal['released', 'ours']", nof)).astype(float)
    found["nof"] = failed[:, table.groups].mean(1)
    found["nof-base"] = failed[:, table.base]
    found |= _changes(failed, table, "difference", dhh, "-nof")
    area = area_under_ious(table.iou)
    found["auc"], found["auc-std"] = (100 * part for part in sample_and_deviation(area[:, table.groups]))
    found["auc-base"] = 100 * area[:, table.base]
    found |= _changes(100 * area, table, "difference", dhh, "-iou")
    found["nsr"] = noise_to_signal(area[:, table.groups]).percent
    found |= _one_click(table)
    return found


def group_statistics(table: Played) -> Mapping[str, tuple[Numbers, Numbers]]:
    """Of each group by name: NoC@90 and IoU-AuC x 100 of each instance."""
    noc = clicks_to_reach(table.intersection, table.union, TARGET).astype(np.float64)
    area = 100 * area_under_ious(table.iou)
    return {table.courses[place]: (noc[:, place], area[:, place]) for place in table.groups}


def _changes(values: Numbers, table: Played, change: Change, dhh: str, ending: str) -> dict[str, Numbers]:
    """dSB, dGR and dHH of (N, C) values."""
    groups = values[:, table.groups]
    found = {
        f"dsb{ending}": rise_over_base(groups, values[:, table.base], change),
        f"dgr{ending}": first_to_last(groups, change),
    }
    if dhh == "paper":
        lower, upper = (values[:, place] for place in table.halves)
        found[f"dhh{ending}"] = lower_to_upper_half(lower, upper, change)
    elif groups.shape[1] % 2 == 0:
        found[f"dhh{ending}"] = lower_to_upper(groups, change)
    return found


def _one_click(table: Played) -> dict[str, Numbers]:
    first = table.iou[:, :, 0]
    mean, deviation = sample_and_deviation(first[:, table.groups])
    found = {
        "sample-iou1": 100 * mean,
        "sample-iou1-std": 100 * deviation,
        "base-iou1": 100 * first[:, table.base],
    }
    if any(len(ious) for ious in table.people):
        found["user-iou1"] = _of_people(table, lambda ious: 100 * float(ious.mean()))
        found["user-iou1-std"] = _of_people(table, lambda ious: 100 * float(ious.std()), least=2)
        found["nsr1"] = _of_people(table, lambda ious: float(noise_to_signal(ious[None]).percent[0]), least=2)
    return found


def _of_people(table: Played, measure: Callable[[Numbers], float], least: int = 1) -> Numbers:
    """Of instances that at least so many people clicked on; one click has no spread."""
    return np.array([measure(ious) if len(ious) >= least else np.nan for ious in table.people])
