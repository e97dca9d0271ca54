"""What was acknowledged against what is stored: nothing lost, nothing doubled, no image twice to one person.

Every number is counted anew from the rows, and from the answers as their senders remember them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import polars as pl

from hardlook.collect.rehearsal.participant import Acknowledged

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store


@dataclass(frozen=True)
class Account:
    """Counts that should be 0, beside the answers that were `acknowledged` and those that are `stored`.

    `lost`: acknowledged and not there. `changed`: there with another answer. `doubled`: more than one row for a key or
    a trial. `twice`: subjects that one person got again. `beyond`: items with more valid answers of a device than
    wanted. `miscounted`: items whose counters differ from a count of the rows.
    """

    acknowledged: int
    stored: int
    lost: int
    changed: int
    doubled: int
    twice: int
    beyond: int
    miscounted: int

    @property
    def clean(self) -> bool:
        """Whether all is as it should be."""
        return not any((self.lost, self.changed, self.doubled, self.twice, self.beyond, self.miscounted))

    def as_dict(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self)


def account(store: Store, heard: Sequence[Acknowledged], *, target: int) -> Account:
    """Compare; `target` is the number of valid answers wanted of an item and device."""
    rows = store.answers()
    stored = {row["key"]: row for row in rows.iter_rows(named=True)}
    lost = sum(one.key not in stored for one in heard)
    changed = sum(one.key in stored and not _same(one, stored[one.key]) for one in heard)
    doubled = (rows.height - rows["key"].n_unique()) + (rows.height - rows["assignment"].n_unique())
    twice = rows.height - rows.select("participant", "subject").n_unique()
    counted = rows.filter(pl.col("batch_valid") == 1)
    if rows["near"].null_count() < rows.height:
        counted = counted.filter(pl.col("near") == 1)
    valid = {(item, device): n for item, device, n in counted.group_by("item", "device").len().iter_rows()}
    progress = {
        (item, device): number
        for item, device, number in store.progress().select("item", "device", "valid").iter_rows()
    }
    miscounted = sum(valid.get(key, 0) != number for key, number in progress.items())
    beyond = sum(number > target for number in valid.values())
    return Account(len(heard), rows.height, lost, changed, doubled, twice, beyond, miscounted)


def _same(one: Acknowledged, row: dict[str, object]) -> bool:
    return row["task"] in one.tasks and all(row[name] == value for name, value in one.answer.items())
