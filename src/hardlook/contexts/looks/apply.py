"""A look by its name.

>>> photo = np.full((48, 64, 3), 120, np.uint8)
>>> bool((dress(photo, "fog", np.random.default_rng(0), strength=0.0) == photo).all())
True
>>> sorted(LOOKS)
['autumn', 'blur', 'dusk', 'fog', 'grey', 'plain', 'sketch', 'snow']
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hardlook.contexts.looks.backdrops import grass, water
from hardlook.contexts.looks.drawn import blur, grey, sketch
from hardlook.contexts.looks.shades import Pixels, mixed, rounded
from hardlook.contexts.looks.warm_light import autumn, dusk
from hardlook.contexts.looks.winter import fog, snow
from hardlook.errors import OptionError

VERSION = 1  # raise it when a look's pixels change


def plain(image: Pixels, rng: np.random.Generator) -> Pixels:
    """The image as it is; `rng` is not used."""
    return image.copy()


LOOKS: dict[str, Callable[[Pixels, np.random.Generator], Pixels]] = {
    "snow": snow,
    "dusk": dusk,
    "fog": fog,
    "autumn": autumn,
    "sketch": sketch,
    "grey": grey,
    "blur": blur,
    "plain": plain,
}
WITH_MASKS: dict[str, Callable[[Pixels, np.random.Generator, NDArray[np.bool_]], Pixels]] = {
    "grass": grass,
    "water": water,
}


def dress(
    image: Pixels,
    look: str,
    rng: np.random.Generator,
    *,
    mask: NDArray[np.bool_] | None = None,
    strength: float = 1.0,
) -> Pixels:
    """A copy of the image (H, W, 3) in a look of `LOOKS`, or of `WITH_MASKS` given the object's mask (H, W).

    `strength` in [0, 1] mixes the result with the image: 0 leaves it as it was, 1 is the look itself.
    """
    if look in WITH_MASKS:
        if mask is None or mask.shape != image.shape[:2]:
            came = "none" if mask is None else str(mask.shape)
            remedy = "give a mask of the image's size, or a look that needs none"
            raise OptionError(f"{look} needs a mask of {image.shape[:2]}, there is {came}", remedy=remedy)
        dressed = WITH_MASKS[look](image, rng, mask)
    elif look in LOOKS:
        dressed = LOOKS[look](image, rng)
    else:
        raise OptionError(f"no context {look!r}", remedy=f"one of {', '.join([*LOOKS, *WITH_MASKS])}")
    return dressed if strength >= 1 else rounded(mixed(image, dressed, strength))
