"""Appearance: the colours, patterns and proportions of objects, and the colours and light of contexts.

>>> from hardlook.randomness import generator
>>> look = sample_appearance("cat", generator(0, "look"), against=(110.0, 170.0, 80.0), contrasting=True)
>>> look.pattern in PATTERNS["cat"], 0 <= look.girth <= 1
(True, True)
>>> CONTEXT_COLOURS["night"].light[0] < CONTEXT_COLOURS["meadow"].light[0]
True
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from hardlook.world.pen import Colour


def _read_colours() -> dict[str, list[tuple[Colour, ...]]]:
    """Per concept, sets of a main, a second and a detail colour; the most typical set is the first."""
    sets: dict[str, list[tuple[Colour, ...]]] = {}
    with files("hardlook.world").joinpath("colours.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            main, second, detail = (_parse_colour(row[name]) for name in ("main", "second", "detail"))
            sets.setdefault(row["concept"], []).append((main, second, detail))
    return sets


def _parse_colour(text: str) -> Colour:
    """Red, green and blue (0-255) of six hexadecimal digits."""
    red, green, blue = bytes.fromhex(text)
    return red, green, blue


COLOURS = _read_colours()
PATTERNS: dict[str, tuple[str, ...]] = {
    "cat": ("plain", "striped", "patched"), "dog": ("plain", "spotted", "patched"),
    "car": ("plain", "striped"), "bus": ("plain", "striped"),
    "house": ("plain", "bricks", "boards"), "barn": ("boards", "plain"),
    "apple": ("plain", "speckled", "blushing"), "pear": ("plain", "speckled", "blushing"),
    "cup": ("plain", "spotted", "striped", "heart"), "bottle": ("plain", "striped", "heart"),
    "duck": ("plain", "collared"), "owl": ("scaled", "plain"),
}  # fmt: skip


@dataclass(frozen=True)
class Appearance:
    """Colours (0-255), pattern, and three proportions in [0, 1] whose meaning depends on the drawing."""

    main: Colour
    second: Colour
    detail: Colour
    pattern: str
    girth: float
    stretch: float
    quirk: float


def measure_colour_distance(one: Colour, other: Colour) -> float:
    """The distance of two colours, channels weighted by how the eye perceives them; 0 to about 442."""
    difference = np.subtract(one, other) * (0.9, 1.3, 0.7)
    return float(np.sqrt((difference**2).sum()))


def sample_appearance(concept: str, rng: np.random.Generator, *, against: Colour, contrasting: bool) -> Appearance:
    """A random appearance of the concept; if `contrasting`, from the colour sets that differ most from `against`."""
    ranked = sorted(COLOURS[concept], key=lambda colours: measure_colour_distance(colours[0], against), reverse=True)
    chosen = ranked[int(rng.integers(max(2, len(ranked) - 2) if contrasting else len(ranked)))]
    shift = rng.normal(0, 6, 3)
    main, second, detail = (tuple(float(v) for v in np.clip(np.add(tone, shift), 8, 252)) for tone in chosen)
    girth, stretch, quirk = (float(value) for value in rng.random(3))
    pattern = str(rng.choice(PATTERNS[concept]))
    return Appearance(main, second, detail, pattern, girth, stretch, quirk)  # type: ignore[arg-type]


def lighten(colour: Colour, share: float) -> Colour:
    """The colour moved towards white by `share`."""
    red, green, blue = (c + (255 - c) * share for c in colour)
    return red, green, blue


def darken(colour: Colour, share: float) -> Colour:
    """The colour moved towards a warm black by `share`."""
    red, green, blue = (c + (d - c) * share for c, d in zip(colour, (26, 18, 30), strict=True))
    return red, green, blue


@dataclass(frozen=True)
class ContextColours:
    """Sky from top to horizon, ground from far to near (0-255), and the light as a factor per colour channel."""

    sky: tuple[Colour, Colour]
    ground: tuple[Colour, Colour]
    light: Colour = (1.0, 1.0, 1.0)

    def ground_at(self, depth: float) -> Colour:
        """The ground's colour at `depth` in [0, 1]: 0 at the horizon, 1 at the image's lower edge."""
        (far, near) = self.ground
        red, green, blue = (f + (n - f) * depth for f, n in zip(far, near, strict=True))
        return red, green, blue


CONTEXT_COLOURS: dict[str, ContextColours] = {
    "meadow": ContextColours(((96, 176, 236), (206, 234, 250)), ((152, 200, 96), (84, 158, 66))),
    "beach": ContextColours(((64, 160, 232), (196, 232, 248)), ((246, 226, 176), (228, 194, 132)), (1.0, 0.99, 0.95)),
    "winter": ContextColours(((166, 192, 220), (226, 236, 246)), ((236, 242, 250), (212, 224, 240)), (0.95, 0.98, 1.0)),
    "street": ContextColours(((150, 186, 214), (222, 232, 238)), ((118, 120, 128), (88, 90, 100))),
    "dusk": ContextColours(((84, 58, 128), (252, 156, 88)), ((142, 94, 68), (92, 58, 46)), (0.98, 0.78, 0.74)),
    "night": ContextColours(((12, 16, 46), (48, 58, 112)), ((136, 136, 150), (104, 104, 122)), (0.44, 0.48, 0.7)),
    "fog": ContextColours(((190, 202, 210), (222, 228, 230)), ((156, 180, 190), (104, 142, 160)), (0.96, 0.98, 0.99)),
    "autumn": ContextColours(((128, 182, 216), (244, 230, 202)), ((214, 142, 62), (172, 92, 40)), (1.0, 0.96, 0.88)),
}
