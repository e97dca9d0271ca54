"""The units of a run by their positions, and the batches that they are packed into, for millions of units.

Of each unit 16 bytes are kept: the hash of its id, in the order of hashes, and its position in that order and in the
batches. Where the list of units is a `LazyUnits`, units are made when their batch is evaluated and freed after it.

The batches depend on the list of units and the batch size alone, never on what is already done or on workers: a
network's last bits may differ between layouts, and a resumed run must equal an uninterrupted one.

>>> units = [Unit("a1", 0, "a"), Unit("b1", 0, "b"), Unit("a2", 0, "a"), Unit("c1", 0, "c")]
>>> [[unit.id for unit in batch] for batch in make_batches(units, 3)]
[['a1', 'a2', 'b1'], ['c1']]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from hardlook import fingerprints
from hardlook.errors import HardlookError, OptionError, find_unreadable_name
from hardlook.harness.benchmark import LazyUnits, Unit

if TYPE_CHECKING:
    import polars as pl

Batch = tuple[Unit, ...]
Mask = NDArray[np.bool_]
Positions = NDArray[np.integer[Any]]

# Units that are read together when the ids are hashed.
_CHUNK = 50_000


class IndexedUnits(Sequence[Unit]):
    """The units of a run, found by their ids; two units with one id are an error.

    `fingerprint` is the hash of all ids in their order. `groups` (n,) numbers the groups in order of appearance, each
    unit without a group being a group of its own; it is None where no unit has a group.

    >>> import polars as pl
    >>> units = IndexedUnits([Unit("a", 0), Unit("b", 0), Unit("c", 0)])
    >>> units.mark([pl.Series(["c", "a"])]).tolist()
    [True, False, True]
    """

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units, self.left_out = units, tuple(getattr(units, "left_out", ()))
        self._seed, numbering = 0, _GroupNumbering()
        self.fingerprint = fingerprints.hash_lists(self._read_ids(numbering))
        self.groups = numbering.finish()
        while (self._keys[1:] == self._keys[:-1]).any():
            # Two ids are equal, or, once in millions of runs, two hashes: then those of another seed are taken.
            name, count = Counter(unit.id for unit in units).most_common(1)[0]
            if count > 1:
                raise HardlookError("the benchmark has two units with one id", unit=name)
            self._seed += 1
            for _ in self._read_ids():
                pass

    def _read_ids(self, numbering: _GroupNumbering | None = None) -> Iterator[list[str]]:
        """Yield all ids in lists, and keep their hashes."""
        import polars as pl

        keys = [np.empty(0, np.uint64)]
        for start in range(0, len(self), _CHUNK):
            positions = range(start, min(start + _CHUNK, len(self)))
            if isinstance(self.units, LazyUnits):
                ids, groups = self.units.list_ids(positions), self.units.list_groups(positions)
            else:
                chunk = self.units[start : start + _CHUNK]
                ids, groups = [unit.id for unit in chunk], [unit.group for unit in chunk]
            _check_ids(ids)
            keys.append(_hash_ids(pl.Series(ids), self._seed))
            if numbering is not None:
                numbering.add(groups)
            yield ids
        self._keys = np.concatenate(keys)
        del keys
        self._order = np.argsort(self._keys).astype(_choose_type(len(self)))
        self._keys.sort()

    def __len__(self) -> int:
        return len(self.units)

    @overload
    def __getitem__(self, index: int) -> Unit: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Unit]: ...

    def __getitem__(self, index: int | slice) -> Unit | Sequence[Unit]:
        return self.units[index]

    def __iter__(self) -> Iterator[Unit]:
        return iter(self.units)

    def mark(self, ids: Iterable[pl.Series]) -> Mask:
        """(n,): which of the units have one of these ids.

        Hashes are compared: those of the units all differ, and ids that are marked are those of units.
        """
        mask = np.zeros(len(self), np.bool_)
        for some in ids:
            # In the order of the hashes, places that follow each other are looked up.
            keys = np.sort(_hash_ids(some, self._seed))
            places = np.searchsorted(self._keys, keys)
            places[places == len(self)] = 0
            mask[self._order[places[self._keys[places] == keys]]] = True
        return mask

    def find(self, name: str) -> Unit | None:
        """The unit with that id."""
        import polars as pl

        key = _hash_ids(pl.Series([name]), self._seed)[0]
        place = int(np.searchsorted(self._keys, key))
        if place == len(self) or self._keys[place] != key:
            return None
        unit = self.units[int(self._order[place])]
        return unit if unit.id == name else None

    def list_ids(self, mask: Mask) -> Iterator[str]:
        """The ids of the marked units, in order."""
        return (self.units[position].id for position in np.flatnonzero(mask).tolist())


class _GroupNumbering:
    """Numbers groups in order of appearance."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.count = 0
        self.chunks: list[Positions] = [np.empty(0, np.int64)]

    def add(self, groups: Sequence[str]) -> None:
        """Number the groups of more units."""
        if not self.numbers and not any(groups):
            # While no unit has a group, its number is its position.
            self.count += len(groups)
            return
        if not self.numbers:
            self.chunks = [np.arange(self.count)]
        self.chunks.append(np.fromiter(map(self._number, groups), np.int64, len(groups)))

    def _number(self, group: str) -> int:
        if group in self.numbers:
            return self.numbers[group]
        number = self.count
        self.count += 1
        if group:
            self.numbers[group] = number
        return number

    def finish(self) -> Positions | None:
        """The number of each unit's group; None where there is no group."""
        return np.concatenate(self.chunks) if self.numbers else None


