"""In town: a street by day, a pavement by night.

>>> from hardlook.randomness import generator
>>> from hardlook.world.pen import Canvas, Pen
>>> pen = Pen(Canvas.blank((160, 120)), 9, height=120)
>>> street(Stage(pen, pen, pen, 0.4, 160 / 120, generator(0, "stage")))
>>> bool((pen.canvas.layers == 9).any())
True
"""

from __future__ import annotations

import numpy as np

from hardlook.world.pen import oval_points
from hardlook.world.scenery.stage import Stage, clouds, marks, sun


def street(stage: Stage) -> None:
    """A row of buildings, the kerb, lane markings."""
    clouds(stage, 2, (240, 244, 248))
    x = -0.02
    while x < stage.wide:
        wide, tall = stage.rng.uniform(0.12, 0.2), stage.rng.uniform(0.09, 0.22)
        walls = ((176, 150, 140), (150, 160, 176), (190, 176, 150), (160, 140, 152))[int(stage.rng.integers(4))]
        stage.void.box(x, stage.horizon - tall, x + wide, stage.horizon, walls)
        rows, columns = np.meshgrid(
            np.arange(stage.horizon - tall + 0.025, stage.horizon - 0.04, 0.055),
            np.arange(x + 0.02, x + wide - 0.025, 0.045),
        )
        pane = np.array([(0, 0), (0.022, 0), (0.022, 0.03), (0, 0.03)])
        stage.void.scatter(np.stack([columns.ravel(), rows.ravel()], 1)[:, None] + pane, (226, 232, 220))
        x += wide + 0.004
    kerb = stage.horizon + 0.035
    stage.ground.box(-0.05, stage.horizon, stage.wide + 0.05, kerb, (186, 184, 178))
    stage.ground.box(-0.05, kerb, stage.wide + 0.05, kerb + 0.012, (140, 138, 136))
    stage.ground.scatter(marks(stage.spots(90, top=kerb + 0.02), 0.006, 0.004, stage.horizon), (78, 80, 88))
    start, middle = -stage.rng.random() * 0.3, stage.horizon + 0.62 * (1 - stage.horizon)
    for left in np.arange(start, stage.wide, 0.34):
        stage.ground.fill(
            [(left, middle), (left + 0.18, middle), (left + 0.17, middle + 0.03), (left - 0.01, middle + 0.03)],
            (244, 240, 226),
        )


def night(stage: Stage) -> None:
    """Stars, the moon, paving stones, two lamps."""
    stars = np.stack([stage.rng.random(40) * stage.wide, stage.rng.random(40) * stage.horizon * 0.9], axis=1)
    for size, some in zip((0.004, 0.006, 0.009), np.array_split(stars, 3), strict=True):
        stage.sky.scatter(some[:, None] + oval_points(0, 0, size, size)[::5], (250, 246, 214), glow=1)
    x = sun(stage, 0.13, 0.07, (250, 244, 208), (58, 66, 116), margin=0.34)
    stage.sky.oval(x + 0.035, 0.115, 0.058, 0.058, (30, 36, 78), glow=1)
    for y in stage.horizon + (1 - stage.horizon) * np.array([0.06, 0.16, 0.3, 0.5, 0.76]):
        stage.ground.stroke([(-0.1, y), (stage.wide + 0.1, y)], (84, 84, 100), 0.008)
    for step in np.linspace(-1.4, 1.4, 15):
        foot = stage.wide / 2 + step * stage.wide * 1.5
        stage.ground.stroke([(stage.wide / 2 + step * 0.9, stage.horizon), (foot, 1.05)], (84, 84, 100), 0.008)
    for x in (stage.rng.uniform(0.06, 0.22) * stage.wide, stage.rng.uniform(0.78, 0.94) * stage.wide):
        base = stage.horizon + 0.05
        for size, glow in ((0.22, 0.2), (0.16, 0.4), (0.1, 0.65)):
            stage.ground.oval(x, base + 0.02, size, size * 0.24, (190, 176, 140), glow=glow)
        stage.void.box(x - 0.008, base - 0.3, x + 0.008, base, (70, 70, 84))
        stage.void.oval(x, base - 0.31, 0.032, 0.036, (255, 232, 150), glow=1)
        stage.void.box(x - 0.03, base - 0.36, x + 0.03, base - 0.34, (70, 70, 84))
