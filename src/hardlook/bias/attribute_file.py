r"""A table of attributes, one row a class and image: the published test_stats.csv, or ours of the same columns.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "attributes.csv"
>>> _ = path.write_text("filename,oss_perf,iou,area_ratio\n15_2007_000032,.6,.8,.1\n")
>>> table = read_attributes(path)
>>> table.row(0, named=True)["class"], table.row(0, named=True)["image"], table.row(0, named=True)["saliou"]
('person', '2007_000032', nan)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.data.images import read_bytes
from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import DataError

if TYPE_CHECKING:
    import polars as pl

NUMBERS = ("oss_perf", "iou", "area_ratio", "offset_ratio", "saliou", "blob_count", "distractor_weight")


def read_attributes(path: Path) -> pl.DataFrame:
    """Columns filename, class, image and the seven numbers (float64; NaN where the file has none).

    Class names come from the column `class`; without one the number before the first underscore of the file name is
    VOC's. A row that comes twice, a number that is none and a file name without a class are errors.
    """
    import polars as pl

    read_bytes(path)
    try:
        raw = pl.read_csv(path, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"not a table of comma-separated values ({error})", file=path) from None
    if "filename" not in raw.columns or not set(NUMBERS) & set(raw.columns):
        raise DataError(
            f"expected the column filename and some of {', '.join(NUMBERS)}; it has {', '.join(raw.columns)}",
            file=path,
            remedy="`hardlook attributes` writes such a file",
        )
    names = raw["filename"].fill_null("")
    doubled = names.filter(names.is_duplicated())
    if len(doubled):
        raise DataError("a file name comes twice", file=path, unit=doubled[0])
    parts = [name.partition("_") for name in names]
    classes = raw["class"].to_list() if "class" in raw.columns else [_voc_name(part[0], path) for part in parts]
    images = raw["image"].to_list() if "image" in raw.columns else [part[2] for part in parts]
    columns = [_numbers(raw, name, path) for name in NUMBERS]
    return pl.DataFrame([names, pl.Series("class", classes), pl.Series("image", images), *columns])


def _voc_name(number: str, path: Path) -> str:
    if not number.isdigit() or not 1 <= int(number) <= len(VOC_CLASSES):
        raise DataError(
            f"a file name starts with {number!r}, which is no class of VOC's twenty",
            file=path,
            remedy="add a column `class` with the names of the classes",
        )
    return VOC_CLASSES[int(number) - 1]


def _numbers(raw: pl.DataFrame, name: str, path: Path) -> pl.Series:
    import polars as pl

    if name not in raw.columns:
        return pl.Series(name, [float("nan")] * len(raw), dtype=pl.Float64)
    texts = raw[name].str.strip_chars()
    numbers = texts.cast(pl.Float64, strict=False)
    broken = raw.filter(numbers.is_null() & texts.is_not_null() & (texts != ""))
    if len(broken):
        raise DataError(f"{name} is no number: {broken[name][0]!r}", file=path, unit=broken["filename"][0])
    return numbers.fill_null(float("nan"))
