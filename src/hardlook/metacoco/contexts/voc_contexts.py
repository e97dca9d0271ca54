"""VOC's images as a concept x context dataset, with the second largest class of an image as its context.

The concept of an image is the class with most pixels in its mask. Its context is the other class with most pixels, or
`alone` where there is no other. Ties go by the order of classes in the devkit. Void pixels count for no class.

>>> find_concept_and_context(np.array([[0, 8, 8], [8, 15, 255]]), tuple("abcdefghijklmnop"))
('h', 'o')
>>> find_concept_and_context(np.array([[0, 8, 8]]), tuple("abcdefghijklmnop"))
('h', 'alone')
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.data.voc import IGNORE, open_devkit
from hardlook.errors import DataError
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.progress import StartProgress
from hardlook.metacoco.contexts.planting import MANIFEST, write_manifest

ALONE = "alone"


@dataclass(frozen=True)
class Cooccurrence:
    """One image: its id and file in the devkit, its concept and its context."""

    image: str
    path: Path
    concept: str
    context: str

    @property
    def target(self) -> str:
        """Its path in the dataset's folder."""
        return f"{self.concept}/{self.context}/{self.path.name}"


def find_concept_and_context(
    labels: NDArray[np.integer], classes: tuple[str, ...], smallest: float = 0.0
) -> tuple[str, str] | None:
    """Concept and context of a mask (H, W), 0 background, 255 void; None without a class of a share `smallest`."""
    counts = np.bincount(labels.ravel(), minlength=IGNORE + 1)[1 : len(classes) + 1]
    counts = np.where(counts >= smallest * labels.size, counts, 0)
    # Stable and descending: among equals the class that comes first in the devkit goes first.
    order = [int(i) for i in np.argsort(-counts, kind="stable") if counts[i]]
    if not order:
        return None
    return classes[order[0]], classes[order[1]] if len(order) > 1 else ALONE


def list_cooccurrences(
    devkit: Path, *, split: str | None = None, smallest: float = 0.0, progress: StartProgress | None = None
) -> tuple[tuple[Cooccurrence, ...], tuple[str, ...]]:
    """The images of a list (of all lists without `split`), sorted by target, and the ids of those without a class."""
    voc = open_devkit(devkit)
    lists = (split,) if split else voc.splits()
    ids = sorted({name for one in lists for name in voc.ids(one)})
    if ALONE in voc.classes:
        raise DataError(f"a class is named {ALONE!r}", file=devkit, remedy="rename it in classes.txt")
    rows, without_class = [], []
    advance = progress(len(ids), 0) if progress else (lambda units, failed: None)
    for name in ids:
        image = voc.image(name)
        found = find_concept_and_context(image.read_classes(), voc.classes, smallest)
        if found is None:
            without_class.append(name)
        else:
            rows.append(Cooccurrence(name, image.path, *found))
        advance(1, 0)
    if not rows:
        raise DataError("no image has a class", file=devkit, remedy="check the lists, or pass a smaller --smallest")
    return tuple(sorted(rows, key=lambda row: row.target)), tuple(without_class)


def write_cooccurrences(rows: tuple[Cooccurrence, ...], out: Path, files: Literal["copy", "link"] = "copy") -> int:
    """Write `concept/context/image`, as copies or links to the devkit, and the manifest; returns how many are new."""
    wanted = {row.target for row in rows}
    if out.is_dir():
        there = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_symlink() or path.is_file()}
        foreign = {name for name in there if not Path(name).name.startswith(".")} - wanted - {MANIFEST}
        if foreign:
            remedy = "choose another folder, or the settings that it was made with"
            raise DataError(f"the folder holds something else: {min(foreign)}", file=out, remedy=remedy)
    written = 0
    for row in rows:
        path = out / row.target
        if path.is_file():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if files == "link":
            path.unlink(missing_ok=True)  # a link whose target is gone
            path.symlink_to(row.path.resolve())
        else:
            write_atomically(path, row.path.read_bytes())
        written += 1
    listed = ((row.target, row.concept, row.context, row.image) for row in rows)
    write_manifest(out / MANIFEST, ("path", "concept", "context", "image"), listed)
    return written
