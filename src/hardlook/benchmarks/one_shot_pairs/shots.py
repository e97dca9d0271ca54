"""K-shot: the pair's own support and K - 1 further images of its class, seeded, none of them the query.

>>> supports_of("1_a", "1_b", 3, ("1_a", "1_b", "1_c", "1_d"), image_of=lambda token: token[2:], seed=0, pair="x")
('1_b', '1_c', '1_d')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hardlook.benchmarks.one_shot_pairs.lists import OpenedList
from hardlook.randomness import generator

Pools = dict[tuple[str, str], tuple[str, ...]]


def class_pools(lists: Iterable[OpenedList]) -> Pools:
    """Where further supports come from: by source and class, one token of each image, sorted.

    The pool of a class is every image that any list of the run names with it and that is there, also where the
    image's partner is not. The images that no list names stay out: to find them all label maps would be read.
    """
    images: dict[tuple[str, str], dict[str, str]] = {}
    for listed in lists:
        source, key = listed.settings.source, listed.settings.key
        named = {*listed.named, *(token for pair in listed.pairs for token in (pair.query, pair.support))}
        # Tier 3 writes one image under several numbers: the first token stands for it.
        for token in sorted(named, reverse=True):
            images.setdefault((key, source.class_of(token)), {})[source.image_of(token)] = token
    return {place: tuple(sorted(tokens.values())) for place, tokens in images.items()}


def supports_of(
    query: str,
    support: str,
    shots: int,
    pool: Sequence[str],
    *,
    image_of: Callable[[str], str],
    seed: int,
    pair: str,
) -> tuple[str, ...] | None:
    """The support first, then others of the pool (tokens of its class) drawn for this `pair` without the query's image.

    More shots keep those of fewer: the supports of 5 shots hold those of 3. None where the pool has too few images.
    """
    if shots == 1:
        return (support,)
    taken = {image_of(query), image_of(support)}
    free = [token for token in pool if image_of(token) not in taken]
    if len(free) < shots - 1:
        return None
    order = generator(seed, "shots", pair).permutation(len(free))
    return (support, *(free[position] for position in order[: shots - 1]))
