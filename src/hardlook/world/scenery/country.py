"""Open country: meadow, winter, dusk, autumn.

>>> from hardlook.randomness import generator
>>> from hardlook.world.pen import Canvas, Pen
>>> pen = Pen(Canvas.blank((160, 120)), 9, height=120)
>>> meadow(Stage(pen, pen, pen, 0.4, 160 / 120, generator(0, "stage")))
>>> bool((pen.canvas.layers == 9).any())
True
"""

from __future__ import annotations

import numpy as np

from hardlook.world.pen import oval_points
from hardlook.world.scenery.stage import Stage, clouds, marks, sun


def meadow(stage: Stage) -> None:
    """Sun, clouds, tufts of grass and flowers."""
    sun(stage, 0.12, 0.06, (255, 236, 130), (232, 238, 214))
    clouds(stage, 3, (252, 253, 255))
    for colour in ((64, 136, 54), (120, 184, 78), (52, 118, 48)):
        spots = stage.spots(45)
        near = (0.35 + 0.65 * (spots[:, 1:] - stage.horizon) / (1 - stage.horizon))[:, None]
        tuft = np.array(
            [(-0.008, 0), (-0.016, -0.03), (-0.002, -0.01), (0.002, -0.04), (0.006, -0.01), (0.018, -0.028), (0.01, 0)]
        )
        stage.ground.scatter(spots[:, None] + tuft[None] * near, colour)
    for colour in ((250, 250, 250), (250, 214, 70), (226, 96, 120)):
        for x, y in stage.spots(4, top=stage.horizon + 0.1):
            size = 0.008 + 0.008 * (y - stage.horizon)
            stage.ground.stroke([(x, y), (x, y + 2.4 * size)], (60, 126, 52), 0.006)
            stage.ground.oval(x, y, size, size, colour)


def winter(stage: Stage) -> None:
    """Pines under snow, drifts."""
    for x in np.sort(stage.rng.random(6)) * stage.wide:
        base, tall = stage.horizon + stage.rng.uniform(0.0, 0.03), stage.rng.uniform(0.13, 0.24)
        stage.void.fill(
            [(x - 0.01, base), (x + 0.01, base), (x + 0.01, base - 0.04), (x - 0.01, base - 0.04)], (104, 80, 66)
        )
        for level in (0.0, 0.3, 0.6):
            y, half = base - 0.03 - tall * level, tall * (0.3 - 0.24 * level)
            stage.void.fill([(x - half, y), (x + half, y), (x, y - tall * 0.45)], (62, 104, 96))
            stage.void.fill(
                [(x - half * 0.5, y - tall * 0.22), (x + half * 0.5, y - tall * 0.22), (x, y - tall * 0.45)],
                (246, 250, 254),
            )
    for _ in range(6):
        x, y = stage.rng.random() * stage.wide, stage.rng.uniform(stage.horizon + 0.06, 0.96)
        stage.ground.oval(x, y, stage.rng.uniform(0.12, 0.3), 0.018, (200, 214, 236))
    stage.ground.scatter(marks(stage.spots(50), 0.006, 0.005, stage.horizon), (255, 255, 255), glow=0.5)


def dusk(stage: Stage) -> None:
    """The sun on the horizon, red clouds, furrows."""
    sun(stage, stage.horizon - 0.045, 0.085, (255, 224, 130), (254, 180, 104))
    for _ in range(4):
        x, y = stage.rng.random() * stage.wide, stage.horizon * stage.rng.uniform(0.2, 0.75)
        stage.sky.oval(x, y, stage.rng.uniform(0.12, 0.26), 0.012, (230, 112, 110), glow=1)
    across = np.array([-0.1, stage.wide + 0.1])
    hills = [
        (across[0], stage.horizon + 0.01),
        (across[0], stage.horizon - 0.02),
        (stage.wide * 0.3, stage.horizon - 0.005),
        (across[1], stage.horizon - 0.03),
        (across[1], stage.horizon + 0.01),
    ]
    stage.ground.fill(hills, (104, 70, 84))
    vanish = stage.rng.uniform(0.3, 0.7) * stage.wide
    for foot in np.linspace(-1.6, 1.6, 19):
        end = vanish + foot * stage.wide
        stage.ground.fill(
            [(vanish + foot * 0.32, stage.horizon + 0.03), (end - 0.02, 1.02), (end + 0.02, 1.02)], (84, 52, 44)
        )
    stage.ground.scatter(marks(stage.spots(60), 0.009, 0.006, stage.horizon), (164, 112, 80))


def autumn(stage: Stage) -> None:
    """Trees in colour, a carpet of leaves."""
    clouds(stage, 2, (252, 246, 236))
    for x in np.sort(stage.rng.random(5)) * stage.wide:
        base, tall = stage.horizon + stage.rng.uniform(0.0, 0.03), stage.rng.uniform(0.16, 0.26)
        crown = ((226, 122, 40), (204, 78, 40), (238, 176, 60))[int(stage.rng.integers(3))]
        stage.void.box(x - 0.012, base - tall * 0.5, x + 0.012, base, (100, 70, 52))
        for dx, dy, r in ((-0.3, 0.6, 0.28), (0.3, 0.6, 0.28), (0, 0.8, 0.34)):
            stage.void.fill(oval_points(x + dx * tall, base - dy * tall, r * tall, r * tall * 0.85), crown)
    for colour in ((236, 176, 70), (196, 70, 36), (140, 78, 40), (228, 132, 44)):
        stage.ground.scatter(marks(stage.spots(70), 0.018, 0.009, stage.horizon), colour)
