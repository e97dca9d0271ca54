"""Classes and supports of tasks: those that modes have in common, and the own ones of `shared` and the paper's `blind`.

Some draws cannot be completed: in `swapped` no other support context may suit a class, and where files are double a
query could have a support's content. Such a task is drawn again, keyed by the attempt: its contexts and supports up to
16 times for each of up to 16 draws of classes. The check looks at every mode of the run, so all modes agree.
Classes that have few contexts in common with others are so drawn a little less often.

>>> ATTEMPTS
256
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.tasks.eligibility import Eligibility
from hardlook.tasks.image_table import Numbers
from hardlook.tasks.keyed_draws import below, distinct_positions, key_of, random_numbers
from hardlook.tasks.query_pools import Supports, enough_queries, no_content_twice

CONTEXTS_PER_CLASSES = 16
ATTEMPTS = 16 * CONTEXTS_PER_CLASSES


def common_supports(
    eligibility: Eligibility, ways: int, shots: int, queries: int, numbers: Numbers, seed: int
) -> Supports:
    """The classes, contexts and supports that all modes but `shared` have for these tasks.

    Where no mode of the run uses them there is nothing but classes: contexts are -1, supports empty.
    """
    eligible, pools = eligibility.classes, eligibility.pools
    keys = {part: key_of(seed, part, ways, shots) for part in ("classes", "contexts", "supports")}
    usable = _Lists(eligibility.support_contexts)

    def draw(tasks: Numbers, attempt: int) -> Supports:
        randoms = random_numbers(keys["classes"], tasks[:, None], attempt // CONTEXTS_PER_CLASSES, np.arange(ways))
        classes = eligible[distinct_positions(randoms, np.full(len(tasks), len(eligible)))]
        if not eligibility.common_modes:
            return Supports(classes, np.full_like(classes, -1), np.empty((*classes.shape, 0), np.int64))
        chosen = below(
            random_numbers(keys["contexts"], tasks[:, None], attempt, np.arange(ways)), usable.sizes[classes]
        )
        contexts = usable.items[usable.starts[classes] + chosen]
        counters = tasks[:, None, None], attempt, np.arange(ways)[:, None], np.arange(shots)
        rows = pools.draw(pools.cell(classes, contexts), random_numbers(keys["supports"], *counters))
        return Supports(classes, contexts, rows)

    return _completed(eligibility, draw, eligibility.common_modes, queries, numbers)


def shared_supports(
    eligibility: Eligibility, ways: int, shots: int, queries: int, numbers: Numbers, seed: int
) -> Supports:
    """Tasks in one context each: a context that enough classes have, then classes of it, then supports."""
    pools, cells = eligibility.pools, eligibility.shared_contexts
    offered = np.flatnonzero(cells.any(0))
    members = _Lists(cells.T)
    keys = {part: key_of(seed, "shared", part, ways, shots) for part in ("context", "classes", "supports")}

    def draw(tasks: Numbers, attempt: int) -> Supports:
        context = offered[below(random_numbers(keys["context"], tasks, attempt), len(offered))]
        randoms = random_numbers(keys["classes"], tasks[:, None], attempt, np.arange(ways))
        positions = distinct_positions(randoms, members.sizes[context])
        classes = members.items[members.starts[context][:, None] + positions]
        contexts = np.repeat(context[:, None], ways, axis=1)
        counters = tasks[:, None, None], attempt, np.arange(ways)[:, None], np.arange(shots)
        rows = pools.draw(pools.cell(classes, contexts), random_numbers(keys["supports"], *counters))
        return Supports(classes, contexts, rows)

    return _completed(eligibility, draw, ("shared",), queries, numbers)


def blind_supports_of_paper(
    eligibility: Eligibility, classes: Numbers, ways: int, shots: int, queries: int, numbers: Numbers, seed: int
) -> Supports:
    """Supports of the given classes (T, N) from all of their images, whatever the context."""
    pools = eligibility.pools
    key = key_of(seed, "blind", "supports", ways, shots)
    # `classes` belongs to positions in `numbers`, which may hold a task twice: any of its places will do.
    order = np.argsort(numbers, kind="stable")

    def draw(tasks: Numbers, attempt: int) -> Supports:
        own = classes[order[np.searchsorted(numbers[order], tasks)]]
        counters = tasks[:, None, None], attempt, np.arange(ways)[:, None], np.arange(shots)
        rows = pools.draw(pools.whole(own), random_numbers(key, *counters))
        return Supports(own, np.full_like(own, -1), rows)

    return _completed(eligibility, draw, ("blind",), queries, numbers)


def _completed(
    eligibility: Eligibility,
    draw: Callable[[Numbers, int], Supports],
    modes: tuple[str, ...],
    queries: int,
    numbers: Numbers,
) -> Supports:
    """The first draw of each task that has its queries in all of `modes`."""
    drawn = draw(numbers, 0)
    classes, contexts, rows = drawn.classes.copy(), drawn.contexts.copy(), drawn.rows.copy()
    waiting = np.arange(len(numbers))
    for attempt in range(ATTEMPTS):
        if attempt:
            drawn = draw(numbers[waiting], attempt)
        complete = _judged(eligibility, drawn, modes, queries)
        settled = np.logical_and.reduce([np.ones(len(waiting), np.bool_), *complete.values()])
        places = waiting[settled]
        classes[places], contexts[places], rows[places] = (
            drawn.classes[settled],
            drawn.contexts[settled],
            drawn.rows[settled],
        )
        waiting = waiting[~settled]
        if not len(waiting):
            return Supports(classes, contexts, rows)
    failed = [reason for reason, fits in complete.items() if not fits[~settled][0]]
    raise OptionError(
        f"none of {ATTEMPTS} draws of the task could be completed; the last lacked {' and '.join(failed)}",
        unit=f"task {numbers[waiting[0]]}",
        remedy="ask for fewer ways, shots or queries, or leave the mode out: too few classes have contexts in common, "
        "or too many files are double",
    )


def _judged(
    eligibility: Eligibility, drawn: Supports, modes: tuple[str, ...], queries: int
) -> dict[str, NDArray[np.bool_]]:
    pools = eligibility.pools
    judged = {f"queries for {mode!r}": enough_queries(pools, mode, drawn, queries) for mode in modes}
    if pools.twins(drawn.rows).shape[1]:
        judged["supports that differ in content"] = no_content_twice(pools, drawn)
    return judged


class _Lists:
    """The true columns of each row of a bool matrix, one list after the other."""

    def __init__(self, cells: NDArray[np.bool_]) -> None:
        self.items = np.nonzero(cells)[1]
        self.sizes = cells.sum(1)
        self.starts = np.cumsum(self.sizes) - self.sizes
