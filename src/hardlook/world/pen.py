"""Vector drawing on a supersampled canvas: `Pen` draws shapes given in an object's own coordinates.

In object coordinates x points right and y down; the object's base is at (0, 0) and its top at y = -1.
Colour is drawn on a canvas of three times the resolution and averaged down, which smooths edges; the ground truth is
the layer of the supersampled canvas at each pixel's centre, so it stays unambiguous.

>>> canvas = Canvas.blank((16, 12))
>>> Pen(canvas, layer=40, x=8, y=11, height=8).oval(0, -0.5, 0.4, 0.4, (200, 40, 40))
>>> int(canvas.pixel_layers()[7, 8])
40
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

Colour = tuple[float, float, float]
Points = Sequence[tuple[float, float]] | NDArray[np.float64]
SUPERSAMPLING = 3  # odd, so that a pixel has a central sample
_SHIFT = 4  # fractional bits of OpenCV's polygon corners
_ANGLES = np.linspace(0, 2 * np.pi, 40, endpoint=False)
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
_STEPS = np.linspace(0, 1, 8, endpoint=False)[:, None]
_NEIGHBOURS = np.array([-1, 0, 1, 2])

_SPLINE = np.concatenate([_STEPS**0, _STEPS, _STEPS**2, _STEPS**3], axis=1) @ (
    0.5 * np.array([[0, 2, 0, 0], [-1, 0, 1, 0], [2, -5, 4, -1], [-1, 3, -3, 1]], dtype=float)
)


@dataclass(frozen=True)
class Canvas:
    """Supersampled layers (3H, 3W) uint8 and, unless only silhouettes are drawn, paint (3H, 3W, 4) uint8.

    Paint is red, green, blue and glow: how little the scene's lighting darkens the pixel.
    """

    layers: NDArray[np.uint8]
    paint: NDArray[np.uint8] | None = None

    @classmethod
    def blank(cls, size: tuple[int, int], *, silhouettes_only: bool = False) -> Canvas:
        """An empty canvas for an image of `size` (width, height) pixels."""
        width, height = size[0] * SUPERSAMPLING, size[1] * SUPERSAMPLING
        layers = np.zeros((height, width), np.uint8)
        return cls(layers, None if silhouettes_only else np.zeros((height, width, 4), np.uint8))

    def pixel_layers(self) -> NDArray[np.uint8]:
        """The layer (H, W) at each pixel's centre."""
        return self.layers[SUPERSAMPLING // 2 :: SUPERSAMPLING, SUPERSAMPLING // 2 :: SUPERSAMPLING]


def smooth(points: Points) -> NDArray[np.float64]:
    """A closed curve (8 n, 2) through n points (Catmull-Rom)."""
    corners = np.asarray(points, dtype=float)
    around = corners.take(np.arange(len(corners))[:, None] + _NEIGHBOURS, axis=0, mode="wrap")
    curve: NDArray[np.float64] = (_SPLINE @ around).reshape(-1, 2)
    return curve


@dataclass(frozen=True)
class Pen:
    """Draws on one layer; `x`, `y` and `height` are image pixels, `fade` mixes every colour with a share of another."""

    canvas: Canvas
    layer: int
    x: float = 0.0
    y: float = 0.0
    height: float = 1.0
    mirrored: bool = False
    tilt: float = 0.0
    fade: tuple[Colour, float] = ((0.0, 0.0, 0.0), 0.0)

    @cached_property
    def _map(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """From object coordinates to fixed-point canvas coordinates: a matrix and an offset."""
        scale, flip = SUPERSAMPLING * (1 << _SHIFT), -1.0 if self.mirrored else 1.0
        cos, sin = np.cos(self.tilt), np.sin(self.tilt)
        matrix = np.array([[flip * cos, flip * sin], [-sin, cos]]) * (self.height * scale)
        offset = np.array([self.x + 0.5, self.y + 0.5]) * scale - (1 << _SHIFT) / 2
        return matrix, offset

    def to_canvas(self, points: Points) -> NDArray[np.int32]:
        """Object coordinates as fixed-point canvas coordinates."""
        matrix, offset = self._map
        return np.rint(np.asarray(points, dtype=float) @ matrix + offset).astype(np.int32)

    def faded(self, colour: Colour) -> Colour:
        """The colour mixed with the fade colour."""
        towards, share = self.fade
        if not share:
            return colour
        red, green, blue = (c + (t - c) * share for c, t in zip(colour, towards, strict=True))
        return red, green, blue

    def fill(self, points: Points, colour: Colour, *, glow: float = 0.0) -> None:
        """A filled polygon; `glow` in [0, 1] is how little the scene's lighting darkens it."""
        self._fill([self.to_canvas(points)], colour, glow)

    def _fill(self, corners: list[NDArray[np.int32]], colour: Colour, glow: float) -> None:
        cv2.fillPoly(self.canvas.layers, corners, self.layer, shift=_SHIFT)
        if self.canvas.paint is not None:
            cv2.fillPoly(self.canvas.paint, corners, (*self.faded(colour), 255 * glow), shift=_SHIFT)

    def blob(self, points: Points, colour: Colour) -> None:
        """A filled smooth closed curve through the points."""
        self.fill(smooth(points), colour)

    def oval(
        self, cx: float, cy: float, rx: float, ry: float, colour: Colour, *, turn: float = 0.0, glow: float = 0.0
    ) -> None:
        """A filled ellipse, turned by `turn` radians."""
        self.fill(oval_points(cx, cy, rx, ry, turn), colour, glow=glow)

    def box(
        self, left: float, top: float, right: float, bottom: float, colour: Colour, *, radius: float = 0.0,
        glow: float = 0.0,
    ) -> None:  # fmt: skip
        """A filled rectangle, its corners rounded by `radius`."""
        self.fill(box_points(left, top, right, bottom, radius), colour, glow=glow)

    def stroke(self, points: Points, colour: Colour, width: float, *, closed: bool = False) -> None:
        """A line of `width` (object units, at least a third of a pixel) with round ends."""
        corners = [self.to_canvas(points)]
        thickness = max(1, round(width * self.height * SUPERSAMPLING))
        cv2.polylines(self.canvas.layers, corners, closed, self.layer, thickness, shift=_SHIFT)
        if self.canvas.paint is not None:
            paint = (*self.faded(colour), 0)
            cv2.polylines(self.canvas.paint, corners, closed, paint, thickness, shift=_SHIFT)

    def scatter(self, shapes: NDArray[np.float64], colour: Colour, *, glow: float = 0.0) -> None:
        """Many small polygons (n, corners, 2) of one colour; the result where two overlap is undefined."""
        self._fill(list(self.to_canvas(shapes)), colour, glow)

    def pattern(self, inside: Points, marks: Sequence[Points], colour: Colour) -> None:
        """Polygons `marks` clipped to the polygon `inside`: stripes, spots, bricks."""
        if self.canvas.paint is None:
            return
        shape = self.to_canvas(inside)
        x, y, width, height = cv2.boundingRect(shape >> _SHIFT)
        left, top = max(0, x), max(0, y)
        window = self.canvas.paint[top : max(top, y + height + 1), left : max(left, x + width + 1)]
        region, drawn = np.zeros(window.shape[:2], np.uint8), np.zeros(window.shape[:2], np.uint8)
        corner = np.array([left, top], np.int32) << _SHIFT
        cv2.fillPoly(region, [shape - corner], 1, shift=_SHIFT)
        for mark in marks:
            cv2.fillPoly(drawn, [self.to_canvas(mark) - corner], 1, shift=_SHIFT)
        window[..., :3][(drawn & region) > 0] = self.faded(colour)


def oval_points(cx: float, cy: float, rx: float, ry: float, turn: float = 0.0) -> NDArray[np.float64]:
    """The outline (40, 2) of an ellipse."""
    cos, sin = np.cos(turn), np.sin(turn)
    ring: NDArray[np.float64] = (_CIRCLE * (rx, ry)) @ np.array([[cos, sin], [-sin, cos]]) + (cx, cy)
    return ring


def box_points(left: float, top: float, right: float, bottom: float, radius: float = 0.0) -> NDArray[np.float64]:
    """The outline of a rectangle with rounded corners."""
    if radius <= 0:
        return np.array([(left, top), (right, top), (right, bottom), (left, bottom)])
    quarter = _CIRCLE[:11] * radius
    corners = (
        (right - radius, bottom - radius, 1, 1), (left + radius, bottom - radius, -1, 1),
        (left + radius, top + radius, -1, -1), (right - radius, top + radius, 1, -1),
    )  # fmt: skip
    arcs = [quarter[:: (1 if sx * sy > 0 else -1)] * (sx, sy) + (cx, cy) for cx, cy, sx, sy in corners]
    return np.concatenate(arcs)
