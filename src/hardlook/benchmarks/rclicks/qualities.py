"""Single instances of RClicks: how many clicks they took, and what it mattered who clicked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.played import played
from hardlook.benchmarks.rclicks.statistics import TARGET
from hardlook.clicks.courses import BASE, HALVES
from hardlook.contract.benchmark import Quality
from hardlook.contract.records import Record
from hardlook.metrics.click_counts import area_under_ious, clicks_to_reach, failures
from hardlook.metrics.click_robustness import first_to_last

if TYPE_CHECKING:
    import polars as pl

QUALITIES = (
    Quality("noc90", "clicks to 90 % IoU, mean over groups", higher_is_better=False),
    Quality("auc", "IoU-AuC x 100, mean over groups"),
    Quality("dgr", "more clicks of the least probable group than of the most probable one, in %", False),
)


def instance_qualities(records: pl.DataFrame) -> pl.DataFrame:
    """`unit`, `noc90`, `auc` and `dgr` of each instance, in the order of the records."""
    import polars as pl

    table = played(records)
    noc = clicks_to_reach(table.intersection, table.union, TARGET)[:, table.groups]
    found = {
        "unit": table.units,
        "noc90": noc.mean(1),
        "auc": 100 * area_under_ious(table.iou[:, table.groups]).mean(1),
        "dgr": first_to_last(noc),
    }
    return records.select("unit").join(pl.DataFrame(found), on="unit", how="left", maintain_order="left")


def caption_of(record: Record) -> str:
    """What the object is, and how many clicks the centre rule and the groups needed, in words.

    >>> record = {"dataset": "grabcut", "size": "large", "pixels": 1500, "courses": "base,G1,G2", "rounds": 3}
    >>> record |= {"intersection": [8, 9, 9, 7, 7, 8, 9, 9, 9], "union": [10] * 9}
    >>> caption_of(record)  # doctest: +NORMALIZE_WHITESPACE
    'A large object of 1,500 pixels (grabcut): the centre rule needs 2 clicks to 90 % IoU, 1 of 2 groups needs 1, and
    1 does not get there in 3.'
    """
    courses, rounds = str(record["courses"]).split(","), int(record["rounds"])
    hits, either = (np.reshape(record[name], (len(courses), rounds)) for name in ("intersection", "union"))
    noc, never = clicks_to_reach(hits, either, TARGET), failures(hits, either, TARGET, "ours")
    halves = {half.name for half in HALVES}
    groups = [place for place, name in enumerate(courses) if name != BASE.name and name not in halves]
    base = courses.index(BASE.name)
    centre = f"needs {noc[base]} {'click' if noc[base] == 1 else 'clicks'} to"
    if never[base]:
        centre = "does not reach"
    words = f"A {record['size']} object of {record['pixels']:,} pixels ({record['dataset']}): the centre rule {centre} "
    return f"{words}{TARGET} % IoU, {_groups(noc[groups], never[groups], rounds)}."


def _groups(noc: NDArray[np.int64], never: NDArray[np.bool_], rounds: int) -> str:
    """How many clicks the groups that get there need, and how many do not."""
    there, lost = noc[~never], int(never.sum())
    if not len(there):
        return f"and none of {len(noc)} groups does in {rounds} clicks"
    who = f"{len(there)} of {len(noc)} groups" if lost else f"all {len(noc)} groups"
    span = f"{there.min()}" if there.min() == there.max() else f"{there.min()} to {there.max()}"
    words = f"{who} {'needs' if len(there) == 1 else 'need'} {span}"
    return f"{words}, and {lost} {'does' if lost == 1 else 'do'} not get there in {rounds}" if lost else words
