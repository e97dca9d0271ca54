"""Backgrounds of scenes: sky and ground, the scenery of each context, its weather and its light.

Details on the sky or the ground belong to that class; trees, buildings and lamps are not classes of the world and are
void. Weather and light change colours but no ground truth.

>>> from hardlook.world.scene import describe_scene
>>> scene = describe_scene(0, 1, context="winter")
>>> canvas = Canvas.blank(scene.size)
>>> paint_background(canvas, scene)
>>> sorted(np.unique(canvas.layers).tolist()) == sorted(BY_NAME[name].code for name in ("sky", "snow"))
True
>>> paint_scenery(canvas, scene)
>>> 0 < float((canvas.layers == VOID).mean()) < 0.2
True
>>> grey, no_object = np.full((120, 160, 3), 90, np.uint8), np.zeros((120, 160), bool)
>>> bool((add_weather(grey, scene, no_object) != grey).any())
True
>>> dark, bright = (
...     apply_light(grey, np.full((120, 160), glow, np.uint8), np.ones((120, 160)), "night") for glow in (0, 255)
... )
>>> int(dark.max()) < int(bright.min())
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.randomness import generator
from hardlook.world.appearance import CONTEXT_COLOURS
from hardlook.world.pen import Canvas, Colour, Pen, oval_points
from hardlook.world.scene import Scene
from hardlook.world.vocabulary import BY_NAME, CONTEXTS, VOID

_GROUNDS = {context.name: context.ground for context in CONTEXTS}
_HILL_HEIGHT = {"meadow": 0.05, "winter": 0.06, "dusk": 0.025, "autumn": 0.03}
_SEA = ((44, 128, 184), (96, 196, 208))
_FOG_COLOUR = np.array([218, 225, 228], np.float32)
_LEAF_COLOURS = ((232, 148, 50), (200, 76, 40), (242, 196, 84))


def paint_background(canvas: Canvas, scene: Scene) -> None:
    """Fill the whole canvas: sky over ground, with hills on the horizon in some contexts."""
    setting = CONTEXT_COLOURS[scene.context]
    rows = canvas.layers.shape[0]
    horizon = round(scene.horizon * rows)
    _fill_rows(canvas, 0, horizon, setting.sky, "sky")
    _fill_rows(canvas, horizon, rows, setting.ground, _GROUNDS[scene.context])
    if scene.context in _HILL_HEIGHT:
        _paint_hills(canvas, scene, _HILL_HEIGHT[scene.context])
    if scene.context == "beach":
        shore = horizon + round(0.13 * rows)
        _fill_rows(canvas, horizon, shore, _SEA, "sea")
        _paint_shore(canvas, scene, shore / rows)


def _fill_rows(canvas: Canvas, top: int, bottom: int, colours: tuple[Colour, Colour], name: str) -> None:
    """Fill rows `top` to `bottom` with one class and a colour gradient; the sky emits its own light."""
    canvas.layers[top:bottom] = BY_NAME[name].code
    if canvas.paint is not None and bottom > top:
        steps = np.linspace(0, 1, bottom - top)[:, None]
        column = np.full((bottom - top, 1, 4), 255 if name == "sky" else 0, np.uint8)
        column[:, 0, :3] = np.rint(np.asarray(colours[0]) * (1 - steps) + np.asarray(colours[1]) * steps)
        canvas.paint[top:bottom] = cv2.repeat(column, 1, canvas.layers.shape[1])


def _paint_hills(canvas: Canvas, scene: Scene, rise: float) -> None:
    rng = generator(scene.seed, "scene", scene.index, "hills")
    ratio = scene.size[0] / scene.size[1]
    pen = Pen(canvas, BY_NAME[_GROUNDS[scene.context]].code, height=scene.size[1])
    far = CONTEXT_COLOURS[scene.context].ground[0]
    across = np.linspace(-0.02, ratio + 0.02, 48)
    for share, shade in ((1.0, 0.88), (0.55, 0.95)):
        phase, length = rng.uniform(0, 6.28), rng.uniform(0.5, 0.9)
        crest = scene.horizon - rise * share * (0.55 + 0.45 * np.sin(across / length * 6.28 + phase))
        foot = np.full_like(across, scene.horizon + 0.02 * share)
        outline = np.concatenate([np.stack([across, crest], 1), np.stack([across, foot], 1)[::-1]])
        red, green, blue = (value * shade for value in far)
        pen.fill(outline, (red, green, blue))


def _paint_shore(canvas: Canvas, scene: Scene, shore: float) -> None:
    """Foam along a wavy edge between sea and sand; the foam belongs to the sea."""
    rng = generator(scene.seed, "scene", scene.index, "shore")
    pen = Pen(canvas, BY_NAME["sea"].code, height=scene.size[1])
    across = np.linspace(-0.02, scene.size[0] / scene.size[1] + 0.02, 60)
    wave = shore + 0.012 * np.sin(across * rng.uniform(7, 11) + rng.uniform(0, 6.28))
    above = np.stack([across, np.full_like(across, shore - 0.03)], 1)[::-1]
    for lift, colour in ((0.012, (206, 178, 128)), (0.0, (250, 252, 252)), (-0.016, _SEA[1])):
        wet = Pen(canvas, BY_NAME["sand"].code, height=scene.size[1]) if lift > 0 else pen
        wet.fill(np.concatenate([np.stack([across, wave + lift], 1), above]), colour)


def paint_scenery(canvas: Canvas, scene: Scene) -> None:
    """Add the scenery of the scene's context to sky and ground."""
    width, height = scene.size
    land = Landscape(
        Pen(canvas, BY_NAME["sky"].code, height=height),
        Pen(canvas, BY_NAME[_GROUNDS[scene.context]].code, height=height),
        Pen(canvas, VOID, height=height),
        scene.horizon, width / height, generator(scene.seed, "scene", scene.index, "scenery"),
    )  # fmt: skip
    _PAINTERS[scene.context](land)


