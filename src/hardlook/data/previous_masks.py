"""The masks that people saw before they clicked on an error, and the errors themselves.

A folder holds single-channel images named by full stem. Datasets that share stems may each have a folder of their
own in it: `DIR/GrabCut/106024_mivos_fn.png` goes before `DIR/106024_mivos_fn.png`.

>>> import tempfile
>>> import PIL.Image
>>> folder = Path(tempfile.mkdtemp())
>>> PIL.Image.fromarray(np.array([[255, 255, 0]], np.uint8)).save(folder / "cat_mivos_fp.png")
>>> truth = np.array([[False, True, True]])
>>> PreviousMasks(folder).error("cat_mivos_fp", truth, "fp").tolist()
[[True, False, False]]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.click_names import normalize_dataset_name
from hardlook.data.images import find_image
from hardlook.data.label_maps import read_label_map
from hardlook.data.object_instances.instance import MAX_SIDE, limit_mask, limit_size
from hardlook.errors import DataError

Mask = NDArray[np.bool_]


def compute_error_mask(truth: Mask, previous: Mask | None, click_type: str) -> Mask:
    """What was to be clicked on, (H, W) bool: first: the truth; fn: what `previous` lacks; fp: what it has too much.

    `previous` (H, W) is not looked at in the first round. The result may be empty.

    >>> compute_error_mask(np.array([[True, True]]), np.array([[True, False]]), "fn").tolist()
    [[False, True]]
    """
    if click_type == "first":
        return truth.copy()
    if previous is None or previous.shape != truth.shape or click_type not in ("fn", "fp"):
        came = None if previous is None else previous.shape
        raise DataError(f"click type {click_type!r}, previous mask {came}, truth {truth.shape}", remedy="give fn or fp")
    return truth & ~previous if click_type == "fn" else previous & ~truth


@dataclass(frozen=True)
class PreviousMasks:
    """The masks in a folder, read when asked for."""

    folder: Path

    def missing(self, full_stems: Iterable[str], dataset: str = "") -> tuple[str, ...]:
        """Those of the stems that have no mask, in their order."""
        folder = self._of(dataset)
        there = {path.stem for where in {folder, self.folder} for path in where.iterdir()}
        return tuple(stem for stem in full_stems if stem not in there)

    def read(self, full_stem: str, size: tuple[int, int] | None = None, dataset: str = "") -> Mask:
        """The mask (H, W) bool: values above half of the largest; another `size` (width, height) is a `DataError`.

        Where `size` is that of an image limited to 2048 pixels, a mask of the stored size is made smaller with it.
        """
        own = self._of(dataset)
        try:
            path = find_image(own, full_stem)
        except DataError:
            path = find_image(self.folder, full_stem)
        try:
            stored = read_label_map(path)
        except DataError as error:
            raise error.at(unit=full_stem) from error
        # 0 and 1, 0 and 255, and 255 blurred by JPEG all come out right.
        mask = np.asarray(2 * stored > max(int(stored.max()), 1))
        had = (mask.shape[1], mask.shape[0])
        if size is not None and max(size) == MAX_SIDE and limit_size(had) == size:
            return limit_mask(mask)
        if size not in (None, had):
            what = f"the previous mask is {had[0]}x{had[1]}, the truth {size[0]}x{size[1]}"
            raise DataError(what, file=path, unit=full_stem, remedy="store masks at the image's own size")
        return mask

    def error(self, full_stem: str, truth: Mask, click_type: str, dataset: str = "") -> Mask:
        """The error (H, W) bool that was to be clicked on; an empty one is a `DataError`."""
        if click_type == "first":
            return compute_error_mask(truth, None, click_type)
        found = compute_error_mask(truth, self.read(full_stem, (truth.shape[1], truth.shape[0]), dataset), click_type)
        if not found.any():
            what = f"the previous mask has no error of type {click_type}"
            raise DataError(what, file=self.folder, unit=full_stem, remedy="take mask and truth of one release")
        return found

    def _of(self, dataset: str) -> Path:
        if not self.folder.is_dir():
            raise DataError("no folder of previous masks", file=self.folder, remedy="check --previous-masks")
        return self._own.get(normalize_dataset_name(dataset), self.folder)

    @cached_property
    def _own(self) -> dict[str, Path]:
        return {normalize_dataset_name(path.name): path for path in sorted(self.folder.iterdir()) if path.is_dir()}
