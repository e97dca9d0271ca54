"""SM and SI: people click where they look; any saliency model says where that is.

The mask's box is grown by 1.4 and cut out, what lies outside the mask is painted grey (SM) or left (SI), and the
salience of the cut-out is kept inside the error. RClicks uses TranSalNet, a model of fixations; here any model serves,
and `conduct` names it.

The mask is the object for a missing part, since people look at the object whatever is missing of it. So one map of
an object serves all rounds and groups. A surplus part lies outside the object, and is its own mask. In the first
round, where the error is the object, there is no difference.

>>> from hardlook.world.planted import PlantedWorld
>>> scene = PlantedWorld(seed=1, count=1, salient=True)[0]
>>> model = SaliencyClicks(model="planted-saliency", grey=False)
>>> chance = model.click_map(scene.image, scene.target_mask, scene.target_mask, True)
>>> chance.shape == scene.target_mask.shape, bool(chance[~scene.target_mask].any())
(True, False)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.caching import ArrayCache
from hardlook.errors import OptionError
from hardlook.metrics.regions import Box, find_bounding_box
from hardlook.models.answer_checks import check_answers
from hardlook.models.content_keys import ContentKeys, Key
from hardlook.models.named_model import OuterModel, build_inner
from hardlook.models.roles import Image, Mask

GREY = 128
MEMORY = 1 << 28


class SaliencyClicks(OuterModel):
    """Salience of the masked cut-out, inside the error.

    `model` is any saliency model by name, `model_args` its arguments (`threads=2`); `grey`: whether what lies outside
    the mask is painted grey; `look` at the `object` (for missing parts) or always at the `error`; `grow` of the mask's
    box about its centre, at least 1. Maps are cached, up to `memory` bytes.
    """

    def __init__(
        self,
        model: str = "u2netp",
        model_args: str = "",
        device: str = "",
        grey: bool = True,
        look: Literal["object", "error"] = "object",
        grow: float = 1.4,
        memory: int = MEMORY,
    ) -> None:
        if not grow >= 1:
            raise OptionError(f"grow {grow} would cut into the mask", remedy="grow is 1 or more, 1.4 in RClicks")
        if look not in ("object", "error"):
            raise OptionError(f"there is no look {look!r}", remedy="look is object or error")
        super().__init__(build_inner(model, "saliency", model_args, device=device))
        self._cache, self._keys = ArrayCache(memory), ContentKeys()
        self.grey, self.look, self.grow = grey, look, grow
        self.conduct = (
            f"{'SM' if grey else 'SI'}: salience by {model} of the {look}'s box x {grow:g}, "
            f"what lies outside the mask {'grey' if grey else 'as it is'}"
        )

    def click_map(self, image: Image, target: Mask, error: Mask, positive: bool) -> NDArray[np.float64]:
        """(H, W) float64 in [0, 1], 0 outside the error; 1 all over an error in which nothing is salient."""
        return self.click_maps(image, target, [error], [positive])[0]

    def click_maps(
        self, image: Image, target: Mask, errors: Sequence[Mask], positives: Sequence[bool]
    ) -> list[NDArray[np.float64]]:
        """One map per error of the same instance; the saliency of the object is computed once."""
        key = self._keys.key_function()
        return [
            self._map(image, self._mask(target, error, positive), error, key)
            for error, positive in zip(errors, positives, strict=True)
        ]

    def _mask(self, target: Mask, error: Mask, positive: bool) -> Mask:
        # An error with pixels outside the object would be cut off by the object's box.
        return target if positive and self.look == "object" and not (error & ~target).any() else error

    def _map(self, image: Image, mask: Mask, error: Mask, key: Key) -> NDArray[np.float64]:
        chance = np.zeros(error.shape, np.float64)
        tight = find_bounding_box(mask)
        if tight is None:
            return chance
        box = grow_box(tight, self.grow, mask.shape)
        salience = self._cache.get_or_create(
            (key(image), key(mask)), functools.partial(self._compute_salience, image, mask, box)
        )
        chance[box.slices] = np.where(error[box.slices], salience, 0)
        return chance if chance.any() else error.astype(np.float64)

    def _compute_salience(self, image: Image, mask: Mask, box: Box) -> NDArray[np.float32]:
        cut = image[box.slices].copy()
        if self.grey:
            cut[~mask[box.slices]] = GREY
        # Alone, so that the map depends on nothing but the picture and the mask.
        model = self._inner.model
        [salience] = check_answers("saliency", model, model.saliency([cut]), [cut])
        return np.asarray(salience, np.float32)


def grow_box(box: Box, factor: float, shape: tuple[int, ...]) -> Box:
    """The box with sides `factor` times as long about its centre, rounded outwards, as far as the frame has them.

    >>> grow_box(Box(10, 20, 20, 30), 1.4, (100, 100)), grow_box(Box(0, 0, 4, 4), 1.4, (5, 4))
    (Box(top=8, left=18, bottom=22, right=32), Box(top=0, left=0, bottom=5, right=4))
    """
    # Without the rounding 10 * .4 / 2 comes out above 2, and a margin of 3.
    down, across = (ceil(round(side * (factor - 1) / 2, 6)) for side in (box.height, box.width))
    return Box(
        max(box.top - down, 0),
        max(box.left - across, 0),
        min(box.bottom + down, shape[0]),
        min(box.right + across, shape[1]),
    )
