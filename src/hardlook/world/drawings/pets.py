"""Cat and dog.

>>> from hardlook.randomness import generator
>>> from hardlook.world.look import draw_look
>>> from hardlook.world.pen import Canvas
>>> canvas = Canvas.blank((40, 40))
>>> look = draw_look("cat", generator(0, "cat"), against=(90.0, 160.0, 70.0), contrasting=True)
>>> cat(Pen(canvas, layer=1, x=20, y=38, height=30), look)
>>> 0.05 < float((canvas.layers == 1).mean()) < 0.6
True
"""

from __future__ import annotations

from hardlook.world.look import Look, darker, lighter
from hardlook.world.pen import Pen, oval_points, smooth

_PINK = (236, 140, 140)
_INK = (34, 28, 36)


def cat(pen: Pen, look: Look) -> None:
    """Sitting, ears up, the tail curled beside it."""
    wide = 0.9 + 0.25 * look.girth
    lift = 0.06 * look.stretch
    shade = darker(look.main, 0.25)
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
    _cat_face(pen, look, -0.7 - lift, wide)


def _cat_face(pen: Pen, look: Look, y: float, wide: float) -> None:
    for side in (-1, 1):
        pen.fill([(side * 0.25, y - 0.02), (side * 0.23, y - 0.3), (side * 0.03, y - 0.15)], look.main)
        pen.fill([(side * 0.2, y - 0.08), (side * 0.2, y - 0.23), (side * 0.09, y - 0.15)], _PINK)
    head = oval_points(0, y, 0.245 * wide, 0.2)
    pen.fill(head, look.main)
    if look.pattern == "striped":
        pen.pattern(
            head, [[(x - 0.02, y - 0.2), (x + 0.02, y - 0.2), (x, y - 0.1)] for x in (-0.07, 0, 0.07)], look.detail
        )
    elif look.pattern == "patched":
        pen.pattern(head, [oval_points(0.14, y - 0.08, 0.12, 0.14)], look.detail)
    pen.oval(-0.045, y + 0.09, 0.065, 0.055, look.second)
    pen.oval(0.045, y + 0.09, 0.065, 0.055, look.second)
    iris = (150, 196, 70) if look.quirk < 0.6 else (246, 200, 60)
    for side in (-1, 1):
        pen.oval(side * 0.1, y - 0.01, 0.052, 0.058, iris, glow=0.5)
        pen.oval(side * 0.1, y - 0.01, 0.022, 0.052, _INK)
        pen.stroke([(side * 0.1, y + 0.08), (side * 0.27, y + 0.06)], lighter(look.second, 0.4), 0.014)
        pen.stroke([(side * 0.1, y + 0.1), (side * 0.26, y + 0.12)], lighter(look.second, 0.4), 0.014)
    pen.fill([(-0.032, y + 0.04), (0.032, y + 0.04), (0, y + 0.08)], _PINK)


def dog(pen: Pen, look: Look) -> None:
    """Standing, from the side, with a hanging ear, a muzzle and a raised tail."""
    long = 0.9 + 0.3 * look.stretch
    leg = 0.34 + 0.1 * (1 - look.girth)
    thick = 0.05 + 0.02 * look.girth
    shade = darker(look.main, 0.25)
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
    _dog_face(pen, look, 0.38 * long, top - 0.1)


def _dog_face(pen: Pen, look: Look, x: float, y: float) -> None:
    pen.fill([(x - 0.17, y + 0.08), (x + 0.1, y), (x + 0.02, y + 0.3), (x - 0.2, y + 0.28)], look.main)
    pen.stroke([(x - 0.16, y + 0.15), (x + 0.05, y + 0.18)], (206, 56, 60), 0.05)
    pen.oval(x + 0.02, y - 0.02, 0.19, 0.165, look.main)
    pen.oval(x + 0.1, y + 0.13, 0.035, 0.06, (238, 120, 130))
    pen.oval(x + 0.17, y + 0.05, 0.15, 0.095, look.second)
    pen.oval(x + 0.29, y + 0.0, 0.042, 0.036, _INK)
    pen.stroke([(x + 0.14, y + 0.11), (x + 0.25, y + 0.09)], darker(look.second, 0.5), 0.016)
    pen.oval(x + 0.08, y - 0.06, 0.034, 0.04, _INK)
    pen.oval(x + 0.09, y - 0.075, 0.012, 0.012, (255, 255, 255))
    droop = 0.06 * look.stretch
    ear = [
        (x - 0.14, y - 0.14),
        (x - 0.02, y - 0.16),
        (x - 0.03, y + 0.04),
        (x - 0.12, y + 0.16 + droop),
        (x - 0.2, y + 0.06),
    ]
    pen.blob(ear, look.detail)
