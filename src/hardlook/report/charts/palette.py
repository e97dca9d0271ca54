"""Colours that light, dark and colour-blind readers can tell apart, named by CSS variables.

The categorical colours have the hues of Okabe and Ito (2008), adjusted until each can also colour text on its page and
all pairs differ (CIEDE2000 above 10) for readers without one of the three kinds of cones. Ramps are in steps,
since a variable cannot be interpolated; every step has a text colour with the best contrast.

>>> category_colour(0)
'var(--c0,#0a66d0)'
>>> contrast("#ffffff", "#000000")
21.0
"""

from __future__ import annotations

from itertools import pairwise

STEPS = 12

# Each on the light page, and on the dark one.
_NAMED = {
    "page": ("#ffffff", "#14171b"),
    "panel": ("#f6f7f9", "#1c2026"),
    "ink": ("#1c2127", "#e6e9ed"),
    "muted": ("#5a636e", "#a0a9b4"),
    "rule": ("#d5dae0", "#39414b"),
    "grid": ("#e6e9ed", "#2a3038"),
    "accent": ("#0a5c94", "#6cb8ea"),
}
CATEGORIES_LIGHT = ("#0a66d0", "#bf4800", "#00755a", "#a8348c", "#6a3200", "#2a3136")
CATEGORIES_DARK = ("#40c8ff", "#f5652a", "#12a080", "#bb70c4", "#f8c866", "#cfccd0")
_SEQUENTIAL_LIGHT = ("#f1f6fb", "#b9d5eb", "#5a9fd0", "#1d6aa5", "#0b3c68")
_SEQUENTIAL_DARK = ("#1b242e", "#1f4a6e", "#2f7cb3", "#7db9e2", "#e3f1fb")
_DIVERGING_LIGHT = ("#8a3600", "#d9813f", "#f5dcc8", "#f6f7f9", "#c7dcee", "#4b93c7", "#0b4a7d")
_DIVERGING_DARK = ("#ffd9bd", "#e08a4c", "#6b3a18", "#1c2026", "#1d4566", "#4b9bd3", "#d3eafb")

INK, MUTED, RULE, GRID, ACCENT, PAGE = (
    f"var(--{name},{_NAMED[name][0]})" for name in ("ink", "muted", "rule", "grid", "accent", "page")
)


def category_colour(index: int) -> str:
    """The colour of category `index`, from 0; colours repeat after six."""
    index %= len(CATEGORIES_LIGHT)
    return f"var(--c{index},{CATEGORIES_LIGHT[index]})"


def dash_pattern(index: int) -> str | None:
    """The dash pattern that distinguishes a line from an earlier one of the same colour."""
    patterns = (None, "7 3", "2 3", "9 3 2 3")
    return patterns[index // len(CATEGORIES_LIGHT) % len(patterns)]


def step_colour(step: int, *, diverging: bool = False) -> str:
    """The fill of a ramp step, 0 (lowest) to STEPS (highest)."""
    return f"var(--{'d' if diverging else 's'}{step})"


def step_text(step: int, *, diverging: bool = False) -> str:
    """The colour of text written on that step."""
    return f"var(--{'d' if diverging else 's'}t{step})"


def list_colours(*, dark: bool = False) -> dict[str, str]:
    """The colour of every variable, by name, on the light or the dark page.

    >>> list_colours()["c0"], list_colours(dark=True)["page"]
    ('#0a66d0', '#14171b')
    """
    categories, sequential, diverging = CATEGORIES_LIGHT, _SEQUENTIAL_LIGHT, _DIVERGING_LIGHT
    if dark:
        categories, sequential, diverging = CATEGORIES_DARK, _SEQUENTIAL_DARK, _DIVERGING_DARK
    named = {name: colours[dark] for name, colours in _NAMED.items()}
    named |= {f"c{index}": colour for index, colour in enumerate(categories)}
    for letter, anchors in (("s", sequential), ("d", diverging)):
        for step, colour in enumerate(_blend(anchors)):
            named |= {f"{letter}{step}": colour, f"{letter}t{step}": choose_text_colour(colour)}
    return named


def stylesheet() -> str:
    """All variables: the light ones, and the dark ones for screens that prefer dark; prints stay light."""
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in list_colours(dark=dark).items()) for dark in (False, True)
    )
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{color-scheme:dark;{dark}}}}}\n"
    )


def contrast(one: str, other: str) -> float:
    """The WCAG contrast ratio of two colours, 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def choose_text_colour(colour: str) -> str:
    """Black or white, whichever has more contrast with the colour; one of the two always reaches 4.5."""
    return max(("#000000", "#ffffff"), key=lambda text: contrast(colour, text))


def _blend(anchors: tuple[str, ...]) -> list[str]:
    segments = list(pairwise([_channels(anchor) for anchor in anchors]))
    colours = []
    for step in range(STEPS + 1):
        place = step / STEPS * len(segments)
        index = min(int(place), len(segments) - 1)
        start, end = segments[index]
        mixed = (round(a + (b - a) * (place - index)) for a, b in zip(start, end, strict=True))
        colours.append("#" + "".join(f"{channel:02x}" for channel in mixed))
    return colours


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[start : start + 2], 16) for start in (1, 3, 5))


def _luminance(colour: str) -> float:
    shares = (channel / 255 for channel in _channels(colour))
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
