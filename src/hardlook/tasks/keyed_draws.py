"""Random draws as a pure function of a key and counters, for many tasks at once.

A generator a task costs more than the task's draw. Here the random number of (key, task, class, draw) is a hash of
these (SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), so that a
task is the same in any order, subset or process, and thousands are drawn with a few array operations.

>>> key = key_of(0, "an example")
>>> task = np.arange(1000)[:, None]
>>> randoms = random_numbers(key, task, np.arange(3))
>>> bool((random_numbers(key, task[7:8], np.arange(3)) == randoms[7:8]).all())
True
>>> drawn = distinct_positions(randoms, np.full(1000, 5), np.full((1000, 1), 2))
>>> sorted(np.unique(drawn).tolist())
[0, 1, 3, 4]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.randomness import seed_sequence

Words = NDArray[np.uint64]
NOWHERE = 1 << 62
"""A position beyond every pool: an exclusion that excludes nothing."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def key_of(seed: int, *words: str | int) -> int:
    """A 64-bit key for a seed and what is drawn; keys of different words are independent."""
    return int(seed_sequence(seed, "tasks", *words).generate_state(1, np.uint64)[0])


def random_numbers(key: int, *counters: ArrayLike) -> Words:
    """Uniform 64-bit numbers, one for each combination of counters (whole numbers, broadcast together)."""
    state = np.array([key], dtype=np.uint64)
    with np.errstate(over="ignore"):
        for counter in counters:
            state = _mixed(state + (np.asarray(counter).astype(np.uint64) + np.uint64(1)) * _GOLDEN)
    return state


def below(randoms: Words, sizes: ArrayLike) -> NDArray[np.int64]:
    """Uniform whole numbers in 0..size-1; `sizes` are at least 1.

    The remainder's bias is size / 2**64 at most, far below what any number of tasks can show.
    """
    return (randoms % np.asarray(sizes).astype(np.uint64)).astype(np.int64)


def shares(randoms: Words) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), 53 bits each."""
    return (randoms >> np.uint64(11)).astype(np.float64) * 2.0**-53


def distinct_positions(
    randoms: Words, sizes: NDArray[np.int64], excluded: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Draw without replacement from many pools: (B, count) positions in 0..size-1, distinct within a row.

    `randoms` (B, count) from `random_numbers`; `sizes` (B,); `excluded` (B, E) positions that may not be drawn,
    distinct within a row, `NOWHERE` as filler. Every set of allowed positions is equally likely.
    """
    rows, count = randoms.shape
    barred = np.sort(excluded, axis=1).T if excluded is not None else np.empty((0, rows), np.int64)
    present = (barred < sizes).sum(0)
    barred = barred[: present.max(initial=0)]
    free = sizes - present
    if (free < count).any():
        short = int(np.argmin(free - count))
        raise ValueError(f"expected {count} free positions in each pool, pool {short} has {free[short]}")
    taken = np.full((len(barred) + count, rows), NOWHERE, dtype=np.int64)
    taken[: len(barred)] = barred
    drawn = np.empty((rows, count), dtype=np.int64)
    for draw in range(count):
        # The n-th free position: step over what is taken, in ascending order.
        position = below(randoms[:, draw], free - draw)
        for before in taken[: len(barred) + draw]:
            position += before <= position
        drawn[:, draw] = position
        # Insert it where it keeps the order.
        carried = position
        for slot in taken[: len(barred) + draw + 1]:
            smaller = np.minimum(slot, carried)
            carried = np.maximum(slot, carried)
            slot[:] = smaller
    return drawn


def _mixed(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))
