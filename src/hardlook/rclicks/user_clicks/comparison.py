"""Two sets of people's clicks on the same stems: one device or display mode against another.

Devices: stems with at least ten clicks on each (Table 8 of RClicks). Display modes: each against the text mode
(Table 1). The published WD and PL1 of devices rest on clicks entered as (x, x) and cannot be reproduced; KS can.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> clicks = ClickSets("TETRIS", "cup", (20, 30), {"pc": rng.random((12, 2)), "mobile": rng.random((9, 2))})
>>> compare_click_sets([clicks], "pc", "mobile")
ClickSetComparison(rows=(), too_few=1)
>>> [row] = compare_click_sets([clicks], "pc", "mobile", least=5).rows
>>> row.clicks, row.other_clicks, row.ks
(12, 9, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.errors import DataError
from hardlook.metrics.click_sets import WassersteinReading, fasano_franceschini, pairwise_l1, wasserstein

PAIR_METRICS = ("ks", "pl1", "wd")
MIN_SET_SIZE = 10


@dataclass(frozen=True)
class ClickSets:
    """Clicks (n, 2) on one stem by device or display mode, x, y in pixels; `box` is the object's width and height."""

    dataset: str
    full_stem: str
    box: tuple[float, float]
    clicks: Mapping[str, NDArray[np.number]] = field(repr=False)
    click_type: str = "first"
    image_key: str = ""


@dataclass(frozen=True)
class PairScores:
    """Two sets of clicks on one stem.

    `ks`: whether the test cannot tell them apart (p > .05); without a p it is False, and `why` says why. `pl1` and
    `wd` are distances relative to the object's box.
    """

    full_stem: str
    dataset: str
    click_type: str
    image_key: str
    first: str
    second: str
    clicks: int
    other_clicks: int
    ks: bool
    p: float
    pl1: float
    wd: float
    why: str = ""

    @property
    def ks_undefined(self) -> int:
        """1 where the test has no p, else 0."""
        return int(bool(self.why))


@dataclass(frozen=True)
class ClickSetComparison:
    """One row per stem with enough clicks in both sets; `too_few` counts the stems left out."""

    rows: tuple[PairScores, ...]
    too_few: int


def compare_click_sets(
    stems: Iterable[ClickSets],
    first: str,
    second: str,
    *,
    least: int = MIN_SET_SIZE,
    reading: WassersteinReading = "released",
) -> ClickSetComparison:
    """KS, PL1 and WD between two sets on each stem with at least `least` clicks in both."""
    rows, too_few = [], 0
    for stem in stems:
        one, other = (stem.clicks.get(name, np.empty((0, 2))) for name in (first, second))
        if min(len(one), len(other)) < max(least, 1):
            too_few += 1
            continue
        try:
            test = fasano_franceschini(one, other)
            pl1, wd = pairwise_l1(one, other, stem.box), wasserstein(one, other, stem.box, reading)
        except ValueError as error:
            raise DataError(str(error), unit=stem.full_stem) from error
        of_stem = (stem.full_stem, stem.dataset, stem.click_type, stem.image_key or stem.full_stem)
        counts = len(one), len(other)
        rows.append(PairScores(*of_stem, first, second, *counts, test.passes, test.p, pl1, wd, test.why))
    return ClickSetComparison(tuple(rows), too_few)


def split_by_label(points: ArrayLike, labels: Iterable[str]) -> dict[str, NDArray[np.float64]]:
    """Points (n, 2) by the label (a device, a display mode) of each, labels sorted.

    >>> split_by_label([(1, 2), (3, 4)], ["pc", "mobile"])
    {'mobile': array([[3., 4.]]), 'pc': array([[1., 2.]])}
    """
    names = np.asarray(list(labels), dtype=str)
    values = np.asarray(points, np.float64)
    if values.shape != (len(names), 2):
        raise DataError(f"expected a label for each of the points, got {len(names)} for points of {values.shape}")
    return {str(name): values[names == name] for name in np.unique(names)}
