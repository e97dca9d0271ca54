"""Tier 2, support cognizance: from the query itself as support down to no support at all.

Sizes a class are those of the published files. Where a class has fewer images, all it has are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hardlook.data.toss_pairs import Pair
from hardlook.randomness import generator
from hardlook.tiers.drawn_pairs import draw_pairs

BASES, TRANSFORMS, SAME_CLASS_EACH, OTHER_CLASS = 48, 4, 50, 40
WANTED = {
    "L0": BASES, "L1": BASES * TRANSFORMS, "L2": SAME_CLASS_EACH, "L3": SAME_CLASS_EACH, "L4": OTHER_CLASS,
    "L5": BASES, "L6": BASES,
}  # fmt: skip
POOL_A_CLASS = 3500  # the published threshold is a mean over 70,000 pairs of twenty classes
_TRANSFORM_NUMBERS = 99_999


def similarity_pool(tokens: Mapping[str, Sequence[str]], *, seed: int = 0) -> dict[str, list[tuple[str, str]]]:
    """Same-class pairs, up to 3,500 a class, over which the mean similarity is taken.

    >>> len(similarity_pool({"cat": ["1_a", "1_b", "1_c"]})["cat"])
    6
    """
    return {
        name: draw_pairs(list(own), list(own), POOL_A_CLASS, generator(seed, "tier 2 pool", name))
        for name, own in tokens.items()
    }


def support_cognizance(
    tokens: Mapping[str, Sequence[str]],
    classes: Sequence[str],
    similar: Mapping[tuple[str, str], bool],
    *,
    fold: int = 0,
    seed: int = 0,
) -> list[Pair]:
    """The pairs of one fold: class by class, level by level.

    `tokens` by class; `similar` tells same-class pairs apart: above the mean similarity or not (`similarity_pool`).

    >>> rows = support_cognizance({"cat": ["1_a", "1_b"], "dog": ["2_c"]}, ["cat", "dog"], {("1_a", "1_b"): True})
    >>> [(row.support, row.split) for row in rows if row.query == "1_a" and row.split != "L1"]
    [('1_a', 'L0'), ('1_b', 'L2'), ('2_c', 'L4'), ('1_b', 'L5'), ('1_b', 'L6')]
    """
    rows: list[Pair] = []
    for name in classes:
        own = list(tokens.get(name, ()))
        known = set(own)
        rows += [Pair(token, token, 2, fold, "L0") for token in _some(own, BASES, seed, "L0", name)]
        for base in _some(own, BASES, seed, "L1", name):
            numbers = generator(seed, "tier 2 transforms", base).choice(_TRANSFORM_NUMBERS, TRANSFORMS, replace=False)
            rows += [Pair(base, base, 2, fold, "L1", transform=number + 1) for number in numbers.tolist()]
        for level, wanted in (("L2", True), ("L3", False)):
            fitting = [pair for pair, alike in similar.items() if alike is wanted and pair[0] in known]
            rows += [Pair(*pair, 2, fold, level) for pair in fitting[:SAME_CLASS_EACH]]
        others = [other for other in classes if other != name]
        rows += [Pair(*pair, 2, fold, "L4") for pair in _other_class(tokens, name, others, seed)]
        for level in ("L5", "L6"):
            queries = _some(own, BASES, seed, level, name)
            rng = generator(seed, "tier 2 support", level, name)
            rows += [Pair(*pair, 2, fold, level) for pair in _one_support_each(own, queries, rng)]
    return rows


def _some(tokens: Sequence[str], count: int, seed: int, *key: str) -> list[str]:
    rng = generator(seed, "tier 2", *key)
    return [tokens[place] for place in rng.permutation(len(tokens))[:count].tolist()]


def _other_class(
    tokens: Mapping[str, Sequence[str]], name: str, others: Sequence[str], seed: int
) -> list[tuple[str, str]]:
    """The same queries meet a support of each other class; supports come again only when a class runs out of them."""
    filled = [other for other in others if tokens.get(other)]
    if not filled or not tokens.get(name):
        return []
    share, more = divmod(OTHER_CLASS, len(filled))
    queries = _some(tokens[name], -(-OTHER_CLASS // len(filled)), seed, "L4", name)
    pairs = []
    for place, other in enumerate(filled):
        supports = _some(tokens[other], len(queries), seed, "L4", name, other)
        met = queries[: share + (place < more)]
        pairs += [(query, supports[turn % len(supports)]) for turn, query in enumerate(met)]
    return pairs


def _one_support_each(own: Sequence[str], queries: Sequence[str], rng: np.random.Generator) -> list[tuple[str, str]]:
    """A support of the class for each query, another image unless the class has only one."""
    pairs = []
    for query in queries:
        rest = [token for token in own if token != query] or [query]
        pairs.append((query, rest[int(rng.integers(len(rest)))]))
    return pairs
