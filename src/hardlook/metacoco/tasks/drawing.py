"""Draw tasks of N classes with K supports and Q queries each, as a pure function of the seed and the task's number.

Classes, support contexts and supports follow from (seed, N, K, index), queries from (seed, mode, N, K, Q, index),
given the classes that can take part. So every mode and every learner gets the same classes and supports, in any order,
subset or process. Two exceptions: `shared` puts all classes of a task into one context, so it draws its own classes
and supports, from (seed, "shared", N, K, index); `blind` under `blind_supports="paper"` keeps the classes and draws its
own supports without regard to context.

>>> from hardlook.data.concept_context import build_image_table
>>> from hardlook.metacoco.tasks.eligibility import find_eligible_classes
>>> rows = [(concept, context) for concept in "abc" for context in ("grass", "snow") for _ in range(4)]
>>> table = build_image_table(*zip(*rows), [str(number) for number in range(24)])
>>> eligible = find_eligible_classes(table, ("iid", "ood"), ways=2, shots=1, queries=3)
>>> iid, ood = (draw_tasks(eligible, mode, np.arange(5), seed=0) for mode in ("iid", "ood"))
>>> bool((iid.support == ood.support).all()), iid.query.shape
(True, (5, 2, 3))
>>> bool((table.context[ood.query] != ood.support_context[..., None]).all())
True

Some draws cannot be completed: in `swapped` no other support context may suit a class, and where files are duplicates a
query could have a support's content. Such a task is drawn again, keyed by the attempt: its contexts and supports up to
16 times for each of up to 16 draws of classes. The check covers every mode of the run, so all modes agree. Classes with
few contexts in common with others are therefore drawn a little less often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hardlook.errors import OptionError
from hardlook.metacoco.tasks.eligibility import Eligibility
from hardlook.metacoco.tasks.images import (
    ABSENT,
    ImagePools,
    Numbers,
    draw_distinct_positions,
    draw_random_numbers,
    make_key,
    reduce_below,
    scale_to_unit_interval,
)

CHUNK = 1024  # tasks that are drawn together: bounds memory, does not affect the tasks
CONTEXT_DRAWS_PER_CLASS_DRAW = 16
ATTEMPTS = 16 * CONTEXT_DRAWS_PER_CLASS_DRAW


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
    eligibility: Eligibility, mode: str, indices: Sequence[int] | NDArray[np.integer], *, seed: int
) -> Tasks:
    """The tasks with these numbers (at least 0, any order, repeats allowed) from the classes of `eligibility`.

    `eligibility` also has the numbers of ways, shots and queries; `mode` must be one of its modes.
    """
    numbers = np.asarray(indices, np.int64)
    if mode not in eligibility.modes:
        known = ", ".join(eligibility.modes)
        raise OptionError(f"the classes were not chosen for the mode {mode!r}", remedy=f"they were for {known}")
    if numbers.ndim != 1 or (numbers < 0).any():
        raise OptionError("a task's number is negative, or the numbers are not a list", remedy="numbers from 0 up")
    eligibility.require()
    parts = [
        _draw(eligibility, mode, numbers[start : start + CHUNK], seed)
        for start in range(0, max(len(numbers), 1), CHUNK)
    ]
    classes, contexts, support, query = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Tasks(mode, eligibility.ways, eligibility.shots, numbers, classes, support, query, contexts)


def _draw(
    eligibility: Eligibility, mode: str, numbers: Numbers, seed: int
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    pools, ways, queries = eligibility.pools, eligibility.ways, eligibility.queries
    shape = (ways, eligibility.shots, queries)
    if mode == "shared":
        drawn = draw_shared_supports(eligibility, numbers, seed)
    else:
        drawn = draw_common_supports(eligibility, numbers, seed)
        if mode == "blind" and eligibility.blind_supports == "paper":
            drawn = draw_blind_supports(eligibility, drawn.classes, numbers, seed)
    task, way = numbers[:, None, None], np.arange(ways)[:, None]
    if mode == "swapped":
        randoms = draw_random_numbers(make_key(seed, "swapped contexts", *shape), task, way, np.arange(ways))
        partners = choose_partners(find_allowed_swaps(pools, drawn, queries), scale_to_unit_interval(randoms))
        pool_indices = pools.cell_pools(drawn.classes, np.take_along_axis(drawn.contexts, partners, axis=1))
    else:
        pool_indices = find_query_pools(pools, mode, drawn)
    randoms = draw_random_numbers(make_key(seed, "queries", mode, *shape), task, way, np.arange(queries))
    excluded = pools.find_support_positions(pool_indices, drawn.rows)
    return drawn.classes, drawn.contexts, drawn.rows, pools.draw(pool_indices, randoms, excluded)


@dataclass(frozen=True, eq=False)
class Supports:
    """Classes (T, N) of T tasks, their support contexts (T, N) and support rows (T, N, K).

    A context of -1 means supports of mixed contexts.
    """

    classes: Numbers
    contexts: Numbers
    rows: Numbers


def draw_common_supports(eligibility: Eligibility, numbers: Numbers, seed: int) -> Supports:
    """The classes, contexts and supports that all modes but `shared` have for these tasks.

    If no mode of the run uses them, only classes are drawn: contexts are -1, supports empty.
    """
    eligible, pools, ways, shots = eligibility.classes, eligibility.pools, eligibility.ways, eligibility.shots
    keys = {part: make_key(seed, part, ways, shots) for part in ("classes", "contexts", "supports")}
    usable = _ConcatenatedLists(eligibility.support_contexts)

    def draw(tasks: Numbers, attempt: int) -> Supports:
        randoms = draw_random_numbers(
            keys["classes"], tasks[:, None], attempt // CONTEXT_DRAWS_PER_CLASS_DRAW, np.arange(ways)
        )
        classes = eligible[draw_distinct_positions(randoms, np.full(len(tasks), len(eligible)))]
        if not eligibility.common_modes:
            return Supports(classes, np.full_like(classes, -1), np.empty((*classes.shape, 0), np.int64))
        randoms = draw_random_numbers(keys["contexts"], tasks[:, None], attempt, np.arange(ways))
        contexts = usable.items[usable.starts[classes] + reduce_below(randoms, usable.sizes[classes])]
        rows = _draw_rows(pools, pools.cell_pools(classes, contexts), keys["supports"], tasks, attempt, shots)
        return Supports(classes, contexts, rows)

    return _draw_until_complete(eligibility, draw, eligibility.common_modes, numbers)


def draw_shared_supports(eligibility: Eligibility, numbers: Numbers, seed: int) -> Supports:
    """Supports of tasks in one context: draws a context that enough classes have, then classes, then supports."""
    pools, ways, shots = eligibility.pools, eligibility.ways, eligibility.shots
    offered = np.flatnonzero(eligibility.shared_contexts.any(0))
    members = _ConcatenatedLists(eligibility.shared_contexts.T)
    keys = {part: make_key(seed, "shared", part, ways, shots) for part in ("context", "classes", "supports")}

    def draw(tasks: Numbers, attempt: int) -> Supports:
        context = offered[reduce_below(draw_random_numbers(keys["context"], tasks, attempt), len(offered))]
        randoms = draw_random_numbers(keys["classes"], tasks[:, None], attempt, np.arange(ways))
        positions = draw_distinct_positions(randoms, members.sizes[context])
        classes = members.items[members.starts[context][:, None] + positions]
        contexts = np.repeat(context[:, None], ways, axis=1)
        rows = _draw_rows(pools, pools.cell_pools(classes, contexts), keys["supports"], tasks, attempt, shots)
        return Supports(classes, contexts, rows)

    return _draw_until_complete(eligibility, draw, ("shared",), numbers)


def draw_blind_supports(eligibility: Eligibility, classes: Numbers, numbers: Numbers, seed: int) -> Supports:
    """Supports of the given classes (T, N) from all of their images, whatever the context."""
    pools, shots = eligibility.pools, eligibility.shots
    key = make_key(seed, "blind", "supports", eligibility.ways, shots)
    # Row i of `classes` belongs to numbers[i]. A task that occurs twice has equal rows, so either may be used.
    order = np.argsort(numbers, kind="stable")

    def draw(tasks: Numbers, attempt: int) -> Supports:
        task_classes = classes[order[np.searchsorted(numbers[order], tasks)]]
        rows = _draw_rows(pools, pools.concept_pools(task_classes), key, tasks, attempt, shots)
        return Supports(task_classes, np.full_like(task_classes, -1), rows)

    return _draw_until_complete(eligibility, draw, ("blind",), numbers)


def _draw_rows(pools: ImagePools, pool_indices: Numbers, key: int, tasks: Numbers, attempt: int, shots: int) -> Numbers:
    """(T, N, shots) rows from the pools `pool_indices` (T, N)."""
    ways = np.arange(pool_indices.shape[1])[:, None]
    return pools.draw(pool_indices, draw_random_numbers(key, tasks[:, None, None], attempt, ways, np.arange(shots)))


def _draw_until_complete(
    eligibility: Eligibility, draw: Callable[[Numbers, int], Supports], modes: tuple[str, ...], numbers: Numbers
) -> Supports:
    """Draw each task until it has enough queries in all of `modes`, and return these draws."""
    pools = eligibility.pools
    drawn = draw(numbers, 0)
    classes, contexts, rows = drawn.classes.copy(), drawn.contexts.copy(), drawn.rows.copy()
    unfinished = np.arange(len(numbers))
    for attempt in range(ATTEMPTS):
        if attempt:
            drawn = draw(numbers[unfinished], attempt)
        # By requirement: (T,) whether each task meets it.
        complete = {
            f"queries for {mode!r}": has_enough_queries(pools, mode, drawn, eligibility.queries) for mode in modes
        }
        if pools.contents_in_several_cells(drawn.rows).shape[1]:
            complete["supports that differ in content"] = has_distinct_content(pools, drawn)
        finished = np.logical_and.reduce([np.ones(len(unfinished), np.bool_), *complete.values()])
        rows_done = unfinished[finished]
        classes[rows_done], contexts[rows_done] = drawn.classes[finished], drawn.contexts[finished]
        rows[rows_done] = drawn.rows[finished]
        unfinished = unfinished[~finished]
        if not len(unfinished):
            return Supports(classes, contexts, rows)
    failed = [reason for reason, fits in complete.items() if not fits[~finished][0]]
    raise OptionError(
        f"none of {ATTEMPTS} draws of the task could be completed; the last lacked {' and '.join(failed)}",
        unit=f"task {numbers[unfinished[0]]}",
        remedy="ask for fewer ways, shots or queries, or leave the mode out: too few classes have contexts in common, "
        "or too many files are duplicates",
    )


def find_query_pools(pools: ImagePools, mode: str, drawn: Supports) -> Numbers:
    """(T, N) indices of the pools that queries are drawn from; the pools still contain the supports.

    Not for `swapped`, whose pools depend on a draw (`choose_partners`).
    """
    if mode == "blind":
        return pools.concept_pools(drawn.classes)
    if mode == "ood":
        return pools.outside_pools(drawn.classes, drawn.contexts)
    return pools.cell_pools(drawn.classes, drawn.contexts)


def has_enough_queries(pools: ImagePools, mode: str, drawn: Supports, queries: int) -> NDArray[np.bool_]:
    """(T,) whether every class of the task has at least `queries` images to draw from in this mode."""
    if mode == "swapped":
        return np.asarray(np.all(find_allowed_swaps(pools, drawn, queries).any(2), axis=1))
    free = _count_free(pools, find_query_pools(pools, mode, drawn), drawn)
    if mode != "ood":
        free -= (~pools.in_several_cells[drawn.rows]).sum(2)
    return np.asarray(np.all(free >= queries, axis=1))


def has_distinct_content(pools: ImagePools, drawn: Supports) -> NDArray[np.bool_]:
    """(T,) whether all supports of the task differ in content, also across classes."""
    content = np.sort(pools.content[drawn.rows].reshape(len(drawn.rows), -1), axis=1)
    return np.asarray((np.diff(content, axis=1) != 0).all(1))


def find_allowed_swaps(pools: ImagePools, drawn: Supports, queries: int) -> NDArray[np.bool_]:
    """(T, N, N) whether class i can have queries in the support context of class j, which is not its own."""
    pool_indices = pools.cell_pools(drawn.classes[:, :, None], drawn.contexts[:, None, :])
    free = _count_free(pools, pool_indices, drawn)
    return np.asarray((drawn.contexts[:, :, None] != drawn.contexts[:, None, :]) & (free >= queries))


def choose_partners(allowed: NDArray[np.bool_], randoms: NDArray[np.float64]) -> Numbers:
    """(T, N) the class whose support context each class has its queries in.

    `allowed` (T, N, N) from `find_allowed_swaps`, at least one per class; `randoms` (T, N, N) in [0, 1) choose among
    the possible exchanges. As many classes as possible exchange contexts one to one (the cheapest assignment with
    random costs); the others take any allowed context.

    >>> allowed = np.array([[[False, True, True], [True, False, False], [False, True, False]]])
    >>> choose_partners(allowed, np.zeros((1, 3, 3)) + [0.9, 0.1, 0.5]).tolist()
    [[2, 0, 1]]
    """
    forbidden_cost = float(allowed.shape[1] + 1)
    costs = np.where(allowed, randoms, forbidden_cost)
    assigned = [linear_sum_assignment(cost)[1] for cost in costs]
    partners = np.array(assigned, np.int64).reshape(allowed.shape[:2])
    exchanged = np.take_along_axis(allowed, partners[..., None], axis=2)[..., 0]
    return np.where(exchanged, partners, costs.argmin(2))


def _count_free(pools: ImagePools, pool_indices: Numbers, drawn: Supports) -> Numbers:
    """(T, ...) sizes of the pools with these indices, less those supports of the task that lie in several cells."""
    repeated = pools.contents_in_several_cells(drawn.rows)
    sizes = pools.sizes[pool_indices]
    if repeated.shape[1]:
        content = repeated.reshape(len(repeated), *[1] * (pool_indices.ndim - 1), -1)
        sizes = sizes - (pools.find_positions(pool_indices[..., None], content) != ABSENT).sum(-1)
    return sizes


class _ConcatenatedLists:
    """The true columns of each row of a bool matrix, one list after the other."""

    def __init__(self, cells: NDArray[np.bool_]) -> None:
        self.items = np.nonzero(cells)[1]
        self.sizes = cells.sum(1)
        self.starts = np.cumsum(self.sizes) - self.sizes
