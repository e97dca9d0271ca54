"""`clicks.csv`: what people clicked, a row a click; `previews.csv` with a display mode for the dataset.

Stems are text ("095" keeps its zero) and empty text stays empty. What cannot be is refused with the row's number
(1 is the first after the header). Coordinates outside the image are moved to its edge and counted.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "clicks.csv"
>>> table = check_clicks(pl.DataFrame({
...     "dataset": ["DAVIS"], "image_stem": ["095"], "object_stem": [""], "model_type": [""], "click_type": ["first"],
...     "full_stem": ["095"], "device": ["pc"], "x": [12.0], "y": [99.0], "w": [20], "h": [10]}))
>>> write_clicks(path, table)
>>> read = read_clicks(path)
>>> read.frame["image_stem"].to_list(), read.frame["y"].to_list(), table.clipped, read.clipped
(['095'], [9.0], 1, 0)
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from hardlook.data.click_table import COLUMNS, NUMBERS, TEXTS, ClickTable
from hardlook.data.full_stem import CLICK_TYPES, DEVICES, instance_stem, parse_full_stem, parse_shown
from hardlook.data.images import read_bytes
from hardlook.data.object_instances.dataset_names import dataset_name
from hardlook.errors import DataError

_REMEDY = "correct or remove the row; nothing is left out silently"
_HEADER = f"the columns are {', '.join(COLUMNS)}"
_ROW = "row"
_SET = "dataset by its one spelling"
_KIND = ("dataset", "full_stem", "image_stem", "object_stem", "model_type", "click_type", "w", "h")


def read_clicks(path: Path | str) -> ClickTable:
    """The checked clicks of a file."""
    try:
        # Everything as text first: a number that is none is then told by its row.
        frame = pl.read_csv(read_bytes(path), infer_schema=False)
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise DataError(f"not a readable csv file: {error}", file=path, remedy=_HEADER) from error
    return check_clicks(frame, file=path)


def write_clicks(path: Path | str, table: ClickTable) -> None:
    """Write a table as `clicks.csv`; reading it again gives the same table."""
    table.frame.write_csv(path)


def check_clicks(frame: pl.DataFrame, *, file: Path | str | None = None) -> ClickTable:
    """A table of clicks from a frame with the columns of the file, in any order; `file` is what errors name."""
    missing = [name for name in COLUMNS if name not in frame.columns]
    unexpected = [name for name in frame.columns if name not in COLUMNS]
    if missing or unexpected:
        what = " and ".join(
            f"{kind} columns: {', '.join(map(repr, names))}"
            for kind, names in (("missing", missing), ("unexpected", unexpected))
            if names
        )
        raise DataError(what, file=file, remedy=_HEADER)
    given = frame
    frame = frame.select(
        *(pl.col(name).cast(pl.String).fill_null("") for name in TEXTS),
        *(pl.col(name).cast(pl.Float64, strict=False) for name in NUMBERS),
    )
    numbered = frame.with_row_index(_ROW, 1)
    _refuse_values(numbered, given, file)
    # The long names are compared once for all checks, which then look at a few thousand rows.
    kinds = numbered.group_by(*_KIND).agg(pl.col(_ROW).min()).sort(_ROW)
    spelt = {name: dataset_name(name) for name in kinds["dataset"].unique()}
    kinds = kinds.with_columns(pl.col("dataset").replace_strict(spelt, return_dtype=pl.String).alias(_SET))
    _refuse_sizes(kinds, file)
    _refuse_stems(kinds, file)
    inside = frame.with_columns(
        pl.col("x").clip(0, pl.col("w") - 1),
        pl.col("y").clip(0, pl.col("h") - 1),
        pl.col("w", "h").cast(pl.Int64),
    )
    clipped = ((frame["x"] != inside["x"]) | (frame["y"] != inside["y"])).sum()
    # The other columns follow from these.
    different = frame.n_unique(["full_stem", "dataset", "model_type", "device", "x", "y"])
    return ClickTable(inside, int(clipped), frame.height - different)


def _refuse_values(rows: pl.DataFrame, given: pl.DataFrame, file: Path | str | None) -> None:
    number = {name: pl.col(name).is_finite().fill_null(False) for name in NUMBERS}
    for name, right, expected in (
        *((name, number[name], "a finite number") for name in ("x", "y")),
        *((name, number[name] & (pl.col(name) >= 1) & (pl.col(name).round() == pl.col(name)), "a whole number above 0")
          for name in ("w", "h")),
        ("click_type", pl.col("click_type").is_in(CLICK_TYPES), " or ".join(CLICK_TYPES)),
        ("device", pl.col("device").is_in(DEVICES), " or ".join(DEVICES)),
        ("object_stem", pl.col("object_stem").str.contains(r"^[0-9]*$"), "digits or nothing"),
        ("dataset", pl.col("dataset") != "", "a name"),
        ("image_stem", pl.col("image_stem") != "", "a name"),
    ):  # fmt: skip
        wrong = rows.filter(~right)
        if wrong.height:
            row = int(wrong[_ROW][0])
            came = given[name][row - 1]
            what = f"row {row}: its {name} is not {expected} but {came!r}"
            if wrong.height > 1:
                what = f"{wrong.height} rows whose {name} is not {expected}; the first: row {row} with {came!r}"
            raise DataError(what, file=file, unit=wrong["full_stem"][0], remedy=_REMEDY)


def _refuse_sizes(kinds: pl.DataFrame, file: Path | str | None) -> None:
    of_stem = (_SET, "full_stem")
    twice = kinds.filter(pl.struct("w", "h").n_unique().over(of_stem) > 1)
    if twice.height:
        same = twice.filter(pl.all_horizontal(pl.col(name) == twice[name][0] for name in of_stem))
        told = ", ".join(f"{w:g}x{h:g} (row {row})" for w, h, row in same.select("w", "h", _ROW).iter_rows())
        stem = twice["full_stem"][0]
        raise DataError(f"one stem with images of several sizes: {told}", file=file, unit=stem, remedy=_REMEDY)


def _refuse_stems(kinds: pl.DataFrame, file: Path | str | None) -> None:
    names = ("full_stem", "click_type", "image_stem", "object_stem", "model_type", _ROW)
    for stem, click_type, image, number, model, row in kinds.select(names).iter_rows():
        instance = instance_stem(image, number)
        try:
            parsed = parse_full_stem(stem, click_type) if click_type != "first" else None
        except DataError as error:
            raise DataError(f"row {row}: {error.what}", file=file, unit=stem, remedy=error.remedy) from error
        if (instance_stem(parsed.image, parsed.object) if parsed else stem) == instance:
            continue
        # A method with underscores in its name, unless the row's own method says that the image has them.
        if parsed and parsed.method != model and parse_shown(stem, instance):
            continue
        what = f"row {row}: the full stem is not of the image {image!r} and the object {number!r}"
        raise DataError(what, file=file, unit=stem, remedy=_REMEDY)
    of_stem = (_SET, "full_stem")
    twice = kinds.filter(pl.struct("image_stem", "object_stem", "click_type").n_unique().over(of_stem) > 1)
    if twice.height:
        same = twice.filter(pl.all_horizontal(pl.col(name) == twice[name][0] for name in of_stem))
        rows = ", ".join(map(str, same[_ROW]))
        what = f"one full stem of several images, objects or click types (rows {rows})"
        raise DataError(what, file=file, unit=twice["full_stem"][0], remedy=_REMEDY)
