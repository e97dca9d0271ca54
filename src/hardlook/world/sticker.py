"""An object put on the canvas: drawn and outlined, with a shadow where it stands.

>>> from hardlook.world.scene import describe_scene
>>> canvas = Canvas.blank((160, 120))
>>> paste(canvas, describe_scene(0, 1, concept="apple").subject, layer=50)
>>> bool((canvas.layers == 50).any())
True
"""

from __future__ import annotations

import cv2
import numpy as np

from hardlook.world.drawings import DRAWINGS, HALF_WIDTH
from hardlook.world.look import darker
from hardlook.world.objects import SceneObject
from hardlook.world.pen import FINENESS, Canvas, Pen, oval_points


def paste(canvas: Canvas, thing: SceneObject, layer: int) -> None:
    """Draw the object on top of what is there; `layer` must be new to the canvas."""
    pen = Pen(canvas, layer, thing.x, thing.y, thing.height, thing.mirrored, thing.tilt, thing.fade)
    DRAWINGS[thing.concept](pen, thing.look)
    reach = int((HALF_WIDTH[thing.concept] + 0.25) * thing.height * FINENESS) + 2
    x, y = int(thing.x * FINENESS), int(thing.y * FINENESS)
    top = int(y - 1.25 * thing.height * FINENESS)
    window = (slice(max(0, top), y + reach // 4 + 3), slice(max(0, x - reach), x + reach))
    layers = canvas.layers[window]
    mask = (layers == layer).astype(np.uint8)
    width = max(1, round(0.016 * thing.height * FINENESS))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * width + 1, 2 * width + 1))
    ring = cv2.dilate(mask, kernel) > mask
    layers[ring] = layer
    if canvas.paint is not None:
        canvas.paint[window][ring] = (*pen.tone(darker(thing.look.main, 0.62)), 0)


def cast_shadow(canvas: Canvas, thing: SceneObject, *, strength: float) -> None:
    """Darken the ground under the object by `strength` in [0, 1]; changes no layer."""
    if canvas.paint is None:
        return
    pen = Pen(canvas, 0, thing.x, thing.y, thing.height)
    half = HALF_WIDTH[thing.concept]
    corners = pen.place(oval_points(0.12 * half, -0.005, half * 1.02, 0.1))
    left, top, width, height = cv2.boundingRect(corners >> 4)
    left, top, right, bottom = max(0, left), max(0, top), left + width + 1, top + height + 1
    ground = canvas.paint[top : max(top, bottom), left : max(left, right)]
    mask = np.zeros(ground.shape[:2], np.uint8)
    cv2.fillPoly(mask, [corners - (np.array([left, top], np.int32) << 4)], 1, shift=4)
    factor = np.uint16(round(256 * (1 - strength)))
    np.copyto(ground, ((ground.astype(np.uint16) * factor) >> 8).astype(np.uint8), where=mask[..., None] > 0)
