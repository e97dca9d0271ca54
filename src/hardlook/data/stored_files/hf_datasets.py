"""Hugging Face datasets on disk: folders of `save_to_disk`, the cache's Arrow files, and Parquet files of the hub.

The files are read with pyarrow (extra `datasets`); the package datasets is not needed. Columns are recognised by their
features: images and label maps are of the feature Image, which is stored as `bytes` and `path`; objects are a list of
structures, or a structure of lists, with boxes; labels are of the feature ClassLabel, or text. Names of classes are in
the metadata of the files. Arrow files are mapped into memory and read in place; of a Parquet file one row group at a
time is in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any

from hardlook.data.stored_files import read_stored_size
from hardlook.data.stored_files.columns import choose_column, find_column, read_box_format
from hardlook.data.stored_files.hf_cache import find_dataset
from hardlook.data.stored_files.samples import (
    ANY_CONTEXT,
    BOX_WORDS,
    CATEGORY_WORDS,
    CROWD_WORDS,
    MASK_WORDS,
    LabelledSample,
    MapSample,
    ObjectRows,
    ObjectSamples,
    take_names,
)
from hardlook.errors import DataError, OptionError, shorten
from hardlook.extras import require
from hardlook.reading import parse_json, read_json, reading

EXTRA = "datasets"
_IMAGE_WORDS = ("image", "img", "jpg", "pixel_values", "input")
_MAP_WORDS = ("mask", "seg", "segmentation", "semantic", "semantic_mask", "segmentation_mask", "annotation", "label")
_OBJECT_WORDS = ("objects", "object", "annotations", "instances", "detections")
_LABEL_WORDS = ("label", "labels", "class", "category", "concept", "target", "fine_label")
_CONTEXT_WORDS = ("context", "contexts", "domain", "environment", "background", "place", "style")
_REMEDY = "give a folder of save_to_disk, a folder of the datasets cache, or Parquet files, with an image and a mask"
_DAMAGED = "not an Arrow or Parquet file that can be read"
_OPEN_TABLES, _OPEN_GROUPS = 16, 2  # per process
_State = tuple[int, int, int]
_PART = re.compile(r"-(\d+)-of-(\d+)(-[0-9a-f]+)?$")
_MAX_DEPTH = 8  # of nested features


@dataclass(frozen=True)
class TableCell:
    """A cell of the feature Image: its file, the number of its row there, and its column."""

    table: Path
    row: int
    column: str

    @property
    def path(self) -> Path:
        """The path by which errors and records name the cell."""
        return self.table / f"row-{self.row:06d}" / f"{self.column}.png"

    def read_bytes(self) -> bytes:
        """The content; a `DataError` where the cell has none, as where the dataset names files elsewhere."""
        with reading(self.table, _DAMAGED, remedy=_REMEDY):
            value = _read_cell(self.table, self.row, self.column)
            data = value["bytes"] if value else None
        if not data:
            where = f": it names the file {value['path']}" if value and value["path"] else ""
            remedy = "save the dataset with save_to_disk, which stores the images themselves"
            raise DataError(f"the cell has no bytes{where}", file=self.path, remedy=remedy)
        return bytes(data)


def read_samples(path: Path, split: str, columns: Mapping[str, str] | None = None) -> list[MapSample]:
    """The rows of a dataset with label maps, in order.

    Ids are the stems of the images' names where these differ, else row numbers. `columns` names columns by what they
    hold (`hardlook.data.stored_files.columns`).
    """
    cells: list[tuple[TableCell, TableCell]] = []
    paths: list[str | None] = []
    for file in _find_files(path, split):
        with reading(file, _DAMAGED, remedy=_REMEDY):
            image, mask = _find_map_columns(file, columns or {})
            stored = _read_names(file, image)
        cells += [(TableCell(file, row, image), TableCell(file, row, mask)) for row in range(len(stored))]
        paths += stored
    names = _name_rows(path, paths)
    return [MapSample(name, image, mask) for name, (image, mask) in zip(names, cells, strict=True)]


def read_objects(path: Path, split: str | None, columns: Mapping[str, str] | None = None) -> ObjectSamples:
    """The images of a dataset with the boxes, categories and, where they are there, masks of their objects.

    Boxes are x, y, width, height in pixels, as the hub's datasets have them. Sizes come from columns `width` and
    `height`, else from the images; ids of images from a column `image_id`, else they are numbers from 1.
    """
    columns = columns or {}
    files = _find_files(path, _choose_split(path, split))
    tables = []
    for file in files:
        with reading(file, _DAMAGED, remedy=_REMEDY):
            tables.append(_ObjectTable.open(file, columns))
    names = _name_rows(path, [one for table in tables for one in table.names])
    image_ids = [i for table in tables for i in table.read_ids()]
    if not all(isinstance(i, int) for i in image_ids) or len(set(image_ids)) < len(image_ids):
        image_ids = list(range(1, len(names) + 1))
    rows = ObjectRows(path, tables[0].classes if tables else None, read_box_format(columns))
    numbered = iter(zip(names, image_ids, strict=True))
    for table in tables:
        if table.classes != tables[0].classes:
            what = "the files of the dataset name different categories"
            raise DataError(what, file=table.file, remedy="save the dataset again, as one")
        with reading(table.file, _DAMAGED, remedy=_REMEDY):
            for row, (size, objects) in enumerate(table.iterate_rows()):
                name, i = next(numbered)
                cell = TableCell(table.file, row, table.image)
                rows.add_image(name, size or read_stored_size(cell), cell, i)
                for one in objects:
                    rows.add_object(**one)
    return rows.build()


def read_labelled(path: Path, split: str | None, columns: Mapping[str, str] | None = None) -> list[LabelledSample]:
    """The images of a dataset with their labels and, where a column has them, contexts; of all splits without one."""
    columns = columns or {}
    found: list[tuple[TableCell, str, str, str | None]] = []
    paths: list[str | None] = []
    for name, files in list_splits(path).items() if split is None else ((split, _find_files(path, split)),):
        for file in files:
            with reading(file, _DAMAGED, remedy=_REMEDY):
                image, labels, contexts = _read_label_columns(file, columns)
                stored = _read_names(file, image)
                rows = zip(labels, contexts or [ANY_CONTEXT] * len(labels), strict=True)
                found += [
                    (TableCell(file, row, image), label, context, name or None)
                    for row, (label, context) in enumerate(rows)
                ]
            paths += stored
    names = _name_rows(path, paths)
    return [LabelledSample(name, *one) for name, one in zip(names, found, strict=True)]


def list_files(path: Path, split: str | None) -> dict[str, Path]:
    """The files of a split by name, for fingerprints; those of all splits without one."""
    if split is not None:
        return {file.name: file for file in _find_files(path, split)}
    splits = list_splits(path)
    return {f"{name} {file.name}".strip(): file for name, files in splits.items() for file in files}


def list_splits(path: Path) -> dict[str, list[Path]]:
    """The files of every split; a dataset without splits has one, which is called ''."""
    path = find_dataset(path)
    if path.is_file():
        return {"": [path]}
    if (path / "dataset_dict.json").is_file():
        return {split: _find_files(path, split) for split in _read_split_names(path)}
    if (path / "state.json").is_file():
        return {"": _find_files(path, "")}
    splits: dict[str, list[Path]] = {}
    for file in _list_tables(path):
        splits.setdefault(_PART.sub("", file.stem).rpartition("-")[2], []).append(file)
    if not splits:
        raise _missing_files(path, "no files of a dataset")
    for files in splits.values():
        _check_parts(files)
    return splits


def _choose_split(path: Path, split: str | None) -> str:
    """The split that is asked for, or the only one."""
    if split is not None:
        return split
    splits = list_splits(path)
    if len(splits) > 1:
        raise OptionError(f"the dataset has {len(splits)} splits", remedy=f"give --split {' or '.join(splits)}")
    return next(iter(splits))


def _find_files(path: Path, split: str) -> list[Path]:
    """The Arrow or Parquet files of a split; a `DataError` lists what is there."""
    path = find_dataset(path)
    if path.is_file():
        return [path]
    words = {"val": ("val", "validation"), "train": ("train", "training")}.get(split, (split,))
    if (path / "dataset_dict.json").is_file():
        splits = _read_split_names(path)
        chosen = next((word for word in words if word in splits), None)
        # Only names below the folder count: a path elsewhere would be none of this dataset.
        if chosen is None or PurePosixPath(chosen).name != chosen or not (path / chosen).is_dir():
            raise OptionError(f"the dataset has no split {split!r}", remedy=f"give --split {' or '.join(splits)}")
        path = path / chosen
    if (path / "state.json").is_file():
        state = read_json(path / "state.json", what="not the state of a saved dataset")
        with reading(path / "state.json", "not the state of a saved dataset"):
            if state.get("_indices_data_files"):
                raise DataError("the dataset is a selection of rows", remedy="save it again after flatten_indices()")
            # Only the name counts: a path elsewhere would be none of this dataset.
            return [path / PurePosixPath(str(row["filename"])).name for row in state["_data_files"]]
    parts = {file: file.stem.split("-") for file in _list_tables(path)}
    files = [file for file, words_of_name in parts.items() if set(words) & set(words_of_name)]
    if files:
        _check_parts(files)
        return files
    raise _missing_files(path, f"no files of a dataset with the split {split!r}")


def _check_parts(files: Sequence[Path]) -> None:
    """Raise an error where parts of a split are missing, or there twice, by the numbers in their names."""
    parts: dict[Path, list[tuple[int, int]]] = {}
    for file in files:
        if found := _PART.search(file.stem):
            whole = file.with_name(file.stem[: found.start()])
            parts.setdefault(whole, []).append((int(found[1]), int(found[2])))
    for whole, numbers in parts.items():
        count = max(total for _, total in numbers)
        if sorted(numbers) != [(number, count) for number in range(count)]:
            listed = ", ".join(f"{number:05d}-of-{total:05d}" for number, total in sorted(numbers)[:12])
            what = f"the parts of {whole.name} are not complete, or of two versions: {listed}"
            raise DataError(what, file=whole.parent, remedy="download the dataset again, into an empty folder")


def _list_tables(path: Path) -> list[Path]:
    found = (*path.glob("*"), *path.glob("data/*"))
    # What `map` and `filter` leave in the cache belongs to no split.
    return sorted(one for one in found if one.suffix in (".arrow", ".parquet") and not one.name.startswith("cache-"))


def _missing_files(path: Path, what: str) -> DataError:
    listed = ", ".join(sorted(one.name for one in path.iterdir())[:12]) or "nothing"
    return DataError(f"{what}; found {listed}", file=path, remedy=_REMEDY)


def _read_split_names(path: Path) -> list[str]:
    content = read_json(path / "dataset_dict.json", what="not a list of splits")
    with reading(path / "dataset_dict.json", "not a list of splits"):
        return [str(one) for one in content["splits"]]


def _name_rows(path: Path, paths: Sequence[str | None]) -> list[str]:
    """The ids of rows, by what their cells name as files; a `DataError` where there are no rows."""
    if not paths:
        raise DataError("the dataset has no rows", file=path, remedy=_REMEDY)
    return take_names(paths) or [f"row-{number:06d}" for number in range(len(paths))]


def _find_map_columns(file: Path, given: Mapping[str, str]) -> tuple[str, str]:
    """The columns of image and label map, by their names among the columns that hold files."""
    present = _describe_columns(file)
    columns = {name: kind for name, kind in present.items() if kind == "image"}
    images = [given["image"]] if "image" in given else [name for name in columns if name.lower() in _IMAGE_WORDS]
    masks = [given["mask"]] if "mask" in given else [name for name in columns if name.lower() in _MAP_WORDS]
    if len(columns) == 2 and len(images) + len(masks) == 1:  # The other one is what is left.
        images, masks = (
            images or [c for c in columns if c not in masks],
            masks or [c for c in columns if c not in images],
        )
    if len(images) == 1 and len(masks) == 1 and {*images, *masks} <= set(columns):
        return images[0], masks[0]
    what = f"no two columns are the image and its label map; columns with files are {', '.join(columns) or 'none'}"
    others = ", ".join(name for name in present if name not in columns)
    remedy = "pass --columns image=NAME,mask=NAME, or call them image and mask: dataset.rename_column(...)"
    raise DataError(what + (f"; others are {shorten(others)}" if others else ""), file=file, remedy=remedy)


def _find_image_column(file: Path, columns: Mapping[str, str]) -> str:
    present = _describe_columns(file)
    images = {name: kind for name, kind in present.items() if kind == "image"}
    return choose_column("image", images, _IMAGE_WORDS, columns, file=file, present=present)


def _read_label_columns(file: Path, columns: Mapping[str, str]) -> tuple[str, list[str], list[str] | None]:
    """The column of the image, and the labels and contexts of all rows; None where no column has contexts."""
    image, present = _find_image_column(file, columns), _describe_columns(file)
    texts = {name: kind for name, kind in present.items() if kind in ("number", "text", "class label")}
    label = choose_column("label", texts, _LABEL_WORDS, columns, file=file, present=present)
    rest = {name: kind for name, kind in texts.items() if name != label}
    context = find_column("context", rest, _CONTEXT_WORDS, columns, file=file, present=present, only=False)
    names = (label,) if context is None else (label, context)
    rows = list(_iterate_rows(file, names))
    found: list[list[str]] = []
    for name in names:
        classes = _read_class_names(file, name)
        values = [_name_class(row[name], classes, number) for number, row in enumerate(rows)]
        found.append(values)
    return image, found[0], found[1] if len(found) > 1 else None


def _name_class(value: Any, classes: Sequence[str] | None, row: int) -> str:
    if isinstance(value, int) and classes is not None:
        if 0 <= value < len(classes):
            return classes[value]
        what = f"the class {value} is none of the {len(classes)} of the feature"
        raise DataError(what, unit=f"row {row}", remedy="leave out rows without a label")
    if value is None or value == "":
        raise DataError("a row has no label", unit=f"row {row}", remedy="leave out rows without a label")
    return str(value)


@dataclass(frozen=True)
class _ObjectTable:
    """The columns of a file with objects; `fields` by what they hold: bbox, category, segmentation, area, crowd."""

    file: Path
    image: str
    objects: str
    fields: Mapping[str, str]
    sized: bool
    names: Sequence[str | None]
    ids: str | None
    classes: tuple[str, ...] | None

    @classmethod
    def open(cls, file: Path, columns: Mapping[str, str]) -> _ObjectTable:
        image, present = _find_image_column(file, columns), _describe_columns(file)
        candidates = {name: kind for name, kind in present.items() if kind == "objects"}
        objects = choose_column("objects", candidates, _OBJECT_WORDS, columns, file=file, present=present)
        inside = dict.fromkeys(_list_fields(_read_schema(file).field(objects).type), f"in {objects}")
        fields = {"category": choose_column("category", inside, CATEGORY_WORDS, columns, file=file, present=inside)}
        words = {"bbox": BOX_WORDS, "segmentation": MASK_WORDS, "area": ("area", "areas"), "crowd": CROWD_WORDS}
        for key, usual in words.items():
            if name := find_column(key, inside, usual, columns, file=file, present=inside, only=False):
                fields[key] = name
        if "bbox" not in fields and "segmentation" not in fields:
            what = f"the objects have neither boxes nor masks; their fields are {', '.join(inside)}"
            raise DataError(what, file=file, remedy="pass --columns bbox=NAME or segmentation=NAME")
        sized = all(present.get(name) == "number" for name in ("width", "height"))
        ids = "image_id" if present.get("image_id") == "number" else None
        classes = _read_class_names(file, objects, fields["category"])
        named = tuple(classes) if classes is not None else None
        return cls(file, image, objects, fields, sized, _read_names(file, image), ids, named)

    def read_ids(self) -> list[int | None]:
        if self.ids is None:
            return [None] * len(self.names)
        return [row[self.ids] for row in _iterate_rows(self.file, (self.ids,))]

    def iterate_rows(self) -> Iterator[tuple[tuple[int, int] | None, list[dict[str, Any]]]]:
        """Of each row width and height, where columns have them, and its objects as `ObjectRows.add_object` takes."""
        sides = ("width", "height") if self.sized else ()
        for number, row in enumerate(_iterate_rows(self.file, (self.objects, *sides))):
            size = (row["width"], row["height"]) if self.sized and row["width"] and row["height"] else None
            value = row[self.objects]
            if isinstance(value, Mapping):  # a structure of lists, one entry for each object
                lists = {key: value[name] or [] for key, name in self.fields.items()}
                if len({len(one) for one in lists.values()}) > 1:
                    what = f"the lists of {self.objects} have different lengths"
                    raise DataError(what, unit=f"row {number}", remedy="store one entry for each object")
                objects = [dict(zip(lists, entry, strict=True)) for entry in zip(*lists.values(), strict=True)]
            else:
                objects = [{key: one[name] for key, name in self.fields.items()} for one in value or ()]
            yield size, objects


def _describe_columns(file: Path) -> dict[str, str]:
    """Every column and its kind: image, objects, class label, number, text, or its type."""
    types = require("pyarrow.types", extra=EXTRA)
    described = {}
    for column in _read_schema(file):
        kind = column.type
        if _is_file_type(kind):
            described[column.name] = "image"
        elif _list_fields(kind):
            described[column.name] = "objects"
        elif types.is_integer(kind):
            described[column.name] = "class label" if _read_class_names(file, column.name) else "number"
        elif types.is_string(kind) or types.is_large_string(kind):
            described[column.name] = "text"
        else:
            described[column.name] = str(kind)
    return described


def _list_fields(kind: Any) -> list[str]:
    """The fields of a list of structures or of a structure of lists; none for another type."""
    types = require("pyarrow.types", extra=EXTRA)

    def is_list(one: Any) -> bool:
        return bool(types.is_list(one) or types.is_large_list(one) or types.is_fixed_size_list(one))

    inner = kind.value_type if is_list(kind) else kind
    if not types.is_struct(inner) or _is_file_type(inner):
        return []
    fields = [inner.field(place) for place in range(inner.num_fields)]
    return [one.name for one in fields if is_list(kind) or is_list(one.type)]


def _is_file_type(kind: Any) -> bool:
    types = require("pyarrow.types", extra=EXTRA)
    if not types.is_struct(kind):
        return False
    return {kind.field(i).name for i in range(kind.num_fields)} >= {"bytes", "path"}


def _read_class_names(file: Path, column: str, inner: str | None = None) -> list[str] | None:
    """The names of a ClassLabel, of a column or of a field in it; None where it is none, or has no names."""
    feature: Any = _read_features(file).get(column)
    if inner is not None:
        feature = _find_key(feature, inner)
    names = _find_key(feature, "names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return names or None


def _find_key(feature: Any, key: str, depth: int = 0) -> Any:
    """The value of a key in nested features, which are dictionaries and lists; None where it is not there."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(feature, Mapping) and key in feature:
        return feature[key]
    inside = feature.values() if isinstance(feature, Mapping) else feature if isinstance(feature, list) else ()
    found = (_find_key(one, key, depth + 1) for one in inside)
    return next((one for one in found if one is not None), None)


