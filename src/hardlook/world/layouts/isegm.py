"""The world as GrabCut: `data_GT/<id>.png` and `boundary_GT/<id>.png`, one target an image.

255 is the object, 0 the rest, and 128 a band of `BAND` pixels along its outer edge, which is not judged: as in
GrabCut, nobody can say where exactly an outline ends.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> write_isegm(PlantedWorld(seed=0, count=2), folder, "png")
>>> sorted(path.name for path in (folder / "boundary_GT").iterdir())
['000001.png', '000002.png']
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.world.layouts.pictures import save_image, save_labels
from hardlook.world.planted import PlantedWorld

ENTRIES = ("data_GT", "boundary_GT")
BAND = 1
OBJECT, IGNORE = 255, 128


def write_isegm(world: PlantedWorld, directory: Path, image_format: str) -> None:
    """Write all scenes, each with the mask of its subject."""
    for folder in ENTRIES:
        (directory / folder).mkdir()
    for index, rendered in enumerate(world):
        name = f"{index + 1:06d}"
        save_image(directory / "data_GT" / f"{name}.{image_format}", rendered.image)
        save_labels(directory / "boundary_GT" / f"{name}.png", trimap(rendered.target_mask))


def trimap(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Object, ignored band and background (H, W) of a mask."""
    inside = mask.astype(np.uint8)
    grown = cv2.dilate(inside, np.ones((2 * BAND + 1, 2 * BAND + 1), np.uint8))
    return np.where(mask, OBJECT, np.where(grown > 0, IGNORE, 0)).astype(np.uint8)
