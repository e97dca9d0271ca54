"""Blocks of every kind, ordinary and degenerate, and a scorecard with everything on it."""

from __future__ import annotations

import math

import numpy as np

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.scorecard import LeftOut, Reading, Score, Scorecard, UnitCounts
from hardlook.harness.sections import (
    CurveChart,
    DialChart,
    DistributionChart,
    Dot,
    DotChart,
    Example,
    Gallery,
    HeatMap,
    Line,
    Picture,
    ScatterChart,
    Section,
    Slope,
    SlopeChart,
    Spot,
    Table,
)
from hardlook.harness.stats.intervals import Interval
from hardlook.report.galleries import UnitRecord, format_record_fields

HOSTILE = "<script>alert('x')</script> \"quoted\" & </svg></title> ünïcödé 猫 \x00"

NAN = math.nan


def dots(count: int = 6) -> DotChart:
    rows = [
        Dot(f"class {i}", 0.1 + 0.8 * i / count, 0.05 + 0.8 * i / count, 0.15 + 0.8 * i / count) for i in range(count)
    ]
    return DotChart(
        "IoU by class", "Higher is better.", rows, "IoU", (("chance", 0.1), ("paper", 0.61), ("DeepLab", 0.64))
    )


def curves() -> CurveChart:
    x = list(range(1, 11))
    lines = [
        Line(
            f"model {k}",
            x,
            [0.9 - 0.5 / (i + k) for i in x],
            [0.85 - 0.5 / (i + k) for i in x],
            [0.95 - 0.5 / (i + k) for i in x],
        )
        for k in range(5)
    ]
    return CurveChart("IoU against clicks", "Bands are intervals.", lines, "clicks", "IoU")


def dial() -> DialChart:
    x = [0.0, 0.25, 0.5, 0.75, 1.0]
    lines = [Line("label swaps", x, [0.9, 0.7, 0.5, 0.3, 0.1]), Line("brightness", x, [0.9, 0.91, 0.9, 0.89, 0.9])]
    return DialChart("Does it measure?", "Controls stay flat.", lines, "open mIoU", [-1.0, 0.05], ["brightness"])


def heat(size: int = 5) -> HeatMap:
    names = [f"class {i}" for i in range(size)]
    values = (np.eye(size) * 0.7 + 0.02).tolist()
    values[0][1] = NAN
    return HeatMap("Confusions", "Shares of pixels.", names, names, values, "truth", "prediction")


def scatter(count: int = 12, *, diagonal: bool = True) -> ScatterChart:
    spots = [Spot(i / count, (i / count) ** 2, f"unit {i}", "ab"[i % 2]) for i in range(count)]
    return ScatterChart("Closed against open", "One spot a class.", spots, "closed", "open", diagonal)


def slopes(count: int = 8) -> SlopeChart:
    rows = [Slope(f"class {i}", 0.3 + 0.05 * i, 0.7 - 0.04 * i, "p = .01" if i % 3 == 0 else "") for i in range(count)]
    return SlopeChart("Two models", "What falls is dashed.", rows, "first model", "second model", "IoU")


def distribution() -> DistributionChart:
    values = np.random.default_rng(0).beta(5, 2, 300).tolist()
    return DistributionChart(
        "IoU of instances", "The line is the mean.", [("a", values), ("b", [*values[:40], NAN])], "IoU"
    )


def table(count: int = 20) -> Table:
    rows = [(f"model {i}", (i * 7) % count / count, i, None if i % 3 else "a `note`") for i in range(count)]
    return Table("Models", "Sortable.", ("model", "mIoU", "rank", "note"), rows)


def picture() -> Picture:
    image = np.random.default_rng(1).integers(0, 255, (60, 90, 3), dtype=np.uint8)
    labels = np.full((60, 90), -1, np.int32)
    labels[10:30, 10:40], labels[30:50, 40:80] = 0, 2
    return Picture(
        "prediction", image, labels >= 0, labels, ("cat", "dog", "cow"), ((5.0, 5.0, True), (80.0, 50.0, False))
    )


def blocks() -> list:
    return [dots(), curves(), dial(), heat(), scatter(), distribution(), table(), slopes(), scatter(30)]


