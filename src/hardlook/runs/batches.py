"""The batch layout: which units are answered together, fixed by the list of units and the batch size alone.

The layout never depends on what is already done, on workers or on order of arrival: a network's last bits may
differ between layouts, and a resumed run must equal an uninterrupted one.

>>> units = [Unit("a1", 0, "a"), Unit("b1", 0, "b"), Unit("a2", 0, "a"), Unit("c1", 0, "c")]
>>> [[unit.id for unit in batch] for batch in lay_out(units, 3)]
[['a1', 'a2', 'b1'], ['c1']]
"""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.contract.benchmark import Unit
from hardlook.errors import OptionError

Batch = tuple[Unit, ...]


def lay_out(units: Sequence[Unit], batch_size: int, *, whole_groups: bool = False) -> list[Batch]:
    """Pack units into batches of at most `batch_size`, groups in order of appearance and whole where they fit.

    With `whole_groups` a group is never split: one that is larger than `batch_size` is a batch of its own.

    >>> [len(batch) for batch in lay_out([Unit(f"a{i}", 0, "a") for i in range(5)], 2, whole_groups=True)]
    [5]
    """
    groups: dict[str, list[Unit]] = {}
    for position, unit in enumerate(units):
        groups.setdefault(unit.group or f"\0{position}", []).append(unit)
    batches: list[Batch] = []
    current: list[Unit] = []
    for group in groups.values():
        step = len(group) if whole_groups else batch_size
        for start in range(0, len(group), step):
            piece = group[start : start + step]
            if current and len(current) + len(piece) > batch_size:
                batches.append(tuple(current))
                current = []
            current.extend(piece)
    if current:
        batches.append(tuple(current))
    return batches


def of_shard(batches: Sequence[Batch], shard: tuple[int, int]) -> list[Batch]:
    """The batches of shard i of N (i from 1): every N-th, so that shards finish at about the same time."""
    index, count = shard
    if not 1 <= index <= count:
        raise OptionError(f"--shard {index}/{count}: the first number runs from 1 to the second")
    return list(batches[index - 1 :: count])
