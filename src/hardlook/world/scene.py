"""Descriptions of scenes, before anything is drawn: context, horizon and placed objects.

Every choice is drawn from the seed, the scene's index and the choice's own key. So a scene is the same in any order and
process, and fixing one choice does not change the others.

Salient objects are large, near the centre and in a colour that contrasts with the ground; others are small, off-centre
and faded towards the ground colour. An object is kept only if it and all objects placed before it remain visible.

>>> scene = describe_scene(0, 7, concept="cat", context="beach", salient=True)
>>> scene.subject.concept, scene.context, scene == describe_scene(0, 7, "cat", "beach", True)
('cat', 'beach', True)
>>> requests = (ObjectRequest("owl", salient=True), ObjectRequest("cup", salient=False))
>>> objects, target = place_objects(requests, "night", 0.4, (160, 120), generator(0, "placement"))
>>> objects[target].concept, objects[target].height > 40
('owl', True)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.randomness import generator
from hardlook.world.appearance import CONTEXT_COLOURS, sample_appearance
from hardlook.world.drawings import HALF_WIDTH, RELATIVE_HEIGHT
from hardlook.world.objects import SceneObject, render_silhouette
from hardlook.world.vocabulary import CONCEPTS, CONTEXTS

DEFAULT_SIZE = (160, 120)
SIZE_LIMITS = (64, 1024)
MAX_INSTANCES = 4  # per class: the signature has two bits for the instance
MIN_VISIBLE_SHARE = 0.6
MIN_VISIBLE_SHARE_OF_TARGET = 0.8
MIN_VISIBLE_PIXELS = 60
_ATTEMPTS = 8
_SHORE = 0.2  # share of the height below the horizon where the beach is dry
_MAX_TILT = {"house": 0.0, "barn": 0.0, "car": 0.04, "bus": 0.04, "cup": 0.05, "apple": 0.3, "pear": 0.25}  # radians


@dataclass(frozen=True)
class ObjectRequest:
    """An object to be placed: its concept, whether it is salient, and whether it stands beside the target."""

    concept: str
    salient: bool
    beside_target: bool = False


@dataclass(frozen=True)
class Scene:
    """The description of an image; `objects` from back to front, `target` is the position of the scene's subject.

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
    _check_options(size, concept, context, distractors)

    def draw(choice: str) -> np.random.Generator:
        return generator(seed, "scene", index, choice)

    concept = concept or CONCEPTS[int(draw("concept").integers(len(CONCEPTS)))].name
    context = context or CONTEXTS[int(draw("context").integers(len(CONTEXTS)))].name
    salient = bool(draw("salient").random() < 0.5) if salient is None else salient
    requests = _choose_objects(concept, salient, distractors, draw("cast"))
    horizon = float(draw("horizon").uniform(0.36, 0.48))
    objects, target = place_objects(requests, context, horizon, size, draw("placement"))
    return Scene(seed, index, size, context, horizon, objects, target)


def _check_options(size: tuple[int, int], concept: str | None, context: str | None, distractors: int | None) -> None:
    low, high = SIZE_LIMITS
    if not all(low <= side <= high for side in size):
        raise OptionError(f"size {size[0]}x{size[1]} is out of range", remedy=f"sides of {low} to {high} pixels")
    for kind, name, known in (("concept", concept, CONCEPTS), ("context", context, CONTEXTS)):
        names = [one.name for one in known]
        if name is not None and name not in names:
            raise OptionError(f"no {kind} {name!r} in the planted world", remedy=f"one of {', '.join(names)}")
    if distractors is not None and not 0 <= distractors <= 12:
        raise OptionError(f"{distractors} distractors", remedy="choose 0 to 12")


def _choose_objects(
    concept: str, salient: bool, distractors: int | None, rng: np.random.Generator
) -> tuple[ObjectRequest, ...]:
    """The subject first, then the other objects, in the order in which they are placed."""
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
        names.append(name if names.count(name) < MAX_INSTANCES else next(o for o in others if o not in names))
    company = [ObjectRequest(concept, salient, beside_target=True)] * companions
    # A subject that is not salient is the hardest test beside a salient object of another concept.
    things = [ObjectRequest(name, rival and not salient and i == 0) for i, name in enumerate(names)]
    return (ObjectRequest(concept, salient), *things[:1], *company, *things[1:])


