"""Drawings of the twelve concepts: one function `draw_CONCEPT(pen, look)` each, in the object's own coordinates.

>>> from hardlook.randomness import generator
>>> from hardlook.world.appearance import sample_appearance
>>> from hardlook.world.pen import Canvas
>>> def covered_share(concept: str) -> float:
...     canvas = Canvas.blank((40, 40))
...     look = sample_appearance(concept, generator(0, concept), against=(90.0, 160.0, 70.0), contrasting=True)
...     DRAWINGS[concept](Pen(canvas, layer=1, x=20, y=38, height=30 * RELATIVE_HEIGHT[concept]), look)
...     return float((canvas.layers == 1).mean())
>>> all(0.05 < covered_share(concept) < 0.7 for concept in DRAWINGS)
True
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hardlook.world.appearance import Appearance, darken, lighten
from hardlook.world.pen import Pen, box_points, oval_points, smooth

_PINK = (236, 140, 140)
_INK = (34, 28, 36)


def draw_cat(pen: Pen, look: Appearance) -> None:
    """Sitting, ears up, the tail curled beside it."""
    wide = 0.9 + 0.25 * look.girth
    lift = 0.06 * look.stretch
    shade = darken(look.main, 0.25)
    tail = [(0.16, -0.07), (0.36, -0.05), (0.44, -0.2), (0.36, -0.36), (0.44, -0.5)]
    pen.stroke(tail if look.quirk < 0.5 else [(x, y * 1.2) for x, y in tail[:4]], shade, 0.1)
    body = smooth([
        (0, -0.62), (0.15 * wide, -0.5), (0.23 * wide, -0.24), (0.25 * wide, -0.02),
        (0, 0.0), (-0.25 * wide, -0.02), (-0.23 * wide, -0.24), (-0.15 * wide, -0.5),
    ])  # fmt: skip
    pen.fill(body, look.main)
    if look.pattern == "striped":
        bars = [
            [(s * 0.3, y), (s * 0.3, y + 0.055), (s * 0.1, y + 0.05)] for s in (-1, 1) for y in (-0.45, -0.32, -0.19)
        ]
        pen.pattern(body, bars, look.detail)
    elif look.pattern == "patched":
        pen.pattern(body, [oval_points(0.2, -0.3, 0.14, 0.16), oval_points(-0.2, -0.08, 0.1, 0.1)], look.detail)
    pen.oval(0, -0.32, 0.09 * wide, 0.17, look.second)
    for side in (-1, 1):
        pen.box(side * 0.085 - 0.055, -0.32, side * 0.085 + 0.055, -0.02, look.main, radius=0.05)
        pen.oval(side * 0.09, -0.035, 0.075, 0.04, look.second)
    pen.stroke([(0, -0.3), (0, -0.03)], shade, 0.02)
    _draw_cat_face(pen, look, -0.7 - lift, wide)


def _draw_cat_face(pen: Pen, look: Appearance, y: float, wide: float) -> None:
    for side in (-1, 1):
        pen.fill([(side * 0.25, y - 0.02), (side * 0.23, y - 0.3), (side * 0.03, y - 0.15)], look.main)
        pen.fill([(side * 0.2, y - 0.08), (side * 0.2, y - 0.23), (side * 0.09, y - 0.15)], _PINK)
    head = oval_points(0, y, 0.245 * wide, 0.2)
    pen.fill(head, look.main)
    if look.pattern == "striped":
        bars = [[(x - 0.02, y - 0.2), (x + 0.02, y - 0.2), (x, y - 0.1)] for x in (-0.07, 0, 0.07)]
        pen.pattern(head, bars, look.detail)
    elif look.pattern == "patched":
        pen.pattern(head, [oval_points(0.14, y - 0.08, 0.12, 0.14)], look.detail)
    pen.oval(-0.045, y + 0.09, 0.065, 0.055, look.second)
    pen.oval(0.045, y + 0.09, 0.065, 0.055, look.second)
    iris = (150, 196, 70) if look.quirk < 0.6 else (246, 200, 60)
    for side in (-1, 1):
        pen.oval(side * 0.1, y - 0.01, 0.052, 0.058, iris, glow=0.5)
        pen.oval(side * 0.1, y - 0.01, 0.022, 0.052, _INK)
        pen.stroke([(side * 0.1, y + 0.08), (side * 0.27, y + 0.06)], lighten(look.second, 0.4), 0.014)
        pen.stroke([(side * 0.1, y + 0.1), (side * 0.26, y + 0.12)], lighten(look.second, 0.4), 0.014)
    pen.fill([(-0.032, y + 0.04), (0.032, y + 0.04), (0, y + 0.08)], _PINK)


def draw_dog(pen: Pen, look: Appearance) -> None:
    """Standing, from the side, with a hanging ear, a muzzle and a raised tail."""
    long = 0.9 + 0.3 * look.stretch
    leg = 0.34 + 0.1 * (1 - look.girth)
    thick = 0.05 + 0.02 * look.girth
    shade = darken(look.main, 0.25)
    for x, colour in ((-0.25, shade), (0.17, shade), (-0.36, look.main), (0.26, look.main)):
        pen.box(x * long - thick, -leg - 0.12, x * long + thick, -0.01, colour, radius=0.04)
        pen.oval(x * long + 0.025, -0.03, thick + 0.03, 0.035, look.second if colour is look.main else colour)
    top = -leg - 0.3
    wag = 0.14 * look.quirk
    pen.stroke(
        [(-0.38 * long, top + 0.08), (-0.5 * long, top - 0.05), (-0.56 * long + wag, top - 0.24)], look.main, 0.075
    )
    body = smooth([
        (-0.43 * long, top + 0.12), (-0.3 * long, top), (0.1, top + 0.02), (0.34 * long, top - 0.04),
        (0.36 * long, top + 0.22), (0.1, top + 0.3 + 0.05 * look.girth),
        (-0.3 * long, top + 0.27), (-0.42 * long, top + 0.24),
    ])  # fmt: skip
    pen.fill(body, look.main)
    if look.pattern == "spotted":
        spots = [(-0.28, 0.1), (-0.12, 0.05), (-0.15, 0.2), (0.03, 0.12), (0.16, 0.2), (0.2, 0.06), (-0.33, 0.2)]
        pen.pattern(body, [oval_points(x * long, top + y, 0.05, 0.04) for x, y in spots], look.detail)
    elif look.pattern == "patched":
        pen.pattern(body, [oval_points(-0.12 * long, top + 0.03, 0.19, 0.13)], look.detail)
    _draw_dog_face(pen, look, 0.38 * long, top - 0.1)


def _draw_dog_face(pen: Pen, look: Appearance, x: float, y: float) -> None:
    pen.fill([(x - 0.17, y + 0.08), (x + 0.1, y), (x + 0.02, y + 0.3), (x - 0.2, y + 0.28)], look.main)
    pen.stroke([(x - 0.16, y + 0.15), (x + 0.05, y + 0.18)], (206, 56, 60), 0.05)
    pen.oval(x + 0.02, y - 0.02, 0.19, 0.165, look.main)
    pen.oval(x + 0.1, y + 0.13, 0.035, 0.06, (238, 120, 130))
    pen.oval(x + 0.17, y + 0.05, 0.15, 0.095, look.second)
    pen.oval(x + 0.29, y + 0.0, 0.042, 0.036, _INK)
    pen.stroke([(x + 0.14, y + 0.11), (x + 0.25, y + 0.09)], darken(look.second, 0.5), 0.016)
    pen.oval(x + 0.08, y - 0.06, 0.034, 0.04, _INK)
    pen.oval(x + 0.09, y - 0.075, 0.012, 0.012, (255, 255, 255))
    droop = 0.06 * look.stretch
    top, tip = [(x - 0.14, y - 0.14), (x - 0.02, y - 0.16)], (x - 0.12, y + 0.16 + droop)
    pen.blob([*top, (x - 0.03, y + 0.04), tip, (x - 0.2, y + 0.06)], look.detail)


_BIRD_INK = (30, 26, 34)
_WHITE = (252, 252, 250)


def draw_duck(pen: Pen, look: Appearance) -> None:
    """From the side: a boat-shaped body with a turned-up tail, a round head and a flat bill."""
    plump = 0.02 + 0.08 * look.girth
    head_y = -0.74 - 0.05 * look.stretch
    # A mallard has its second colour on the head, other ducks their main one.
    crown = look.second if look.second[1] > look.second[0] + 25 else look.main
    for x in (-0.06, 0.1):
        pen.stroke([(x, -0.12), (x, -0.02)], look.detail, 0.04)
        pen.fill([(x - 0.04, 0), (x + 0.02, -0.05), (x + 0.13, 0)], look.detail)
    body = smooth([
        (-0.56, -0.5), (-0.36, -0.4), (-0.08, -0.45 - plump / 2), (0.12, -0.52), (0.32, -0.46), (0.38, -0.28),
        (0.2, -0.09), (-0.12, -0.06 ), (-0.38, -0.14), (-0.5, -0.3),
    ])  # fmt: skip
    pen.fill([(0.06, -0.48), (0.12, head_y), (0.32, head_y), (0.36, -0.34)], crown)
    pen.fill(body, look.main)
    wing = [(-0.36, -0.32), (-0.2, -0.42), (0.04, -0.4), (0.12, -0.28), (-0.06, -0.17), (-0.28, -0.2)]
    pen.blob(wing, darken(look.main, 0.16))
    pen.stroke([(-0.24, -0.27), (-0.06, -0.25)], darken(look.main, 0.34), 0.02)
    pen.stroke([(-0.2, -0.34), (0.0, -0.32)], darken(look.main, 0.34), 0.02)
    pen.oval(0.22, head_y, 0.19, 0.18, crown)
    if look.pattern == "collared":
        collar = _WHITE if crown is not look.main else look.detail
        pen.stroke([(0.08, -0.52), (0.2, -0.49), (0.34, -0.52)], collar, 0.05)
    tip = (0.58 + 0.03 * look.quirk, head_y + 0.03)
    bill = [(0.36, head_y - 0.02), (0.46, head_y + 0.01), tip, (0.5, head_y + 0.1), (0.37, head_y + 0.11)]
    pen.blob(bill, look.detail)
    pen.stroke([(0.4, head_y + 0.05), (0.54, head_y + 0.05)], darken(look.detail, 0.4), 0.016)
    pen.oval(0.28, head_y - 0.04, 0.035, 0.042, _BIRD_INK)
    pen.oval(0.29, head_y - 0.055, 0.013, 0.013, _WHITE)


def draw_owl(pen: Pen, look: Appearance) -> None:
    """From the front: ear tufts, large eyes in pale discs, a scaled belly and folded wings."""
    wide = 0.3 + 0.08 * look.girth
    tuft = 0.06 * look.stretch
    for side in (-1, 1):
        for toe in (0.05, 0.11, 0.17):
            pen.oval(side * toe, -0.025, 0.026, 0.04, (236, 170, 60))
    body = smooth([
        (0, -0.9), (wide * 0.85, -0.84), (wide, -0.6), (wide * 1.02, -0.32), (wide * 0.6, -0.05),
        (0, -0.03), (-wide * 0.6, -0.05), (-wide * 1.02, -0.32), (-wide, -0.6), (-wide * 0.85, -0.84),
    ])  # fmt: skip
    for side in (-1, 1):
        pen.fill([(side * wide * 0.35, -0.86), (side * wide * 0.95, -0.97 - tuft), (side * wide, -0.7)], look.main)
    pen.fill(body, look.main)
    belly = oval_points(0, -0.28, wide * 0.68, 0.25)
    pen.fill(belly, look.second)
    if look.pattern == "scaled":
        scales = [
            [(x - 0.035, y), (x + 0.035, y), (x, y + 0.055)]
            for row, y in enumerate((-0.44, -0.35, -0.26, -0.17))
            for x in ((-0.16, -0.05, 0.06, 0.17) if row % 2 else (-0.11, 0.0, 0.11))
        ]
        pen.pattern(belly, scales, look.detail)
    for side in (-1, 1):
        wing = ((0.82, -0.54), (1.12, -0.4), (1.0, -0.14), (0.68, -0.2))
        pen.blob([(side * wide * x, y) for x, y in wing], look.detail)
    iris = (250, 206, 60) if look.quirk < 0.6 else (240, 140, 50)
    for side in (-1, 1):
        pen.oval(side * 0.135, -0.69, 0.15, 0.155, look.second)
        pen.oval(side * 0.13, -0.69, 0.1, 0.105, iris, glow=0.9)
        pen.oval(side * 0.125, -0.69, 0.055, 0.06, _BIRD_INK)
        pen.oval(side * 0.125 + 0.02, -0.715, 0.018, 0.018, _WHITE, glow=0.5)
    pen.fill([(-0.045, -0.64), (0.045, -0.64), (0, -0.53)], (240, 168, 56))


_SPECKS = ((-0.18, -0.5), (-0.05, -0.3), (0.14, -0.42), (0.22, -0.22), (-0.22, -0.24), (0.02, -0.14), (0.06, -0.56))


def _draw_leaf(pen: Pen, x: float, y: float, size: float) -> None:
    leaf = ((0.0, 0.0), (0.12, -0.1), (0.3, -0.08), (0.18, 0.03))
    pen.blob([(x + dx * size, y + dy * size) for dx, dy in leaf], (92, 158, 70))
    pen.stroke([(x + 0.03, y - 0.01), (x + 0.22 * size, y - 0.06 * size)], (56, 112, 50), 0.018)


def _draw_fruit_surface(pen: Pen, look: Appearance, shape: NDArray[np.float64]) -> None:
    """The surface of a fruit: its shaded side, and blush or specks."""
    x = 0.13 * (1 if look.quirk < 0.5 else -1)
    pen.pattern(shape, [np.concatenate([shape, shape[::-1] * (0.93, 0.9) + (-0.07, -0.02)])], darken(look.main, 0.16))
    if look.pattern == "blushing":
        for size, share in ((0.27, 0.25), (0.21, 0.45), (0.14, 0.65)):
            red, green, blue = (m + (s - m) * share for m, s in zip(look.main, look.second, strict=True))
            pen.pattern(shape, [oval_points(-x, -0.34, size, size * 1.1)], (red, green, blue))
    elif look.pattern == "speckled":
        pen.pattern(shape, [oval_points(a, b, 0.016, 0.016) for a, b in _SPECKS], lighten(look.main, 0.5))


def draw_apple(pen: Pen, look: Appearance) -> None:
    """Round, with a dip at the stem and a leaf."""
    wide = 0.44 + 0.06 * look.girth
    top = -0.82 + 0.06 * look.stretch
    shape = smooth([
        (0, top + 0.09), (wide * 0.45, top), (wide * 0.92, top + 0.16), (wide, -0.42),
        (wide * 0.72, -0.1), (wide * 0.3, 0.0),
        (0, -0.03), (-wide * 0.3, 0.0), (-wide * 0.72, -0.1), (-wide, -0.42),
        (-wide * 0.92, top + 0.16), (-wide * 0.45, top),
    ])  # fmt: skip
    pen.fill(shape, look.main)
    _draw_fruit_surface(pen, look, shape)
    pen.oval(-wide * 0.5, top + 0.24, 0.06, 0.11, lighten(look.main, 0.65), turn=0.5)
    pen.pattern(shape, [oval_points(0.0, top + 0.09, 0.14, 0.05)], darken(look.main, 0.4))
    pen.stroke([(0, top + 0.1), (0.02, top - 0.04), (0.06, top - 0.14)], look.detail, 0.05)
    _draw_leaf(pen, 0.04, top - 0.02, 1.0 + 0.3 * look.quirk)


def draw_pear(pen: Pen, look: Appearance) -> None:
    """A wide bulb below, a narrow neck above, a stem and a leaf."""
    wide = 0.33 + 0.06 * look.girth
    neck = 0.13 + 0.03 * look.stretch
    lean = 0.05 * (look.quirk - 0.5)
    shape = smooth([
        (lean, -0.88), (neck + lean, -0.8), (neck + 0.03, -0.6), (wide * 0.92, -0.4),
        (wide, -0.2), (wide * 0.65, -0.03),
        (0, 0.0), (-wide * 0.65, -0.03), (-wide, -0.2), (-wide * 0.92, -0.4),
        (-neck - 0.03, -0.6), (-neck + lean, -0.8),
    ])  # fmt: skip
    pen.fill(shape, look.main)
    _draw_fruit_surface(pen, look, shape)
    pen.oval(-wide * 0.5, -0.34, 0.05, 0.12, lighten(look.main, 0.6), turn=0.25)
    pen.stroke([(lean, -0.86), (lean + 0.02, -0.94), (lean + 0.06, -0.99)], look.detail, 0.045)
    _draw_leaf(pen, lean + 0.03, -0.9, 0.85 + 0.3 * look.quirk)


def _heart_points(x: float, y: float, size: float) -> NDArray[np.float64]:
    corners = [(0, 0.9), (-0.9, 0.0), (-0.75, -0.7), (-0.25, -0.75), (0, -0.4), (0.25, -0.75), (0.75, -0.7), (0.9, 0.0)]
    return smooth([(x + a * size, y + b * size) for a, b in corners])


def draw_cup(pen: Pen, look: Appearance) -> None:
    """A wide body with a round handle, filled with coffee; some have a saucer."""
    rim = 0.4 + 0.05 * look.girth
    foot = rim * (0.62 + 0.25 * look.stretch)
    base = -0.04
    if look.quirk > 0.5:
        pen.oval(0, -0.055, 0.58, 0.075, darken(look.second, 0.12))
        pen.oval(0, -0.075, 0.54, 0.06, look.second)
        base = -0.09
    handle = oval_points(rim * 0.92, -0.5, 0.19, 0.21)
    pen.stroke(handle, darken(look.main, 0.12), 0.1, closed=True)
    right = [(rim, -0.88), (rim * 0.97, -0.5), (rim * 0.6 + foot * 0.36, -0.25), (foot, base)]
    body = [*right, *((-x, y) for x, y in reversed(right))]
    pen.fill(body, look.main)
    pen.pattern(body, [[(rim * 0.55, -0.9), (rim, -0.9), (rim, base), (foot * 0.4, base)]], darken(look.main, 0.1))
    if look.pattern == "spotted":
        dots = [(-0.26, -0.62), (0.02, -0.62), (0.28, -0.62), (-0.13, -0.4), (0.16, -0.4), (-0.02, -0.18)]
        pen.pattern(body, [oval_points(x, y, 0.06, 0.06) for x, y in dots], look.second)
    elif look.pattern == "striped":
        pen.pattern(body, [box_points(-1, y, 1, y + 0.09) for y in (-0.68, -0.46, -0.24)], look.second)
    elif look.pattern == "heart":
        colour = (222, 70, 84) if look.main[0] > 235 or look.main[2] > 150 else look.second
        pen.fill(_heart_points(-0.02, -0.45, 0.16), colour)
    pen.oval(0, -0.88, rim, 0.1, lighten(look.main, 0.25))
    pen.oval(0, -0.87, rim * 0.88, 0.072, look.detail)
    pen.oval(-0.08, -0.865, rim * 0.3, 0.026, lighten(look.detail, 0.35))


def draw_bottle(pen: Pen, look: Appearance) -> None:
    """Shoulders, a neck with a cap, a label and a highlight along one side."""
    half = 0.15 + 0.045 * look.girth
    neck = 0.055 + 0.015 * look.stretch
    shoulder = -0.62 + 0.08 * look.quirk
    shape = smooth([
        (neck, -0.94), (neck, -0.84), (neck + 0.01, shoulder - 0.1),
        (half * 0.9, shoulder + 0.06), (half, shoulder + 0.2), (half, -0.2),
        (half * 0.97, -0.02), (0, 0.0), (-half * 0.97, -0.02), (-half, -0.2),
        (-half, shoulder + 0.2), (-half * 0.9, shoulder + 0.06),
        (-neck - 0.01, shoulder - 0.1), (-neck, -0.84), (-neck, -0.94),
    ])  # fmt: skip
    pen.fill(shape, look.main, glow=0.15)
    pen.pattern(shape, [box_points(half * 0.45, -0.95, 1, 0)], darken(look.main, 0.25))
    label = box_points(-half, -0.4, half, -0.13)
    pen.fill(label, look.second)
    if look.pattern == "striped":
        pen.pattern(label, [box_points(-half, -0.37, half, -0.33), box_points(-half, -0.2, half, -0.16)], look.detail)
    elif look.pattern == "heart":
        pen.fill(_heart_points(0, -0.26, 0.075), (214, 64, 76))
    else:
        pen.oval(0, -0.265, half * 0.5, 0.07, look.detail)
    pen.stroke([(-half * 0.6, shoulder + 0.18), (-half * 0.6, -0.45)], lighten(look.main, 0.6), 0.03)
    pen.stroke([(-half * 0.6, -0.1), (-half * 0.6, -0.05)], lighten(look.main, 0.6), 0.03)
    cap = (200, 164, 112) if look.stretch < 0.5 else look.detail
    pen.box(-neck - 0.02, -1.0, neck + 0.02, -0.91, cap, radius=0.015)
    pen.stroke([(-neck, -0.87), (neck, -0.87)], lighten(look.main, 0.3), 0.025)


_GLASS = (176, 214, 232)
_TYRE = (44, 42, 48)


def _draw_wheel(pen: Pen, x: float, radius: float) -> None:
    pen.oval(x, -radius, radius, radius, _TYRE)
    pen.oval(x, -radius, radius * 0.55, radius * 0.55, (206, 208, 214))
    pen.oval(x, -radius, radius * 0.2, radius * 0.2, (110, 112, 120))


def draw_car(pen: Pen, look: Appearance) -> None:
    """Bonnet, rounded cabin, two wheels."""
    half = 0.9 + 0.14 * look.stretch
    roof = -0.94 - 0.06 * look.girth
    back = -0.62 if look.quirk < 0.5 else -0.82
    cabin = smooth(
        [(back, -0.56), (back + 0.16, roof + 0.06), (-0.05, roof), (0.28, roof + 0.06), (0.56, -0.56), (0, -0.5)]
    )
    pen.fill(cabin, look.main)
    inner = [(back + 0.08, -0.58), (back + 0.22, roof + 0.14), (-0.1, roof + 0.1), (-0.1, -0.58)]
    pen.fill(inner, _GLASS, glow=0.25)
    pen.fill([(-0.02, -0.58), (-0.02, roof + 0.1), (0.22, roof + 0.14), (0.43, -0.58)], _GLASS, glow=0.25)
    pen.fill([(0.04, -0.58), (0.12, roof + 0.12), (0.2, roof + 0.14), (0.14, -0.58)], lighten(_GLASS, 0.6), glow=0.25)
    body = smooth([
        (-half, -0.5), (-half + 0.1, -0.61), (-0.3, -0.61), (0.5, -0.6), (half - 0.1, -0.52), (half, -0.36),
        (half - 0.02, -0.18), (0.3, -0.14), (-0.3, -0.14), (-half + 0.02, -0.18),
    ])  # fmt: skip
    pen.fill(body, look.main)
    if look.pattern == "striped":
        pen.pattern(body, [box_points(-half, -0.44, half, -0.36)], look.second)
    pen.pattern(body, [box_points(-half, -0.26, half, -0.1)], darken(look.main, 0.22))
    pen.stroke([(-0.06, -0.56), (-0.06, -0.22)], look.detail, 0.025)
    pen.stroke([(0.0, -0.47), (0.12, -0.47)], look.detail, 0.035)
    pen.oval(half - 0.07, -0.43, 0.06, 0.07, (255, 240, 170), glow=1.0)
    pen.oval(-half + 0.05, -0.45, 0.045, 0.06, (236, 70, 60), glow=0.7)
    pen.box(half - 0.2, -0.24, half + 0.03, -0.16, (196, 198, 204), radius=0.03)
    pen.box(-half - 0.03, -0.24, -half + 0.16, -0.16, (196, 198, 204), radius=0.03)
    for x in (-0.54, 0.54):
        pen.oval(x, -0.22, 0.25, 0.24, darken(look.main, 0.55))
        _draw_wheel(pen, x, 0.21)


def draw_bus(pen: Pen, look: Appearance) -> None:
    """A long box with a row of windows and a door; some have an upper deck."""
    double = look.quirk > 0.66
    half = 0.72 + 0.08 * look.stretch if double else 0.92 + 0.1 * look.stretch
    shell = box_points(-half, -0.98, half, -0.12, 0.1)
    pen.fill(shell, look.main)
    pen.pattern(shell, [box_points(-half, -1, half, -0.93)], lighten(look.main, 0.45))
    if look.pattern == "striped" or double:
        top, bottom = (-0.56, -0.46) if double else (-0.42, -0.34)
        pen.pattern(shell, [box_points(-half, top, half, bottom)], look.second)
    pen.pattern(shell, [box_points(-half, -0.22, half, -0.1)], darken(look.main, 0.3))
    rows = ((-0.87, -0.62), (-0.43, -0.25)) if double else ((-0.84, -0.5),)
    count = 4 if double else 5
    for top, bottom in rows:
        start, stop = -half + 0.09, half - (0.12 if double and top < -0.6 else 0.42)
        step = (stop - start) / count
        for i in range(count):
            left = start + i * step
            pen.box(left, top, left + step * 0.8, bottom, _GLASS, radius=0.03, glow=0.55)
            upper = [(left + step * 0.35, top + 0.02), (left + step * 0.5, top + 0.02)]
            shine = [(left + 0.02, bottom - 0.02), *upper, (left + 0.08, bottom - 0.02)]
            pen.fill(shine, lighten(_GLASS, 0.5), glow=0.55)
    door = -0.43 if double else -0.84
    pen.box(half - 0.38, door, half - 0.16, -0.16, look.detail, radius=0.02)
    pen.box(half - 0.35, door + 0.03, half - 0.28, -0.2, _GLASS, glow=0.4)
    pen.box(half - 0.26, door + 0.03, half - 0.19, -0.2, _GLASS, glow=0.4)
    pen.box(half - 0.11, door, half + 0.0, -0.45 if not double else -0.25, _GLASS, radius=0.03, glow=0.4)
    pen.oval(half - 0.05, -0.27 if not double else -0.19, 0.05, 0.05, (255, 240, 170), glow=1.0)
    pen.box(-half, -0.32, -half + 0.05, -0.22, (236, 70, 60), glow=0.7)
    for x in (-half * 0.58, half * 0.38):
        pen.oval(x, -0.17, 0.19, 0.18, darken(look.main, 0.6))
        _draw_wheel(pen, x, 0.16)


_LIT = (255, 226, 130)
_FRAME = (250, 248, 240)


def _draw_window(pen: Pen, x: float, y: float, half: float, tall: float) -> None:
    pen.box(x - half - 0.02, y - tall - 0.02, x + half + 0.02, y + tall + 0.02, _FRAME)
    pen.box(x - half, y - tall, x + half, y + tall, _LIT if pen.fade[1] < 0.3 else (150, 190, 214), glow=0.9)
    pen.stroke([(x, y - tall), (x, y + tall)], _FRAME, 0.022)
    pen.stroke([(x - half, y), (x + half, y)], _FRAME, 0.022)


def draw_house(pen: Pen, look: Appearance) -> None:
    """Walls, a pointed roof with a chimney, a door and windows."""
    half = 0.4 + 0.1 * look.girth
    eaves = -0.5 - 0.08 * look.stretch
    chimney = half * 0.55
    pen.box(chimney - 0.06, -0.97, chimney + 0.06, eaves, darken(look.second, 0.15))
    pen.box(chimney - 0.08, -0.99, chimney + 0.08, -0.93, darken(look.second, 0.35))
    walls = [(-half, 0), (-half, eaves), (0, -0.94), (half, eaves), (half, 0)]
    pen.fill(walls, look.main)
    if look.pattern == "bricks":
        rows = [
            box_points(x, y, x + 0.11, y + 0.035)
            for row, y in enumerate(np.arange(-0.52, -0.02, 0.13))
            for x in np.arange(-half + (0.14 if row % 2 else 0.02), half, 0.26)
        ]
        pen.pattern(walls, rows, darken(look.main, 0.16))
    elif look.pattern == "boards":
        boards = [box_points(-half, y, half, y + 0.018) for y in np.arange(-0.85, 0, 0.085)]
        pen.pattern(walls, boards, darken(look.main, 0.15))
    slope, over = (-0.94 - eaves) / half, 0.09
    roof = [(-half - over, eaves - slope * over), (0, -0.95), (half + over, eaves - slope * over)]
    inner = [(x, y + 0.15) for x, y in reversed(roof)]
    pen.fill([roof[0], (0, -1.0), roof[2], *inner], look.second)
    pen.stroke([inner[2], inner[1], inner[0]], darken(look.second, 0.3), 0.02)
    pen.oval(0, eaves - 0.12, 0.06, 0.06, _FRAME)
    pen.oval(0, eaves - 0.12, 0.04, 0.04, _LIT if pen.fade[1] < 0.3 else (150, 190, 214), glow=0.9)
    door = -half * 0.45 if look.quirk < 0.4 else (0.0 if look.quirk < 0.7 else half * 0.45)
    pen.box(door - 0.085, -0.34, door + 0.085, 0, _FRAME)
    pen.box(door - 0.065, -0.32, door + 0.065, 0, look.detail if look.detail[2] < 200 else (90, 70, 60))
    pen.oval(door + 0.04, -0.15, 0.015, 0.015, (250, 220, 120))
    for x in (-0.27, 0.27, 0.0):
        if abs(x - door) > 0.2 and abs(x) + 0.1 < half:
            _draw_window(pen, x, -0.24, 0.07, 0.08)
    pen.box(-half, -0.035, half, 0, darken(look.main, 0.4))


def draw_barn(pen: Pen, look: Appearance) -> None:
    """A gambrel roof, boards, a large door with crossed braces, a loft hatch; some have a silo."""
    half = 0.44 + 0.06 * look.girth
    if look.quirk > 0.55:
        left, right = half - 0.02, half + 0.24
        pen.box(left, -0.78, right, 0, (196, 198, 204))
        pen.fill(oval_points((left + right) / 2, -0.78, (right - left) / 2, 0.14), darken(look.second, 0.1))
        for y in (-0.62, -0.42, -0.22):
            pen.stroke([(left, y), (right, y)], (150, 152, 160), 0.02)
    knee = -0.78 - 0.03 * look.stretch
    walls = [(-half, 0), (-half, -0.5), (-half * 0.68, knee), (0, -0.97), (half * 0.68, knee), (half, -0.5), (half, 0)]
    pen.fill(walls, look.main)
    if look.pattern == "boards":
        boards = [box_points(x, -1, x + 0.02, 0) for x in np.arange(-half, half, 0.1)]
        pen.pattern(walls, boards, darken(look.main, 0.22))
    slope = [(half * 0.72, knee - 0.02), (half + 0.07, -0.43)]
    roof = [*((-x, y) for x, y in reversed(slope)), (0, -0.985), *slope]
    pen.stroke(roof, look.second, 0.09)
    pen.stroke([(x * 0.93, y + 0.06) for x, y in roof], look.detail, 0.025)
    pen.box(-0.25, -0.42, 0.25, 0, look.detail)
    for side in (-1, 1):
        left, right = sorted((side * 0.015, side * 0.225))
        pen.box(left, -0.39, right, 0, darken(look.main, 0.12))
        pen.stroke([(left, -0.39), (right, 0)], look.detail, 0.035)
        pen.stroke([(right, -0.39), (left, 0)], look.detail, 0.035)
    pen.box(-0.1, -0.74, 0.1, -0.56, look.detail)
    pen.box(-0.075, -0.715, 0.075, -0.56, (236, 196, 96) if look.stretch > 0.5 else darken(look.main, 0.6), glow=0.5)
    pen.stroke([(0, -0.72), (0, -0.57)], lighten(look.detail, 0.1), 0.02)


DRAWINGS: dict[str, Callable[[Pen, Appearance], None]] = {
    "cat": draw_cat, "dog": draw_dog, "car": draw_car, "bus": draw_bus, "house": draw_house, "barn": draw_barn,
    "apple": draw_apple, "pear": draw_pear, "cup": draw_cup, "bottle": draw_bottle, "duck": draw_duck, "owl": draw_owl,
}  # fmt: skip

# Heights relative to each other: wide drawings are lower, so that every concept covers about the same area.
RELATIVE_HEIGHT: dict[str, float] = {
    "cat": 1.0, "dog": 0.92, "car": 0.66, "bus": 0.78, "house": 1.08, "barn": 1.0,
    "apple": 0.82, "pear": 0.95, "cup": 0.78, "bottle": 1.2, "duck": 0.86, "owl": 0.98,
}  # fmt: skip

# Half of each drawing's greatest width, in units of its height.
HALF_WIDTH: dict[str, float] = {
    "cat": 0.5, "dog": 0.72, "car": 1.08, "bus": 1.06, "house": 0.62, "barn": 0.8,
    "apple": 0.52, "pear": 0.42, "cup": 0.66, "bottle": 0.24, "duck": 0.6, "owl": 0.44,
}  # fmt: skip
