"""Duck and owl.

>>> from hardlook.randomness import generator
>>> from hardlook.world.look import draw_look
>>> from hardlook.world.pen import Canvas
>>> canvas = Canvas.blank((40, 40))
>>> look = draw_look("owl", generator(0, "owl"), against=(90.0, 160.0, 70.0), contrasting=True)
>>> owl(Pen(canvas, layer=1, x=20, y=38, height=30), look)
>>> 0.05 < float((canvas.layers == 1).mean()) < 0.6
True
"""

from __future__ import annotations

from hardlook.world.look import Look, darker
from hardlook.world.pen import Pen, oval_points, smooth

_INK = (30, 26, 34)
_WHITE = (252, 252, 250)


def duck(pen: Pen, look: Look) -> None:
    """From the side: a boat of a body with a turned-up tail, a round head and a flat bill."""
    plump = 0.02 + 0.08 * look.girth
    head_y = -0.74 - 0.05 * look.stretch
    # The mallard family wears its second colour on the head, the others their main one.
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
    pen.blob(
        [(-0.36, -0.32), (-0.2, -0.42), (0.04, -0.4), (0.12, -0.28), (-0.06, -0.17), (-0.28, -0.2)],
        darker(look.main, 0.16),
    )
    pen.stroke([(-0.24, -0.27), (-0.06, -0.25)], darker(look.main, 0.34), 0.02)
    pen.stroke([(-0.2, -0.34), (0.0, -0.32)], darker(look.main, 0.34), 0.02)
    pen.oval(0.22, head_y, 0.19, 0.18, crown)
    if look.pattern == "collared":
        pen.stroke(
            [(0.08, -0.52), (0.2, -0.49), (0.34, -0.52)], _WHITE if crown is not look.main else look.detail, 0.05
        )
    bill = 0.03 * look.quirk
    pen.blob(
        [
            (0.36, head_y - 0.02),
            (0.46, head_y + 0.01),
            (0.58 + bill, head_y + 0.03),
            (0.5, head_y + 0.1),
            (0.37, head_y + 0.11),
        ],
        look.detail,
    )
    pen.stroke([(0.4, head_y + 0.05), (0.54, head_y + 0.05)], darker(look.detail, 0.4), 0.016)
    pen.oval(0.28, head_y - 0.04, 0.035, 0.042, _INK)
    pen.oval(0.29, head_y - 0.055, 0.013, 0.013, _WHITE)


def owl(pen: Pen, look: Look) -> None:
    """From the front: ear tufts, great eyes in pale discs, a scaled belly and folded wings."""
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
        pen.blob(
            [
                (side * wide * 0.82, -0.54),
                (side * wide * 1.12, -0.4),
                (side * wide * 1.0, -0.14),
                (side * wide * 0.68, -0.2),
            ],
            look.detail,
        )
    iris = (250, 206, 60) if look.quirk < 0.6 else (240, 140, 50)
    for side in (-1, 1):
        pen.oval(side * 0.135, -0.69, 0.15, 0.155, look.second)
        pen.oval(side * 0.13, -0.69, 0.1, 0.105, iris, glow=0.9)
        pen.oval(side * 0.125, -0.69, 0.055, 0.06, _INK)
        pen.oval(side * 0.125 + 0.02, -0.715, 0.018, 0.018, _WHITE, glow=0.5)
    pen.fill([(-0.045, -0.64), (0.045, -0.64), (0, -0.53)], (240, 168, 56))