def place_objects(
    requests: tuple[ObjectRequest, ...], context: str, horizon: float, size: tuple[int, int], rng: np.random.Generator
) -> tuple[tuple[SceneObject, ...], int]:
    """The objects that could be placed, from back to front, and the position of the first request among them."""
    placed: list[SceneObject] = []
    masks: list[NDArray[np.bool_]] = []
    for position, request in enumerate(requests):
        for _ in range(_ATTEMPTS):
            candidate = _propose(request, placed[0] if placed else None, context, horizon, size, rng)
            silhouette = render_silhouette(candidate, size)
            if position == 0 or _all_visible([*placed, candidate], [*masks, silhouette]):
                placed.append(candidate)
                masks.append(silhouette)
                break
    counted: Counter[str] = Counter()
    numbered = []
    for thing in placed:
        numbered.append(replace(thing, instance=counted[thing.concept]))
        counted[thing.concept] += 1
    order = sorted(range(len(numbered)), key=lambda i: numbered[i].y)
    return tuple(numbered[i] for i in order), order.index(0)


def _propose(
    request: ObjectRequest, target: SceneObject | None, context: str, horizon: float, size: tuple[int, int],
    rng: np.random.Generator,
) -> SceneObject:  # fmt: skip
    width, height = size
    span = min(height, 0.75 * width)
    stature, half = RELATIVE_HEIGHT[request.concept], HALF_WIDTH[request.concept]
    side = -1.0 if rng.random() < 0.5 else 1.0
    shares, places, lift = rng.random(4), rng.random(2), rng.random()
    if request.beside_target and request.salient and target is not None:
        tall = target.height * (0.5 + 0.2 * shares[0])
        x = target.x + side * (target.height * half * 0.7 + tall * half * (0.5 + 0.5 * places[0]))
        y = target.y + (0.16 * places[1] - 0.06) * height
    elif request.salient:
        tall = span * stature * ((0.56 if target is None else 0.46) + 0.12 * shares[0])
        tall = min(tall, 0.66 * width / (2 * half))
        x = width * (0.5 + side * 0.07 * places[0])
        y = height * (0.54 + 0.05 * places[1]) + tall / 2
    else:
        near = places[1]
        tall = span * stature * (0.19 + 0.05 * shares[0] + 0.06 * near)
        x = width * (0.5 + side * (0.22 + 0.26 * places[0]))
        first = horizon + (_SHORE if context == "beach" else 0.1)
        y = height * (first + (0.96 - first) * near)
    x = min(max(x, half * tall + 1), width - 2 - half * tall)
    y = min(max(y, tall + 2), height * 0.97)
    ground = CONTEXT_COLOURS[context].ground_at((y / height - horizon) / (1 - horizon))
    look = sample_appearance(request.concept, rng, against=ground, contrasting=request.salient)
    # Fog already hides distant objects; faded more, they could not be recognised.
    fade = 0.0 if request.salient else (0.28 if context == "fog" else 0.5) + 0.14 * shares[1]
    return SceneObject(
        request.concept, 0, request.salient, float(x), float(y), float(tall), bool(lift < 0.5),
        float(_MAX_TILT.get(request.concept, 0.1) * (shares[2] - 0.5)), look, (ground, float(fade)),
    )  # fmt: skip


def _all_visible(things: list[SceneObject], masks: list[NDArray[np.bool_]]) -> bool:
    covered = np.zeros_like(masks[0])
    for i in sorted(range(len(things)), key=lambda i: things[i].y, reverse=True):
        visible, whole = int((masks[i] & ~covered).sum()), int(masks[i].sum())
        needed = MIN_VISIBLE_SHARE if i else MIN_VISIBLE_SHARE_OF_TARGET
        if visible < max(MIN_VISIBLE_PIXELS, needed * whole):
            return False
        covered |= masks[i]
    return True
