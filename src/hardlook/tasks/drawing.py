"""Tasks of N classes with K supports and Q queries each, as a pure function of the seed and the task's number.

Classes, support contexts and supports follow from (seed, N, K, index), queries from (seed, mode, N, K, Q, index),
given the classes that can take part. So every mode and every learner gets the same classes and supports, in any order,
subset or process. Two exceptions: `shared` puts all classes of a task into one context, so it draws its own classes
and supports, from (seed, "shared", N, K, index); `blind` under `blind_supports="paper"` keeps the classes and draws its
own supports without regard to context.

>>> from hardlook.tasks.eligibility import eligible_classes
>>> from hardlook.tasks.image_table import image_table
>>> rows = [(concept, context) for concept in "abc" for context in ("grass", "snow") for _ in range(4)]
>>> table = image_table(*zip(*rows), [str(number) for number in range(24)])
>>> eligible = eligible_classes(table, ("iid", "ood"), ways=2, shots=1, queries=3)
>>> iid, ood = (draw_tasks(table, eligible, mode, 2, 1, 3, np.arange(5), seed=0) for mode in ("iid", "ood"))
>>> bool((iid.support == ood.support).all()), iid.query.shape
(True, (5, 2, 3))
>>> bool((table.context[ood.query] != ood.support_context[..., None]).all())
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.tasks.eligibility import Eligibility
from hardlook.tasks.image_table import ImageTable, Numbers
from hardlook.tasks.keyed_draws import key_of, random_numbers, shares
from hardlook.tasks.query_pools import query_pools, swapped_partners, swaps_allowed
from hardlook.tasks.supports import blind_supports_of_paper, common_supports, shared_supports

CHUNK = 1024
"""Tasks that are drawn together; bounds memory, changes nothing else."""


@dataclass(frozen=True, eq=False)
class Tasks:
    """T tasks of one mode; all arrays int64.

    `index` (T,) the tasks' numbers; `classes` (T, N) concepts; `support` (T, N, K) and `query` (T, N, Q) rows of the
    table; `support_context` (T, N) the context of each class's supports, -1 where they are of mixed contexts.
    """

    mode: str
    ways: int
    shots: int
    index: Numbers
    classes: Numbers
    support: Numbers
    query: Numbers
    support_context: Numbers


def draw_tasks(
    table: ImageTable,
    eligibility: Eligibility,
    mode: str,
    ways: int,
    shots: int,
    queries: int,
    indices: Sequence[int] | NDArray[np.integer],
    *,
    seed: int,
    blind_supports: str = "ours",
) -> Tasks:
    """The tasks with these numbers (at least 0, any order, repeats allowed).

    `eligibility` of the same table must name the mode, and at least as many ways, shots and queries.
    """
    numbers = np.asarray(indices, np.int64)
    _refuse(table, eligibility, mode, (ways, shots, queries), numbers, blind_supports)
    parts = [
        _draw(eligibility, mode, ways, shots, queries, numbers[start : start + CHUNK], seed)
        for start in range(0, max(len(numbers), 1), CHUNK)
    ]
    classes, contexts, support, query = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Tasks(mode, ways, shots, numbers, classes, support, query, contexts)


def _draw(
    eligibility: Eligibility, mode: str, ways: int, shots: int, queries: int, numbers: Numbers, seed: int
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    pools, shape = eligibility.pools, (ways, shots, queries)
    if mode == "shared":
        drawn = shared_supports(eligibility, *shape, numbers, seed)
    else:
        drawn = common_supports(eligibility, *shape, numbers, seed)
        if mode == "blind" and eligibility.blind_supports == "paper":
            drawn = blind_supports_of_paper(eligibility, drawn.classes, *shape, numbers, seed)
    task, way = numbers[:, None, None], np.arange(ways)[:, None]
    if mode == "swapped":
        costs = shares(random_numbers(key_of(seed, "swapped contexts", *shape), task, way, np.arange(ways)))
        partners = swapped_partners(swaps_allowed(pools, drawn, queries), costs)
        places = pools.cell(drawn.classes, np.take_along_axis(drawn.contexts, partners, axis=1))
    else:
        places = query_pools(pools, mode, drawn)
    randoms = random_numbers(key_of(seed, "queries", mode, *shape), task, way, np.arange(queries))
    return drawn.classes, drawn.contexts, drawn.rows, pools.draw(places, randoms, pools.taken(places, drawn.rows))


def _refuse(
    table: ImageTable,
    eligibility: Eligibility,
    mode: str,
    asked: tuple[int, int, int],
    numbers: Numbers,
    blind_supports: str,
) -> None:
    if mode not in eligibility.modes:
        known = ", ".join(eligibility.modes)
        raise OptionError(f"the classes were not chosen for the mode {mode!r}", remedy=f"they were for {known}")
    if blind_supports != eligibility.blind_supports:
        raise OptionError(
            f"the classes were chosen for blind supports {eligibility.blind_supports!r}, not {blind_supports!r}",
            remedy="give both calls the same",
        )
    known_to = (eligibility.ways, eligibility.shots, eligibility.queries)
    if min(asked) < 1 or any(ask > known for ask, known in zip(asked, known_to, strict=True)):
        raise OptionError(
            f"the classes were chosen for {known_to} ways, shots and queries, {asked} were asked for",
            remedy="choose the classes for the largest of each",
        )
    if mode == "swapped" and asked[0] < 2:
        raise OptionError("a task of one class has no context to swap with", remedy="at least 2 ways")
    if len(table) != len(eligibility.pools.content):
        raise OptionError(
            f"the classes were chosen from {len(eligibility.pools.content)} images, the table has {len(table)}",
            remedy="give both calls the same table",
        )
    if numbers.ndim != 1 or (numbers < 0).any():
        raise OptionError("a task's number is negative, or numbers are no list", remedy="numbers from 0 up")
    eligibility.require()
