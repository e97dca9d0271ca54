"""`clicks.csv`: clicks of people, one row per click; `previews.csv` has a display mode in place of the dataset.

Stems are text ("095" keeps its zero) and empty text stays empty. Invalid values are errors that name the row (1 is the
first after the header). Coordinates outside the image are moved to its edge and counted.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "clicks.csv"
>>> table = check_clicks(pl.DataFrame({
...     "dataset": ["GrabCut"] * 2, "image_stem": ["095"] * 2, "object_stem": [""] * 2, "model_type": [""] * 2,
...     "click_type": ["first"] * 2, "full_stem": ["095"] * 2, "device": ["pc", "mobile"],
...     "x": [12.0, 5.0], "y": [99.0, 4.0], "w": [20, 20], "h": [10, 10]}))
>>> write_clicks(path, table)
>>> table.clipped, read_clicks(path).clipped
(1, 0)
>>> clicks = read_clicks(path).for_dataset("grabcut").first().by_full_stem()["095"]
>>> clicks.points.tolist(), clicks.devices.tolist(), clicks.size
([[12.0, 9.0], [5.0, 4.0]], ['pc', 'mobile'], (20, 10))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hardlook.data.click_names import (
    CLICK_TYPES,
    DEVICES,
    format_instance_stem,
    normalize_dataset_name,
    parse_full_stem,
    parse_later_stem,
)
from hardlook.errors import DataError, OptionError
from hardlook.reading import read_bytes, reading

TEXTS = ("dataset", "image_stem", "object_stem", "model_type", "click_type", "full_stem", "device")
NUMBERS = ("x", "y", "w", "h")
COLUMNS = TEXTS + NUMBERS
_REMEDY = "correct or remove the row"
_HEADER = f"the columns are {', '.join(COLUMNS)}"
_ROW = "row"
_DATASET = "normalized dataset"
_GROUP = ("dataset", "full_stem", "image_stem", "object_stem", "model_type", "click_type", "w", "h")


def read_clicks(path: Path | str) -> ClickTable:
    """The checked clicks of a file."""
    with reading(path, "not a readable csv file", remedy=_HEADER):
        # Everything as text first, so that an invalid number is reported with its row.
        frame = pl.read_csv(read_bytes(path), infer_schema=False)
        return check_clicks(frame, file=path)


def write_clicks(path: Path | str, table: ClickTable) -> None:
    """Write a table as `clicks.csv`; reading it gives the same table."""
    table.frame.write_csv(path)


@dataclass(frozen=True, eq=False)
class ClickTable:
    """A checked table with the columns `COLUMNS`, one row per click.

    `clipped` rows were outside their image and were moved to its edge. `repeated` rows equal an earlier row in every
    column; they are kept, since two people may hit the same pixel. Both count the whole file, also after filtering.
    """

    frame: pl.DataFrame
    clipped: int = 0
    repeated: int = 0

    def __len__(self) -> int:
        return self.frame.height

    def first(self) -> ClickTable:
        """The clicks of the first round."""
        return replace(self, frame=self.frame.filter(pl.col("click_type") == "first"))

    def for_dataset(self, name: str) -> ClickTable:
        """The clicks on a dataset (or in a display mode), in any spelling of its name; empty if there are none."""
        wanted = normalize_dataset_name(name)
        spelt = [text for text in self.datasets() if normalize_dataset_name(text) == wanted]
        return replace(self, frame=self.frame.filter(pl.col("dataset").is_in(spelt)))

    def datasets(self) -> tuple[str, ...]:
        """The datasets as the file spells them, sorted."""
        return tuple(sorted(self.frame["dataset"].unique()))

    def by_full_stem(self) -> Mapping[str, StemClicks]:
        """The clicks by full stem, stems sorted; of one dataset only, since GrabCut and Berkeley share stems.

        Several spellings of one dataset count as one; the clicks have the first spelling of their stem.
        """
        names = self.datasets()
        if len(set(map(normalize_dataset_name, names))) > 1:
            remedy = "choose one with for_dataset first: datasets share stems"
            raise OptionError(f"clicks of {len(names)} datasets ({', '.join(names[:5])}) by stem", remedy=remedy)
        same = [name for name in COLUMNS if name not in ("x", "y", "device", "model_type", "dataset")]
        grouped = self.frame.group_by(same, maintain_order=True).agg(pl.col("dataset").first(), "x", "y", "device")
        found = {}
        for image, number, click_type, stem, *size, dataset, x, y, devices in grouped.sort("full_stem").iter_rows():
            points = np.array([x, y], np.float64).T.copy()
            width, height = size
            on = np.array(devices, np.str_)
            found[stem] = StemClicks(dataset, stem, image, number, click_type, (width, height), points, on)
        return found


@dataclass(frozen=True, eq=False)
class StemClicks:
    """Clicks on one full stem, as in the file: `points` (n, 2) x, y on an image of `size` (w, h), `devices` (n,)."""

    dataset: str
    full_stem: str
    image_stem: str
    object_stem: str
    click_type: str
    size: tuple[int, int]
    points: NDArray[np.float64]
    devices: NDArray[np.str_]


def check_clicks(frame: pl.DataFrame, *, file: Path | str | None = None) -> ClickTable:
    """A table of clicks from a frame with the columns of the file, in any order; errors name `file`."""
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
    _check_values(numbered, given, file)
    # Grouping by the long names once leaves a few thousand rows to check.
    groups = numbered.group_by(*_GROUP).agg(pl.col(_ROW).min()).sort(_ROW)
    spelt = {name: normalize_dataset_name(name) for name in groups["dataset"].unique()}
    groups = groups.with_columns(pl.col("dataset").replace_strict(spelt, return_dtype=pl.String).alias(_DATASET))
    _check_sizes(groups, file)
    _check_stems(groups, file)
    inside = frame.with_columns(
        pl.col("x").clip(0, pl.col("w") - 1), pl.col("y").clip(0, pl.col("h") - 1), pl.col("w", "h").cast(pl.Int64)
    )
    clipped = ((frame["x"] != inside["x"]) | (frame["y"] != inside["y"])).sum()
    # The other columns are determined by these.
    different = frame.n_unique(["full_stem", "dataset", "model_type", "device", "x", "y"])
    return ClickTable(inside, int(clipped), frame.height - different)


def _check_values(rows: pl.DataFrame, given: pl.DataFrame, file: Path | str | None) -> None:
    finite = {name: pl.col(name).is_finite().fill_null(False) for name in NUMBERS}
    for name, right, expected in (
        *((name, finite[name], "a finite number") for name in ("x", "y")),
        *((name, finite[name] & (pl.col(name) >= 1) & (pl.col(name).round() == pl.col(name)), "a whole number above 0")
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
            value = given[name][row - 1]
            what = f"row {row}: expected {name} to be {expected}, got {value!r}"
            if wrong.height > 1:
                what = f"{wrong.height} rows: expected {name} to be {expected}, got {value!r} in row {row}"
            raise DataError(what, file=file, unit=wrong["full_stem"][0], remedy=_REMEDY)


def _check_sizes(groups: pl.DataFrame, file: Path | str | None) -> None:
    same = _first_ambiguous_stem(groups, "w", "h")
    if same.height:
        sizes = ", ".join(f"{w:g}x{h:g} (row {row})" for w, h, row in same.select("w", "h", _ROW).iter_rows())
        what = f"one stem has images of several sizes: {sizes}"
        raise DataError(what, file=file, unit=same["full_stem"][0], remedy=_REMEDY)


def _check_stems(groups: pl.DataFrame, file: Path | str | None) -> None:
    names = ("full_stem", "click_type", "image_stem", "object_stem", "model_type", _ROW)
    for stem, click_type, image, number, model, row in groups.select(names).iter_rows():
        instance = format_instance_stem(image, number)
        try:
            parsed = parse_full_stem(stem, click_type) if click_type != "first" else None
        except DataError as error:
            raise DataError(f"row {row}: {error.what}", file=file, unit=stem, remedy=error.remedy) from error
        if (format_instance_stem(parsed.image, parsed.object) if parsed else stem) == instance:
            continue
        # The method's name has underscores, unless the row's own method shows that the image's name has them.
        if parsed and parsed.method != model and parse_later_stem(stem, instance):
            continue
        what = f"row {row}: the full stem does not belong to the image {image!r} and the object {number!r}"
        raise DataError(what, file=file, unit=stem, remedy=_REMEDY)
    same = _first_ambiguous_stem(groups, "image_stem", "object_stem", "click_type")
    if same.height:
        rows = ", ".join(map(str, same[_ROW]))
        what = f"one full stem for several images, objects or click types (rows {rows})"
        raise DataError(what, file=file, unit=same["full_stem"][0], remedy=_REMEDY)


def _first_ambiguous_stem(groups: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """The groups of the first full stem of a dataset for which the columns have several values."""
    of_stem = (_DATASET, "full_stem")
    twice = groups.filter(pl.struct(columns).n_unique().over(of_stem) > 1)
    return twice.filter(pl.all_horizontal(pl.col(name) == pl.col(name).first() for name in of_stem))
