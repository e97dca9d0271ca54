"""The attributes of every mask of a source: measured, written as a table, resumed where a run stopped.

A saliency model and a supervised segmenter see each image once, at its own size; their answers are resized to
512 x 512, the size of the published table: saliency by linear interpolation, label maps and masks by nearest neighbour.
Salience is the IoU of the mask with the map above .5. The supervised IoU leaves out the pixels that the truth leaves
open.

The table has one row per class and image, with the published columns first.

>>> row = AttributeRow("1_a", None, 0.9, 0.25, 0.8, 0.6, 2, 0.0, "cat", "a")
>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "attributes.csv"
>>> write_attributes(path, [row])
>>> read_attributes(path) == (row,)
True

Beside `attributes.csv` lies `attributes.json`: which models and data its rows come from, or which finished table. Rows
of the same models and data are not measured again; those of others are.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data.class_masks import ClassMask, ClassMaskSource
from hardlook.data.class_tokens import parse_numbered_token
from hardlook.errors import DataError, HardlookError, ModelError
from hardlook.fingerprints import hash_data
from hardlook.harness.runs.folder import write_atomically
from hardlook.metrics.mask_attributes import SIDE, area_ratio, blob_count, distractor_weight, mask_iou, offset_ratio
from hardlook.models.answer_checks import check_answers
from hardlook.models.roles import Image, LabelMap, SaliencyModel, SemanticSegmenter
from hardlook.reading import read_bytes, read_json, reading
from hardlook.toss.tiers.rules import SALIENT_ABOVE, assign_partition

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
# The measured columns and their displayed names, in the published order.
ATTRIBUTES = {
    "iou": "supervised IoU",
    "area_ratio": "size",
    "offset_ratio": "centredness",
    "saliou": "salience",
    "blob_count": "blobs",
    "distractor_weight": "distractors",
}
_REMEDY = "give the attributes.csv of `hardlook attributes`, or a test_stats.csv"
SCHEMA = "hardlook.attributes/1"
BATCH = 8
VOID = 255

Read = TypeVar("Read")
Result = TypeVar("Result")
Advance = Callable[[int, int], None]
"""Gets the numbers of images done and of those that failed."""


@dataclass(frozen=True)
class AttributeRow:
    """The attributes of one mask; None if not measured.

    `filename` is the token. `oss_perf` is a one-shot model's IoU and `iou` a supervised model's, `saliou` the IoU of
    mask and saliency mask, all in [0, 1]. `area_ratio` in [0, 1] is the mask's box against the frame, `offset_ratio`
    at most 1 says how central the box is, `blob_count` counts components and the background, `distractor_weight` in
    [0, 1] is the share of other classes among the pixels of all classes.
    """

    filename: str
    oss_perf: float | None = None
    iou: float | None = None
    area_ratio: float | None = None
    offset_ratio: float | None = None
    saliou: float | None = None
    blob_count: int | None = None
    distractor_weight: float | None = None
    class_name: str = ""
    image: str = ""


def assign_partitions(rows: Iterable[AttributeRow]) -> dict[str, str]:
    """The partition of each token that has both a supervised IoU and a salience."""
    return {
        row.filename: assign_partition(row.iou, row.saliou)
        for row in rows
        if row.iou is not None and row.saliou is not None
    }


def write_attributes(path: Path, rows: Iterable[AttributeRow]) -> None:
    """Write the whole table; numbers keep all their digits."""
    write_atomically(path, _lines([COLUMNS]) + _lines(_cells(row) for row in rows))


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

    `needed` columns must be there. An empty cell and a number that is not finite are None. If the table names no
    class, `class_name` makes one of the number before the token's first underscore. `unfinished` leaves out a last
    line without its end, which a stopped run was writing. A duplicate token, a number out of its range and a
    cell too many or too few are a `DataError` that names the line.
    """
    text = _read_text(path)
    reader = csv.reader(io.StringIO(text[: text.rfind("\n") + 1] if unfinished else text, newline=""))
    rows: list[AttributeRow] = []
    lines: dict[str, int] = {}
    try:
        with reading(path, "this is not a table of comma-separated values", remedy=_REMEDY):
            header = [name.strip() for name in next(reader, [])]
            if missing := [name for name in needed if name not in header]:
                raise DataError(
                    f"the table lacks {', '.join(missing)}; it has {', '.join(header)}", file=path, remedy=_REMEDY
                )
            for cells in filter(None, reader):
                row = _parse_row(header, cells, class_name)
                if row.filename in lines:
                    raise DataError(
                        f"{row.filename} comes twice, first in line {lines[row.filename]}", remedy="keep one of the two"
                    )
                lines[row.filename] = reader.line_num
                rows.append(row)
    except DataError as error:
        raise error.at(unit=f"line {reader.line_num}") from error
    return tuple(rows)


def _read_text(path: Path) -> str:
    if path.is_dir():
        raise DataError("this is a folder, where a table of attributes is expected", file=path, remedy=_REMEDY)
    if not path.exists():
        raise DataError("the table of attributes does not exist", file=path, remedy="run `hardlook attributes`")
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        what = "this is not text, where a table of attributes is expected"
        raise DataError(what, file=path, remedy=_REMEDY) from None