def _read_features(file: Path) -> Mapping[str, Any]:
    """The features that the metadata of a file, or the dataset_info.json beside it, describe."""
    described = (_read_schema(file).metadata or {}).get(b"huggingface")
    content: Any = parse_json(described) if described else None
    features = content.get("info", {}).get("features") if isinstance(content, dict) else None
    beside = file.parent / "dataset_info.json"
    if not isinstance(features, dict) and beside.is_file():
        stored = read_json(beside, what="not the description of a dataset")
        features = stored.get("features") if isinstance(stored, dict) else None
    return features if isinstance(features, dict) else {}


def _read_schema(file: Path) -> Any:
    if file.suffix == ".parquet":
        return _open_parquet(file).schema_arrow
    return _open_arrow(file, _read_state(file)).schema


def _iterate_rows(file: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a file with these columns; a `DataError` where these are not all of its rows."""
    chosen, count = list(columns), 0
    if file.suffix == ".parquet":
        batches = _open_parquet(file).iter_batches(batch_size=1000, columns=chosen)
    else:
        batches = _open_arrow(file, _read_state(file)).select(chosen).to_batches(max_chunksize=1000)
    for batch in batches:
        count += batch.num_rows
        yield from batch.to_pylist()
    _check_count(file, ", ".join(columns), count)


def _check_count(file: Path, columns: str, count: int) -> None:
    """Raise an error where columns are shorter than their file: rows would be matched with those of others."""
    state = _read_state(file)
    rows = (_read_metadata if file.suffix == ".parquet" else _open_arrow)(file, state).num_rows
    if count != rows:
        raise DataError(f"{columns}: {count} of {rows} rows are there", file=file, remedy="copy the file again")


def _read_names(file: Path, column: str) -> Sequence[str | None]:
    """What the cells of a column name as their files."""
    if file.suffix == ".parquet":
        table = _open_parquet(file).read(columns=[f"{column}.path"])
        _check_count(file, column, table.num_rows)
        return [(value or {}).get("path") for value in table.column(column).to_pylist()]
    paths: list[str | None] = []
    for chunk in _open_arrow(file, _read_state(file)).column(column).chunks:
        whole = not chunk.null_count
        paths += chunk.field("path").to_pylist() if whole else [(v or {}).get("path") for v in chunk.to_pylist()]
    return paths


def _read_cell(file: Path, row: int, column: str) -> Any:
    if file.suffix != ".parquet":
        return _open_arrow(file, _read_state(file)).column(column)[row].as_py()
    start, state = 0, _read_state(file)
    metadata = _read_metadata(file, state)
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if row < start + rows:
            with _GROUPS_LOCK:
                rows_of_group = _read_group(file, group, state)
            return rows_of_group.column(column)[row - start].as_py()
        start += rows
    raise DataError(f"the file has no row {row}", file=file, remedy="copy it again")


def _read_state(file: Path) -> _State:
    """Which file it is: one that is written again under its name is opened again."""
    state = file.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns


@lru_cache(_OPEN_TABLES)
def _open_arrow(file: Path, state: _State) -> Any:
    """The table of an Arrow stream, mapped into memory; its offsets are checked, which a damaged file makes leap."""
    arrow, ipc = require("pyarrow", extra=EXTRA), require("pyarrow.ipc", extra=EXTRA)
    source = arrow.memory_map(str(file))
    try:
        table = ipc.open_stream(source).read_all()
    except arrow.ArrowInvalid:
        table = ipc.open_file(source).read_all()
    table.validate(full=True)
    return table


@lru_cache(_OPEN_TABLES)
def _read_metadata(file: Path, state: _State) -> Any:
    return require("pyarrow.parquet", extra=EXTRA).read_metadata(str(file), memory_map=True)


def _open_parquet(file: Path) -> Any:
    """A reader for one call: Arrow's ends the process where two threads use it at the same time."""
    metadata = _read_metadata(file, _read_state(file))
    return require("pyarrow.parquet", extra=EXTRA).ParquetFile(str(file), memory_map=True, metadata=metadata)


# Threads that want the same group wait for the one that reads it.
_GROUPS_LOCK = Lock()


@lru_cache(_OPEN_GROUPS)
def _read_group(file: Path, group: int, state: _State) -> Any:
    return _open_parquet(file).read_row_group(group)
