"""One drawing function a concept: `draw(pen, look)` in the object's own coordinates.

>>> sorted(DRAWINGS)[:3], STATURE["house"] > STATURE["cup"]
(['apple', 'barn', 'bottle'], True)
"""

from __future__ import annotations

from collections.abc import Callable

from hardlook.world.drawings.birds import duck, owl
from hardlook.world.drawings.buildings import barn, house
from hardlook.world.drawings.fruit import apple, pear
from hardlook.world.drawings.pets import cat, dog
from hardlook.world.drawings.vehicles import bus, car
from hardlook.world.drawings.vessels import bottle, cup
from hardlook.world.look import Look
from hardlook.world.pen import Pen

DRAWINGS: dict[str, Callable[[Pen, Look], None]] = {
    "cat": cat, "dog": dog, "car": car, "bus": bus, "house": house, "barn": barn,
    "apple": apple, "pear": pear, "cup": cup, "bottle": bottle, "duck": duck, "owl": owl,
}  # fmt: skip
# Heights beside each other: wide drawings are lower, so that every concept covers about the same area.
STATURE: dict[str, float] = {
    "cat": 1.0, "dog": 0.92, "car": 0.66, "bus": 0.78, "house": 1.08, "barn": 1.0,
    "apple": 0.82, "pear": 0.95, "cup": 0.78, "bottle": 1.2, "duck": 0.86, "owl": 0.98,
}  # fmt: skip
# Half of each drawing's greatest width, in heights.
HALF_WIDTH: dict[str, float] = {
    "cat": 0.5, "dog": 0.72, "car": 1.08, "bus": 1.06, "house": 0.62, "barn": 0.8,
    "apple": 0.52, "pear": 0.42, "cup": 0.66, "bottle": 0.24, "duck": 0.6, "owl": 0.44,
}  # fmt: skip
