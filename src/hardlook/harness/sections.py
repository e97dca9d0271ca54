"""The content of a report as plain values: sections of charts, tables and galleries.

Texts are plain sentences; `code` between back-ticks is the only markup. Every chart has a caption that says how to read
it, and the numbers themselves, so that every chart can also be shown as a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.scorecard import Score


@dataclass(frozen=True)
class Dot:
    """One row of a dot chart: a value with its interval (None where there is none), in an optional group."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    group: str = ""


def score_dot(score: Score, label: str, group: str = "") -> Dot:
    """A score as a row of a dot chart."""
    low, high = (score.interval.low, score.interval.high) if score.interval else (None, None)
    return Dot(label, score.value, low, high, group)


@dataclass(frozen=True)
class DotChart:
    """Values with intervals on one axis; `references` are published or chance values drawn as labelled lines."""

    title: str
    caption: str
    rows: Sequence[Dot]
    axis: str = ""
    references: Sequence[tuple[str, float]] = ()


@dataclass(frozen=True)
class Line:
    """A curve: `x` and `y` of equal length, with a band where `low` and `high` are given."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class CurveChart:
    """One or more curves with bands, labelled at their ends."""

    title: str
    caption: str
    lines: Sequence[Line]
    x_axis: str
    y_axis: str


@dataclass(frozen=True)
class HeatMap:
    """A matrix with its values written in; NaN cells stay empty. `values[row][column]`."""

    title: str
    caption: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    row_axis: str = ""
    column_axis: str = ""
    decimals: int = 2


@dataclass(frozen=True)
class Spot:
    """A point of a scatter chart; spots of one group share a colour."""

    x: float
    y: float
    label: str
    group: str = ""


@dataclass(frozen=True)
class ScatterChart:
    """Two measurements against each other; `diagonal` draws y = x.

    `front` are positions of spots on a Pareto front, which are joined by steps from left to right. With `log_x` equal
    ratios of x are equally far apart; a spot whose x is not over 0 then has no place.
    """

    title: str
    caption: str
    spots: Sequence[Spot]
    x_axis: str
    y_axis: str
    diagonal: bool = False
    front: Sequence[int] = ()
    log_x: bool = False


@dataclass(frozen=True)
class Slope:
    """One row of a slope chart: a thing measured twice; NaN where it was not measured."""

    label: str
    left: float
    right: float
    note: str = ""


@dataclass(frozen=True)
class SlopeChart:
    """Changes from one model to another: one line per row between two columns, named `left` and `right`."""

    title: str
    caption: str
    rows: Sequence[Slope]
    left: str
    right: str
    axis: str = ""


@dataclass(frozen=True)
class DistributionChart:
    """Distributions of values: one histogram per group on a shared axis, with mean and count."""

    title: str
    caption: str
    groups: Sequence[tuple[str, Sequence[float]]]
    axis: str


@dataclass(frozen=True)
class DialChart:
    """Scores over dial settings from 0 to 1, each with its rank correlation; lines named in `controls` stay flat."""

    title: str
    caption: str
    lines: Sequence[Line]
    score: str
    spearman: Sequence[float]
    controls: Sequence[str] = ()


@dataclass(frozen=True)
class Table:
    """A sortable table; cells are texts or numbers, None for an empty cell."""

    title: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | int | None]]
    decimals: int = 3


@dataclass(frozen=True)
class Picture:
    """An image (H, W, 3) uint8 with an optional overlay.

    The overlay is a bool mask, or an int label map with one colour per label (-1 is not drawn). `points` are
    (x, y, positive) clicks, numbered in their order, or small dots where they are not `ordered`.
    """

    label: str
    image: NDArray[np.uint8]
    mask: NDArray[np.bool_] | None = None
    label_map: NDArray[np.int32] | None = None
    label_names: Sequence[str] = ()
    points: Sequence[tuple[float, float, bool]] = ()
    ordered: bool = True


@dataclass(frozen=True)
class Example:
    """A unit shown in a gallery: its pictures are fetched by id, only for the units that are shown."""

    unit: str
    caption: str


@dataclass(frozen=True)
class Gallery:
    """A gallery of units, such as the best or the worst."""

    title: str
    caption: str
    examples: Sequence[Example]


Chart = DotChart | CurveChart | HeatMap | ScatterChart | SlopeChart | DistributionChart | DialChart
Block = Chart | Table | Gallery


@dataclass(frozen=True)
class Section:
    """A headed part of the report: a few sentences, then blocks."""

    title: str
    text: str = ""
    blocks: Sequence[Block] = field(default=())
