"""The fixed lists: random pairs of one class, up to 3,000 a class, as the published splits have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hardlook.randomness import generator
from hardlook.tiers.drawn_pairs import draw_pairs

PAIRS_A_CLASS = 3000


def random_pairs(
    tokens: Mapping[str, Sequence[str]], classes: Sequence[str], *, seed: int = 0, most: int = PAIRS_A_CLASS
) -> list[tuple[str, str]]:
    """Pairs of the classes of a fold, class by class: no self pairs, none twice; `tokens` by class.

    >>> sorted(random_pairs({"cat": ["1_a", "1_b"]}, ["cat"]))
    [('1_a', '1_b'), ('1_b', '1_a')]
    """
    drawn: list[tuple[str, str]] = []
    for name in classes:
        own = list(tokens.get(name, ()))
        drawn += draw_pairs(own, own, most, generator(seed, "fixed", name))
    return drawn
