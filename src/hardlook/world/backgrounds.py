"""Sky, ground and, on the beach, the sea: the first coat of paint and its layers.

>>> from hardlook.world.scene import describe_scene
>>> from hardlook.world.vocabulary import BY_CODE
>>> scene = describe_scene(0, 1, context="beach")
>>> canvas = Canvas.blank(scene.size)
>>> paint_background(canvas, scene)
>>> sorted({BY_CODE[int(code)].name for code in np.unique(canvas.layers)})
['sand', 'sea', 'sky']
"""

from __future__ import annotations

import cv2
import numpy as np

from hardlook.randomness import generator
from hardlook.world.pen import Canvas, Colour, Pen
from hardlook.world.scene import Scene
from hardlook.world.settings import SETTINGS
from hardlook.world.vocabulary import BY_NAME, CONTEXTS

_GROUNDS = {context.name: context.ground for context in CONTEXTS}
_ROLLING = {"meadow": 0.05, "winter": 0.06, "dusk": 0.025, "autumn": 0.03}
_SEA = ((44, 128, 184), (96, 196, 208))


def paint_background(canvas: Canvas, scene: Scene) -> None:
    """Fill the whole canvas: sky over ground, with a curved horizon where the land rolls."""
    setting = SETTINGS[scene.context]
    rows = canvas.layers.shape[0]
    horizon = round(scene.horizon * rows)
    _coat(canvas, 0, horizon, setting.sky, "sky")
    _coat(canvas, horizon, rows, setting.ground, _GROUNDS[scene.context])
    if scene.context in _ROLLING:
        _roll_hills(canvas, scene, _ROLLING[scene.context])
    if scene.context == "beach":
        shore = horizon + round(0.13 * rows)
        _coat(canvas, horizon, shore, _SEA, "sea")
        _wash_shore(canvas, scene, shore / rows)


def _coat(canvas: Canvas, top: int, bottom: int, colours: tuple[Colour, Colour], name: str) -> None:
    """Rows from `top` to `bottom` in one class, from one colour to another; the sky shines by itself."""
    canvas.layers[top:bottom] = BY_NAME[name].code
    if canvas.paint is not None and bottom > top:
        steps = np.linspace(0, 1, bottom - top)[:, None]
        column = np.full((bottom - top, 1, 4), 255 if name == "sky" else 0, np.uint8)
        column[:, 0, :3] = np.rint(np.asarray(colours[0]) * (1 - steps) + np.asarray(colours[1]) * steps)
        canvas.paint[top:bottom] = cv2.repeat(column, 1, canvas.layers.shape[1])


def _roll_hills(canvas: Canvas, scene: Scene, rise: float) -> None:
    rng = generator(scene.seed, "scene", scene.index, "hills")
    ratio = scene.size[0] / scene.size[1]
    pen = Pen(canvas, BY_NAME[_GROUNDS[scene.context]].code, height=scene.size[1])
    far = SETTINGS[scene.context].ground[0]
    across = np.linspace(-0.02, ratio + 0.02, 48)
    for share, shade in ((1.0, 0.88), (0.55, 0.95)):
        phase, length = rng.uniform(0, 6.28), rng.uniform(0.5, 0.9)
        crest = scene.horizon - rise * share * (0.55 + 0.45 * np.sin(across / length * 6.28 + phase))
        foot = np.full_like(across, scene.horizon + 0.02 * share)
        outline = np.concatenate([np.stack([across, crest], 1), np.stack([across, foot], 1)[::-1]])
        red, green, blue = (value * shade for value in far)
        pen.fill(outline, (red, green, blue))


def _wash_shore(canvas: Canvas, scene: Scene, shore: float) -> None:
    """Foam along a wavy edge between sea and sand; the foam counts as sea."""
    rng = generator(scene.seed, "scene", scene.index, "shore")
    pen = Pen(canvas, BY_NAME["sea"].code, height=scene.size[1])
    across = np.linspace(-0.02, scene.size[0] / scene.size[1] + 0.02, 60)
    wave = shore + 0.012 * np.sin(across * rng.uniform(7, 11) + rng.uniform(0, 6.28))
    above = np.stack([across, np.full_like(across, shore - 0.03)], 1)[::-1]
    for lift, colour in ((0.012, (206, 178, 128)), (0.0, (250, 252, 252)), (-0.016, _SEA[1])):
        wet = Pen(canvas, BY_NAME["sand"].code, height=scene.size[1]) if lift > 0 else pen
        wet.fill(np.concatenate([np.stack([across, wave + lift], 1), above]), colour)
