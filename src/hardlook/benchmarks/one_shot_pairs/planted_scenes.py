"""The planted world as a source of images and class masks.

>>> source = PlantedScenes(PlantedWorld(count=24))
>>> token = source.tokens()[0]
>>> source.class_of(token), source.read_image(token).shape, bool(source.read_mask(token).mask.any())
('cat', (120, 160, 3), True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.class_masks import ClassMask
from hardlook.models.roles import Image
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import Rendered
from hardlook.world.vocabulary import CONCEPTS, VOID

LEAST_PIXELS = 40  # an object of which less is seen is nothing to ask for
NOT_LABELLED = 255


@dataclass(frozen=True)
class PlantedScenes:
    """Scenes of a world; the token `3_0007` is the third concept in scene 7."""

    world: PlantedWorld

    @property
    def classes(self) -> tuple[str, ...]:
        """The concepts, in the vocabulary's order."""
        return tuple(label.name for label in CONCEPTS)

    def paths(self) -> Mapping[str, Path]:
        """No files: scenes are drawn."""
        return {}

    def class_of(self, token: str) -> str:
        """The concept of a token."""
        return self.classes[int(token.partition("_")[0]) - 1]

    def image_of(self, token: str) -> str:
        """The scene of a token."""
        return f"scene-{token.partition('_')[2]}"

    def missing(self, token: str) -> str:
        """Nothing ever is."""
        return ""

    def read_image(self, token: str) -> Image:
        """The picture (120, 160, 3)."""
        return rendered(self.world, _scene(token)).image

    def read_mask(self, token: str) -> ClassMask:
        """The concept's visible pixels."""
        classes = rendered(self.world, _scene(token)).classes
        code = CONCEPTS[int(token.partition("_")[0]) - 1].code
        return ClassMask(classes == code, classes == VOID)

    def read_classes(self, image: str) -> NDArray[np.int32]:
        """Concept numbers (H, W), 0 for anything else, 255 where nothing is labelled."""
        classes = rendered(self.world, int(image.removeprefix("scene-"))).classes
        numbers = np.zeros(256, np.int32)
        numbers[[label.code for label in CONCEPTS]] = np.arange(1, len(CONCEPTS) + 1)
        numbers[VOID] = NOT_LABELLED
        return numbers[classes]

    def tokens(self) -> tuple[str, ...]:
        """Every concept that is seen in every scene, by concept, then scene."""
        found = []
        for scene in range(len(self.world)):
            counts = np.bincount(rendered(self.world, scene).classes.ravel(), minlength=32)
            found += [(number, scene) for number, label in enumerate(CONCEPTS, 1) if counts[label.code] >= LEAST_PIXELS]
        return tuple(f"{number}_{scene:04d}" for number, scene in sorted(found))

    def unreadable(self) -> Mapping[str, str]:
        """No scene: they are drawn."""
        return {}


@lru_cache(maxsize=512)
def rendered(world: PlantedWorld, scene: int) -> Rendered:
    """A scene, drawn once: many tokens and pairs share it."""
    return world[scene]


def _scene(token: str) -> int:
    return int(token.partition("_")[2])
