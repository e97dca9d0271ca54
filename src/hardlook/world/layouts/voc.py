"""The world as a Pascal VOC devkit.

`JPEGImages/<id>.png`, `SegmentationClass/<id>.png`, `SegmentationObject/<id>.png` (palette PNG), the lists
`ImageSets/Segmentation/{train,val}.txt`, and `classes.txt`, index 1 first. Every fourth scene is validation.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> write_voc(PlantedWorld(seed=0, count=4), folder, "png")
>>> (folder / "ImageSets" / "Segmentation" / "val.txt").read_text().split()
['2026_000004']
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.world.layouts.pictures import save_image, save_labels
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import Rendered
from hardlook.world.vocabulary import BY_NAME, CONCEPTS

ENTRIES = ("JPEGImages", "SegmentationClass", "SegmentationObject", "ImageSets", "classes.txt")
IGNORE = 255


def voc_id(index: int) -> str:
    """The id of scene `index`, as VOC writes them: year and number."""
    return f"2026_{index + 1:06d}"


def write_voc(world: PlantedWorld, directory: Path, image_format: str, *, border: int = 0) -> None:
    """Write all scenes; `border` pixels on either side of objects' edges become 255, as in VOC."""
    lists = directory / "ImageSets" / "Segmentation"
    for folder in (directory / "JPEGImages", directory / "SegmentationClass", directory / "SegmentationObject", lists):
        folder.mkdir(parents=True)
    for index, rendered in enumerate(world):
        name = voc_id(index)
        classes, objects = voc_masks(rendered, border)
        save_image(directory / "JPEGImages" / f"{name}.{image_format}", rendered.image)
        save_labels(directory / "SegmentationClass" / f"{name}.png", classes, colours=True)
        save_labels(directory / "SegmentationObject" / f"{name}.png", objects, colours=True)
    for split, own in (("train", (0, 1, 2)), ("val", (3,))):
        names = [voc_id(index) for index in range(len(world)) if index % 4 in own]
        (lists / f"{split}.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    (directory / "classes.txt").write_text("".join(f"{label.name}\n" for label in CONCEPTS), encoding="utf-8")


def voc_masks(rendered: Rendered, border: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Class indices (concepts 1-12, all else 0) and object numbers (1 and up, back to front), (H, W) uint8 each."""
    codes = np.array([BY_NAME[label.name].code for label in CONCEPTS])
    classes = np.where(np.isin(rendered.classes, codes), rendered.classes, 0).astype(np.uint8)
    objects = np.zeros_like(classes)
    for number, thing in enumerate(rendered.scene.objects, start=1):
        objects[rendered.mask_of(thing)] = number
    if border > 0:
        kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * border + 1, 2 * border + 1))
        edge = cv2.dilate(objects, kernel) != cv2.erode(objects, kernel)
        classes[edge] = objects[edge] = IGNORE
    return classes, objects
