"""The world as FSS-1000: a folder a concept, `<n>.bmp` with the mask `<n>.png`, n from 1 in the order of the scenes.

FSS-1000 gives `.png` to the mask, so the picture is a `.bmp`, which keeps the signature that planted models read; with
"jpg" it is a `.jpg`, as in FSS-1000 itself. The mask is 255 on every visible pixel of the scene's concept. Ten images
a concept, as there, take 120 scenes.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> write_fss(PlantedWorld(seed=0, count=12), folder, "png")
>>> sorted(path.name for path in (folder / "owl").iterdir())
['1.bmp', '1.png']
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from hardlook.world.layouts.pictures import save_image, save_labels
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import CONCEPTS

ENTRIES = tuple(label.name for label in CONCEPTS)
SUFFIXES = {"png": "bmp", "jpg": "jpg"}


def write_fss(world: PlantedWorld, directory: Path, image_format: str) -> None:
    """Write all scenes, each under its concept."""
    numbers: Counter[str] = Counter()
    for index, rendered in enumerate(world):
        concept = world.concept(index)
        numbers[concept] += 1
        folder = directory / concept
        folder.mkdir(exist_ok=True)
        save_image(folder / f"{numbers[concept]}.{SUFFIXES[image_format]}", rendered.image)
        mask = np.where(rendered.class_mask(concept), 255, 0).astype(np.uint8)
        save_labels(folder / f"{numbers[concept]}.png", mask)
