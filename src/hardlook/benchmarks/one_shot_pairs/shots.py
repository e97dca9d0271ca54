"""K-shot: the pair's own support and K - 1 further images of its class, seeded, none of them the query.

>>> pools = {"cat": ("1_a", "1_b", "1_c", "1_d")}
>>> supports_of("1_a", "1_b", 3, pools["cat"], image_of=lambda token: token[2:], seed=0, pair="x")
('1_b', '1_c', '1_d')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hardlook.data.class_masks import ClassMasks
from hardlook.data.toss_pairs import Pair
from hardlook.errors import DataError
from hardlook.randomness import generator


def class_pools(pairs: Iterable[Pair], source: ClassMasks) -> dict[str, tuple[str, ...]]:
    """All tokens that the pairs name, by class, sorted."""
    pools: dict[str, set[str]] = {}
    for pair in pairs:
        for token in (pair.query, pair.support):
            pools.setdefault(source.class_of(token), set()).add(token)
    return {name: tuple(sorted(tokens)) for name, tokens in pools.items()}


def supports_of(
    query: str,
    support: str,
    shots: int,
    pool: Sequence[str],
    *,
    image_of: Callable[[str], str],
    seed: int,
    pair: str,
) -> tuple[str, ...]:
    """The support first, then others of the pool (tokens of its class) drawn for this `pair` without the query's image.

    More shots keep those of fewer: the supports of 5 shots hold those of 3. A class with too few images is a
    `DataError`.
    """
    if shots == 1:
        return (support,)
    taken = {image_of(query), image_of(support)}
    free = [token for token in pool if image_of(token) not in taken]
    if len(free) < shots - 1:
        raise DataError(
            f"{shots} supports are asked for, and beside the query the class of {support} has {len(free) + 1} images",
            unit=pair,
            remedy="ask for fewer --shots, or give more images",
        )
    order = generator(seed, "shots", pair).permutation(len(free))
    return (support, *(free[position] for position in order[: shots - 1]))