def degenerate() -> dict[str, object]:
    long = "a label that goes on " * 20
    return {
        "no dots": DotChart("t", "c", ()),
        "one dot": DotChart("t", "c", (Dot("a", 0.5),)),
        "equal dots": DotChart("t", "c", [Dot(str(i), 0.5) for i in range(4)], references=(("same", 0.5),)),
        "equal dots off the unit range": DotChart("t", "c", [Dot(str(i), -7.0) for i in range(4)]),
        "zero": DotChart("t", "c", (Dot("a", 0.0, 0.0, 0.0),)),
        "undefined dots": DotChart("t", "c", (Dot("a", NAN, NAN, 0.1), Dot("b", 0.4, None, 0.5), Dot("c", math.inf))),
        "only undefined dots": DotChart("t", "c", (Dot("a", NAN), Dot("b", None))),
        "negative dots": DotChart("t", "c", (Dot("a", -3.5, -4, -3), Dot("b", 2))),
        "huge dots": DotChart("t", "c", (Dot("a", 1e12), Dot("b", -3e11))),
        "tiny dots": DotChart("t", "c", (Dot("a", 1e-9), Dot("b", 3e-9))),
        "long labels": DotChart(
            long, long, (Dot(long, 0.5, 0.4, 0.6, long),), long, ((long, 0.3), (long, 0.31), (long, 0.32))
        ),
        "many dots": dots(200),
        "no lines": CurveChart("t", "c", (), "x", "y"),
        "one point": CurveChart("t", "c", (Line("a", [3], [0.2]),), "x", "y"),
        "undefined line": CurveChart(
            "t", "c", (Line("a", [1, 2], [NAN, NAN]), Line("b", [1, 2], [0.1, 0.2])), "x", "y"
        ),
        "only undefined lines": CurveChart("t", "c", (Line("a", [1], [NAN]),), "x", "y"),
        "line of no point": CurveChart("t", "c", (Line("a", [], []), Line("b", [1, 2], [3, 4])), "x", "y"),
        "many lines": CurveChart("t", "c", [Line(f"{long}{k}", [0, 1], [0.5, 0.5]) for k in range(40)], "x", "y"),
        "no dial": DialChart("t", "c", (), "s", ()),
        "dial without correlation": DialChart("t", "c", (Line("a", [0, 1], [0.1, 0.9]),), "s", (NAN,)),
        "no cells": HeatMap("t", "c", (), (), ()),
        "one cell": HeatMap("t", "c", ("a",), ("b",), ((0.5,),)),
        "empty cells": HeatMap("t", "c", ("a",), ("b", "c"), ((NAN, NAN),)),
        "equal cells": HeatMap("t", "c", ("a", "b"), ("b", "c"), ((1, 1), (1, 1))),
        "signed cells": HeatMap("t", "c", ("a", "b"), ("b", "c"), ((-1, 0.5), (0, 1))),
        "negative cells": HeatMap("t", "c", ("a",), ("b", "c"), ((-3, -1),)),
        "long names of cells": HeatMap("t", "c", (long, "b"), (long, "c"), ((0.1, 0.2), (0.3, 0.4)), long, long),
        "many cells": heat(60),
        "no spots": ScatterChart("t", "c", (), "x", "y"),
        "one spot": ScatterChart("t", "c", (Spot(0.5, 0.5, "a"),), "x", "y", True),
        "undefined spot": ScatterChart("t", "c", (Spot(NAN, 0.5, "a"), Spot(1, -2, long, long)), "x", "y"),
        "cloud": scatter(3000),
        "no slopes": SlopeChart("t", "c", (), "a", "b"),
        "one slope": SlopeChart("t", "c", (Slope("a", 0.5, 0.5),), "a", "b"),
        "half a slope": SlopeChart(
            "t", "c", (Slope("a", NAN, 0.5), Slope("b", 0.2, NAN), Slope("c", NAN, NAN)), "a", "b"
        ),
        "long slopes": SlopeChart(long, long, [Slope(long, 0.5, i / 9, long) for i in range(9)], long, long, long),
        "many equal slopes": SlopeChart("t", "c", [Slope(f"n {i}", 3, 3) for i in range(40)], "a", "b"),
        "no groups": DistributionChart("t", "c", (), "x"),
        "empty group": DistributionChart("t", "c", (("a", ()), (long, (0.1, 0.5))), "x"),
        "equal values": DistributionChart("t", "c", (("a", [3.0] * 9),), "x"),
        "no rows": Table("t", "c", ("a",), ()),
        "short rows": Table("t", "c", ("a", "b"), (("x",), ("y", NAN), (None, 3.0))),
    }


def score(name: str, value: float, half: float = 0.02, **more: object) -> Score:
    interval = Interval(value - half, value + half, level=0.95, method="percentile", n=40, resampled="image")
    return Score(name, value, 40, interval, **more)


def scorecard() -> Scorecard:
    slices = [score("miou", 0.2 + i / 40, slice={"class": f"class {i}"}) for i in range(20)]
    return Scorecard(
        "open-miou",
        "1",
        "planted",
        (
            score("miou", 0.538, comparable="yes, with `Table 2`"),
            score("clicks", 6.4, 0.5),
            Score("gap", NAN, 0),
            *slices,
        ),
        (Reading("similarity", "released", "Path length over `WordNet`.", ("paper", "released"), "released"),),
        (LeftOut("images without a label", 3, "their IoU is undefined", ("img_1",)),),
        UnitCounts(43, 40, 3),
    )


def sections() -> list[Section]:
    gallery = Gallery(
        "Worst", "Lowest first.", (Example("u/1", "IoU `0.1`"), Example("u/2", "IoU 0.2"), Example("u/3", ""))
    )
    return [Section("By class", "Text.\n\nMore.", blocks()), Section("Pictures", "", (gallery,))]


def three_galleries() -> Section:
    shown = (Example("u/1", "IoU 0.1"), Example("u/2", "IoU 0.2"))
    return Section(
        "Units to look at", "", [Gallery(f"The {kind} units", "", shown) for kind in ("worst", "best", "odd")]
    )


def records() -> dict[str, UnitRecord]:
    fields = format_record_fields({"unit": "u/1", "context": "beach", "pixels": list(range(500)), "mask": b"123"})
    return {"u/1": UnitRecord(fields, "hardlook run open-miou --unit u/1 --show")}


def pictures() -> dict[str, object]:
    return {"u/1": [picture(), picture()], "u/2": "the image is gone"}


def page_arguments() -> dict[str, object]:
    return {
        "title": "Open mIoU of a planted model",
        "summary": "What the average hides.",
        "provenance": {"finished": "2024-05-03T10:00:00Z", "url": "https://example.org/x", "seed": 0},
        "pictures": pictures(),
        "meanings": [
            ScoreMeaning("miou", "miou", "Mean IoU over classes."),
            ScoreMeaning("clicks", "clicks", "", higher_is_better=False),
            ScoreMeaning("gap", "gap", "", ranked=False),
        ],
        "failures": [{"unit": "u/9", "error": "mask is empty"}],
        "records": records(),
        "again": "hardlook run open-miou --out again",
    }
