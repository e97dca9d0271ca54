"""Dials: how often a planted model errs, and on which decisions.

>>> spoiled = [[spoils(dial, 0, "cat", "x", k) for k in range(400)] for dial in (0.0, 0.3, 0.6, 1.0)]
>>> [sum(row) / 400 for row in spoiled], all(a <= b for a, b in zip(spoiled[1], spoiled[2], strict=True))
([0.0, 0.3125, 0.605, 1.0], True)
"""

from __future__ import annotations

from hardlook.errors import ModelError
from hardlook.randomness import generator


def check_dials(**dials: float) -> None:
    """A `ModelError` for a dial outside 0 to 1."""
    for name, value in dials.items():
        if not 0 <= value <= 1:
            raise ModelError(f"the dial {name} is {value}", remedy="a dial goes from 0 to 1")


def draw(seed: int, *key: str | int) -> float:
    """The one number in [0, 1) that belongs to a decision."""
    return float(generator(seed, *key).random())


def spoils(dial: float, seed: int, *key: str | int) -> bool:
    """Whether the dial spoils this decision: nested, so that what .3 spoils .6 spoils too."""
    # A dial at either end needs no draw: most are at 0.
    return dial >= 1 or (dial > 0 and draw(seed, *key) < dial)
