"""A dataset of class folders: `class/image`, or `class/.../image`; masks beside it under the same names.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> (folder / "cat").mkdir()
>>> _ = (folder / "cat" / "a.jpg").write_bytes(b"")
>>> read_class_folders(folder)
{'cat': ('cat/a.jpg',)}
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import is_image_name, read_image
from hardlook.errors import DataError


def read_class_folders(root: Path) -> dict[str, tuple[str, ...]]:
    """Class to the names of its images, relative to `root` (posix, sorted); hidden files do not count."""
    if not root.is_dir():
        raise DataError("no such folder", file=root, remedy="give the folder that holds one folder a class")
    found: dict[str, tuple[str, ...]] = {}
    for folder in sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")):
        names = sorted(
            path.relative_to(root).as_posix()
            for path in folder.rglob("*")
            if is_image_name(path) and not path.name.startswith(".")
        )
        if names:
            found[folder.name] = tuple(names)
    if not found:
        raise DataError("no class folder with images here", file=root, remedy="lay images out as class/image")
    return found


def mask_path(masks: Path, name: str) -> Path | None:
    """The mask of the image `class/stem.*`: `class/stem.png` under `masks`, or None.

    >>> mask_path(Path("nowhere"), "cat/a.jpg") is None
    True
    """
    path = (masks / name).with_suffix(".png")
    return path if path.is_file() else None


def read_mask(path: Path) -> NDArray[np.bool_]:
    """(H, W) bool: where the mask's picture is not black."""
    return np.asarray(read_image(path).max(axis=2) > 0)