def add_weather(image: NDArray[np.uint8], scene: Scene, salient: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A copy of the image (H, W, 3) with the context's weather; `salient` (H, W) pixels get less fog."""
    if scene.context == "fog":
        return _add_fog(image, scene, salient)
    drawn = image.copy()
    rng = generator(scene.seed, "scene", scene.index, "weather")
    width, height = scene.size
    if scene.context == "winter":
        for x, y, size in rng.random((55, 3)):
            place = (round(x * width * 16), round(y * height * 16))
            cv2.circle(drawn, place, round((0.004 + 0.007 * size) * height * 16), (255, 255, 255), -1, cv2.LINE_AA, 4)
    elif scene.context == "autumn":
        for i, (x, y, turn) in enumerate(rng.random((12, 3))):
            place = (round(x * width * 16), round(y * 0.8 * height * 16))
            axes = (round(0.017 * height * 16), round(0.009 * height * 16))
            cv2.ellipse(drawn, place, axes, float(180 * turn), 0, 360, _LEAF_COLOURS[i % 3], -1, cv2.LINE_AA, 4)
    return drawn


def _add_fog(image: NDArray[np.uint8], scene: Scene, salient: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Fog, densest at the horizon, thinner towards the viewer and over salient objects."""
    rows = np.linspace(0, 1, image.shape[0], dtype=np.float32)
    density = 0.28 + 0.4 * np.exp(-(((rows - scene.horizon) / 0.16) ** 2))
    alpha = np.repeat(density[:, None], image.shape[1], axis=1)
    alpha[salient] *= 0.3
    alpha = cv2.blur(alpha, (3, 3))[..., None]
    return np.rint(image * (1 - alpha) + _FOG_COLOUR * alpha).astype(np.uint8)


def compute_shading(masks: list[NDArray[np.bool_]], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Factors (H, W) that make each object slightly brighter at its top and darker at its base."""
    factors = np.ones(shape, np.float32)
    for mask in masks:
        rows = np.flatnonzero(mask.any(axis=1))
        if len(rows):
            top, bottom = int(rows[0]), int(rows[-1]) + 1
            slope = np.linspace(1.06, 0.86, bottom - top, dtype=np.float32)[:, None]
            np.copyto(factors[top:bottom], slope, where=mask[top:bottom])
    return factors


def apply_light(
    image: NDArray[np.uint8], glow: NDArray[np.uint8], shade: NDArray[np.floating], context: str
) -> NDArray[np.uint8]:
    """The image (H, W, 3) under the context's light; `glow` (H, W) 0-255 is the light that each pixel emits."""
    light = np.asarray(CONTEXT_COLOURS[context].light, np.float32)
    own = glow[..., None].astype(np.float32) / 255
    lit = image * ((light + (1 - light) * own) * shade[..., None])
    return np.rint(np.minimum(lit, 255)).astype(np.uint8)


@dataclass(frozen=True)
class Landscape:
    """Pens for sky, ground and void, and the image's geometry; all lengths are in units of the image's height.

    `horizon` is the horizon's y, `width` the image's width.
    """

    sky: Pen
    ground: Pen
    void: Pen
    horizon: float
    width: float
    rng: np.random.Generator

    def sample_ground(self, count: int, *, top: float | None = None) -> NDArray[np.float64]:
        """Random points (count, 2) on the ground, denser towards the horizon as in perspective."""
        start = self.horizon + 0.02 if top is None else top
        down = start + (1 - start) * self.rng.random(count) ** 1.4
        return np.stack([self.rng.random(count) * self.width, down], axis=1)


def _place_diamonds(spots: NDArray[np.float64], wide: float, tall: float, horizon: float) -> NDArray[np.float64]:
    """Small diamonds (n, 4, 2) at the spots, larger towards the viewer."""
    near = (0.35 + 0.65 * (spots[:, 1:] - horizon) / (1 - horizon))[:, None]
    diamond = np.array([(-wide, 0), (0, -tall), (wide, 0), (0, tall)])[None]
    return spots[:, None] + diamond * near


def _paint_clouds(land: Landscape, count: int, colour: Colour) -> None:
    """Groups of ovals in the upper sky."""
    for _ in range(count):
        x, y = land.rng.random() * land.width, land.horizon * land.rng.uniform(0.15, 0.6)
        size = land.rng.uniform(0.04, 0.08)
        for dx, dy, r in ((-1.2, 0.15, 0.7), (0, -0.1, 1.0), (1.1, 0.1, 0.75), (0.1, 0.3, 1.5)):
            land.sky.oval(x + dx * size, y + dy * size, r * size, r * size * 0.55, colour, glow=1)


def _paint_disc(
    land: Landscape, y: float, radius: float, colour: Colour, halo: Colour, *, margin: float = 0.12
) -> float:
    """The sun or the moon: a disc with a halo at `y`, `margin` of the width or more from each side; returns its x."""
    x = land.rng.uniform(margin, 1 - margin) * land.width
    land.sky.oval(x, y, radius * 1.5, radius * 1.5, halo, glow=1)
    land.sky.oval(x, y, radius, radius, colour, glow=1)
    return x


def _paint_meadow(land: Landscape) -> None:
    """Sun, clouds, tufts of grass and flowers."""
    _paint_disc(land, 0.12, 0.06, (255, 236, 130), (232, 238, 214))
    _paint_clouds(land, 3, (252, 253, 255))
    for colour in ((64, 136, 54), (120, 184, 78), (52, 118, 48)):
        spots = land.sample_ground(45)
        near = (0.35 + 0.65 * (spots[:, 1:] - land.horizon) / (1 - land.horizon))[:, None]
        tuft = np.array(
            [(-0.008, 0), (-0.016, -0.03), (-0.002, -0.01), (0.002, -0.04), (0.006, -0.01), (0.018, -0.028), (0.01, 0)]
        )
        land.ground.scatter(spots[:, None] + tuft[None] * near, colour)
    for colour in ((250, 250, 250), (250, 214, 70), (226, 96, 120)):
        for x, y in land.sample_ground(4, top=land.horizon + 0.1):
            size = 0.008 + 0.008 * (y - land.horizon)
            land.ground.stroke([(x, y), (x, y + 2.4 * size)], (60, 126, 52), 0.006)
            land.ground.oval(x, y, size, size, colour)


def _paint_winter(land: Landscape) -> None:
    """Pines under snow, drifts."""
    for x in np.sort(land.rng.random(6)) * land.width:
        base, tall = land.horizon + land.rng.uniform(0.0, 0.03), land.rng.uniform(0.13, 0.24)
        trunk = [(x - 0.01, base), (x + 0.01, base), (x + 0.01, base - 0.04), (x - 0.01, base - 0.04)]
        land.void.fill(trunk, (104, 80, 66))
        for level in (0.0, 0.3, 0.6):
            y, half = base - 0.03 - tall * level, tall * (0.3 - 0.24 * level)
            land.void.fill([(x - half, y), (x + half, y), (x, y - tall * 0.45)], (62, 104, 96))
            snow = [(x - half * 0.5, y - tall * 0.22), (x + half * 0.5, y - tall * 0.22), (x, y - tall * 0.45)]
            land.void.fill(snow, (246, 250, 254))
    for _ in range(6):
        x, y = land.rng.random() * land.width, land.rng.uniform(land.horizon + 0.06, 0.96)
        land.ground.oval(x, y, land.rng.uniform(0.12, 0.3), 0.018, (200, 214, 236))
    land.ground.scatter(_place_diamonds(land.sample_ground(50), 0.006, 0.005, land.horizon), (255, 255, 255), glow=0.5)


def _paint_dusk(land: Landscape) -> None:
    """The sun on the horizon, red clouds, furrows."""
    _paint_disc(land, land.horizon - 0.045, 0.085, (255, 224, 130), (254, 180, 104))
    for _ in range(4):
        x, y = land.rng.random() * land.width, land.horizon * land.rng.uniform(0.2, 0.75)
        land.sky.oval(x, y, land.rng.uniform(0.12, 0.26), 0.012, (230, 112, 110), glow=1)
    left, right = -0.1, land.width + 0.1
    hills = ((left, 0.01), (left, -0.02), (land.width * 0.3, -0.005), (right, -0.03), (right, 0.01))
    land.ground.fill([(x, land.horizon + y) for x, y in hills], (104, 70, 84))
    vanish = land.rng.uniform(0.3, 0.7) * land.width
    for foot in np.linspace(-1.6, 1.6, 19):
        end = vanish + foot * land.width
        furrow = [(vanish + foot * 0.32, land.horizon + 0.03), (end - 0.02, 1.02), (end + 0.02, 1.02)]
        land.ground.fill(furrow, (84, 52, 44))
    land.ground.scatter(_place_diamonds(land.sample_ground(60), 0.009, 0.006, land.horizon), (164, 112, 80))


def _paint_autumn(land: Landscape) -> None:
    """Trees in colour, a carpet of leaves."""
    _paint_clouds(land, 2, (252, 246, 236))
    for x in np.sort(land.rng.random(5)) * land.width:
        base, tall = land.horizon + land.rng.uniform(0.0, 0.03), land.rng.uniform(0.16, 0.26)
        crown = ((226, 122, 40), (204, 78, 40), (238, 176, 60))[int(land.rng.integers(3))]
        land.void.box(x - 0.012, base - tall * 0.5, x + 0.012, base, (100, 70, 52))
        for dx, dy, r in ((-0.3, 0.6, 0.28), (0.3, 0.6, 0.28), (0, 0.8, 0.34)):
            land.void.fill(oval_points(x + dx * tall, base - dy * tall, r * tall, r * tall * 0.85), crown)
    for colour in ((236, 176, 70), (196, 70, 36), (140, 78, 40), (228, 132, 44)):
        land.ground.scatter(_place_diamonds(land.sample_ground(70), 0.018, 0.009, land.horizon), colour)


def _paint_street(land: Landscape) -> None:
    """A row of buildings, the kerb, lane markings."""
    _paint_clouds(land, 2, (240, 244, 248))
    x = -0.02
    while x < land.width:
        wide, tall = land.rng.uniform(0.12, 0.2), land.rng.uniform(0.09, 0.22)
        walls = ((176, 150, 140), (150, 160, 176), (190, 176, 150), (160, 140, 152))[int(land.rng.integers(4))]
        land.void.box(x, land.horizon - tall, x + wide, land.horizon, walls)
        rows, columns = np.meshgrid(
            np.arange(land.horizon - tall + 0.025, land.horizon - 0.04, 0.055),
            np.arange(x + 0.02, x + wide - 0.025, 0.045),
        )
        pane = np.array([(0, 0), (0.022, 0), (0.022, 0.03), (0, 0.03)])
        land.void.scatter(np.stack([columns.ravel(), rows.ravel()], 1)[:, None] + pane, (226, 232, 220))
        x += wide + 0.004
    kerb = land.horizon + 0.035
    land.ground.box(-0.05, land.horizon, land.width + 0.05, kerb, (186, 184, 178))
    land.ground.box(-0.05, kerb, land.width + 0.05, kerb + 0.012, (140, 138, 136))
    grains = _place_diamonds(land.sample_ground(90, top=kerb + 0.02), 0.006, 0.004, land.horizon)
    land.ground.scatter(grains, (78, 80, 88))
    start, middle = -land.rng.random() * 0.3, land.horizon + 0.62 * (1 - land.horizon)
    for left in np.arange(start, land.width, 0.34):
        lane = [(left, middle), (left + 0.18, middle), (left + 0.17, middle + 0.03), (left - 0.01, middle + 0.03)]
        land.ground.fill(lane, (244, 240, 226))


def _paint_night(land: Landscape) -> None:
    """Stars, the moon, paving stones, two lamps."""
    stars = np.stack([land.rng.random(40) * land.width, land.rng.random(40) * land.horizon * 0.9], axis=1)
    for size, some in zip((0.004, 0.006, 0.009), np.array_split(stars, 3), strict=True):
        land.sky.scatter(some[:, None] + oval_points(0, 0, size, size)[::5], (250, 246, 214), glow=1)
    x = _paint_disc(land, 0.13, 0.07, (250, 244, 208), (58, 66, 116), margin=0.34)
    land.sky.oval(x + 0.035, 0.115, 0.058, 0.058, (30, 36, 78), glow=1)
    for y in land.horizon + (1 - land.horizon) * np.array([0.06, 0.16, 0.3, 0.5, 0.76]):
        land.ground.stroke([(-0.1, y), (land.width + 0.1, y)], (84, 84, 100), 0.008)
    for step in np.linspace(-1.4, 1.4, 15):
        foot = land.width / 2 + step * land.width * 1.5
        land.ground.stroke([(land.width / 2 + step * 0.9, land.horizon), (foot, 1.05)], (84, 84, 100), 0.008)
    for x in (land.rng.uniform(0.06, 0.22) * land.width, land.rng.uniform(0.78, 0.94) * land.width):
        base = land.horizon + 0.05
        for size, glow in ((0.22, 0.2), (0.16, 0.4), (0.1, 0.65)):
            land.ground.oval(x, base + 0.02, size, size * 0.24, (190, 176, 140), glow=glow)
        land.void.box(x - 0.008, base - 0.3, x + 0.008, base, (70, 70, 84))
        land.void.oval(x, base - 0.31, 0.032, 0.036, (255, 232, 150), glow=1)
        land.void.box(x - 0.03, base - 0.36, x + 0.03, base - 0.34, (70, 70, 84))


def _paint_beach(land: Landscape) -> None:
    """Sun, waves, a sailing boat, shells in the sand."""
    _paint_disc(land, 0.11, 0.065, (255, 242, 168), (214, 236, 236))
    _paint_clouds(land, 1, (250, 252, 255))
    for _ in range(9):
        x, y = land.rng.random() * land.width, land.horizon + 0.012 + 0.085 * land.rng.random()
        long = land.rng.uniform(0.03, 0.07)
        line = [(x - long, y), (x - long / 2, y - 0.008), (x, y), (x + long / 2, y - 0.008), (x + long, y)]
        Pen(land.sky.canvas, BY_NAME["sea"].code, height=land.sky.height).stroke(line, (176, 224, 232), 0.007)
    x, y, size = land.rng.uniform(0.1, 0.9) * land.width, land.horizon + 0.02, 0.06
    hull = [(x - size, y), (x + size, y), (x + size * 0.6, y + size * 0.4), (x - size * 0.6, y + size * 0.4)]
    land.void.fill(hull, (150, 76, 56))
    land.void.fill([(x, y - size * 2), (x + size * 0.8, y - 0.01), (x, y - 0.01)], (252, 250, 244))
    land.void.fill([(x - 0.01, y - size * 1.7), (x - size * 0.6, y - 0.01), (x - 0.01, y - 0.01)], (236, 110, 84))
    top = land.horizon + 0.17
    for colour in ((206, 166, 108), (250, 236, 200)):
        land.ground.scatter(_place_diamonds(land.sample_ground(90, top=top), 0.007, 0.005, land.horizon), colour)
    for x, y in land.sample_ground(5, top=top + 0.04):
        colour = ((244, 150, 120), (250, 244, 236), (236, 176, 160))[int(land.rng.integers(3))]
        land.ground.oval(x, y, 0.014, 0.011, colour)
        land.ground.stroke([(x, y - 0.008), (x, y + 0.008)], (190, 120, 100), 0.005)


def _paint_fog(land: Landscape) -> None:
    """A far shore, ripples, reeds."""
    shore = [(-0.1, land.horizon + 0.015)]
    for x in np.linspace(-0.05, land.width + 0.05, 22):
        shore.append((float(x), land.horizon - land.rng.uniform(0.03, 0.1)))
    land.void.blob([*shore, (land.width + 0.1, land.horizon + 0.015)], (134, 152, 156))
    for colour in ((186, 206, 212), (120, 154, 168)):
        for x, y in land.sample_ground(16, top=land.horizon + 0.04):
            long = 0.03 + 0.12 * (y - land.horizon)
            land.ground.oval(x, y, long, 0.005 + 0.006 * (y - land.horizon), colour)
    for side in (-1, 1):
        for i in range(5):
            x = (0.02 + 0.02 * i) if side < 0 else land.width - 0.02 - 0.02 * i
            tip = 0.99 - land.rng.uniform(0.1, 0.2)
            land.void.stroke([(x, 1.02), (x - side * 0.01 * i, tip)], (110, 128, 96), 0.009)
            land.void.oval(x - side * 0.01 * i, tip, 0.009, 0.028, (112, 84, 62))


_PAINTERS: dict[str, Callable[[Landscape], None]] = {
    "meadow": _paint_meadow, "beach": _paint_beach, "winter": _paint_winter, "street": _paint_street,
    "dusk": _paint_dusk, "night": _paint_night, "fog": _paint_fog, "autumn": _paint_autumn,
}  # fmt: skip
