"""House and barn, from the front.

>>> from hardlook.randomness import generator
>>> from hardlook.world.look import draw_look
>>> from hardlook.world.pen import Canvas
>>> canvas = Canvas.blank((40, 40))
>>> look = draw_look("barn", generator(0, "barn"), against=(90.0, 160.0, 70.0), contrasting=True)
>>> barn(Pen(canvas, layer=1, x=20, y=38, height=30), look)
>>> 0.05 < float((canvas.layers == 1).mean()) < 0.7
True
"""

from __future__ import annotations

import numpy as np

from hardlook.world.look import Look, darker, lighter
from hardlook.world.pen import Pen, box_points, oval_points

_LIT = (255, 226, 130)
_FRAME = (250, 248, 240)


def _window(pen: Pen, x: float, y: float, half: float, tall: float) -> None:
    pen.box(x - half - 0.02, y - tall - 0.02, x + half + 0.02, y + tall + 0.02, _FRAME)
    pen.box(x - half, y - tall, x + half, y + tall, _LIT if pen.fade[1] < 0.3 else (150, 190, 214), glow=0.9)
    pen.stroke([(x, y - tall), (x, y + tall)], _FRAME, 0.022)
    pen.stroke([(x - half, y), (x + half, y)], _FRAME, 0.022)


def house(pen: Pen, look: Look) -> None:
    """Walls, a pointed roof with a chimney, a door and windows."""
    half = 0.4 + 0.1 * look.girth
    eaves = -0.5 - 0.08 * look.stretch
    chimney = half * 0.55
    pen.box(chimney - 0.06, -0.97, chimney + 0.06, eaves, darker(look.second, 0.15))
    pen.box(chimney - 0.08, -0.99, chimney + 0.08, -0.93, darker(look.second, 0.35))
    walls = [(-half, 0), (-half, eaves), (0, -0.94), (half, eaves), (half, 0)]
    pen.fill(walls, look.main)
    if look.pattern == "bricks":
        rows = [
            box_points(x, y, x + 0.11, y + 0.035)
            for row, y in enumerate(np.arange(-0.52, -0.02, 0.13))
            for x in np.arange(-half + (0.14 if row % 2 else 0.02), half, 0.26)
        ]
        pen.pattern(walls, rows, darker(look.main, 0.16))
    elif look.pattern == "boards":
        pen.pattern(
            walls, [box_points(-half, y, half, y + 0.018) for y in np.arange(-0.85, 0, 0.085)], darker(look.main, 0.15)
        )
    slope, over = (-0.94 - eaves) / half, 0.09
    roof = [(-half - over, eaves - slope * over), (0, -0.95), (half + over, eaves - slope * over)]
    inner = [(x, y + 0.15) for x, y in reversed(roof)]
    pen.fill([roof[0], (0, -1.0), roof[2], *inner], look.second)
    pen.stroke([inner[2], inner[1], inner[0]], darker(look.second, 0.3), 0.02)
    pen.oval(0, eaves - 0.12, 0.06, 0.06, _FRAME)
    pen.oval(0, eaves - 0.12, 0.04, 0.04, _LIT if pen.fade[1] < 0.3 else (150, 190, 214), glow=0.9)
    door = -half * 0.45 if look.quirk < 0.4 else (0.0 if look.quirk < 0.7 else half * 0.45)
    pen.box(door - 0.085, -0.34, door + 0.085, 0, _FRAME)
    pen.box(door - 0.065, -0.32, door + 0.065, 0, look.detail if look.detail[2] < 200 else (90, 70, 60))
    pen.oval(door + 0.04, -0.15, 0.015, 0.015, (250, 220, 120))
    for x in (-0.27, 0.27, 0.0):
        if abs(x - door) > 0.2 and abs(x) + 0.1 < half:
            _window(pen, x, -0.24, 0.07, 0.08)
    pen.box(-half, -0.035, half, 0, darker(look.main, 0.4))


def barn(pen: Pen, look: Look) -> None:
    """A gambrel roof, boards, a great door with crossed braces, a loft hatch; some with a silo."""
    half = 0.44 + 0.06 * look.girth
    if look.quirk > 0.55:
        left, right = half - 0.02, half + 0.24
        pen.box(left, -0.78, right, 0, (196, 198, 204))
        pen.fill(oval_points((left + right) / 2, -0.78, (right - left) / 2, 0.14), darker(look.second, 0.1))
        for y in (-0.62, -0.42, -0.22):
            pen.stroke([(left, y), (right, y)], (150, 152, 160), 0.02)
    knee = -0.78 - 0.03 * look.stretch
    walls = [(-half, 0), (-half, -0.5), (-half * 0.68, knee), (0, -0.97), (half * 0.68, knee), (half, -0.5), (half, 0)]
    pen.fill(walls, look.main)
    if look.pattern == "boards":
        pen.pattern(
            walls, [box_points(x, -1, x + 0.02, 0) for x in np.arange(-half, half, 0.1)], darker(look.main, 0.22)
        )
    roof = [
        (-half - 0.07, -0.43),
        (-half * 0.72, knee - 0.02),
        (0, -0.985),
        (half * 0.72, knee - 0.02),
        (half + 0.07, -0.43),
    ]
    pen.stroke(roof, look.second, 0.09)
    pen.stroke([(x * 0.93, y + 0.06) for x, y in roof], look.detail, 0.025)
    pen.box(-0.25, -0.42, 0.25, 0, look.detail)
    for side in (-1, 1):
        left, right = sorted((side * 0.015, side * 0.225))
        pen.box(left, -0.39, right, 0, darker(look.main, 0.12))
        pen.stroke([(left, -0.39), (right, 0)], look.detail, 0.035)
        pen.stroke([(right, -0.39), (left, 0)], look.detail, 0.035)
    pen.box(-0.1, -0.74, 0.1, -0.56, look.detail)
    pen.box(-0.075, -0.715, 0.075, -0.56, (236, 196, 96) if look.stretch > 0.5 else darker(look.main, 0.6), glow=0.5)
    pen.stroke([(0, -0.72), (0, -0.57)], lighter(look.detail, 0.1), 0.02)
