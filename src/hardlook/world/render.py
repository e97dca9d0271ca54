"""Rendering of scenes: an image that carries its signature, and the complete ground truth.

>>> from hardlook.world.scene import describe_scene
>>> rendered = render_scene(describe_scene(0, 3, concept="duck", context="fog"))
>>> rendered.image.shape, int(rendered.target_mask.sum()) >= 60
((120, 160, 3), True)
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.world.objects import SceneObject, draw_object, draw_shadow
from hardlook.world.pen import Canvas
from hardlook.world.scene import Scene
from hardlook.world.scenery import add_weather, apply_light, compute_shading, paint_background, paint_scenery
from hardlook.world.signature import write_signature
from hardlook.world.vocabulary import BY_NAME

_FIRST_OBJECT_LAYER = 64  # class codes end at 31
_SALIENT_GLOW = 140
_SHADOW_STRENGTH = {"night": 0.3, "fog": 0.1, "winter": 0.16, "dusk": 0.3}


@dataclass(frozen=True)
class RenderedScene:
    """An image and its ground truth.

    `image` (H, W, 3) uint8 RGB, signed; `classes` (H, W) uint8 codes of the vocabulary (0 is void); `instances`
    (H, W) uint8, 0-3 within a class; `salient` (H, W) bool.
    """

    scene: Scene
    image: NDArray[np.uint8]
    classes: NDArray[np.uint8]
    instances: NDArray[np.uint8]
    salient: NDArray[np.bool_]

    def mask_of(self, thing: SceneObject) -> NDArray[np.bool_]:
        """The visible pixels (H, W) of one object."""
        mask: NDArray[np.bool_] = (self.classes == BY_NAME[thing.concept].code) & (self.instances == thing.instance)
        return mask

    def class_mask(self, name: str) -> NDArray[np.bool_]:
        """The visible pixels (H, W) of a concept or stuff class."""
        mask: NDArray[np.bool_] = self.classes == BY_NAME[name].code
        return mask

    @property
    def target_mask(self) -> NDArray[np.bool_]:
        """The visible pixels (H, W) of the scene's subject."""
        return self.mask_of(self.scene.subject)


def render_scene(scene: Scene) -> RenderedScene:
    """Draw the scene; the same scene gives the same bytes."""
    canvas = Canvas.blank(scene.size)
    paint_background(canvas, scene)
    paint_scenery(canvas, scene)
    classes_of, instances_of = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
    salient_of = np.zeros(256, bool)
    for position, thing in enumerate(scene.objects):
        layer = _FIRST_OBJECT_LAYER + position
        draw_shadow(canvas, thing, strength=_SHADOW_STRENGTH.get(scene.context, 0.24))
        draw_object(canvas, thing, layer)
        classes_of[layer], instances_of[layer] = BY_NAME[thing.concept].code, thing.instance
        salient_of[layer] = thing.salient
    layers = canvas.pixel_layers()
    classes, instances, salient = classes_of[layers], instances_of[layers], salient_of[layers]
    assert canvas.paint is not None
    painted = np.asarray(cv2.resize(canvas.paint, scene.size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    # Salient objects must be visible at night, too.
    glow = np.where(salient, np.maximum(painted[..., 3], _SALIENT_GLOW), painted[..., 3])
    masks = [layers == _FIRST_OBJECT_LAYER + position for position in range(len(scene.objects))]
    lit = apply_light(painted[..., :3], glow, compute_shading(masks, layers.shape), scene.context)
    picture = add_weather(lit, scene, salient)
    return RenderedScene(scene, write_signature(picture, classes, instances, salient), classes, instances, salient)
