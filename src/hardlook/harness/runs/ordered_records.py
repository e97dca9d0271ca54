"""The records of a run in the order of their units, a bounded number at a time.

A table of all records takes memory in proportion to their number. Here the ids of all parts are read first, part by
part, to learn which units each part holds. Parts that overlap little, such as those of processes at work on an ordered
list, are then merged from the first unit to the last. Parts that all hold units from everywhere are distributed over
temporary files first, one for each range of units. Either way a few times `rows` records are in memory, whatever their
number, and every part is read twice.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.harness.records import RecordSchema
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.record_store import (
    drop_repeated_units,
    find_contradicting_units,
    keep_first_records,
    list_parts,
    read_own_part,
)

if TYPE_CHECKING:
    import polars as pl

ROWS = 250_000
"""Records that are in memory at a time, by default."""

# Of each part so many ids, evenly spaced, tell how units are distributed.
_SAMPLED_IDS = 64

PART, ROW = "part of the run", "row of the part"
"""Columns that tell where a record is stored: the number of its part, by name, and its row there."""

_RANGE = "range of units"


@dataclass(frozen=True)
class _Part:
    """A part with records of the run: its place in the order of names, its rows, and its first and last unit."""

    path: Path
    place: int
    rows: int
    first: str
    last: str
    ids: tuple[str, ...]
    """Some of its units."""


class OrderedRecords:
    """The records of a run, one per unit, in the order of the units; where a unit has several, that of the first part.

    `parts` are those that are read, by name: by default all that the run has now, so that another process can add more
    meanwhile. `others` counts by part the records with another fingerprint than `answers`, which are not among these.
    `stored` counts the run's own rows, second records of a unit included.
    """

    def __init__(
        self,
        folder: RunFolder,
        schema: RecordSchema,
        answers: str,
        *,
        parts: Sequence[Path] | None = None,
        rows: int | None = None,
    ) -> None:
        self.folder, self.schema, self.answers, self.rows = folder, schema, answers, rows or ROWS
        self.others: dict[Path, int] = {}
        self._parts: list[_Part] = []
        for place, path in enumerate(list_parts(folder.records_path) if parts is None else parts):
            own, others = read_own_part(path, schema, answers, ("unit",))
            if others:
                self.others[path] = others
            if len(own):
                units = own["unit"]
                step = max(1, len(units) // _SAMPLED_IDS)
                ends = (str(units.min()), str(units.max()))
                ids = tuple(units.gather_every(step).to_list())
                self._parts.append(_Part(path, place, len(own), *ends, ids))
        self._parts.sort(key=lambda part: (part.first, part.place))

    @property
    def stored(self) -> int:
        """How many rows the parts have."""
        return sum(part.rows for part in self._parts)

    def iterate(self, columns: Sequence[str], contradicting: list[str] | None = None) -> Iterator[pl.DataFrame]:
        """Yield the records with these columns in chunks of about `rows`, none empty.

        Units with different records from two processes are added to `contradicting`.
        """
        for chunk in self._order(columns):
            chunk = chunk.drop(PART, ROW)
            kept = drop_repeated_units(chunk)
            if contradicting is not None and len(kept) < len(chunk):
                contradicting += find_contradicting_units(chunk)
            yield kept

    def iterate_located(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the same with the columns `PART` and `ROW`."""
        return map(drop_repeated_units, self._order(columns))

    def find(self, columns: Sequence[str], units: Collection[str]) -> pl.DataFrame:
        """The records of some units; only parts that can hold them are read."""
        import polars as pl

        wanted = sorted(units)
        found = [pl.DataFrame(schema={name: self.schema.polars_schema()[name] for name in columns})]
        for part in sorted(self._parts, key=lambda part: part.place):
            place = bisect_left(wanted, part.first)
            if place < len(wanted) and wanted[place] <= part.last:
                found.append(self._read(part, columns).select(columns).filter(pl.col("unit").is_in(wanted)))
        return keep_first_records(pl.concat(found))

    def _order(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Chunks of whole units by ascending ids, the records of a unit by part."""
        return self._distribute(columns) if self._overlap() else self._merge(columns)

    def _overlap(self) -> bool:
        """Whether a merge would hold far more than `rows` records: those of all parts with units around some unit."""
        opened: list[_Part] = []
        for part in self._parts:
            opened = [one for one in opened if one.last >= part.first]
            opened.append(part)
            if sum(one.rows for one in opened) > 2 * self.rows:
                return True
        return False

    def _merge(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The chunks where parts are read as their units come."""
        import polars as pl

        waiting: list[pl.DataFrame] = []
        for number, part in enumerate(self._parts):
            waiting.append(self._read(part, columns))
            is_last = number + 1 == len(self._parts)
            if not is_last and sum(map(len, waiting)) < self.rows:
                continue
            rows = pl.concat(waiting)
            if not (len(waiting) == 1 and rows["unit"].is_sorted()):
                rows = rows.sort("unit", PART, maintain_order=True)
            # No later part has a unit before the first one of the next.
            end = len(rows) if is_last else int(rows["unit"].search_sorted(self._parts[number + 1].first, side="left"))
            if end:
                yield rows[:end]
            waiting = [rows[end:]] if end < len(rows) else []

    def _distribute(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The same chunks by way of temporary files, one for each range of units."""
        import polars as pl

        bounds = self._divide_units()
        with tempfile.TemporaryDirectory(prefix="hardlook-") as folder:
            files: dict[int, list[Path]] = {}
            waiting: list[pl.DataFrame] = []
            for number, part in enumerate(self._parts):
                waiting.append(self._read(part, columns))
                if number + 1 < len(self._parts) and sum(map(len, waiting)) < self.rows:
                    continue
                rows = pl.concat(waiting)
                waiting = []
                ranges = bounds.search_sorted(rows["unit"], side="right").alias(_RANGE)
                for (place,), inside in rows.with_columns(ranges).partition_by(_RANGE, as_dict=True).items():
                    path = Path(folder) / f"{place}-{number}.arrow"
                    inside.drop(_RANGE).write_ipc(path)
                    files.setdefault(int(place), []).append(path)
            for place in sorted(files):
                rows = pl.concat([pl.read_ipc(path) for path in files[place]])
                yield rows.sort("unit", PART, maintain_order=True)

    def _divide_units(self) -> pl.Series:
        """The first unit of each range of units but the first one; a range has about `rows` records."""
        import polars as pl

        # Each of the units that are known stands for as many records of its part.
        known = [(unit, part.rows / len(part.ids)) for part in self._parts for unit in part.ids]
        sample = pl.DataFrame(known, schema={"unit": pl.String(), "records": pl.Float64()}, orient="row").sort("unit")
        ranges = sample["records"].cum_sum() // self.rows
        return sample["unit"].filter(ranges != ranges.shift()).unique().sort()

    def _read(self, part: _Part, columns: Sequence[str]) -> pl.DataFrame:
        import polars as pl

        own, _ = read_own_part(part.path, self.schema, self.answers, columns, ROW)
        return own.with_columns(pl.lit(part.place, pl.UInt32()).alias(PART))


def copy_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with memory of their own: some of many would keep the texts of all."""
    import polars as pl

    return pl.DataFrame(rows.rows(), schema=rows.schema, orient="row")
