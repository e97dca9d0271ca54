"""What the painters of places share: pens for sky, ground and void, and what several places have.

>>> from hardlook.randomness import generator
>>> from hardlook.world.pen import Canvas
>>> pen = Pen(Canvas.blank((160, 120)), 0, height=120)
>>> Stage(pen, pen, pen, 0.4, 160 / 120, generator(0, "stage")).spots(5).shape
(5, 2)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.world.pen import Colour, Pen


@dataclass(frozen=True)
class Stage:
    """Pens for sky, ground and void in units of the picture's height, the horizon, and the width in those units."""

    sky: Pen
    ground: Pen
    void: Pen
    horizon: float
    wide: float
    rng: np.random.Generator

    def spots(self, count: int, *, top: float | None = None) -> NDArray[np.float64]:
        """Random places (count, 2) on the ground, denser towards the horizon as distance makes them."""
        start = self.horizon + 0.02 if top is None else top
        down = start + (1 - start) * self.rng.random(count) ** 1.4
        return np.stack([self.rng.random(count) * self.wide, down], axis=1)


def marks(spots: NDArray[np.float64], wide: float, tall: float, horizon: float) -> NDArray[np.float64]:
    """Small diamonds (n, 4, 2) that grow towards the viewer."""
    near = (0.35 + 0.65 * (spots[:, 1:] - horizon) / (1 - horizon))[:, None]
    diamond = np.array([(-wide, 0), (0, -tall), (wide, 0), (0, tall)])[None]
    return spots[:, None] + diamond * near


def clouds(stage: Stage, count: int, colour: Colour) -> None:
    """Heaps of ovals in the upper sky."""
    for _ in range(count):
        x, y = stage.rng.random() * stage.wide, stage.horizon * stage.rng.uniform(0.15, 0.6)
        size = stage.rng.uniform(0.04, 0.08)
        for dx, dy, r in ((-1.2, 0.15, 0.7), (0, -0.1, 1.0), (1.1, 0.1, 0.75), (0.1, 0.3, 1.5)):
            stage.sky.oval(x + dx * size, y + dy * size, r * size, r * size * 0.55, colour, glow=1)


def sun(stage: Stage, y: float, radius: float, colour: Colour, halo: Colour, *, margin: float = 0.12) -> float:
    """A disc with a halo at height `y`, at least `margin` of the width from either side; returns where across."""
    x = stage.rng.uniform(margin, 1 - margin) * stage.wide
    stage.sky.oval(x, y, radius * 1.5, radius * 1.5, halo, glow=1)
    stage.sky.oval(x, y, radius, radius, colour, glow=1)
    return x
