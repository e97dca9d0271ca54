"""Simulated people: pictures of the planted world with clicks whose exact distribution is known.

The distribution is that of the click model `planted-users`: it depends on what the picture shows and not on the masks
alone. In later rounds there is an error to correct, of a known kind. Pictures are rendered when they are read.

>>> samples = planted_samples(seed=0, count=4, size=(96, 72), clicks=10)
>>> image, target, error, clicks = samples[1].read()
>>> image.shape, clicks.shape, round(float(samples[1].map().sum()), 9)
((72, 96, 3), (10, 2), 1.0)
>>> source = make_planted_sources(seed=0, scenes=1, clicks=6, size=(96, 72))[0].read()
>>> source.stem.full_stem, len(source.stem.clicks), [part.device for part in source.by_device()]
('scene-0-0', 12, ['pc', 'mobile'])
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.metrics.regions import find_bounding_box
from hardlook.models.planted.click_models import PlantedUsers
from hardlook.models.roles import Image, Mask
from hardlook.randomness import generator
from hardlook.rclicks.click_models.distribution import ClickDistribution
from hardlook.rclicks.user_clicks.stems import DEVICES, ClickedStem, ClickType, StemWithDevices
from hardlook.world.planted import PlantedWorld
from hardlook.world.scene import DEFAULT_SIZE

LOST = (0.25, 0.75)  # shares of the object that the earlier mask may lack
SHIFT = (0.3, 0.8)  # how far a surplus copy lies from the object, in its width and height
CLUMSY = 0.5  # how much more simulated people stray on a mobile device
MIN_PIXELS = 24


def planted_error(target: Mask, click_type: ClickType, rng: np.random.Generator) -> Mask:
    """The error region (H, W) of a previous mask made by spoiling `target` (H, W) bool.

    `first`: the whole object. `fn`: what lies beyond a straight cut, a quarter to three quarters of the object.
    `fp`: what a shifted copy of the object covers beside it. A region can be small or, where the frame leaves no
    room for a copy, empty.

    >>> target = np.zeros((40, 60), bool)
    >>> target[10:30, 20:40] = True
    >>> missing, surplus = (planted_error(target, kind, generator(0, kind)) for kind in ("fn", "fp"))
    >>> bool((missing <= target).all()), bool((surplus & target).any()), surplus.any()
    (True, False, np.True_)
    """
    angle, share = rng.uniform(0, 2 * np.pi), rng.random()
    down, across = float(np.sin(angle)), float(np.cos(angle))
    box = find_bounding_box(target)
    if click_type == "first" or box is None:
        return target.copy()
    if click_type == "fn":
        rows, columns = np.nonzero(target)
        along = down * rows + across * columns
        beyond = along >= np.quantile(along, 1 - _interpolate(LOST, share))
        missing = np.zeros_like(target)
        missing[rows[beyond], columns[beyond]] = True
        return missing
    step = _interpolate(SHIFT, share)
    return _shift_mask(target, round(down * step * box.height), round(across * step * box.width)) & ~target


def _interpolate(bounds: tuple[float, float], share: float) -> float:
    low, high = bounds
    return low + share * (high - low)


def _shift_mask(mask: Mask, down: int, across: int) -> Mask:
    """The mask shifted by whole pixels; what leaves the frame is lost."""
    rows, columns = np.nonzero(mask)
    rows, columns = rows + down, columns + across
    inside = (rows >= 0) & (rows < mask.shape[0]) & (columns >= 0) & (columns < mask.shape[1])
    moved = np.zeros_like(mask)
    moved[rows[inside], columns[inside]] = True
    return moved


# 39 % of the published clicks of RClicks are of first rounds.
ROUNDS: dict[ClickType, float] = {"first": 0.4, "fn": 0.36, "fp": 0.24}
_DRAWS = "planted users"


def draw_clicks(
    chances: NDArray[np.float64], count: int, key: tuple[str | int, ...], seed: int = 0
) -> NDArray[np.int64]:
    """`count` independent clicks (count, 2) int64, each (x, y), from a map (H, W) that sums to 1.

    >>> draw_clicks(np.array([[0.0, 1.0]]), 2, ("example",)).tolist()
    [[1, 0], [1, 0]]
    """
    return ClickDistribution(chances).draw(generator(seed, _DRAWS, *key), count)


@dataclass(frozen=True)
class PlantedSample:
    """One object of the planted world, the region to click, and the clicks that simulated people made.

    `index` is the scene's, `clumsy` that of `planted-users`; another `device` has other clicks on the same region.
    """

    world: PlantedWorld = field(repr=False)
    index: int
    count: int
    device: str = "pc"
    clumsy: float = 0.0
    later_rounds: bool = True

    def read(self) -> tuple[Image, Mask, Mask, NDArray[np.int64]]:
        """Image (H, W, 3) uint8, target and error masks (H, W) bool, clicks (count, 2) int64 as (x, y)."""
        stem = self.clicked_stem()
        return stem.image, stem.target, stem.error, stem.clicks.astype(np.int64, copy=False)

    def map(self) -> NDArray[np.float64]:
        """The exact chance (H, W) of a click at each pixel; sums to 1."""
        return self._compute_click_map(*self._draw_sample())

    def clicked_stem(self) -> ClickedStem:
        """The sample as the evaluation of click models takes it."""
        image, target, error, click_type = self._draw_sample()
        chances = self._compute_click_map(image, target, error, click_type)
        clicks = draw_clicks(chances, self.count, ("clicks", self.index, self.device), self.world.seed)
        name = f"scene-{self.world.seed}-{self.index}"
        return ClickedStem(name, "planted", image, target, error, clicks, click_type, self.device, image_key=name)

    def _compute_click_map(self, image: Image, target: Mask, error: Mask, click_type: ClickType) -> NDArray[np.float64]:
        return PlantedUsers(self.clumsy).click_map(image, target, error, click_type != "fp")

    def _draw_sample(self) -> tuple[Image, Mask, Mask, ClickType]:
        rendered = self.world[self.index]
        target = rendered.target_mask
        rng = generator(self.world.seed, _DRAWS, "round", self.index)
        kinds, shares = list(ROUNDS), list(ROUNDS.values())
        kind = kinds[int(rng.choice(len(kinds), p=shares))] if self.later_rounds else "first"
        error = planted_error(target, kind, rng)
        # A region of a few pixels is too small to be clicked.
        if np.count_nonzero(error) < MIN_PIXELS:
            kind, error = "first", target.copy()
        return rendered.image, target, error, kind


def planted_samples(
    seed: int,
    count: int,
    size: tuple[int, int] = DEFAULT_SIZE,
    clicks: int = 48,
    *,
    device: str = "pc",
    clumsy: float = 0.0,
    later_rounds: bool = True,
) -> tuple[PlantedSample, ...]:
    """`count` samples with `clicks` clicks each on pictures of `size` (width, height).

    Samples of other devices share pictures and regions and differ in their clicks. Without `later_rounds` every
    region is the whole object; with them about two in five are.

    >>> [sample.index for sample in planted_samples(0, 3)]
    [0, 1, 2]
    """
    if clicks < 1:
        raise OptionError(f"{clicks} clicks per sample", remedy="at least 1")
    world = PlantedWorld(seed=seed, count=count, size=size)
    return tuple(PlantedSample(world, i, clicks, device, clumsy, later_rounds) for i in range(count))


@dataclass(frozen=True)
class PlantedSource:
    """The clicks of simulated people on one region: one sample per device."""

    samples: tuple[PlantedSample, ...] = field(repr=False)
    display_mode: str = ""

    @property
    def key(self) -> str:
        """The scene's name."""
        return f"planted/scene-{self.samples[0].world.seed}-{self.samples[0].index}"

    def read(self) -> StemWithDevices:
        """The clicks of all devices, one device after the other."""
        stems = [sample.clicked_stem() for sample in self.samples]
        clicks = np.concatenate([stem.clicks for stem in stems])
        devices = np.repeat([stem.device for stem in stems], [len(stem.clicks) for stem in stems])
        return StemWithDevices(replace(stems[0], clicks=clicks, device=""), devices)


def make_planted_sources(
    seed: int, scenes: int, clicks: int = 24, size: tuple[int, int] = DEFAULT_SIZE
) -> tuple[PlantedSource, ...]:
    """`scenes` regions with `clicks` clicks on each of the two devices; on the mobile one people stray further."""
    per_device = [
        planted_samples(seed, scenes, size, clicks, device=device, clumsy=CLUMSY * (device == "mobile"))
        for device in DEVICES
    ]
    return tuple(PlantedSource(samples) for samples in zip(*per_device, strict=True))