def _parse_row(header: Sequence[str], cells: Sequence[str], class_name: Callable[[str], str]) -> AttributeRow:
    if len(cells) != len(header):
        raise DataError(f"{len(cells)} cells under {len(header)} columns", remedy="write the line again")
    record = dict(zip(header, cells, strict=True))
    token = record["filename"]
    number, _, image = token.partition("_")
    numbers = {name: _parse_number(name, record) for name in NUMBERS}
    blobs = numbers.pop("blob_count")
    return AttributeRow(
        filename=token,
        **numbers,
        blob_count=None if blobs is None else int(blobs),
        class_name=record.get("class") or class_name(number),
        image=record.get("image") or image,
    )


def _parse_number(column: str, record: Mapping[str, str]) -> float | None:
    text = record.get(column, "").strip()
    try:
        value = float(text) if text else math.nan
    except ValueError:
        raise DataError(
            f"{column} is not a number: {text!r}", remedy="leave the cell empty where nothing is known"
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


@dataclass(frozen=True)
class AttributeModels:
    """The models that measure; None leaves their column empty.

    `labels` gives for a class the supervised model's label index; a class that is not in it has no supervised IoU.
    """

    saliency: SaliencyModel | None = None
    supervised: SemanticSegmenter | None = None
    labels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FailedImage:
    """An image that could not be measured, and why."""

    image: str
    error: str


@dataclass(frozen=True)
class _ReadImage:
    name: str
    tokens: tuple[str, ...]
    image: Image
    masks: tuple[ClassMask, ...]
    classes: LabelMap | None


def process_images(
    names: Iterable[str],
    read: Callable[[str], Read],
    process: Callable[[dict[str, Read]], Result],
    keep: Callable[[Result], None],
    advance: Advance = lambda images, failed: None,
) -> list[FailedImage]:
    """Read and process images a few at a time; those that cannot be read or processed are returned.

    `process` gets the read images of a batch by name, and `keep` its result. If it raises, the images are processed
    one by one, so that one of them does not cost the others.
    """
    failures: list[FailedImage] = []
    waiting = iter(names)
    while batch := list(islice(waiting, BATCH)):
        loaded, failed = {}, []
        for name in batch:
            try:
                loaded[name] = read(name)
            except (HardlookError, OSError) as error:
                failed.append(FailedImage(name, str(error)))
        groups = [loaded] if loaded else []
        while groups:
            group = groups.pop(0)
            try:
                result = process(group)
            except Exception as error:  # a model may raise anything
                if len(group) > 1:
                    groups = [{name: one} for name, one in group.items()]
                else:
                    failed += [FailedImage(name, f"{type(error).__name__}: {error}") for name in group]
            else:
                keep(result)
        failures += failed
        advance(len(batch), len(failed))
    return failures


def measure_attributes(
    source: ClassMaskSource,
    tokens: Iterable[str],
    models: AttributeModels,
    *,
    keep: Callable[[Sequence[AttributeRow]], None],
    advance: Advance = lambda images, failed: None,
) -> list[FailedImage]:
    """Measure the tokens image by image; `keep` gets the rows of each batch; failed images are returned."""
    by_image: dict[str, list[str]] = {}
    for token in tokens:
        by_image.setdefault(source.image_of(token), []).append(token)

    def measure(read: dict[str, _ReadImage]) -> list[AttributeRow]:
        images = [one.image for one in read.values()]
        maps = labelled = [None] * len(images)
        if models.saliency:
            maps = check_answers("saliency", models.saliency, models.saliency.saliency(images), images)
        if models.supervised:
            labelled = check_answers("semantic-segmenter", models.supervised, models.supervised.segment(images), images)
        rows = []
        for one, salient, labels in zip(read.values(), maps, labelled, strict=True):
            rows += _make_rows(source, one, models, salient, labels)
        return rows

    return process_images(by_image, lambda name: _read_masks(source, name, by_image[name]), measure, keep, advance)


def measure_salience(saliency: NDArray[np.float32], mask: NDArray[np.bool_]) -> float:
    """IoU of the mask and the saliency map above .5, at 512 x 512; both (H, W). An empty mask and map have 0.

    >>> measure_salience(np.array([[0.9, 0.1], [0.8, 0.2]], np.float32), np.array([[True, True], [False, False]]))
    0.3333333333333333
    """
    seen = cv2.resize(saliency, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR) > SALIENT_ABOVE
    return _or_zero(mask_iou(np.asarray(seen), _resize_mask(mask)))


def measure_supervised_iou(predicted: NDArray[np.bool_], truth: ClassMask) -> float:
    """IoU of the model's pixels of a class with the truth's at 512 x 512, without those that the truth leaves open.

    >>> truth = ClassMask(np.array([[True, False]]), np.array([[False, True]]))
    >>> measure_supervised_iou(np.array([[True, True]]), truth)
    1.0
    """
    known = ~_resize_mask(truth.void)
    return _or_zero(mask_iou(_resize_mask(predicted) & known, _resize_mask(truth.mask) & known))


def _read_masks(source: ClassMaskSource, name: str, tokens: Sequence[str]) -> _ReadImage:
    image = source.read_image(tokens[0])
    masks = tuple(source.read_mask(token) for token in tokens)
    try:
        classes = source.read_classes(name)
    except DataError:
        classes = None  # FSS-1000 labels one class per image
    return _ReadImage(name, tuple(tokens), image, masks, classes)


def _make_rows(
    source: ClassMaskSource,
    one: _ReadImage,
    models: AttributeModels,
    salient: NDArray[np.float32] | None,
    labels: LabelMap | None,
) -> list[AttributeRow]:
    for what, answer in (("saliency map", salient), ("label map", labels)):
        if answer is not None and answer.shape != one.image.shape[:2]:
            raise ModelError(f"expected a {what} of {one.image.shape[:2]}, got {answer.shape}", unit=one.name)
    rows = []
    for token, truth in zip(one.tokens, one.masks, strict=True):
        name = source.class_of(token)
        index = models.labels.get(name)
        iou = measure_supervised_iou(labels == index, truth) if labels is not None and index is not None else None
        salience = None if salient is None else measure_salience(salient, truth.mask)
        distractors = None
        if one.classes is not None and truth.mask.any():
            # By the token's number: another class may lie in front of any one pixel of the mask.
            distractors = distractor_weight(one.classes, parse_numbered_token(token)[0], void=VOID)
        area, offset, blobs = area_ratio(truth.mask), offset_ratio(truth.mask), blob_count(truth.mask)
        rows.append(AttributeRow(token, None, iou, area, offset, salience, blobs, distractors, name, one.name))
    return rows


def _resize_mask(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    resized = cv2.resize(mask.astype(np.uint8), (SIDE, SIDE), interpolation=cv2.INTER_NEAREST)
    return np.asarray(resized, np.bool_)


def _or_zero(iou: float) -> float:
    return 0.0 if np.isnan(iou) else iou


@dataclass(frozen=True)
class MeasuredTable:
    """The rows in the order of their tokens, the images that failed, and how many rows were there before."""

    rows: tuple[AttributeRow, ...]
    failures: tuple[FailedImage, ...]
    found: int


def fingerprint_data(source: ClassMaskSource, without: Path | None = None) -> dict[str, str]:
    """A fingerprint for each folder and file of the source; `without` is an output folder that lies inside."""
    return {name: hash_data(path, without=without) for name, path in sorted(source.paths().items())}


def measure_table(
    path: Path,
    source: ClassMaskSource,
    tokens: Sequence[str],
    models: AttributeModels,
    identity: Mapping[str, object],
    *,
    progress: Callable[[int, int], Advance] = lambda images, done: lambda more, failed: None,
) -> MeasuredTable:
    """Measure what the table at `path` lacks and write it whole, in the order of `tokens`.

    `identity` is JSON of what the rows depend on: fingerprints of models and data. `progress(images, done)` returns
    the callback that counts images done and failed.
    """
    description, described = path.with_suffix(".json"), {"schema": SCHEMA, **identity}
    known = {row.filename: row for row in _read_matching_rows(path, description, described)}
    wanted = [token for token in tokens if token not in known]
    if not known:
        path.unlink(missing_ok=True)
    _write_description(description, described)
    found = len(tokens) - len(wanted)

    def keep(rows: Sequence[AttributeRow]) -> None:
        known.update({row.filename: row for row in rows})
        append_attributes(path, rows)

    images, waiting = (len({source.image_of(token) for token in some}) for some in (tokens, wanted))
    failures = measure_attributes(source, wanted, models, keep=keep, advance=progress(images, images - waiting))
    rows = tuple(known[token] for token in tokens if token in known)
    write_attributes(path, rows)
    return MeasuredTable(rows, tuple(failures), found)


def copy_table(path: Path, rows: Sequence[AttributeRow], digest: str) -> None:
    """Write rows taken from a finished table with the sha256 `digest`, and the description beside them.

    The description is written first: after a stop between the two the rows match no models and are measured again.
    """
    _write_description(path.with_suffix(".json"), {"schema": SCHEMA, "attributes": digest})
    write_attributes(path, rows)


def is_measured_table(path: Path) -> bool:
    """Whether a description lies beside the table at `path`: this program wrote it."""
    earlier = _read_description(path.with_suffix(".json"))
    return isinstance(earlier, dict) and earlier.get("schema") == SCHEMA


def _write_description(path: Path, described: Mapping[str, object]) -> None:
    write_atomically(path, json.dumps(described, indent=1, sort_keys=True) + "\n")


def _read_description(path: Path) -> object:
    try:
        return read_json(path)
    except DataError:
        return None


def _read_matching_rows(path: Path, description: Path, described: Mapping[str, object]) -> tuple[AttributeRow, ...]:
    if _read_description(description) != json.loads(json.dumps(described)) or not path.is_file():
        return ()
    try:
        rows = read_attributes(path, unfinished=True)
    except DataError:
        return ()  # damaged: measure again
    write_attributes(path, rows)  # a half-written last line goes, so that new rows can follow
    return rows
