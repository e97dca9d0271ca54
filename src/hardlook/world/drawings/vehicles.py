"""Car and bus, from the side.

>>> from hardlook.randomness import generator
>>> from hardlook.world.look import draw_look
>>> from hardlook.world.pen import Canvas
>>> canvas = Canvas.blank((40, 40))
>>> look = draw_look("car", generator(0, "car"), against=(90.0, 160.0, 70.0), contrasting=True)
>>> car(Pen(canvas, layer=1, x=20, y=38, height=18), look)
>>> 0.05 < float((canvas.layers == 1).mean()) < 0.6
True
"""

from __future__ import annotations

from hardlook.world.look import Look, darker, lighter
from hardlook.world.pen import Pen, box_points, smooth

_GLASS = (176, 214, 232)
_TYRE = (44, 42, 48)


def _wheel(pen: Pen, x: float, radius: float) -> None:
    pen.oval(x, -radius, radius, radius, _TYRE)
    pen.oval(x, -radius, radius * 0.55, radius * 0.55, (206, 208, 214))
    pen.oval(x, -radius, radius * 0.2, radius * 0.2, (110, 112, 120))


def car(pen: Pen, look: Look) -> None:
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
    pen.fill([(0.04, -0.58), (0.12, roof + 0.12), (0.2, roof + 0.14), (0.14, -0.58)], lighter(_GLASS, 0.6), glow=0.25)
    body = smooth([
        (-half, -0.5), (-half + 0.1, -0.61), (-0.3, -0.61), (0.5, -0.6), (half - 0.1, -0.52), (half, -0.36),
        (half - 0.02, -0.18), (0.3, -0.14), (-0.3, -0.14), (-half + 0.02, -0.18),
    ])  # fmt: skip
    pen.fill(body, look.main)
    if look.pattern == "striped":
        pen.pattern(body, [box_points(-half, -0.44, half, -0.36)], look.second)
    pen.pattern(body, [box_points(-half, -0.26, half, -0.1)], darker(look.main, 0.22))
    pen.stroke([(-0.06, -0.56), (-0.06, -0.22)], look.detail, 0.025)
    pen.stroke([(0.0, -0.47), (0.12, -0.47)], look.detail, 0.035)
    pen.oval(half - 0.07, -0.43, 0.06, 0.07, (255, 240, 170), glow=1.0)
    pen.oval(-half + 0.05, -0.45, 0.045, 0.06, (236, 70, 60), glow=0.7)
    pen.box(half - 0.2, -0.24, half + 0.03, -0.16, (196, 198, 204), radius=0.03)
    pen.box(-half - 0.03, -0.24, -half + 0.16, -0.16, (196, 198, 204), radius=0.03)
    for x in (-0.54, 0.54):
        pen.oval(x, -0.22, 0.25, 0.24, darker(look.main, 0.55))
        _wheel(pen, x, 0.21)


def bus(pen: Pen, look: Look) -> None:
    """A long box with a row of windows and a door; some have an upper deck."""
    double = look.quirk > 0.66
    half = 0.72 + 0.08 * look.stretch if double else 0.92 + 0.1 * look.stretch
    shell = box_points(-half, -0.98, half, -0.12, 0.1)
    pen.fill(shell, look.main)
    pen.pattern(shell, [box_points(-half, -1, half, -0.93)], lighter(look.main, 0.45))
    if look.pattern == "striped" or double:
        pen.pattern(
            shell,
            [box_points(-half, -0.56, half, -0.46) if double else box_points(-half, -0.42, half, -0.34)],
            look.second,
        )
    pen.pattern(shell, [box_points(-half, -0.22, half, -0.1)], darker(look.main, 0.3))
    rows = ((-0.87, -0.62), (-0.43, -0.25)) if double else ((-0.84, -0.5),)
    count = 4 if double else 5
    for top, bottom in rows:
        start, stop = -half + 0.09, half - (0.12 if double and top < -0.6 else 0.42)
        step = (stop - start) / count
        for i in range(count):
            left = start + i * step
            pen.box(left, top, left + step * 0.8, bottom, _GLASS, radius=0.03, glow=0.55)
            pen.fill(
                [
                    (left + 0.02, bottom - 0.02),
                    (left + step * 0.35, top + 0.02),
                    (left + step * 0.5, top + 0.02),
                    (left + 0.08, bottom - 0.02),
                ],
                lighter(_GLASS, 0.5),
                glow=0.55,
            )
    door = -0.43 if double else -0.84
    pen.box(half - 0.38, door, half - 0.16, -0.16, look.detail, radius=0.02)
    pen.box(half - 0.35, door + 0.03, half - 0.28, -0.2, _GLASS, glow=0.4)
    pen.box(half - 0.26, door + 0.03, half - 0.19, -0.2, _GLASS, glow=0.4)
    pen.box(half - 0.11, door, half + 0.0, -0.45 if not double else -0.25, _GLASS, radius=0.03, glow=0.4)
    pen.oval(half - 0.05, -0.27 if not double else -0.19, 0.05, 0.05, (255, 240, 170), glow=1.0)
    pen.box(-half, -0.32, -half + 0.05, -0.22, (236, 70, 60), glow=0.7)
    for x in (-half * 0.58, half * 0.38):
        pen.oval(x, -0.17, 0.19, 0.18, darker(look.main, 0.6))
        _wheel(pen, x, 0.16)
