"""Simulated people at work: pictures of the planted world with clicks whose exact distribution is known.

The distribution is that of the click model `planted-users` (`hardlook.models.planted.users`): it depends on what the
picture shows and not on the masks alone. Pictures are rendered when they are read.

>>> samples = planted_samples(seed=0, count=4, size=(96, 72), clicks=10)
>>> image, target, error, clicks = samples[1].read()
>>> image.shape, clicks.shape, round(float(samples[1].map().sum()), 9)
((72, 96, 3), (10, 2), 1.0)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hardlook.clicks.click_distribution import ClickDistribution
from hardlook.clicks.clicked_stem import ClickedStem, ClickType
from hardlook.clicks.planted_errors import LEAST_PIXELS, planted_error
from hardlook.errors import OptionError
from hardlook.models.planted.users import PlantedUsers, user_map
from hardlook.models.roles import Image, Mask
from hardlook.randomness import generator
from hardlook.world.planted import PlantedWorld
from hardlook.world.scene import DEFAULT_SIZE

__all__ = ["PlantedSample", "draw_clicks", "planted_samples", "user_map"]

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

    `index` is the scene's; `clumsy` is the dial of `planted-users`, and `device` the name that these people's clicks
    go by: other devices have other clicks on the same region.
    """

    world: PlantedWorld = field(repr=False)
    index: int
    count: int
    device: str = "pc"
    clumsy: float = 0.0
    later_rounds: bool = True

    def read(self) -> tuple[Image, Mask, Mask, NDArray[np.int64]]:
        """Image (H, W, 3) uint8, target and error masks (H, W) bool, clicks (count, 2) int64 as (x, y)."""
        image, target, error, _ = self._drawn()
        return image, target, error, self._clicks(self._chances(image, target, error))

    def map(self) -> NDArray[np.float64]:
        """The exact chance (H, W) of a click at each pixel; sums to 1."""
        return self._chances(*self._drawn()[:3])

    def clicked_stem(self) -> ClickedStem:
        """The sample as the evaluation of click models takes it."""
        image, target, error, click_type = self._drawn()
        clicks = self._clicks(self._chances(image, target, error))
        name = f"scene-{self.world.seed}-{self.index}"
        return ClickedStem(name, "planted", image, target, error, clicks, click_type, self.device, image_key=name)

    def _drawn(self) -> tuple[Image, Mask, Mask, ClickType]:
        rendered = self.world[self.index]
        target = rendered.target_mask
        rng = generator(self.world.seed, _DRAWS, "round", self.index)
        kinds, shares = list(ROUNDS), list(ROUNDS.values())
        kind = kinds[int(rng.choice(len(kinds), p=shares))] if self.later_rounds else "first"
        error = planted_error(target, kind, rng)
        # Too small a rest is no error that anybody would be sent to correct.
        if np.count_nonzero(error) < LEAST_PIXELS:
            kind, error = "first", target.copy()
        return rendered.image, target, error, kind

    def _chances(self, image: Image, target: Mask, error: Mask) -> NDArray[np.float64]:
        # The whole of `fp` lies beside the target: that alone tells the kind of click.
        positive = bool((error & target).any())
        return PlantedUsers(self.clumsy).click_map(image, target, error, positive)

    def _clicks(self, chances: NDArray[np.float64]) -> NDArray[np.int64]:
        return draw_clicks(chances, self.count, ("clicks", self.index, self.device), self.world.seed)


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
        raise OptionError(f"{clicks} clicks a sample asked for", remedy="at least 1")
    world = PlantedWorld(seed=seed, count=count, size=size)
    return tuple(PlantedSample(world, i, clicks, device, clumsy, later_rounds) for i in range(count))
