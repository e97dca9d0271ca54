"""Objects of a scene: where each one stands and how it looks, and drawing them on a canvas with outline and shadow.

>>> from hardlook.world.scene import describe_scene
>>> canvas = Canvas.blank((160, 120))
>>> draw_object(canvas, describe_scene(0, 1, concept="apple").subject, layer=50)
>>> bool((canvas.layers == 50).any())
True
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.world.appearance import Appearance, darken
from hardlook.world.drawings import DRAWINGS, HALF_WIDTH
from hardlook.world.pen import SUPERSAMPLING, Canvas, Colour, Pen, oval_points


@dataclass(frozen=True)
class SceneObject:
    """An object whose base is at (`x`, `y`) pixels, `height` pixels tall; `instance` counts within its class."""

    concept: str
    instance: int
    salient: bool
    x: float
    y: float
    height: float
    mirrored: bool
    tilt: float
    look: Appearance
    fade: tuple[Colour, float]


def draw_object(canvas: Canvas, thing: SceneObject, layer: int) -> None:
    """Draw and outline the object on top of the canvas; `layer` must not be in use."""
    pen = Pen(canvas, layer, thing.x, thing.y, thing.height, thing.mirrored, thing.tilt, thing.fade)
    DRAWINGS[thing.concept](pen, thing.look)
    reach = int((HALF_WIDTH[thing.concept] + 0.25) * thing.height * SUPERSAMPLING) + 2
    x, y = int(thing.x * SUPERSAMPLING), int(thing.y * SUPERSAMPLING)
    top = int(y - 1.25 * thing.height * SUPERSAMPLING)
    window = (slice(max(0, top), y + reach // 4 + 3), slice(max(0, x - reach), x + reach))
    layers = canvas.layers[window]
    mask = (layers == layer).astype(np.uint8)
    width = max(1, round(0.016 * thing.height * SUPERSAMPLING))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * width + 1, 2 * width + 1))
    ring = cv2.dilate(mask, kernel) > mask
    layers[ring] = layer
    if canvas.paint is not None:
        canvas.paint[window][ring] = (*pen.faded(darken(thing.look.main, 0.62)), 0)


def draw_shadow(canvas: Canvas, thing: SceneObject, *, strength: float) -> None:
    """Darken the ground under the object by `strength` in [0, 1]; changes no layer."""
    if canvas.paint is None:
        return
    pen = Pen(canvas, 0, thing.x, thing.y, thing.height)
    half = HALF_WIDTH[thing.concept]
    corners = pen.to_canvas(oval_points(0.12 * half, -0.005, half * 1.02, 0.1))
    left, top, width, height = cv2.boundingRect(corners >> 4)
    left, top, right, bottom = max(0, left), max(0, top), left + width + 1, top + height + 1
    ground = canvas.paint[top : max(top, bottom), left : max(left, right)]
    mask = np.zeros(ground.shape[:2], np.uint8)
    cv2.fillPoly(mask, [corners - (np.array([left, top], np.int32) << 4)], 1, shift=4)
    factor = np.uint16(round(256 * (1 - strength)))
    np.copyto(ground, ((ground.astype(np.uint16) * factor) >> 8).astype(np.uint8), where=mask[..., None] > 0)


def render_silhouette(thing: SceneObject, size: tuple[int, int]) -> NDArray[np.bool_]:
    """The object's whole silhouette (H, W), without occlusion."""
    canvas = Canvas.blank(size, silhouettes_only=True)
    draw_object(canvas, thing, layer=1)
    return np.asarray(canvas.pixel_layers() == 1)
