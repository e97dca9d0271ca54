"""Tier 3, generalisation: classes that resemble no training class, their most and their least salient images.

Most published classes have 45 pairs, half of the 90 that ten images make; so do ours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hardlook.randomness import generator
from hardlook.tiers.drawn_pairs import draw_pairs

IMAGES_AN_END = 5
PAIRS_A_CLASS = 45


def spelled(name: str) -> str:
    """A class name as FSS-1000 writes folders: lower case, underscores.

    >>> spelled("Egyptian-cat")
    'egyptian_cat'
    """
    return "_".join(name.lower().replace("-", " ").replace("_", " ").split())


def unlike(classes: Sequence[str], resembling: Collection[str]) -> tuple[str, ...]:
    """The classes that are not named among those to drop, in their order.

    >>> unlike(["abacus", "egyptian_cat"], ["egyptian-cat"])
    ('abacus',)
    """
    dropped = {spelled(name) for name in resembling}
    return tuple(name for name in classes if spelled(name) not in dropped)


def both_ends(salience: Mapping[str, float], each: int = IMAGES_AN_END) -> tuple[list[str], list[str]]:
    """The most and the least salient tokens of a class, equally many: `each`, or half of what there is.

    Equal salience goes by the token's name.

    >>> both_ends({"1_cat_1": 0.9, "1_cat_2": 0.1, "1_cat_3": 0.5}, each=2)
    (['1_cat_1'], ['1_cat_2'])
    """
    ranked = sorted(salience, key=lambda token: (-salience[token], token))
    taken = min(each, len(ranked) // 2)
    return ranked[:taken], ranked[len(ranked) - taken :][::-1]


def generalisation(
    salience: Mapping[str, Mapping[str, float]],
    resembling: Collection[str],
    *,
    seed: int = 0,
    pairs_a_class: int = PAIRS_A_CLASS,
    each: int = IMAGES_AN_END,
) -> dict[str, list[tuple[str, str]]]:
    """Pairs by class among the most and the least salient images; half of the queries from either end.

    `salience` holds the IoU of mask and saliency mask of each token, by class. A class of one image has no pairs.

    >>> drawn = generalisation({"abacus": {f"1_abacus_{n}": n / 10 for n in range(10)}, "bus": {}}, ["bus"])
    >>> {name: len(pairs) for name, pairs in drawn.items()}
    {'abacus': 45}
    """
    built: dict[str, list[tuple[str, str]]] = {}
    for name in unlike(list(salience), resembling):
        ends = both_ends(salience[name], each)
        both = [*ends[0], *ends[1]]
        drawn = draw_pairs(both, both, len(both) ** 2, generator(seed, "tier 3", name))
        quotas = (pairs_a_class - pairs_a_class // 2, pairs_a_class // 2)
        kept = [
            pair for end, quota in zip(ends, quotas, strict=True) for pair in [p for p in drawn if p[0] in end][:quota]
        ]
        chosen = set(kept)
        built[name] = [pair for pair in drawn if pair in chosen]
    return built
