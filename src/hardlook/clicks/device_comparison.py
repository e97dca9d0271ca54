"""Two crowds on the same stems: clicks of one device or display mode against another's.

Devices: stems with at least ten clicks on each (Table 8 of RClicks). Display modes: each against the text mode
(Table 1). The published WD and PL1 of devices rest on clicks entered as (x, x) and cannot be met; KS can.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> clicks = ClickSets("TETRIS", "cup", (20, 30), {"pc": rng.random((12, 2)), "mobile": rng.random((9, 2))})
>>> compare_crowds([clicks], "pc", "mobile")
Comparison(rows=(), too_few=1)
>>> [row] = compare_crowds([clicks], "pc", "mobile", least=5).rows
>>> row.clicks, row.other_clicks, row.ks
(12, 9, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.errors import DataError
from hardlook.metrics.click_distances import WassersteinReading, pairwise_l1, wasserstein
from hardlook.metrics.click_ks import fasano_franceschini

PAIR_METRICS = ("ks", "pl1", "wd")
LEAST_CLICKS = 10


@dataclass(frozen=True)
class ClickSets:
    """The clicks on one stem by crowd (a device, a display mode): (n, 2) points each, (x, y) in pixels.

    `box` is the width and height of the target object's box.
    """

    dataset: str
    full_stem: str
    box: tuple[float, float]
    clicks: Mapping[str, NDArray[np.number]] = field(repr=False)
    click_type: str = "first"
    image_key: str = ""


@dataclass(frozen=True)
class PairScores:
    """Two crowds on one stem.

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
class Comparison:
    """One row a stem that both crowds clicked often enough; `too_few` counts the stems left out."""

    rows: tuple[PairScores, ...]
    too_few: int


def compare_crowds(
    stems: Iterable[ClickSets],
    first: str,
    second: str,
    *,
    least: int = LEAST_CLICKS,
    reading: WassersteinReading = "released",
) -> Comparison:
    """KS, PL1 and WD between two crowds on each stem with at least `least` clicks of both.

    >>> compare_crowds([ClickSets("TETRIS", "cup", (20, 30), {"silhouette": np.ones((12, 2))})], "silhouette", "text")
    Comparison(rows=(), too_few=1)
    """
    rows, too_few = [], 0
    for stem in stems:
        ours, others = (stem.clicks.get(name, np.empty((0, 2))) for name in (first, second))
        if min(len(ours), len(others)) < max(least, 1):
            too_few += 1
            continue
        try:
            test = fasano_franceschini(ours, others)
            pl1, wd = pairwise_l1(ours, others, stem.box), wasserstein(ours, others, stem.box, reading)
        except ValueError as error:
            raise DataError(str(error), unit=stem.full_stem) from error
        here = (stem.full_stem, stem.dataset, stem.click_type, stem.image_key or stem.full_stem)
        counts = len(ours), len(others)
        rows.append(PairScores(*here, first, second, *counts, test.passes, test.p, pl1, wd, test.why))
    return Comparison(tuple(rows), too_few)


def split_by(points: ArrayLike, labels: Iterable[str]) -> dict[str, NDArray[np.float64]]:
    """Points (n, 2) by the label (a device, a display mode) of each, labels sorted.

    >>> split_by([(1, 2), (3, 4)], ["pc", "mobile"])
    {'mobile': array([[3., 4.]]), 'pc': array([[1., 2.]])}
    """
    names = np.asarray(list(labels), dtype=str)
    values = np.asarray(points, np.float64)
    if values.shape != (len(names), 2):
        raise DataError(f"expected a label for each of the points, got {len(names)} for points of {values.shape}")
    return {str(name): values[names == name] for name in np.unique(names)}
