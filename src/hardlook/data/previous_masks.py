"""Masks that people saw before they clicked on an error, and the errors themselves.

A folder holds single-channel images named by full stem. Datasets that share stems may each have a subfolder:
`DIR/GrabCut/106024_mivos_fn.png` takes precedence over `DIR/106024_mivos_fn.png`.

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
from hardlook.data.images import find_image, find_optional_image
from hardlook.data.label_maps import read_label_map
from hardlook.data.object_instances.instance import MAX_SIDE, limit_mask, limit_size
from hardlook.errors import DataError

Mask = NDArray[np.bool_]


def compute_error_mask(truth: Mask, previous: Mask | None, click_type: str) -> Mask:
    """The region to click on, (H, W) bool: the truth (first), missing pixels (fn) or excess pixels (fp) of `previous`.

    `previous` (H, W) is not used in the first round. The result may be empty.

    >>> compute_error_mask(np.array([[True, True]]), np.array([[True, False]]), "fn").tolist()
    [[False, True]]
    """
    if click_type == "first":
        return truth.copy()
    if previous is None or previous.shape != truth.shape or click_type not in ("fn", "fp"):
        shape = None if previous is None else previous.shape
        remedy = "pass fn or fp"
        raise DataError(f"click type {click_type!r}, previous mask {shape}, truth {truth.shape}", remedy=remedy)
    return truth & ~previous if click_type == "fn" else previous & ~truth


@dataclass(frozen=True)
class PreviousMasks:
    """The masks in a folder, read on demand."""

    folder: Path

    def missing(self, full_stems: Iterable[str], dataset: str = "") -> tuple[str, ...]:
        """The stems that have no mask, in order."""
        present = {path.stem for where in {self._folder_of(dataset), self.folder} for path in where.iterdir()}
        return tuple(stem for stem in full_stems if stem not in present)

    def read(self, full_stem: str, size: tuple[int, int] | None = None, dataset: str = "") -> Mask:
        """The mask (H, W) bool: values above half of the largest; another `size` (width, height) is a `DataError`.

        If `size` is that of an image limited to 2048 pixels, a mask of the stored size is resized to it.
        """
        path = find_optional_image(self._folder_of(dataset), full_stem) or find_image(self.folder, full_stem)
        try:
            stored = read_label_map(path, lossy=True)
        except DataError as error:
            raise error.at(unit=full_stem) from error
        # Works for 0 and 1, for 0 and 255, and for 255 blurred by JPEG.
        mask = np.asarray(2 * stored > max(int(stored.max()), 1))
        had = (mask.shape[1], mask.shape[0])
        if size is not None and max(size) == MAX_SIDE and limit_size(had) == size:
            return limit_mask(mask)
        if size not in (None, had):
            what = f"the previous mask is {had[0]}x{had[1]}, the truth {size[0]}x{size[1]}"
            raise DataError(what, file=path, unit=full_stem, remedy="store masks at the image's own size")
        return mask

    def error(self, full_stem: str, truth: Mask, click_type: str, dataset: str = "") -> Mask:
        """The error (H, W) bool to click on; an empty one is a `DataError`."""
        if click_type == "first":
            return compute_error_mask(truth, None, click_type)
        found = compute_error_mask(truth, self.read(full_stem, (truth.shape[1], truth.shape[0]), dataset), click_type)
        if not found.any():
            what = f"the previous mask has no error of type {click_type}"
            raise DataError(what, file=self.folder, unit=full_stem, remedy="use mask and truth of the same release")
        return found

    def _folder_of(self, dataset: str) -> Path:
        if not self.folder.is_dir():
            raise DataError("no folder of previous masks", file=self.folder, remedy="check --previous-masks")
        return self._subfolders.get(normalize_dataset_name(dataset), self.folder)

    @cached_property
    def _subfolders(self) -> dict[str, Path]:
        return {normalize_dataset_name(path.name): path for path in sorted(self.folder.iterdir()) if path.is_dir()}
