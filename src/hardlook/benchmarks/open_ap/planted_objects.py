"""The objects of a scene of the planted world, as COCO's json would hold them.

>>> from hardlook.world.planted import PlantedWorld
>>> objects = objects_of_scene(PlantedWorld(count=1)[0], 0)
>>> objects.id, int(objects.area.sum()) == int(objects.masks().sum()), CATEGORIES[objects.category_ids[0]]
(1, True, 'owl')
"""

from __future__ import annotations

import numpy as np

from hardlook.data import rle
from hardlook.data.coco_instances import ImageObjects
from hardlook.world.render import Rendered
from hardlook.world.vocabulary import BY_NAME, CONCEPTS

CATEGORIES = {label.code: label.name for label in sorted(CONCEPTS, key=lambda label: label.code)}
MOST_OBJECTS = 1000  # so that annotation ids of different scenes differ


def objects_of_scene(rendered: Rendered, index: int) -> ImageObjects:
    """The visible objects of scene `index`; ids count from 1, as those of the world on disk do."""
    things = rendered.scene.objects
    encoded = tuple(rle.encode(rendered.mask_of(thing)) for thing in things)
    height, width = rendered.classes.shape
    return ImageObjects(
        index + 1, f"scene-{index:04d}", width, height,
        MOST_OBJECTS * index + 1 + np.arange(len(things)),
        np.array([BY_NAME[thing.concept].code for thing in things], np.int64),
        np.array([rle.to_box(mask) for mask in encoded], np.float64).reshape(-1, 4),
        np.array([rle.area(mask) for mask in encoded], np.float64),
        np.zeros(len(things), bool),
        encoded,
    )  # fmt: skip
