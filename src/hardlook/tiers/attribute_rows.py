"""The attributes of masks as a table: one row a class in an image, with the published columns first.

>>> row = AttributeRow("1_a", None, 0.9, 0.25, 0.8, 0.6, 2, 0.0, "cat", "a")
>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "attributes.csv"
>>> write_attributes(path, [row])
>>> read_attributes(path) == (row,)
True
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from hardlook.data.images import read_bytes
from hardlook.errors import DataError

COLUMNS = (
    "filename", "oss_perf", "iou", "area_ratio", "offset_ratio", "saliou", "blob_count", "distractor_weight",
    "class", "image",
)  # fmt: skip
PUBLISHED_COLUMNS = COLUMNS[:8]
# Of the published columns: the lowest and the highest value that can be.
_RANGES = {
    "oss_perf": (0.0, 1.0), "iou": (0.0, 1.0), "area_ratio": (0.0, 1.0), "offset_ratio": (-math.inf, 1.0),
    "saliou": (0.0, 1.0), "blob_count": (0.0, math.inf), "distractor_weight": (0.0, 1.0),
}  # fmt: skip
NUMBERS = tuple(_RANGES)
_REMEDY = "give the attributes.csv of `hardlook attributes`, or a test_stats.csv"


@dataclass(frozen=True)
class AttributeRow:
    """What is known of one mask; None where nothing measured it.

    `filename` is the token. `oss_perf` is a one-shot model's IoU and `iou` a supervised model's, `saliou` the IoU of
    mask and saliency mask, all in [0, 1]. `area_ratio` in [0, 1] is the mask's box against the frame, `offset_ratio`
    at most 1 says how central the box is, `blob_count` counts components and the background, `distractor_weight` in
    [0, 1] is the share of other classes among the pixels of all classes.
    """

    filename: str
    oss_perf: float | None
    iou: float | None
    area_ratio: float | None
    offset_ratio: float | None
    saliou: float | None
    blob_count: int | None
    distractor_weight: float | None
    class_name: str = ""
    image: str = ""


def write_attributes(path: Path, rows: Iterable[AttributeRow]) -> None:
    """Write the whole table; numbers keep all their digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}")
    beside.write_text(_lines([COLUMNS]) + _lines(_cells(row) for row in rows), encoding="utf-8")
    beside.replace(path)


def append_attributes(path: Path, rows: Iterable[AttributeRow]) -> None:
    """Add rows at the end, with the header when the file is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = "" if path.exists() else _lines([COLUMNS])
    with path.open("a", encoding="utf-8", newline="") as stream:
        stream.write(header + _lines(_cells(row) for row in rows))


def read_attributes(
    path: Path,
    *,
    needed: Sequence[str] = PUBLISHED_COLUMNS,
    class_name: Callable[[str], str] = str,
    unfinished: bool = False,
) -> tuple[AttributeRow, ...]:
    """All rows of a table of ours or of the published `test_stats.csv`.

    `needed` columns must be there. An empty cell and a number that is not finite are None. Where the table names no
    class, `class_name` makes one of the number before the token's first underscore. `unfinished` leaves out a last
    line without its end, which a stopped run was writing. A token that comes twice, a number out of its range and a
    cell too many or too few are a `DataError` that names the line.
    """
    text = _text(path)
    reader = csv.reader(io.StringIO(text[: text.rfind("\n") + 1] if unfinished else text, newline=""))
    rows: list[AttributeRow] = []
    lines: dict[str, int] = {}
    try:
        header = [name.strip() for name in next(reader, [])]
        if missing := [name for name in needed if name not in header]:
            raise DataError(
                f"the table lacks {', '.join(missing)}; it has {', '.join(header)}", file=path, remedy=_REMEDY
            )
        for cells in filter(None, reader):
            row = _row(header, cells, class_name)
            if row.filename in lines:
                raise DataError(
                    f"{row.filename} comes twice, first in line {lines[row.filename]}", remedy="keep one of the two"
                )
            lines[row.filename] = reader.line_num
            rows.append(row)
    except csv.Error as error:
        raise DataError(f"this is no table of comma-separated values: {error}", file=path, remedy=_REMEDY) from error
    except DataError as error:
        raise error.at(file=path, unit=f"line {reader.line_num}") from None
    return tuple(rows)


def _text(path: Path) -> str:
    if path.is_dir():
        raise DataError("this is a folder, where a table of attributes is expected", file=path, remedy=_REMEDY)
    if not path.exists():
        raise DataError("the table of attributes does not exist", file=path, remedy="make it by hardlook attributes")
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("this is no text, where a table of attributes is expected", file=path, remedy=_REMEDY) from None


def _row(header: Sequence[str], cells: Sequence[str], class_name: Callable[[str], str]) -> AttributeRow:
    if len(cells) != len(header):
        raise DataError(f"{len(cells)} cells under {len(header)} columns", remedy="write the line again")
    record = dict(zip(header, cells, strict=True))
    token = record["filename"]
    number, _, image = token.partition("_")
    numbers = {name: _number(name, record) for name in NUMBERS}
    blobs = numbers.pop("blob_count")
    return AttributeRow(
        filename=token,
        **numbers,
        blob_count=None if blobs is None else int(blobs),
        class_name=record.get("class") or class_name(number),
        image=record.get("image") or image,
    )


def _number(column: str, record: Mapping[str, str]) -> float | None:
    text = record.get(column, "").strip()
    try:
        value = float(text) if text else math.nan
    except ValueError:
        raise DataError(
            f"{column} is no number: {text!r}", remedy="leave the cell empty where nothing is known"
        ) from None
    if not math.isfinite(value):
        return None
    low, high = _RANGES[column]
    if not low <= value <= high:
        raise DataError(
            f"{column} is {text}, {f'below {low:g}' if value < low else f'above {high:g}'}",
            remedy="numbers are shares in [0, 1], not percent",
        )
    return value


def _cells(row: AttributeRow) -> list[str]:
    return ["" if value is None else repr(value) if isinstance(value, float) else str(value) for value in astuple(row)]


def _lines(rows: Iterable[Sequence[str]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()
