"""Records as arrays: instances by courses by rounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.clicks.courses import BASE, HALVES
from hardlook.metrics.click_counts import ious

if TYPE_CHECKING:
    import polars as pl

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Played:
    """What was clicked and found on N instances by C courses in R rounds.

    `dataset` and `image` (N,) texts; `courses` their C names; `intersection` and `union` (N, C, R); `people` holds
    for each instance the IoUs (n,) after people's first clicks, none where nobody clicked, and `whose` says what
    people these are.
    """

    units: tuple[str, ...]
    dataset: NDArray[np.str_]
    image: NDArray[np.str_]
    size: NDArray[np.str_]
    courses: tuple[str, ...]
    intersection: Counts
    union: Counts
    people: tuple[Numbers, ...]
    whose: str = "people"

    def __len__(self) -> int:
        return len(self.units)

    @cached_property
    def iou(self) -> Numbers:
        """(N, C, R) in [0, 1]."""
        return ious(self.intersection, self.union)

    @property
    def base(self) -> int:
        """The place of the centre rule."""
        return self.courses.index(BASE.name)

    @property
    def groups(self) -> list[int]:
        """The places of the clicking groups, from the least probable clicks to the most."""
        others = {BASE.name, *(half.name for half in HALVES)}
        return [place for place, name in enumerate(self.courses) if name not in others]

    @property
    def halves(self) -> list[int]:
        """The places of the lower and the upper half, none where they did not click."""
        return [self.courses.index(half.name) for half in HALVES if half.name in self.courses]

    def some(self, chosen: NDArray[np.bool_]) -> Played:
        """These instances alone; `chosen` (N,) bool."""
        keep = np.flatnonzero(chosen)
        return Played(
            tuple(self.units[i] for i in keep),
            self.dataset[keep],
            self.image[keep],
            self.size[keep],
            self.courses,
            self.intersection[keep],
            self.union[keep],
            tuple(self.people[i] for i in keep),
            self.whose,
        )


def played(records: pl.DataFrame) -> Played:
    """The arrays of records, in the order of their units."""
    records = records.sort("unit")
    courses = tuple(records["courses"][0].split(","))
    shape = (len(records), len(courses), int(records["rounds"][0]))

    def cube(column: str) -> Counts:
        return np.asarray(records[column].explode(), np.int64).reshape(shape)

    people = zip(records["user_intersection"].to_list(), records["user_union"].to_list(), strict=True)
    return Played(
        tuple(records["unit"].to_list()),
        _texts(records["dataset"]),
        _texts(records["image"]),
        _texts(records["size"]),
        courses,
        cube("intersection"),
        cube("union"),
        tuple(ious(np.asarray(hits, np.int64), np.asarray(unions, np.int64)) for hits, unions in people),
        next((whose for whose in records["people"].to_list() if whose), "nobody"),
    )


def _texts(column: Any) -> NDArray[np.str_]:
    return np.asarray(column.to_list(), dtype=np.str_)
