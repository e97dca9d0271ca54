"""What makes a place a place: clouds and sun, grass and flowers, waves, pines, a skyline, furrows, stars, lamps.

Marks on the sky or the ground belong to it; trees, buildings and lamps are no class of the world and stay void.

>>> from hardlook.world.scene import describe_scene
>>> from hardlook.world.backgrounds import paint_background
>>> scene = describe_scene(0, 1, context="winter")
>>> canvas = Canvas.blank(scene.size)
>>> paint_background(canvas, scene)
>>> paint_scenery(canvas, scene)
>>> 0 < float((canvas.layers == VOID).mean()) < 0.2
True
"""

from __future__ import annotations

from collections.abc import Callable

from hardlook.randomness import generator
from hardlook.world.pen import Canvas, Pen
from hardlook.world.scene import Scene
from hardlook.world.scenery.country import autumn, dusk, meadow, winter
from hardlook.world.scenery.stage import Stage
from hardlook.world.scenery.town import night, street
from hardlook.world.scenery.water import beach, fog
from hardlook.world.vocabulary import BY_NAME, CONTEXTS, VOID

_PAINTERS: dict[str, Callable[[Stage], None]] = {
    "meadow": meadow, "beach": beach, "winter": winter, "street": street,
    "dusk": dusk, "night": night, "fog": fog, "autumn": autumn,
}  # fmt: skip


def paint_scenery(canvas: Canvas, scene: Scene) -> None:
    """Decorate sky and ground of the scene's context."""
    ground = next(context.ground for context in CONTEXTS if context.name == scene.context)
    unit = scene.size[1]
    stage = Stage(
        Pen(canvas, BY_NAME["sky"].code, height=unit),
        Pen(canvas, BY_NAME[ground].code, height=unit),
        Pen(canvas, VOID, height=unit),
        scene.horizon, scene.size[0] / unit, generator(scene.seed, "scene", scene.index, "scenery"),
    )  # fmt: skip
    _PAINTERS[scene.context](stage)
