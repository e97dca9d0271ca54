"""Objects that a study can be made of: of datasets, or of the planted world.

>>> one = planted_instances(PlantedWorld(seed=0, count=2))[1]
>>> one.dataset, one.full_stem, one.read().shape, bool(one.read_target().mask.any())
('planted', '000002', (120, 160, 3), True)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from hardlook.benchmarks.rclicks.units import PLANTED
from hardlook.data.isegm import Target
from hardlook.models.roles import Image
from hardlook.world.layouts.isegm import IGNORE, trimap
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import Rendered


class ClickableInstance(Protocol):
    """An object of an image; `hardlook.data.object_instances.ObjectInstance` is one."""

    @property
    def dataset(self) -> str:
        """As `dataset_name` spells it."""

    @property
    def image_stem(self) -> str:
        """The image's name."""

    @property
    def object_stem(self) -> str:
        """The object's name, "" where the image has one."""

    @property
    def image_key(self) -> str:
        """The same for all objects of an image."""

    @property
    def full_stem(self) -> str:
        """The name in files of clicks."""

    def read(self) -> Image:
        """The image (H, W, 3) uint8 RGB."""

    def read_target(self) -> Target:
        """The object (H, W), never empty, and what is to be ignored."""


@dataclass(frozen=True)
class PlantedInstance:
    """The subject of a scene, named as `hardlook run rclicks` and `hardlook world make` name it."""

    world: PlantedWorld = field(repr=False)
    index: int
    dataset: str = PLANTED
    object_stem: str = ""

    @property
    def image_stem(self) -> str:
        """The scene's number, from 1."""
        return f"{self.index + 1:06d}"

    @property
    def image_key(self) -> str:
        """Every scene has one subject."""
        return f"{self.dataset}/{self.image_stem}"

    @property
    def full_stem(self) -> str:
        """The scene's number."""
        return self.image_stem

    @property
    def concept(self) -> str:
        """What the scene is about, in a word."""
        return self.world.concept(self.index)

    def read(self) -> Image:
        """The picture (H, W, 3) uint8 RGB."""
        return self._rendered.image

    def read_target(self) -> Target:
        """The subject, and the band along its edge that nobody judges."""
        mask = self._rendered.target_mask
        return Target(mask, trimap(mask) == IGNORE)

    @property
    def _rendered(self) -> Rendered:
        return _rendered(self.world, self.index)


def planted_instances(world: PlantedWorld) -> tuple[PlantedInstance, ...]:
    """The subjects of all scenes, in order."""
    return tuple(PlantedInstance(world, index) for index in range(len(world)))


@lru_cache(maxsize=2)
def _rendered(world: PlantedWorld, index: int) -> Rendered:
    """The picture and its mask are asked for one after the other; more than the last scenes need not be kept."""
    return world[index]
