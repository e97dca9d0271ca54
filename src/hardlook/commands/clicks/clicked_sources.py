"""Stems with clicks on them, read when asked for: from a file of clicks, or simulated in the planted world.

>>> source = planted_sources(seed=0, scenes=1, clicks=6, size=(96, 72))[0]
>>> crowd = source.read()
>>> crowd.stem.full_stem, len(crowd.stem.clicks), sorted(set(crowd.devices.tolist()))
('scene-0-0', 12, ['mobile', 'pc'])
>>> len(crowd.on("pc").clicks)
6
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from hardlook.clicks.clicked_stem import ClickedStem
from hardlook.clicks.planted_users import PlantedSample, planted_samples
from hardlook.data.object_instances import ObjectInstance, scaled_points
from hardlook.data.previous_masks import PreviousMasks, error_mask
from hardlook.errors import HardlookError
from hardlook.world.scene import DEFAULT_SIZE

if TYPE_CHECKING:
    from hardlook.data.click_table import StemClicks
    from hardlook.models.roles import Image, Mask

DEVICES = ("pc", "mobile")
CLUMSY = 0.5  # how much more simulated people stray on a mobile device


@dataclass(frozen=True)
class Crowd:
    """A stem with everybody's clicks, and the device (n,) that each was made on."""

    stem: ClickedStem
    devices: NDArray[np.str_]

    def on(self, device: str) -> ClickedStem | None:
        """The stem with the clicks of one device; None where there are none."""
        chosen = self.devices == device
        return replace(self.stem, clicks=self.stem.clicks[chosen], device=device) if chosen.any() else None


class ClickedSource(Protocol):
    """Something that people clicked on."""

    @property
    def key(self) -> str:
        """Its own name among all sources."""

    @property
    def image(self) -> str:
        """The name of its image, which several sources may share."""

    @property
    def display_mode(self) -> str:
        """How the object was shown before people clicked; empty outside of previews."""

    def read(self) -> Crowd:
        """Image, masks and clicks."""


@dataclass(frozen=True)
class StoredSource:
    """A stem of a file of clicks on an instance of a dataset; `display_mode` is empty outside of previews."""

    instance: ObjectInstance
    clicks: StemClicks
    previous: PreviousMasks | None = None
    display_mode: str = ""

    @property
    def key(self) -> str:
        """Dataset and full stem, and the display mode where there is one."""
        return "/".join(part for part in (self.display_mode, self.instance.dataset, self.clicks.full_stem) if part)

    @property
    def image(self) -> str:
        """The image's key."""
        return self.instance.image_key

    def read(self) -> Crowd:
        """Clicks are moved to the size that the instance is read at."""
        clicks, dataset = self.clicks, self.instance.dataset
        target = self.instance.read_target().mask
        if self.previous is None:
            error = error_mask(target, None, "first")
        else:
            error = self.previous.error(clicks.full_stem, target, clicks.click_type, dataset)
        points = scaled_points(clicks.points, clicks.size, self.instance.size(), unit=self.key)
        stem = ClickedStem(
            clicks.full_stem,
            dataset,
            self.instance.read(),
            target,
            error,
            points,
            clicks.click_type,  # type: ignore[arg-type]  # checked when the file was read
            display_mode=self.display_mode,
            image_key=self.instance.image_key,
        )
        return Crowd(stem, clicks.devices)


@dataclass(frozen=True)
class PlantedSource:
    """The clicks of simulated people on one region: one sample a device."""

    samples: tuple[PlantedSample, ...] = field(repr=False)

    @property
    def key(self) -> str:
        """The scene's name."""
        return f"planted/scene-{self.samples[0].world.seed}-{self.samples[0].index}"

    @property
    def image(self) -> str:
        """Every scene has one object to click on."""
        return self.key

    @property
    def display_mode(self) -> str:
        """Simulated people are shown nothing."""
        return ""

    def read(self) -> Crowd:
        """The clicks of all devices, one device after the other."""
        stems = [sample.clicked_stem() for sample in self.samples]
        clicks = np.concatenate([stem.clicks for stem in stems])
        devices = np.repeat([stem.device for stem in stems], [len(stem.clicks) for stem in stems])
        return Crowd(replace(stems[0], clicks=clicks, device=""), devices)


def planted_sources(
    seed: int, scenes: int, clicks: int = 24, size: tuple[int, int] = DEFAULT_SIZE
) -> tuple[PlantedSource, ...]:
    """`scenes` regions with `clicks` clicks on each of the two devices; on the mobile one people stray further."""
    crowds = [
        planted_samples(seed, scenes, size, clicks, device=device, clumsy=CLUMSY * (device == "mobile"))
        for device in DEVICES
    ]
    return tuple(PlantedSource(samples) for samples in zip(*crowds, strict=True))


@dataclass(frozen=True)
class TrainingStem:
    """A source as the training of a click model takes it: clicks are whole pixels."""

    source: ClickedSource

    @property
    def key(self) -> str:
        """The source's name."""
        return self.source.key

    def read(self) -> tuple[Image, Mask, Mask, NDArray[np.integer]]:
        """Image, target, error, clicks (n, 2) int64; errors name the source."""
        try:
            stem = self.source.read().stem
        except HardlookError as error:
            # Readers of images and masks name the object, which several rounds share.
            raise type(error)(error.what, file=error.file, unit=self.key, remedy=error.remedy) from error
        return stem.image, stem.target, stem.error, np.floor(stem.clicks).astype(np.int64)
