"""Objects as VOC, COCO's instances and COCO's panoptic format store them.

>>> from hardlook.data import rle
>>> encoded = rle.encode(np.array([[True, True, False]]))
>>> dog = CocoObject(Path("dog.jpg"), Path("instances.json"), 1, 3, encoded["counts"], 18)
>>> dog.read_target().mask.tolist()
[[True, True, False]]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data import rle
from hardlook.data.coco_panoptic import decode_ids
from hardlook.data.images import read_image
from hardlook.data.isegm import Target
from hardlook.data.label_maps import read_label_map
from hardlook.data.voc import IGNORE
from hardlook.errors import DataError


@dataclass(frozen=True)
class VocObject:
    """One number of an object map of VOC; the map's 255 is ignored."""

    path: Path
    object_path: Path
    number: int

    def read_target(self, size: tuple[int, int] | None = None) -> Target:
        """The truth (H, W)."""
        labels = read_label_map(self.object_path, size=size)
        return _target(labels == self.number, labels == IGNORE, self.object_path)

    def files(self) -> tuple[Path, ...]:
        """Image and object map."""
        return self.path, self.object_path


@dataclass(frozen=True)
class PanopticThing:
    """One segment of a panoptic PNG; pixels of no segment are ignored, since the truth leaves them open."""

    path: Path
    segments_path: Path
    id: int

    def read_target(self, size: tuple[int, int] | None = None) -> Target:
        """The truth (H, W)."""
        ids = decode_ids(read_image(self.segments_path))
        _refuse_other_size(ids.shape, size, self.segments_path)
        return _target(ids == self.id, ids == 0, self.segments_path)

    def files(self) -> tuple[Path, ...]:
        """Image and PNG."""
        return self.path, self.segments_path


@dataclass(frozen=True)
class CocoObject:
    """One annotation of an instances.json, run-length encoded; nothing is ignored."""

    path: Path
    annotations: Path
    height: int
    width: int
    counts: str
    id: int

    def read_target(self, size: tuple[int, int] | None = None) -> Target:
        """The truth (H, W)."""
        _refuse_other_size((self.height, self.width), size, self.annotations)
        mask = rle.decode({"size": [self.height, self.width], "counts": self.counts})
        return _target(mask, np.zeros(mask.shape, bool), self.annotations)

    def files(self) -> tuple[Path, ...]:
        """Image and annotations."""
        return self.path, self.annotations


def _target(mask: NDArray[np.bool_], ignore: NDArray[np.bool_], path: Path) -> Target:
    if not mask.any():
        raise DataError("the object has no pixels", file=path, remedy="take images and truth of one release")
    return Target(mask, ignore)


def _refuse_other_size(truth: tuple[int, ...], size: tuple[int, int] | None, path: Path) -> None:
    if size is not None and truth != (size[1], size[0]):
        what = f"the truth is {truth[1]}x{truth[0]}, its image {size[0]}x{size[1]}"
        raise DataError(what, file=path, remedy="take images and truth of one release")
