"""Predictions that lie in a folder as masks, one image a mask, named by instance.

`DIR/METHOD/full_stem.png` holds those of several methods, `DIR/full_stem.png` those of one, which is called as the
folder is. Datasets that share stems may each have a folder of their own below the method's.

>>> import tempfile
>>> import numpy as np
>>> import PIL.Image
>>> folder = Path(tempfile.mkdtemp())
>>> for method in ("ritm", "cdnet_hr"):
...     (folder / method).mkdir()
...     PIL.Image.fromarray(np.array([[255, 0, 255]], np.uint8)).save(folder / method / "cat.png")
>>> frame = np.array([[True, True, False]])
>>> cat = Instance("mine", "cat", np.zeros((1, 3, 3), np.uint8), frame, ~frame & False)
>>> [(one.name, [found.iou for found in one.predictions(cat)]) for one in stored_methods(folder)]
[('cdnet-hr', [0.3333333333333333]), ('ritm', [0.3333333333333333])]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hardlook.clicks.error_regions import Truth, compare
from hardlook.clicks.instance import Instance
from hardlook.collect.study.played_predictions import Prediction, method_name
from hardlook.data.images import is_image_name
from hardlook.data.previous_masks import PreviousMasks
from hardlook.errors import DataError
from hardlook.models.roles import Mask


class StoredMethod:
    """The masks of one method; an instance has one or none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = method_name(folder.resolve().name)
        self._masks = PreviousMasks(folder)

    def predictions(self, instance: Instance) -> Sequence[Prediction]:
        """The one stored mask, compared with the truth; () where there is none."""
        if self._masks.missing([instance.name], instance.dataset):
            return ()
        found = compare(Truth.of(instance.target, instance.ignore), self.mask(instance))
        return (Prediction(found.intersection, found.union, 0),)

    def mask(self, instance: Instance, image: str = "", prediction: Prediction | None = None) -> Mask:
        """The stored mask (H, W), of the image's size."""
        return self._masks.read(instance.name, instance.shape[::-1], instance.dataset)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Where the masks come from, for `made.json`."""
        return {"method": self.name, "folder": self.folder.name}


def stored_methods(folder: Path) -> list[StoredMethod]:
    """The methods of a folder, by name; a folder without any mask is a `DataError`."""
    if not folder.is_dir():
        raise DataError("no such folder of masks or run", file=folder, remedy="check --masks")
    if _holds_images(folder):
        return [StoredMethod(folder)]
    inner = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if runs := [path for path in inner if (path / "run.json").is_file()]:
        remedy = f"give the runs themselves: {' '.join(f'--masks {path}' for path in runs[:3])}"
        raise DataError("a folder of runs, not a run", file=folder, remedy=remedy)
    methods = [StoredMethod(path) for path in inner if _holds_images(path) or _holds_folders(path)]
    if not methods:
        remedy = "give a finished `hardlook run rclicks`, or masks named METHOD/full_stem.png"
        raise DataError("no mask here", file=folder, remedy=remedy)
    return methods


def _holds_images(folder: Path) -> bool:
    return any(is_image_name(path) for path in folder.iterdir())


def _holds_folders(folder: Path) -> bool:
    return any(_holds_images(path) for path in folder.iterdir() if path.is_dir())
