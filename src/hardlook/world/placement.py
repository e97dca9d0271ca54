"""Where objects stand, so that each one that is annotated can also be seen.

A salient object is large, near the middle and in a colour that stands out from the ground; another is small, off
the middle and faded towards the ground. An object stays only if it and those already placed remain visible.

>>> from hardlook.randomness import generator
>>> from hardlook.world.objects import Wanted
>>> cast = (Wanted("owl", salient=True), Wanted("cup", salient=False))
>>> objects, target = place_objects(cast, "night", 0.4, (160, 120), generator(0, "placement"))
>>> objects[target].concept, objects[target].height > 40
('owl', True)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hardlook.world.drawings import HALF_WIDTH, STATURE
from hardlook.world.look import draw_look
from hardlook.world.objects import SceneObject, Wanted
from hardlook.world.pen import FINENESS, Canvas
from hardlook.world.settings import SETTINGS
from hardlook.world.sticker import paste

LEAST_VISIBLE = 0.6
LEAST_VISIBLE_TARGET = 0.8
LEAST_PIXELS = 60
_TRIES = 8
_SHORE = 0.2  # how far below the horizon the sand is dry
_LEAN = {"house": 0.0, "barn": 0.0, "car": 0.04, "bus": 0.04, "cup": 0.05, "apple": 0.3, "pear": 0.25}  # radians

_Mask = NDArray[np.bool_]


def place_objects(
    wanted: tuple[Wanted, ...], context: str, horizon: float, size: tuple[int, int], rng: np.random.Generator
) -> tuple[tuple[SceneObject, ...], int]:
    """The objects that found a place, from back to front, and the position among them of the first one wanted."""
    placed: list[SceneObject] = []
    masks: list[_Mask] = []
    for position, want in enumerate(wanted):
        for _ in range(_TRIES):
            candidate = _propose(want, placed[0] if placed else None, context, horizon, size, rng)
            silhouette = outline_of(candidate, size)
            if position == 0 or _all_visible([*placed, candidate], [*masks, silhouette]):
                placed.append(candidate)
                masks.append(silhouette)
                break
    counted: Counter[str] = Counter()
    numbered = []
    for thing in placed:
        numbered.append(replace(thing, instance=counted[thing.concept]))
        counted[thing.concept] += 1
    order = sorted(range(len(numbered)), key=lambda i: numbered[i].y)
    return tuple(numbered[i] for i in order), order.index(0)


def outline_of(thing: SceneObject, size: tuple[int, int]) -> _Mask:
    """The object's whole silhouette (H, W), nothing in front of it."""
    canvas = Canvas.blank(size, silhouettes_only=True)
    paste(canvas, thing, layer=1)
    silhouette: _Mask = canvas.layers[FINENESS // 2 :: FINENESS, FINENESS // 2 :: FINENESS] == 1
    return silhouette


def _all_visible(things: list[SceneObject], masks: list[_Mask]) -> bool:
    covered = np.zeros_like(masks[0])
    for i in sorted(range(len(things)), key=lambda i: things[i].y, reverse=True):
        visible, whole = int((masks[i] & ~covered).sum()), int(masks[i].sum())
        needed = LEAST_VISIBLE if i else LEAST_VISIBLE_TARGET
        if visible < max(LEAST_PIXELS, needed * whole):
            return False
        covered |= masks[i]
    return True


def _propose(
    want: Wanted, target: SceneObject | None, context: str, horizon: float, size: tuple[int, int],
    rng: np.random.Generator,
) -> SceneObject:  # fmt: skip
    width, height = size
    span = min(height, 0.75 * width)
    stature, half = STATURE[want.concept], HALF_WIDTH[want.concept]
    side = -1.0 if rng.random() < 0.5 else 1.0
    shares, places, lift = rng.random(4), rng.random(2), rng.random()
    if want.beside_target and want.salient and target is not None:
        tall = target.height * (0.5 + 0.2 * shares[0])
        x = target.x + side * (target.height * half * 0.7 + tall * half * (0.5 + 0.5 * places[0]))
        y = target.y + (0.16 * places[1] - 0.06) * height
    elif want.salient:
        tall = span * stature * ((0.56 if target is None else 0.46) + 0.12 * shares[0])
        tall = min(tall, 0.66 * width / (2 * half))
        x = width * (0.5 + side * 0.07 * places[0])
        y = height * (0.54 + 0.05 * places[1]) + tall / 2
    else:
        near = places[1]
        tall = span * stature * (0.19 + 0.05 * shares[0] + 0.06 * near)
        x = width * (0.5 + side * (0.22 + 0.26 * places[0]))
        first = horizon + (_SHORE if context == "beach" else 0.1)
        y = height * (first + (0.96 - first) * near)
    x = min(max(x, half * tall + 1), width - 2 - half * tall)
    y = min(max(y, tall + 2), height * 0.97)
    ground = SETTINGS[context].ground_at((y / height - horizon) / (1 - horizon))
    look = draw_look(want.concept, rng, against=ground, contrasting=want.salient)
    # Fog hides by itself what is not near: paler still, and nobody could name it.
    fade = 0.0 if want.salient else (0.28 if context == "fog" else 0.5) + 0.14 * shares[1]
    return SceneObject(
        want.concept, 0, want.salient, float(x), float(y), float(tall), bool(lift < 0.5),
        float(_LEAN.get(want.concept, 0.1) * (shares[2] - 0.5)), look, (ground, float(fade)),
    )  # fmt: skip
