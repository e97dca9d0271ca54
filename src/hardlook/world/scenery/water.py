"""By the water: the beach, and a lake in fog.

>>> from hardlook.randomness import generator
>>> from hardlook.world.pen import Canvas, Pen
>>> pen = Pen(Canvas.blank((160, 120)), 9, height=120)
>>> beach(Stage(pen, pen, pen, 0.4, 160 / 120, generator(0, "stage")))
>>> bool((pen.canvas.layers == 9).any())
True
"""

from __future__ import annotations

import numpy as np

from hardlook.world.pen import Pen
from hardlook.world.scenery.stage import Stage, clouds, marks, sun
from hardlook.world.vocabulary import BY_NAME


def beach(stage: Stage) -> None:
    """Sun, waves, a sailing boat, shells in the sand."""
    sun(stage, 0.11, 0.065, (255, 242, 168), (214, 236, 236))
    clouds(stage, 1, (250, 252, 255))
    for _ in range(9):
        x, y = stage.rng.random() * stage.wide, stage.horizon + 0.012 + 0.085 * stage.rng.random()
        long = stage.rng.uniform(0.03, 0.07)
        line = [(x - long, y), (x - long / 2, y - 0.008), (x, y), (x + long / 2, y - 0.008), (x + long, y)]
        Pen(stage.sky.canvas, BY_NAME["sea"].code, height=stage.sky.height).stroke(line, (176, 224, 232), 0.007)
    x, y, size = stage.rng.uniform(0.1, 0.9) * stage.wide, stage.horizon + 0.02, 0.06
    stage.void.fill(
        [(x - size, y), (x + size, y), (x + size * 0.6, y + size * 0.4), (x - size * 0.6, y + size * 0.4)],
        (150, 76, 56),
    )
    stage.void.fill([(x, y - size * 2), (x + size * 0.8, y - 0.01), (x, y - 0.01)], (252, 250, 244))
    stage.void.fill([(x - 0.01, y - size * 1.7), (x - size * 0.6, y - 0.01), (x - 0.01, y - 0.01)], (236, 110, 84))
    top = stage.horizon + 0.17
    for colour in ((206, 166, 108), (250, 236, 200)):
        stage.ground.scatter(marks(stage.spots(90, top=top), 0.007, 0.005, stage.horizon), colour)
    for x, y in stage.spots(5, top=top + 0.04):
        colour = ((244, 150, 120), (250, 244, 236), (236, 176, 160))[int(stage.rng.integers(3))]
        stage.ground.oval(x, y, 0.014, 0.011, colour)
        stage.ground.stroke([(x, y - 0.008), (x, y + 0.008)], (190, 120, 100), 0.005)


def fog(stage: Stage) -> None:
    """A far shore, ripples, reeds."""
    shore = [(-0.1, stage.horizon + 0.015)]
    for x in np.linspace(-0.05, stage.wide + 0.05, 22):
        shore.append((float(x), stage.horizon - stage.rng.uniform(0.03, 0.1)))
    stage.void.blob([*shore, (stage.wide + 0.1, stage.horizon + 0.015)], (134, 152, 156))
    for colour in ((186, 206, 212), (120, 154, 168)):
        for x, y in stage.spots(16, top=stage.horizon + 0.04):
            long = 0.03 + 0.12 * (y - stage.horizon)
            stage.ground.oval(x, y, long, 0.005 + 0.006 * (y - stage.horizon), colour)
    for side in (-1, 1):
        for i in range(5):
            x = (0.02 + 0.02 * i) if side < 0 else stage.wide - 0.02 - 0.02 * i
            tip = 0.99 - stage.rng.uniform(0.1, 0.2)
            stage.void.stroke([(x, 1.02), (x - side * 0.01 * i, tip)], (110, 128, 96), 0.009)
            stage.void.oval(x - side * 0.01 * i, tip, 0.009, 0.028, (112, 84, 62))
