"""An object of a scene, before and after it has found its place.

>>> Wanted("cat", salient=True).beside_target
False
"""

from __future__ import annotations

from dataclasses import dataclass

from hardlook.world.look import Look
from hardlook.world.pen import Colour


@dataclass(frozen=True)
class Wanted:
    """An object to be placed: what it is, whether it catches the eye, and which object it keeps company."""

    concept: str
    salient: bool
    beside_target: bool = False


@dataclass(frozen=True)
class SceneObject:
    """An object that stands at (`x`, `y`) pixels, `height` pixels tall; `instance` counts within its class."""

    concept: str
    instance: int
    salient: bool
    x: float
    y: float
    height: float
    mirrored: bool
    tilt: float
    look: Look
    fade: tuple[Colour, float]
