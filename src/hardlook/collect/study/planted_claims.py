"""Claims about scenes of the planted world: candidates of which it is known whether they are right.

>>> planted_claims(0, 8)[3].said == planted_claims(0, 8)[3].shown, planted_claims(0, 8)[3].answer
(False, 0)
>>> [one.answer for one in TRAINING]
[1, 0, 0, 1, 0, 1]
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hardlook.models.roles import Image
from hardlook.randomness import generator
from hardlook.world.layouts.concept_context import SPLITS
from hardlook.world.layouts.pictures import save_image
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import render
from hardlook.world.scene import describe_scene
from hardlook.world.vocabulary import CONTEXTS, sibling_of

SIZE = (320, 240)
FALSE_EVERY = 4  # one in so many claims of a planted study is false
_SEED = 20_240_902


@dataclass(frozen=True)
class Claim:
    """What a scene shows and what is said of it, each (concept, context)."""

    shown: tuple[str, str]
    said: tuple[str, str]

    @property
    def answer(self) -> Literal[0, 1]:
        """1 where the claim is true."""
        return 1 if self.shown == self.said else 0


# Wrong things and wrong places that nobody takes for the right ones; the first is true, as most candidates are.
TRAINING = (
    Claim(("cat", "beach"), ("cat", "beach")),
    Claim(("car", "winter"), ("duck", "winter")),
    Claim(("house", "night"), ("house", "meadow")),
    Claim(("apple", "street"), ("apple", "street")),
    Claim(("bus", "winter"), ("bus", "beach")),
    Claim(("owl", "night"), ("owl", "night")),
)


def rendered(one: Claim, index: int) -> Image:
    """A picture (H, W, 3) uint8 of what a claim's scene shows, with nothing else in it."""
    scene = describe_scene(_SEED, index, *one.shown, salient=True, distractors=0, size=SIZE)
    return render(scene).image


def planted_claims(seed: int, scenes: int) -> list[Claim]:
    """A claim about each scene of a world; every fourth is false, in turns about the concept and about the context."""
    world = _world(seed, scenes)
    claims = []
    for index in range(scenes):
        shown = (world.concept(index), world.context(index))
        said = shown if (index + 1) % FALSE_EVERY else _false(shown, seed, index)
        claims.append(Claim(shown, said))
    return claims


def write_planted_claims(folder: Path, *, scenes: int, seed: int = 0) -> None:
    """Write the pictures and a manifest of what is said of them; the truth is in neither."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for index, (one, scene) in enumerate(zip(planted_claims(seed, scenes), _world(seed, scenes), strict=True)):
        name = f"images/{index + 1:06d}.png"
        save_image(folder / name, scene.image)
        rows.append((name, *one.said, SPLITS[one.said[0]]))
    with (folder / "manifest.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("path", "concept", "context", "split"))
        writer.writerows(rows)


def _world(seed: int, scenes: int) -> PlantedWorld:
    return PlantedWorld(seed=seed, count=scenes, salient=True)


def _false(shown: tuple[str, str], seed: int, index: int) -> tuple[str, str]:
    concept, context = shown
    if (index + 1) // FALSE_EVERY % 2:
        others = [place.name for place in CONTEXTS if place.name != context]
        return concept, others[int(generator(seed, "review", "claim", index).integers(len(others)))]
    return sibling_of(concept), context
