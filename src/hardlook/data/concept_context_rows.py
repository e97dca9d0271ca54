"""The images of a concept x context dataset: from folders `[split/]concept/context/image` or from a manifest.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp()) / "cat" / "snow"
>>> folder.mkdir(parents=True)
>>> _ = (folder / "a.jpg").write_bytes(b"")
>>> row = read_rows(folder.parent.parent)[0]
>>> row.concept, row.context, row.split
('cat', 'snow', None)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.context_splits import SPLITS, split_name
from hardlook.data.images import is_image_name, read_image
from hardlook.errors import DataError

MANIFEST = "manifest.csv"
_DEEPEST = 4  # folders below the root; images lie two or three deep, and one more shows that they do not


@dataclass(frozen=True)
class ConceptContextImage:
    """One image: its file, its name within the dataset (posix), what it shows and where."""

    path: Path
    name: str
    concept: str
    context: str
    split: str | None = None

    def read(self) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB."""
        return read_image(self.path)


def read_rows(source: Path | str, *, split: str | None = None) -> tuple[ConceptContextImage, ...]:
    """All images of a folder or manifest (.csv, .parquet), sorted by name; `split` keeps one split's.

    A folder with a `manifest.csv` is read through it. A manifest has the columns path, concept and context, and
    split where there are splits; its paths are relative to its folder.
    """
    source = Path(source)
    if source.is_file():
        rows = _from_manifest(source)
    elif (source / MANIFEST).is_file():
        rows = _from_manifest(source / MANIFEST)
    elif source.is_dir():
        rows = _from_folders(source)
    else:
        raise DataError("no such folder or manifest", file=source, remedy="check the dataset's path")
    if not rows:
        raise DataError(
            "no image here", file=source, remedy="lay images out as [split/]concept/context/image or write a manifest"
        )
    if split is None:
        return rows
    kept = tuple(row for row in rows if row.split == split)
    if not kept:
        known = ", ".join(sorted({row.split or "(none)" for row in rows}))
        raise DataError(f"no image of split {split!r}", file=source, remedy=f"its splits are {known}")
    return kept


def _sorted(rows: Iterable[ConceptContextImage]) -> tuple[ConceptContextImage, ...]:
    # A manifest may list one image under several contexts, so the name alone gives no fixed order.
    return tuple(sorted(rows, key=lambda row: (row.name, row.concept, row.context)))


def _images(root: Path) -> Iterator[tuple[str, ...]]:
    """The parts of every image's path below `root`; links are followed, hidden files and folders are not seen."""
    for folder, inner, names in os.walk(root, followlinks=True):
        below = Path(folder).relative_to(root).parts
        # The bound on depth also ends a link that leads back up.
        inner[:] = sorted(name for name in inner if not name.startswith(".")) if len(below) < _DEEPEST else []
        yield from ((*below, name) for name in names if not name.startswith(".") and is_image_name(Path(name)))


def _from_folders(root: Path) -> tuple[ConceptContextImage, ...]:
    found = list(_images(root))
    depths = {len(parts) - 1 for parts in found}
    if depths - {2, 3} or len(depths) > 1:
        examples = {len(parts): "/".join(parts) for parts in sorted(found, reverse=True)}
        raise DataError(
            "images lie at different or unexpected depths: " + ", ".join(examples[key] for key in sorted(examples)),
            file=root,
            remedy="lay all of them out as concept/context/image or all as split/concept/context/image",
        )
    tops = {parts[0] for parts in found}
    if depths == {2} and len(tops) > 1 and all(split_name(name) in SPLITS for name in tops):
        raise DataError(
            f"the folders {', '.join(sorted(tops))} look like splits, and then no context is left below them",
            file=root,
            remedy="lay images out as split/concept/context/image, or write a manifest that names the contexts",
        )
    return _sorted(
        ConceptContextImage(
            root.joinpath(*parts), "/".join(parts), parts[-3], parts[-2], parts[0] if len(parts) == 4 else None
        )
        for parts in found
    )


def _from_manifest(path: Path) -> tuple[ConceptContextImage, ...]:
    import polars as pl

    if path.suffix.lower() not in (".csv", ".parquet"):
        raise DataError(f"a manifest of type {path.suffix!r}", file=path, remedy="write it as .csv or .parquet")
    try:
        # Everything as text: a context named 2024 or NA must not turn into a number or a gap.
        table = pl.read_parquet(path) if path.suffix.lower() == ".parquet" else pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"the manifest cannot be read: {error}", file=path, remedy="check the file") from error
    missing = {"path", "concept", "context"} - set(table.columns)
    if missing:
        remedy = f"its columns are {', '.join(table.columns)}"
        raise DataError(f"the manifest has no column {', '.join(sorted(missing))}", file=path, remedy=remedy)
    rows = []
    for number, record in enumerate(table.iter_rows(named=True), start=1):
        blank = [name for name in ("path", "concept", "context") if record[name] in (None, "")]
        if blank:
            raise DataError(f"no {blank[0]} given", file=path, unit=f"row {number}", remedy="fill every row")
        split = record.get("split")
        name = str(record["path"])
        rows.append(
            ConceptContextImage(
                path.parent / name, name, str(record["concept"]), str(record["context"]), str(split) if split else None
            )
        )
    return _sorted(rows)