def _check_ids(ids: Sequence[str]) -> None:
    """Raise an error for an id that cannot be written into records."""
    for name in ids:
        if not isinstance(name, str):
            raise HardlookError(
                f"the benchmark has a unit whose id is of type {type(name).__name__}",
                unit=repr(name),
                remedy="ids are texts: let its `list_units` make them with str",
            )
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise find_unreadable_name(error) or HardlookError(
                "the benchmark has a unit whose id is not text in UTF-8",
                unit=name.encode(errors="backslashreplace").decode(),
                remedy="let its `list_units` leave out halves of surrogate pairs",
            ) from error


def _hash_ids(ids: pl.Series, seed: int) -> NDArray[np.uint64]:
    """A hash of each id; the same in every call of one process."""
    return ids.hash(seed).to_numpy()


def _choose_type(count: int) -> type[np.integer[Any]]:
    """The smallest type that holds so many positions."""
    return np.uint32 if count < 2**32 else np.int64


class Batches(Sequence[Batch]):
    """Batches of units, made when they are asked for.

    Batch i holds the units at `positions[starts[i]:ends[i]]`.
    """

    def __init__(self, units: Sequence[Unit], positions: Positions, starts: Positions, ends: Positions) -> None:
        self.units, self.positions, self.starts, self.ends = units, positions, starts, ends

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> Batch: ...

    @overload
    def __getitem__(self, index: slice) -> Batches: ...

    def __getitem__(self, index: int | slice) -> Batch | Batches:
        if isinstance(index, slice):
            return Batches(self.units, self.positions, self.starts[index], self.ends[index])
        positions = self.positions[self.starts[index] : self.ends[index]].tolist()
        first, last = positions[0], positions[-1] + 1
        if positions == list(range(first, last)):
            return tuple(self.units[first:last])
        return tuple(self.units[position] for position in positions)

    def mark_units(self) -> Mask:
        """(n,): which of all units are in these batches."""
        mask = np.zeros(len(self.units), np.bool_)
        mask[self.positions[self._mark_positions()]] = True
        return mask

    def with_any(self, mask: Mask) -> Batches:
        """The batches that hold a marked unit."""
        counts = self._count_before(mask[self.positions])
        kept = counts[self.ends] > counts[self.starts]
        return Batches(self.units, self.positions, self.starts[kept], self.ends[kept])

    def cut_to(self, mask: Mask) -> Batches:
        """The batches with their marked units alone; those that have none are left out."""
        kept = mask[self.positions] & self._mark_positions()
        counts = self._count_before(kept)
        starts, ends = counts[self.starts], counts[self.ends]
        return Batches(self.units, self.positions[kept], starts[ends > starts], ends[ends > starts])

    def _mark_positions(self) -> Mask:
        steps = np.zeros(len(self.positions) + 1, np.int8)
        steps[self.starts] += 1
        steps[self.ends] -= 1
        return np.cumsum(steps[:-1], dtype=np.int8).astype(np.bool_)

    def _count_before(self, mask: Mask) -> Positions:
        counts = np.zeros(len(mask) + 1, _choose_type(len(mask)))
        np.cumsum(mask, out=counts[1:])
        return counts


def make_batches(units: Sequence[Unit], batch_size: int, *, whole_groups: bool = False) -> Batches:
    """Pack units into batches of at most `batch_size`, groups in order of appearance and whole where they fit.

    With `whole_groups` a group is never split: one that is larger than `batch_size` is a batch of its own.

    >>> [len(batch) for batch in make_batches([Unit(f"a{i}", 0, "a") for i in range(5)], 2, whole_groups=True)]
    [5]
    """
    indexed = units if isinstance(units, IndexedUnits) else IndexedUnits(units)
    n = len(indexed)
    if indexed.groups is None:
        starts = np.arange(0, n, batch_size)
        return Batches(indexed, np.arange(n, dtype=_choose_type(n)), starts, np.minimum(starts + batch_size, n))
    bounds, end, current = [0], 0, 0
    for size in np.bincount(indexed.groups).tolist():
        step = size if whole_groups else batch_size
        for start in range(0, size, step):
            piece = min(step, size - start)
            if current and current + piece > batch_size:
                bounds.append(end)
                current = 0
            current += piece
            end += piece
    edges = np.array([*bounds, end])
    return Batches(indexed, np.argsort(indexed.groups, kind="stable"), edges[:-1], edges[1:])


def batches_of_shard(batches: Batches, shard: tuple[int, int]) -> Batches:
    """The batches of shard i of N (i from 1): every N-th, so that shards finish at about the same time."""
    index, count = shard
    if not 1 <= index <= count:
        raise OptionError(f"--shard {index}/{count}: the first number runs from 1 to the second")
    return batches[index - 1 :: count]
