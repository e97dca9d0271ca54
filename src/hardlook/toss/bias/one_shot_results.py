r"""What a one-shot run found, class by class and image by image, and tables of attributes as data frames.

Only pairs of one class count: those of the fixed lists if a run has them, else those of tier 1. Tier 2 has spurious
supports and tier 3 other classes, so neither says how well a class is found.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "attributes.csv"
>>> _ = path.write_text("filename,oss_perf,iou,area_ratio\n15_2007_000032,.6,.8,.1\n")
>>> table = read_attribute_frame(path)
>>> table.row(0, named=True)["class"], table.row(0, named=True)["image"], table.row(0, named=True)["saliou"]
('person', '2007_000032', nan)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import DataError, RunError
from hardlook.harness.stats import Estimate, bootstrap_score, ratio
from hardlook.toss.tiers.attributes import NUMBERS, read_attributes

if TYPE_CHECKING:
    import polars as pl


COUNTS = ("intersection", "predicted", "truth", "predicted_void")
NAMES = {0: "the fixed pairs", 1: "tier 1"}


@dataclass(frozen=True)
class OneShotResults:
    """Totals over the pairs of each class and query image: `frame` has class, image, intersection, union, iou.

    `iou` is the ratio of the image's totals in [0, 1], null where both are 0. `pairs` says which pairs they are.
    """

    frame: pl.DataFrame
    pairs: str


def sum_results(records: pl.DataFrame, *, void_ignored: bool = True) -> OneShotResults:
    """Totals from the records of `hardlook run toss`, one row per pair.

    If a run has several numbers of shots, the pairs with the fewest count. `void_ignored` leaves predicted pixels out
    of the union where the truth is open.

    >>> import polars as pl
    >>> row = {"tier": 1, "shots": 1, "class": "cat", "query": "a", "predicted": 6, "predicted_void": 1, "truth": 5}
    >>> results = sum_results(pl.DataFrame([{**row, "intersection": 4}, {**row, "intersection": 2}]))
    >>> results.frame.row(0, named=True)["iou"], results.pairs
    (0.42857142857142855, 'tier 1')
    """
    import polars as pl

    needed = {"tier", "shots", "class", "query", *COUNTS}
    missing = sorted(needed - set(records.columns))
    if missing:
        raise RunError(
            f"the records lack {', '.join(missing)}", remedy="give the folder of a finished `hardlook run toss`"
        )
    numbered = records.with_columns(pl.col("tier", "shots").cast(pl.Int64))
    tiers = set(numbered["tier"].to_list())
    tier = next((number for number in NAMES if number in tiers), None)
    if tier is None:
        raise RunError(
            "the run has neither fixed pairs nor pairs of tier 1",
            remedy="run toss with --tiers 1 or with --fixed",
        )
    of_class = numbered.filter(pl.col("tier") == tier)
    of_class = of_class.filter(pl.col("shots") == pl.col("shots").min())
    union = pl.col("predicted") + pl.col("truth") - pl.col("intersection")
    if void_ignored:
        union = union - pl.col("predicted_void")
    totals = (
        of_class.with_columns(union=union)
        .group_by("class", pl.col("query").alias("image"))
        .agg(pl.col("intersection", "union").sum())
        .sort("class", "image")
        .with_columns(iou=pl.when(pl.col("union") > 0).then(pl.col("intersection") / pl.col("union")))
    )
    return OneShotResults(totals, NAMES[tier])


def read_run(folder: Path) -> tuple[OneShotResults, str]:
    """The results of a finished `hardlook run toss`, and its model's name."""
    from hardlook.harness.runs.scoring import get_model_name, read_run_records

    manifest, records = read_run_records(folder, "toss")
    void = manifest["options"].get("reading", {}).get("void", "ignored")
    model = get_model_name(manifest)
    try:
        results = sum_results(records, void_ignored=void == "ignored")
    except RunError as error:
        raise error.at(file=folder) from None
    missing = manifest["units"] - len(records)
    note = f" ({missing} of the run's {manifest['units']} pairs are unanswered)" if missing else ""
    return replace(results, pairs=results.pairs + note), model


def class_iou(results: OneShotResults, name: str, rng: np.random.Generator, resamples: int) -> Estimate:
    """The class's IoU, sum of intersections over sum of unions, with an interval over query images."""
    import polars as pl

    sums = results.frame.filter(pl.col("class") == name).select("intersection", "union").to_numpy()
    return bootstrap_score(sums, ratio, rng=rng, resamples=resamples, resampled="query image")


def read_attribute_frame(path: Path) -> pl.DataFrame:
    """Columns filename, class, image and the seven numbers (float64; NaN where the file has none).

    Class names come from the column `class`; without one the number before the first underscore of the file name is
    VOC's. A table without any of the seven numbers is a `DataError`, as is anything that `read_attributes` refuses.
    """
    import polars as pl

    rows = read_attributes(path, needed=("filename",), class_name=_voc_name)
    columns = {name: [math.nan if (value := getattr(row, name)) is None else value for row in rows] for name in NUMBERS}
    if all(math.isnan(value) for values in columns.values() for value in values):
        raise DataError(
            f"the table has no number in any of the columns {', '.join(NUMBERS)}",
            file=path,
            remedy="`hardlook attributes` writes such a table",
        )
    return pl.DataFrame(
        [
            pl.Series("filename", [row.filename for row in rows], pl.String),
            pl.Series("class", [row.class_name for row in rows], pl.String),
            pl.Series("image", [row.image for row in rows], pl.String),
            *(pl.Series(name, values, pl.Float64) for name, values in columns.items()),
        ]
    )


def _voc_name(number: str) -> str:
    if not number.isdecimal() or not 1 <= int(number) <= len(VOC_CLASSES):
        raise DataError(
            f"the file name starts with {number!r}, which is no class of VOC's twenty",
            remedy="add a column `class` with the names of the classes",
        )
    return VOC_CLASSES[int(number) - 1]
