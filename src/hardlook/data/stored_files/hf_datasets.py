"""Hugging Face datasets on disk: folders of `save_to_disk`, the cache's Arrow files, and Parquet files of the hub.

The files are read with pyarrow (extra `datasets`); the package datasets is not needed. Images and label maps are
columns of the feature Image, which are stored as `bytes` and `path`. Arrow files are mapped into memory and read in
place; of a Parquet file one row group at a time is in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from hardlook.errors import DataError, OptionError
from hardlook.extras import require
from hardlook.reading import read_json, reading

EXTRA = "datasets"
_IMAGE_WORDS = ("image", "img", "jpg", "pixel_values", "input")
_MASK_WORDS = ("mask", "seg", "segmentation", "semantic", "semantic_mask", "segmentation_mask", "annotation", "label")
_REMEDY = "give a folder of save_to_disk, a folder of the datasets cache, or Parquet files, with an image and a mask"
_DAMAGED = "not an Arrow or Parquet file that can be read"
_OPEN_TABLES, _OPEN_GROUPS = 16, 2  # per process


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


@dataclass(frozen=True)
class TableSample:
    """A row with its id, its image and its label map."""

    id: str
    image: TableCell
    mask: TableCell


def read_samples(path: Path, split: str) -> list[TableSample]:
    """The rows of a dataset in order; ids are the stems of the images' names where these differ, else row numbers."""
    files = _find_files(path, split)
    cells, names = [], []
    for file in files:
        with reading(file, _DAMAGED, remedy=_REMEDY):
            image, mask = _find_columns(file)
            stored = _read_names(file, image)
        cells += [(TableCell(file, row, image), TableCell(file, row, mask)) for row in range(len(stored))]
        names += [PurePosixPath(str(name or "").replace("\\", "/")).stem for name in stored]
    if not cells:
        raise DataError("the dataset has no rows", file=path, remedy=_REMEDY)
    if not all(names) or len(set(names)) < len(names):
        names = [f"row-{number:06d}" for number in range(len(cells))]
    return [TableSample(name, image, mask) for name, (image, mask) in zip(names, cells, strict=True)]


def list_files(path: Path, split: str) -> dict[str, Path]:
    """The files of a split by name, for fingerprints."""
    return {file.name: file for file in _find_files(path, split)}


def _find_files(path: Path, split: str) -> list[Path]:
    """The Arrow or Parquet files of a split; a `DataError` lists what is there."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError("there is no such file or folder of a dataset", file=path, remedy="check the path")
    words = {"val": ("val", "validation"), "train": ("train", "training")}.get(split, (split,))
    if (path / "dataset_dict.json").is_file():
        content = read_json(path / "dataset_dict.json", what="not a list of splits")
        with reading(path / "dataset_dict.json", "not a list of splits"):
            splits = [str(one) for one in content["splits"]]
        chosen = next((word for word in words if word in splits), None)
        if chosen is None or not (path / chosen).is_dir():
            raise OptionError(f"the dataset has no split {split!r}", remedy=f"give --split {' or '.join(splits)}")
        path = path / chosen
    if (path / "state.json").is_file():
        state = read_json(path / "state.json", what="not the state of a saved dataset")
        with reading(path / "state.json", "not the state of a saved dataset"):
            if state.get("_indices_data_files"):
                raise DataError("the dataset is a selection of rows", remedy="save it again after flatten_indices()")
            # Only the name counts: a path elsewhere would be none of this dataset.
            return [path / PurePosixPath(str(row["filename"])).name for row in state["_data_files"]]
    present = sorted(one for one in (*path.glob("*"), *path.glob("data/*")) if one.suffix in (".arrow", ".parquet"))
    parts = {file: file.stem.split("-") for file in present}
    files = [file for file, words_of_name in parts.items() if set(words) & set(words_of_name)]
    if files:
        return files
    listed = ", ".join(sorted(one.name for one in path.iterdir())[:12]) or "nothing"
    what = f"no files of a dataset with the split {split!r}; found {listed}"
    raise DataError(what, file=path, remedy=_REMEDY)


def _find_columns(file: Path) -> tuple[str, str]:
    """The columns of image and label map, by their names among the columns that hold files."""
    columns = [field.name for field in _read_schema(file) if _is_file_type(field.type)]
    images = [name for name in columns if name.lower() in _IMAGE_WORDS]
    masks = [name for name in columns if name.lower() in _MASK_WORDS]
    if len(columns) == 2 and len(images) + len(masks) == 1:  # The other one is what is left.
        images, masks = (
            images or [c for c in columns if c not in masks],
            masks or [c for c in columns if c not in images],
        )
    if len(images) == 1 and len(masks) == 1:
        return images[0], masks[0]
    what = f"no two columns are the image and its label map; columns with files are {', '.join(columns) or 'none'}"
    raise DataError(what, file=file, remedy="call them image and mask: dataset.rename_column(...)")


def _is_file_type(kind: Any) -> bool:
    types = require("pyarrow.types", extra=EXTRA)
    if not types.is_struct(kind):
        return False
    return {kind.field(i).name for i in range(kind.num_fields)} >= {"bytes", "path"}


def _read_schema(file: Path) -> Any:
    if file.suffix == ".parquet":
        return _open_parquet(file).schema_arrow
    return _open_arrow(file).schema


def _read_names(file: Path, column: str) -> Sequence[str | None]:
    """What the cells of a column name as their files."""
    if file.suffix == ".parquet":
        table = _open_parquet(file).read(columns=[f"{column}.path"])
        return [value["path"] for value in table.column(column).to_pylist()]
    paths: list[str | None] = []
    for chunk in _open_arrow(file).column(column).chunks:
        paths += chunk.field("path").to_pylist() if not chunk.null_count else [(v or {}).get("path") for v in chunk]
    return paths


def _read_cell(file: Path, row: int, column: str) -> Any:
    if file.suffix != ".parquet":
        return _open_arrow(file).column(column)[row].as_py()
    start = 0
    metadata = _open_parquet(file).metadata
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if row < start + rows:
            return _read_group(file, group).column(column)[row - start].as_py()
        start += rows
    raise DataError(f"the file has no row {row}", file=file, remedy="copy it again")


@lru_cache(_OPEN_TABLES)
def _open_arrow(file: Path) -> Any:
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
def _open_parquet(file: Path) -> Any:
    return require("pyarrow.parquet", extra=EXTRA).ParquetFile(str(file), memory_map=True)


@lru_cache(_OPEN_GROUPS)
def _read_group(file: Path, group: int) -> Any:
    return _open_parquet(file).read_row_group(group)
