"""Appearance: the colours, patterns and proportions of objects, and the colours and light of contexts.

>>> from hardlook.randomness import generator
>>> look = sample_appearance("cat", generator(0, "look"), against=(110.0, 170.0, 80.0), contrasting=True)
>>> look.pattern in PATTERNS["cat"], 0 <= look.girth <= 1
(True, True)
>>> CONTEXT_COLOURS["night"].light[0] < CONTEXT_COLOURS["meadow"].light[0]
True
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardlook.world.pen import Colour

# Per concept, sets of a main, a second and a detail colour; the most typical set comes first.
COLOURS: dict[str, tuple[tuple[Colour, Colour, Colour], ...]] = {
    "cat": (
        ((236, 150, 62), (255, 226, 188), (190, 96, 30)), ((146, 150, 160), (226, 228, 232), (96, 100, 112)),
        ((58, 56, 66), (96, 94, 106), (30, 28, 36)), ((246, 238, 226), (255, 252, 246), (214, 176, 132)),
        ((150, 102, 66), (222, 192, 156), (100, 64, 40)),
    ),
    "dog": (
        ((168, 106, 58), (232, 202, 162), (108, 62, 34)), ((226, 182, 108), (250, 228, 186), (176, 126, 62)),
        ((244, 242, 238), (255, 255, 255), (52, 50, 54)), ((66, 58, 58), (196, 136, 84), (36, 32, 34)),
        ((150, 142, 138), (218, 214, 210), (104, 96, 94)),
    ),
    "car": (
        ((222, 58, 52), (250, 220, 214), (150, 32, 32)), ((58, 116, 206), (212, 228, 250), (32, 70, 140)),
        ((246, 196, 48), (255, 242, 200), (190, 140, 20)), ((72, 168, 112), (214, 242, 222), (40, 112, 70)),
        ((240, 240, 244), (255, 255, 255), (168, 172, 182)), ((232, 128, 170), (254, 226, 238), (176, 78, 120)),
    ),
    "bus": (
        ((250, 188, 40), (255, 240, 196), (196, 134, 16)), ((206, 48, 52), (252, 226, 220), (138, 26, 32)),
        ((60, 150, 128), (226, 244, 236), (32, 98, 84)), ((72, 110, 196), (240, 244, 252), (40, 66, 134)),
        ((236, 116, 48), (255, 236, 214), (170, 74, 22)),
    ),
    "house": (
        ((250, 234, 200), (196, 78, 60), (128, 80, 54)), ((244, 198, 188), (122, 84, 92), (110, 56, 56)),
        ((190, 216, 236), (64, 84, 124), (240, 244, 250)), ((248, 248, 244), (74, 124, 110), (60, 90, 130)),
        ((240, 206, 120), (150, 78, 48), (96, 62, 40)),
    ),
    "barn": (
        ((186, 48, 44), (110, 104, 108), (250, 244, 236)), ((142, 92, 58), (92, 68, 54), (234, 218, 190)),
        ((150, 146, 142), (92, 66, 62), (244, 240, 234)), ((70, 112, 86), (88, 92, 96), (244, 240, 226)),
        ((104, 44, 52), (150, 150, 156), (250, 236, 214)),
    ),
    "apple": (
        ((216, 42, 46), (246, 140, 110), (118, 70, 36)), ((132, 192, 62), (208, 232, 134), (110, 70, 40)),
        ((246, 204, 70), (236, 120, 70), (112, 70, 38)), ((232, 104, 124), (252, 200, 190), (110, 66, 44)),
    ),
    "pear": (
        ((176, 202, 72), (226, 236, 150), (110, 74, 40)), ((240, 206, 84), (250, 236, 160), (106, 70, 38)),
        ((190, 96, 62), (232, 160, 92), (98, 62, 36)), ((122, 166, 84), (190, 216, 130), (96, 66, 38)),
    ),
    "cup": (
        ((250, 250, 250), (70, 130, 210), (96, 58, 36)), ((70, 130, 210), (250, 250, 250), (96, 58, 36)),
        ((224, 76, 70), (255, 236, 220), (92, 54, 34)), ((78, 178, 168), (250, 246, 228), (98, 60, 40)),
        ((248, 204, 92), (224, 110, 70), (96, 58, 36)), ((178, 132, 200), (248, 240, 252), (92, 56, 38)),
    ),
    "bottle": (
        ((52, 132, 78), (248, 240, 214), (28, 84, 48)), ((136, 78, 40), (246, 232, 200), (86, 46, 24)),
        ((66, 126, 196), (250, 250, 250), (36, 78, 136)), ((206, 64, 60), (255, 244, 230), (140, 32, 34)),
        ((196, 222, 226), (240, 128, 70), (120, 160, 170)), ((132, 86, 160), (250, 244, 226), (86, 50, 110)),
    ),
    "duck": (
        ((252, 216, 64), (244, 188, 40), (240, 128, 36)), ((250, 250, 248), (226, 228, 232), (246, 150, 40)),
        ((156, 118, 84), (58, 128, 92), (236, 184, 60)), ((126, 96, 74), (178, 146, 112), (222, 140, 50)),
    ),
    "owl": (
        ((142, 98, 62), (226, 196, 154), (92, 58, 36)), ((132, 134, 144), (214, 216, 222), (84, 86, 98)),
        ((246, 246, 246), (255, 255, 255), (150, 148, 152)), ((190, 104, 56), (246, 214, 168), (122, 60, 32)),
        ((104, 84, 120), (206, 190, 216), (66, 50, 82)),
    ),
}  # fmt: skip

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
