"""Contexts from the company an object keeps: VOC's images as concept and context by what else is in them.

The concept of an image is the class with most pixels in its mask. Its context is the other class with most pixels, or
`alone` where there is no other. Classes that tie go by their order in the devkit. Void pixels count for no class.

>>> concept_and_context(np.array([[0, 8, 8], [8, 15, 255]]), tuple("abcdefghijklmnop"))
('h', 'o')
>>> concept_and_context(np.array([[0, 8, 8]]), tuple("abcdefghijklmnop"))
('h', 'alone')
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.data.voc import IGNORE, open_devkit
from hardlook.errors import DataError
from hardlook.metacoco.contexts.whole_files import write_atomically

ALONE = "alone"

MANIFEST = "manifest.csv"

Moved = Callable[[int, int], None]


@dataclass(frozen=True)
class CooccurrenceRow:
    """One image: its id in the devkit, its file there, what it shows and in whose company."""

    image: str
    path: Path
    concept: str
    context: str

    @property
    def place(self) -> str:
        """Where it goes, relative to the dataset's folder."""
        return f"{self.concept}/{self.context}/{self.path.name}"


def concept_and_context(
    labels: NDArray[np.integer], classes: tuple[str, ...], smallest: float = 0.0
) -> tuple[str, str] | None:
    """The two names for a mask (H, W) of class numbers from 1, 0 background, 255 void; None where no class is.

    A class with less than `smallest` of all the image's pixels does not count.
    """
    counts = np.bincount(labels.ravel(), minlength=IGNORE + 1)[1 : len(classes) + 1]
    counts = np.where(counts >= smallest * labels.size, counts, 0)
    # Stable and descending: among equals the class that comes first in the devkit goes first.
    order = [int(i) for i in np.argsort(-counts, kind="stable") if counts[i]]
    if not order:
        return None
    return classes[order[0]], classes[order[1]] if len(order) > 1 else ALONE


def cooccurrence_rows(
    devkit: Path,
    *,
    split: str | None = None,
    smallest: float = 0.0,
    progress: Callable[[int, int], Moved] | None = None,
) -> tuple[tuple[CooccurrenceRow, ...], tuple[str, ...]]:
    """Rows of all images of a list (of all lists without `split`), sorted by place, and ids of those of no class."""
    voc = open_devkit(devkit)
    lists = (split,) if split else voc.splits()
    ids = sorted({name for one in lists for name in voc.ids(one)})
    if ALONE in voc.classes:
        raise DataError(f"a class is named {ALONE!r}", file=devkit, remedy="rename it in classes.txt")
    rows, of_no_class = [], []
    moved = progress(len(ids), 0) if progress else (lambda units, failed: None)
    for name in ids:
        image = voc.image(name)
        found = concept_and_context(image.read_classes(), voc.classes, smallest)
        if found is None:
            of_no_class.append(name)
        else:
            rows.append(CooccurrenceRow(name, image.path, *found))
        moved(1, 0)
    if not rows:
        raise DataError("no image here holds a class", file=devkit, remedy="check the lists, or give a smaller share")
    return tuple(sorted(rows, key=lambda row: row.place)), tuple(of_no_class)


def write_cooccurrences(rows: tuple[CooccurrenceRow, ...], out: Path, files: Literal["copy", "link"] = "copy") -> int:
    """Write `concept/context/image` and the manifest; returns how many files were not there yet.

    "link" makes symbolic links to the devkit's files: no space, and no dataset once the devkit moves.
    """
    wanted = {row.place for row in rows}
    if out.is_dir():
        there = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_symlink() or path.is_file()}
        foreign = {name for name in there if not Path(name).name.startswith(".")} - wanted - {MANIFEST}
        if foreign:
            remedy = "choose another folder, or the settings that it was made with"
            raise DataError(f"the folder holds something else: {min(foreign)}", file=out, remedy=remedy)
    written = 0
    for row in rows:
        path = out / row.place
        if path.is_file():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if files == "link":
            path.unlink(missing_ok=True)  # a link whose target is gone
            path.symlink_to(row.path.resolve())
        else:
            write_atomically(path, row.path.read_bytes())
        written += 1
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("path", "concept", "context", "image"))
    writer.writerows((row.place, row.concept, row.context, row.image) for row in rows)
    write_atomically(out / MANIFEST, text.getvalue().encode())
    return written
