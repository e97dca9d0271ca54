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

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import DataError, RunError
from hardlook.harness.stats import Estimate, bootstrap_score, ratio
from hardlook.toss.pixel_sums import pair_union_expression
from hardlook.toss.tiers.attributes import NUMBERS, read_attributes

COLUMNS = {"tier", "shots", "class", "query", "intersection", "predicted", "truth", "predicted_void"}
NAMES = {0: "the fixed pairs", 1: "tier 1"}


@dataclass(frozen=True)
class OneShotResults:
    """Totals over the pairs of each class and query image: `frame` has class, image, intersection, union, iou.

    `iou` is the ratio of the image's totals, null where both are 0; `pairs` says which pairs, `model` whose answers.
    """

    frame: pl.DataFrame
    pairs: str
    model: str = ""


def sum_results(records: pl.DataFrame, *, void_ignored: bool = True) -> OneShotResults:
    """Totals from the records of `hardlook run toss`, one row per pair.

    If a run has several numbers of shots, the pairs with the fewest count. `void_ignored` leaves predicted pixels out
    of the union where the truth is open.

    >>> row = {"tier": 1, "shots": 1, "class": "cat", "query": "a", "predicted": 6, "predicted_void": 1, "truth": 5}
    >>> results = sum_results(pl.DataFrame([{**row, "intersection": 4}, {**row, "intersection": 2}]))
    >>> results.frame.row(0, named=True)["iou"], results.pairs
    (0.42857142857142855, 'tier 1')
    """
    if missing := sorted(COLUMNS - set(records.columns)):
        remedy = "give the folder of a finished `hardlook run toss`"
        raise RunError(f"the records lack {', '.join(missing)}", remedy=remedy)
    numbered = records.with_columns(pl.col("tier", "shots").cast(pl.Int64))
    tier = next((number for number in NAMES if number in numbered["tier"]), None)
    if tier is None:
        remedy = "run toss with --tiers 1 or with --fixed"
        raise RunError("the run has neither fixed pairs nor pairs of tier 1", remedy=remedy)
    totals = (
        numbered.filter(pl.col("tier") == tier)
        .filter(pl.col("shots") == pl.col("shots").min())
        .with_columns(union=pair_union_expression(void_ignored=void_ignored))
        .group_by("class", pl.col("query").alias("image"))
        .agg(pl.col("intersection", "union").sum())
        .sort("class", "image")
        .with_columns(iou=pl.when(pl.col("union") > 0).then(pl.col("intersection") / pl.col("union")))
    )
    return OneShotResults(totals, NAMES[tier])


def read_run(folder: Path) -> OneShotResults:
    """The results of a finished `hardlook run toss`."""
    from hardlook.harness.runs.scoring import get_model_name, read_run_records

    manifest, records = read_run_records(folder, "toss")
    void = manifest["options"].get("reading", {}).get("void", "ignored")
    try:
        results = sum_results(records, void_ignored=void == "ignored")
    except RunError as error:
        raise error.at(file=folder) from None
    missing = manifest["units"] - len(records)
    note = f" ({missing} of the run's {manifest['units']} pairs are unanswered)" if missing else ""
    return replace(results, pairs=results.pairs + note, model=get_model_name(manifest))


def class_iou(results: OneShotResults, name: str, rng: np.random.Generator, resamples: int) -> Estimate:
    """The class's IoU, sum of intersections over sum of unions, with an interval over query images."""
    sums = results.frame.filter(pl.col("class") == name).select("intersection", "union").to_numpy()
    return bootstrap_score(sums, ratio, rng=rng, resamples=resamples, range=(0.0, 1.0), resampled="query image")


def replace_one_shot_iou(table: pl.DataFrame, results: OneShotResults) -> pl.DataFrame:
    """The table with its column oss_perf taken from a run; rows that the run has no query for are NaN.

    >>> table = pl.DataFrame({"class": ["cat"], "image": ["a"], "oss_perf": [0.1]})
    >>> found = pl.DataFrame({"class": ["cat"], "image": ["a"], "iou": [0.7]})
    >>> replace_one_shot_iou(table, OneShotResults(found, "tier 1"))["oss_perf"].to_list()
    [0.7]
    """
    found = results.frame.select("class", "image", oss_perf="iou")
    joined = table.drop("oss_perf").join(found, on=["class", "image"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("oss_perf").fill_null(float("nan")))


def read_attribute_frame(path: Path) -> pl.DataFrame:
    """Columns filename, class, image and the seven numbers (float64; NaN where the file has none).

    Class names come from the column `class`; without one the number before the first underscore of the file name is
    VOC's. A table without any of the seven numbers is a `DataError`, as is anything that `read_attributes` refuses.
    """
    rows = read_attributes(path, needed=("filename",), class_name=_voc_name)
    if all(getattr(row, name) is None for row in rows for name in NUMBERS):
        what = f"the table has no number in any of the columns {', '.join(NUMBERS)}"
        raise DataError(what, file=path, remedy="`hardlook attributes` writes such a table")
    frame = pl.DataFrame(
        {"filename": [row.filename for row in rows], "class": [row.class_name for row in rows]}
        | {name: [getattr(row, name) for row in rows] for name in ("image", *NUMBERS)},
        schema_overrides=dict.fromkeys(NUMBERS, pl.Float64),
    )
    return frame.with_columns(pl.col(NUMBERS).fill_null(float("nan")))


def _voc_name(number: str) -> str:
    if not number.isdecimal() or not 1 <= int(number) <= len(VOC_CLASSES):
        what = f"the file name starts with {number!r}, which is not a class of VOC's twenty"
        raise DataError(what, remedy="add a column `class` with the names of the classes")
    return VOC_CLASSES[int(number) - 1]
