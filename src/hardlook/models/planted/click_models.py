"""Planted click models: clicks in the middle of an error or at its edge, and a crowd with a known distribution.

`PlantedClicks` reads only the error mask, so it serves on any picture.

>>> import numpy as np
>>> error = np.zeros((9, 9), bool)
>>> error[1:8, 1:8] = True
>>> picture = np.zeros((9, 9, 3), np.uint8)
>>> maps = [PlantedClicks(edge=dial).click_map(picture, error, error, True) for dial in (0.0, 1.0)]
>>> [bool(chance[4, 4] > chance[1, 1]) for chance in maps], bool((maps[1][error] > 0).all())
([True, False], True)

`PlantedUsers` are people who click where an object is lightest, deep inside, now and then at its rim. Where they click
depends on the picture and not on the masks alone, so a model that looks at masks only cannot know it, nor one that
finds whole objects salient. The chances are exact: the map is the distribution of their clicks. They see lightness; the
lowest three bits of each channel, where the planted world writes its truth, are cut off.

>>> picture = np.full((32, 48, 3), 80, np.uint8)
>>> picture[:, 30:] = 160
>>> error = np.zeros((32, 48), bool)
>>> error[4:28, 4:44] = True
>>> chance = PlantedUsers().click_map(picture, error, error, True)
>>> round(float(chance.sum()), 9), bool(chance[16, 36] > 10 * chance[16, 12]), bool((chance[error] > 0).all())
(1.0, True, True)
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.regions import find_bounding_box, squared_distances
from hardlook.models.planted.dials import check_dials
from hardlook.models.roles import Image, Mask

FLOOR = 1e-3
LOUDEST = 10.0


class PlantedClicks:
    """Where a click falls, by depth inside the error region.

    `edge`: weight of the border against the middle; `loud`: a factor on the whole map, up to ten, which the
    caller's normalisation undoes. Both from 0 to 1.
    """

    def __init__(self, edge: float = 0.0, loud: float = 0.0) -> None:
        check_dials(edge=edge, loud=loud)
        self.edge, self.loud = edge, loud

    def click_map(self, image: Image, target: Mask, error: Mask, positive: bool) -> NDArray[np.float64]:
        """(H, W) float64, above 0 all over the error region and 0 elsewhere."""
        framed = np.pad(error.astype(np.uint8), 1)
        depth = cv2.distanceTransform(framed, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)[1:-1, 1:-1].astype(np.float64)
        relative = depth / max(float(depth.max()), 1.0)
        chance = (1 - self.edge) * relative**2 + self.edge * (1 - relative) ** 2 + FLOOR
        return np.where(error, chance * (1 + (LOUDEST - 1) * self.loud), 0.0)


GLANCE = 0.08  # blur of what is seen, in square roots of the region's area
LIGHT = 1.6  # pull of one standard deviation of lightness
GLARE = 2.5  # standard deviations: lighter than this is only light
DEEP = 2.5  # pull of the innermost pixel against the rim
PLAIN = 4.0  # grey levels: in a region whose lightness varies less than this, depth decides
SLOPPY = 0.05  # share of the clicks that fall anywhere on the rim
RIM = 0.25  # of the greatest depth
CLUMSIEST = 0.25  # blur of the clicks at the dial's end, in square roots of the region's area
_LUMA = np.array([0.299, 0.587, 0.114])

Chances = NDArray[np.float64]


class PlantedUsers:
    """Simulated people and their exact distribution of clicks.

    `clumsy`: how far their clicks stray from where they meant to click, as with a finger on a small screen, from 0
    to 1. Strayed clicks stay in the region.
    """

    def __init__(self, clumsy: float = 0.0) -> None:
        check_dials(clumsy=clumsy)
        self.clumsy = clumsy

    def click_map(self, image: Image, target: Mask, error: Mask, positive: bool) -> Chances:
        """(H, W) float64: sums to 1 over the error region and is above 0 all over it; all 0 where that is empty."""
        return user_map(image, target, error, positive, clumsy=self.clumsy)


def user_map(image: Image, target: Mask, error: Mask, positive: bool, *, clumsy: float = 0.0) -> Chances:
    """The exact chance (H, W) of a click of the simulated people at each pixel.

    `image` (H, W, 3) uint8, `error` (H, W) bool: the region to be clicked. People go by what they see there; what
    `target` and `positive` say changes nothing.

    >>> error = np.array([[False, True, True]])
    >>> user_map(np.zeros((1, 3, 3), np.uint8), error, error, True)
    array([[0. , 0.5, 0.5]])
    """
    chances = np.zeros(error.shape)
    if (box := find_bounding_box(error)) is None:
        return chances
    region = np.ascontiguousarray(error[box.slices])
    scale = float(np.sqrt(np.count_nonzero(region)))
    depth = np.sqrt(squared_distances(region, frame_is_background=True).astype(np.float64))
    depth /= depth.max()
    pull = LIGHT * _lightness(image[box.slices], region, GLANCE * scale) + DEEP * depth
    meant = np.where(region, np.exp(pull - pull[region].max()), 0.0)
    rim = region & (depth <= max(RIM, float(depth[region].min())))
    crowd = (1 - SLOPPY) * meant / meant.sum() + SLOPPY * rim / np.count_nonzero(rim)
    if clumsy > 0:
        crowd = np.where(region, _blur(crowd, clumsy * CLUMSIEST * scale), 0.0)
    chances[box.slices] = crowd / crowd.sum()
    return chances


def _lightness(picture: Image, region: Mask, sigma: float) -> Chances:
    """Blurred lightness in standard deviations from the region's mean; nothing outside the region bleeds in."""
    seen = (picture & np.uint8(0b11111000)).astype(np.float64) @ _LUMA
    weight = _blur(region.astype(np.float64), sigma)
    mean = _blur(np.where(region, seen, 0.0), sigma)
    blurred = np.divide(mean, weight, out=np.zeros_like(mean), where=region)
    inside = blurred[region]
    return np.asarray(np.clip((blurred - inside.mean()) / max(float(inside.std()), PLAIN), -GLARE, GLARE))


def _blur(values: Chances, sigma: float) -> Chances:
    # Below half a pixel the kernel is a single point.
    return np.asarray(cv2.GaussianBlur(values, (0, 0), max(sigma, 0.1), borderType=cv2.BORDER_CONSTANT), np.float64)
