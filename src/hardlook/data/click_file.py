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

Clicks of people as a table that has been checked: whole, by round, by dataset, by what was clicked on.

>>> table = ClickTable(pl.DataFrame({
...     "dataset": ["GrabCut"] * 2, "image_stem": ["llama"] * 2, "object_stem": [""] * 2, "model_type": [""] * 2,
...     "click_type": ["first"] * 2, "full_stem": ["llama"] * 2, "device": ["pc", "mobile"],
...     "x": [3.0, 5.0], "y": [4.0, 4.0], "w": [9, 9], "h": [8, 8]}))
>>> clicks = table.for_dataset("grabcut").first().by_full_stem()["llama"]
>>> clicks.points.tolist(), clicks.devices.tolist(), clicks.size
([[3.0, 4.0], [5.0, 4.0]], ['pc', 'mobile'], (9, 8))
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
from hardlook.data.images import read_bytes
from hardlook.errors import DataError, OptionError

TEXTS = ("dataset", "image_stem", "object_stem", "model_type", "click_type", "full_stem", "device")

NUMBERS = ("x", "y", "w", "h")

COLUMNS = TEXTS + NUMBERS


@dataclass(frozen=True, eq=False)
class StemClicks:
    """All clicks on one full stem: `points` (n, 2) float64 as x, y in pixels, `devices` (n,) of str, in file order.

    `size` is the width and height of the image that was clicked on.
    """

    dataset: str
    full_stem: str
    image_stem: str
    object_stem: str
    click_type: str
    size: tuple[int, int]
    points: NDArray[np.float64]
    devices: NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class ClickTable:
    """A checked table with the columns `COLUMNS`, a row a click.

    `clipped` rows lay outside their image and were moved to its edge. `repeated` rows equal an earlier row in every
    column: two people may hit one pixel, so they stay. Both count the whole file, also after rows were chosen.
    """

    frame: pl.DataFrame
    clipped: int = 0
    repeated: int = 0

    def __len__(self) -> int:
        return self.frame.height

    def first(self) -> ClickTable:
        """The clicks of the first round."""
        return self.of_type("first")

    def of_type(self, *click_types: str) -> ClickTable:
        """The clicks of these types: first, fn, fp."""
        return self._where(pl.col("click_type").is_in(click_types))

    def on_device(self, device: str) -> ClickTable:
        """The clicks made on pc or mobile."""
        return self._where(pl.col("device") == device)

    def for_dataset(self, name: str) -> ClickTable:
        """The clicks on a dataset (or in a display mode), however its name is spelt; empty where there are none."""
        spelt = [
            text
            for text in self.frame["dataset"].unique()
            if normalize_dataset_name(text) == normalize_dataset_name(name)
        ]
        return self._where(pl.col("dataset").is_in(spelt))

    def datasets(self) -> tuple[str, ...]:
        """The datasets as the file spells them, sorted."""
        return tuple(sorted(self.frame["dataset"].unique()))

    def counts(self) -> dict[str, dict[str, int]]:
        """Clicks by dataset (as spelt, sorted) and click type."""
        counted = self.frame.group_by("dataset", "click_type").len().sort("dataset", "click_type")
        found: dict[str, dict[str, int]] = {}
        for dataset, click_type, number in counted.iter_rows():
            found.setdefault(dataset, {})[click_type] = number
        return found

    def by_full_stem(self) -> Mapping[str, StemClicks]:
        """The clicks by full stem, stems sorted; of one dataset, since GrabCut and Berkeley share stems.

        Several spellings of one dataset count as one; the clicks carry the first spelling of their stem.
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

    def _where(self, condition: pl.Expr) -> ClickTable:
        return replace(self, frame=self.frame.filter(condition))


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
    spelt = {name: normalize_dataset_name(name) for name in kinds["dataset"].unique()}
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
        instance = format_instance_stem(image, number)
        try:
            parsed = parse_full_stem(stem, click_type) if click_type != "first" else None
        except DataError as error:
            raise DataError(f"row {row}: {error.what}", file=file, unit=stem, remedy=error.remedy) from error
        if (format_instance_stem(parsed.image, parsed.object) if parsed else stem) == instance:
            continue
        # A method with underscores in its name, unless the row's own method says that the image has them.
        if parsed and parsed.method != model and parse_later_stem(stem, instance):
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
