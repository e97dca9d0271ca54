"""Cup and bottle.

>>> from hardlook.randomness import generator
>>> from hardlook.world.look import draw_look
>>> from hardlook.world.pen import Canvas
>>> canvas = Canvas.blank((40, 40))
>>> look = draw_look("cup", generator(0, "cup"), against=(90.0, 160.0, 70.0), contrasting=True)
>>> cup(Pen(canvas, layer=1, x=18, y=38, height=26), look)
>>> 0.05 < float((canvas.layers == 1).mean()) < 0.6
True
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.world.look import Look, darker, lighter
from hardlook.world.pen import Pen, box_points, oval_points, smooth


def _heart(x: float, y: float, size: float) -> NDArray[np.float64]:
    corners = [(0, 0.9), (-0.9, 0.0), (-0.75, -0.7), (-0.25, -0.75), (0, -0.4), (0.25, -0.75), (0.75, -0.7), (0.9, 0.0)]
    return smooth([(x + a * size, y + b * size) for a, b in corners])


def cup(pen: Pen, look: Look) -> None:
    """A wide body with a ring for a handle and coffee in it; some stand on a saucer."""
    rim = 0.4 + 0.05 * look.girth
    foot = rim * (0.62 + 0.25 * look.stretch)
    base = -0.04
    if look.quirk > 0.5:
        pen.oval(0, -0.055, 0.58, 0.075, darker(look.second, 0.12))
        pen.oval(0, -0.075, 0.54, 0.06, look.second)
        base = -0.09
    handle = oval_points(rim * 0.92, -0.5, 0.19, 0.21)
    pen.stroke(handle, darker(look.main, 0.12), 0.1, closed=True)
    body = [
        (-rim, -0.88),
        (rim, -0.88),
        (rim * 0.97, -0.5),
        (rim * 0.6 + foot * 0.36, -0.25),
        (foot, base),
        (-foot, base),
        (-rim * 0.6 - foot * 0.36, -0.25),
        (-rim * 0.97, -0.5),
    ]
    pen.fill(body, look.main)
    pen.pattern(body, [[(rim * 0.55, -0.9), (rim, -0.9), (rim, base), (foot * 0.4, base)]], darker(look.main, 0.1))
    if look.pattern == "spotted":
        dots = [(-0.26, -0.62), (0.02, -0.62), (0.28, -0.62), (-0.13, -0.4), (0.16, -0.4), (-0.02, -0.18)]
        pen.pattern(body, [oval_points(x, y, 0.06, 0.06) for x, y in dots], look.second)
    elif look.pattern == "striped":
        pen.pattern(body, [box_points(-1, y, 1, y + 0.09) for y in (-0.68, -0.46, -0.24)], look.second)
    elif look.pattern == "heart":
        pen.fill(_heart(-0.02, -0.45, 0.16), (222, 70, 84) if look.main[0] > 235 or look.main[2] > 150 else look.second)
    pen.oval(0, -0.88, rim, 0.1, lighter(look.main, 0.25))
    pen.oval(0, -0.87, rim * 0.88, 0.072, look.detail)
    pen.oval(-0.08, -0.865, rim * 0.3, 0.026, lighter(look.detail, 0.35))


def bottle(pen: Pen, look: Look) -> None:
    """Shoulders, a neck with a cap, a label and a shine along one side."""
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
    pen.pattern(shape, [box_points(half * 0.45, -0.95, 1, 0)], darker(look.main, 0.25))
    label = box_points(-half, -0.4, half, -0.13)
    pen.fill(label, look.second)
    if look.pattern == "striped":
        pen.pattern(label, [box_points(-half, -0.37, half, -0.33), box_points(-half, -0.2, half, -0.16)], look.detail)
    elif look.pattern == "heart":
        pen.fill(_heart(0, -0.26, 0.075), (214, 64, 76))
    else:
        pen.oval(0, -0.265, half * 0.5, 0.07, look.detail)
    pen.stroke([(-half * 0.6, shoulder + 0.18), (-half * 0.6, -0.45)], lighter(look.main, 0.6), 0.03)
    pen.stroke([(-half * 0.6, -0.1), (-half * 0.6, -0.05)], lighter(look.main, 0.6), 0.03)
    cap = (200, 164, 112) if look.stretch < 0.5 else look.detail
    pen.box(-neck - 0.02, -1.0, neck + 0.02, -0.91, cap, radius=0.015)
    pen.stroke([(-neck, -0.87), (neck, -0.87)], lighter(look.main, 0.3), 0.025)
