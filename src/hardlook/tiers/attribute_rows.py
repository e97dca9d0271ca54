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
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from hardlook.errors import DataError

COLUMNS = (
    "filename", "oss_perf", "iou", "area_ratio", "offset_ratio", "saliou", "blob_count", "distractor_weight",
    "class", "image",
)  # fmt: skip
PUBLISHED_COLUMNS = COLUMNS[:8]


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
    area_ratio: float
    offset_ratio: float
    saliou: float | None
    blob_count: int
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


def read_attributes(path: Path) -> tuple[AttributeRow, ...]:
    """All rows of a table of ours or of the published `test_stats.csv`.

    A last line without its end is one that a stopped run was writing, and does not count.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError("there is no table of attributes", file=path, remedy="make it by hardlook attributes") from None
    lines = text[: text.rfind("\n") + 1].splitlines()
    header = tuple(next(csv.reader(lines[:1]), ()))
    missing = [name for name in PUBLISHED_COLUMNS if name not in header]
    if missing:
        raise DataError(
            f"the table lacks {', '.join(missing)}", file=path, remedy=f"its columns are {', '.join(PUBLISHED_COLUMNS)}"
        )
    rows = []
    for number, record in enumerate(csv.DictReader(lines), start=2):
        try:
            rows.append(_row(record))
        except (TypeError, ValueError) as error:
            raise DataError(
                f"line {number} cannot be read: {error}", file=path, remedy="write the line again"
            ) from error
    return tuple(rows)


def _row(record: dict[str, str | None]) -> AttributeRow:
    token = str(record["filename"])
    return AttributeRow(
        token,
        _number(record["oss_perf"]),
        _number(record["iou"]),
        float(str(record["area_ratio"])),
        float(str(record["offset_ratio"])),
        _number(record["saliou"]),
        int(float(str(record["blob_count"]))),
        _number(record["distractor_weight"]),
        record.get("class") or token.partition("_")[0],
        record.get("image") or token.partition("_")[2],
    )


def _number(text: str | None) -> float | None:
    return float(text) if text else None


def _cells(row: AttributeRow) -> list[str]:
    return ["" if value is None else repr(value) if isinstance(value, float) else str(value) for value in astuple(row)]


def _lines(rows: Iterable[Sequence[str]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()
