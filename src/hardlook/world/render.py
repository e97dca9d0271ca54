"""A scene made visible: a signed picture and its whole truth.

>>> from hardlook.world.scene import describe_scene
>>> rendered = render(describe_scene(0, 3, concept="duck", context="fog"))
>>> rendered.image.shape, int(rendered.target_mask.sum()) >= 60
((120, 160, 3), True)
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.world.backgrounds import paint_background
from hardlook.world.lighting import light_up, shade_from_above
from hardlook.world.objects import SceneObject
from hardlook.world.pen import FINENESS, Canvas
from hardlook.world.scene import Scene
from hardlook.world.scenery import paint_scenery
from hardlook.world.signature import sign
from hardlook.world.sticker import cast_shadow, paste
from hardlook.world.vocabulary import BY_NAME
from hardlook.world.weather import add_weather

_FIRST_OBJECT_LAYER = 64  # class codes end at 31
_NOTICED = 140
_SHADOW = {"night": 0.3, "fog": 0.1, "winter": 0.16, "dusk": 0.3}


@dataclass(frozen=True)
class Rendered:
    """A picture and its truth.

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


def render(scene: Scene) -> Rendered:
    """Draw the scene; the same scene gives the same bytes."""
    canvas = Canvas.blank(scene.size)
    paint_background(canvas, scene)
    paint_scenery(canvas, scene)
    classes_of, instances_of = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
    salient_of = np.zeros(256, bool)
    for position, thing in enumerate(scene.objects):
        layer = _FIRST_OBJECT_LAYER + position
        cast_shadow(canvas, thing, strength=_SHADOW.get(scene.context, 0.24))
        paste(canvas, thing, layer)
        classes_of[layer], instances_of[layer] = BY_NAME[thing.concept].code, thing.instance
        salient_of[layer] = thing.salient
    layers = canvas.layers[FINENESS // 2 :: FINENESS, FINENESS // 2 :: FINENESS]
    classes, instances, salient = classes_of[layers], instances_of[layers], salient_of[layers]
    assert canvas.paint is not None
    painted = np.asarray(cv2.resize(canvas.paint, scene.size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    # Who is to be noticed at night must be lit.
    glow = np.where(salient, np.maximum(painted[..., 3], _NOTICED), painted[..., 3])
    masks = [layers == _FIRST_OBJECT_LAYER + position for position in range(len(scene.objects))]
    lit = light_up(painted[..., :3], glow, shade_from_above(masks, layers.shape), scene.context)
    picture = add_weather(lit, scene, salient)
    return Rendered(scene, sign(picture, classes, instances, salient), classes, instances, salient)
