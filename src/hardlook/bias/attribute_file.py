r"""A table of attributes as a frame, one row a class and image: the published test_stats.csv, or ours.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "attributes.csv"
>>> _ = path.write_text("filename,oss_perf,iou,area_ratio\n15_2007_000032,.6,.8,.1\n")
>>> table = attribute_frame(path)
>>> table.row(0, named=True)["class"], table.row(0, named=True)["image"], table.row(0, named=True)["saliou"]
('person', '2007_000032', nan)
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import DataError
from hardlook.tiers.attribute_rows import NUMBERS, read_attributes

if TYPE_CHECKING:
    import polars as pl


def attribute_frame(path: Path) -> pl.DataFrame:
    """Columns filename, class, image and the seven numbers (float64; NaN where the file has none).

    Class names come from the column `class`; without one the number before the first underscore of the file name is
    VOC's. A table without any of the seven numbers is a `DataError`, beside what `tiers.attribute_rows` refuses.
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
