"""Apple and pear.

>>> from hardlook.randomness import generator
>>> from hardlook.world.look import draw_look
>>> from hardlook.world.pen import Canvas
>>> canvas = Canvas.blank((40, 40))
>>> look = draw_look("pear", generator(0, "pear"), against=(90.0, 160.0, 70.0), contrasting=True)
>>> pear(Pen(canvas, layer=1, x=20, y=38, height=30), look)
>>> 0.05 < float((canvas.layers == 1).mean()) < 0.6
True
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.world.look import Look, darker, lighter
from hardlook.world.pen import Pen, oval_points, smooth

_SPECKS = ((-0.18, -0.5), (-0.05, -0.3), (0.14, -0.42), (0.22, -0.22), (-0.22, -0.24), (0.02, -0.14), (0.06, -0.56))


def _leaf(pen: Pen, x: float, y: float, size: float) -> None:
    leaf = [
        (x, y),
        (x + 0.12 * size, y - 0.1 * size),
        (x + 0.3 * size, y - 0.08 * size),
        (x + 0.18 * size, y + 0.03 * size),
    ]
    pen.blob(leaf, (92, 158, 70))
    pen.stroke([(x + 0.03, y - 0.01), (x + 0.22 * size, y - 0.06 * size)], (56, 112, 50), 0.018)


def _skin(pen: Pen, look: Look, shape: NDArray[np.float64]) -> None:
    """What lies on the fruit: its shaded side, blush or specks, and the shine."""
    x = 0.13 * (1 if look.quirk < 0.5 else -1)
    pen.pattern(shape, [np.concatenate([shape, shape[::-1] * (0.93, 0.9) + (-0.07, -0.02)])], darker(look.main, 0.16))
    if look.pattern == "blushing":
        for size, share in ((0.27, 0.25), (0.21, 0.45), (0.14, 0.65)):
            red, green, blue = (m + (s - m) * share for m, s in zip(look.main, look.second, strict=True))
            pen.pattern(shape, [oval_points(-x, -0.34, size, size * 1.1)], (red, green, blue))
    elif look.pattern == "speckled":
        pen.pattern(shape, [oval_points(a, b, 0.016, 0.016) for a, b in _SPECKS], lighter(look.main, 0.5))


def apple(pen: Pen, look: Look) -> None:
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
    _skin(pen, look, shape)
    pen.oval(-wide * 0.5, top + 0.24, 0.06, 0.11, lighter(look.main, 0.65), turn=0.5)
    pen.pattern(shape, [oval_points(0.0, top + 0.09, 0.14, 0.05)], darker(look.main, 0.4))
    pen.stroke([(0, top + 0.1), (0.02, top - 0.04), (0.06, top - 0.14)], look.detail, 0.05)
    _leaf(pen, 0.04, top - 0.02, 1.0 + 0.3 * look.quirk)


def pear(pen: Pen, look: Look) -> None:
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
    _skin(pen, look, shape)
    pen.oval(-wide * 0.5, -0.34, 0.05, 0.12, lighter(look.main, 0.6), turn=0.25)
    pen.stroke([(lean, -0.86), (lean + 0.02, -0.94), (lean + 0.06, -0.99)], look.detail, 0.045)
    _leaf(pen, lean + 0.03, -0.9, 0.85 + 0.3 * look.quirk)
