"""What a scene holds, described before anything is drawn: its place, its light and its objects.

Every choice is drawn from the seed, the scene's index and the choice's own name, so that a scene is the same in any
order and process, and fixing one choice leaves the others as they were.

>>> scene = describe_scene(0, 7, concept="cat", context="beach", salient=True)
>>> scene.objects[scene.target].concept, scene.context, scene == describe_scene(0, 7, "cat", "beach", True)
('cat', 'beach', True)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardlook.errors import OptionError
from hardlook.randomness import generator
from hardlook.world.objects import SceneObject, Wanted
from hardlook.world.placement import place_objects
from hardlook.world.vocabulary import CONCEPTS, CONTEXTS

DEFAULT_SIZE = (160, 120)
SIZE_LIMITS = (64, 1024)
MOST_INSTANCES = 4  # of one class: the signature has two bits for them


@dataclass(frozen=True)
class Scene:
    """A picture's description; `objects` from back to front, `target` is the position of the scene's subject.

    `size` is (width, height) in pixels and `horizon` the share of the height that is sky.
    """

    seed: int
    index: int
    size: tuple[int, int]
    context: str
    horizon: float
    objects: tuple[SceneObject, ...]
    target: int

    @property
    def subject(self) -> SceneObject:
        """The object that the scene is about."""
        return self.objects[self.target]


def describe_scene(
    seed: int,
    index: int,
    concept: str | None = None,
    context: str | None = None,
    salient: bool | None = None,
    distractors: int | None = None,
    size: tuple[int, int] = DEFAULT_SIZE,
) -> Scene:
    """The scene number `index` of the world `seed`; what is None is drawn.

    `distractors` is the number of objects of other concepts that are tried; one that would hide another or be
    hidden is left out. `size` is (width, height), each 64 to 1024 pixels.
    """
    _check(size, concept, context, distractors)

    def draw(choice: str) -> np.random.Generator:
        return generator(seed, "scene", index, choice)

    concept = concept or CONCEPTS[int(draw("concept").integers(len(CONCEPTS)))].name
    context = context or CONTEXTS[int(draw("context").integers(len(CONTEXTS)))].name
    salient = bool(draw("salient").random() < 0.5) if salient is None else salient
    wanted = _cast(concept, salient, distractors, draw("cast"))
    horizon = float(draw("horizon").uniform(0.36, 0.48))
    objects, target = place_objects(wanted, context, horizon, size, draw("placement"))
    return Scene(seed, index, size, context, horizon, objects, target)


def _cast(concept: str, salient: bool, distractors: int | None, rng: np.random.Generator) -> tuple[Wanted, ...]:
    """The subject first, then what else may appear, in the order of their claim to a place."""
    # All draws are made whatever the options, so that an option changes only what it names.
    drawn = int(rng.choice(4, p=(0.2, 0.35, 0.3, 0.15)))
    companions = int(rng.choice(3, p=(0.76, 0.18, 0.06)))
    rival = rng.random() < 0.6
    count = drawn if distractors is None else distractors
    others = [label.name for label in CONCEPTS if label.name != concept]
    names: list[str] = []
    for _ in range(count):
        again = rng.random() < 0.3
        name = others[int(rng.integers(len(others)))]
        name = names[-1] if again and names else name
        names.append(name if names.count(name) < MOST_INSTANCES else next(o for o in others if o not in names))
    company = [Wanted(concept, salient, beside_target=True)] * companions
    # A subject that nobody notices is most telling beside a rival that everybody does.
    things = [Wanted(name, rival and not salient and i == 0) for i, name in enumerate(names)]
    return (Wanted(concept, salient), *things[:1], *company, *things[1:])


def _check(size: tuple[int, int], concept: str | None, context: str | None, distractors: int | None) -> None:
    low, high = SIZE_LIMITS
    if not all(low <= side <= high for side in size):
        raise OptionError(f"size {size[0]}x{size[1]} is out of range", remedy=f"sides of {low} to {high} pixels")
    names = ", ".join(label.name for label in CONCEPTS)
    if concept is not None and concept not in {label.name for label in CONCEPTS}:
        raise OptionError(f"no concept {concept!r} in the planted world", remedy=f"one of {names}")
    places = ", ".join(place.name for place in CONTEXTS)
    if context is not None and context not in {place.name for place in CONTEXTS}:
        raise OptionError(f"no context {context!r} in the planted world", remedy=f"one of {places}")
    if distractors is not None and not 0 <= distractors <= 12:
        raise OptionError(f"{distractors} distractors asked for", remedy="0 to 12")
