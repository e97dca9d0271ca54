"""A least-recently-used cache that is bounded by size, safe to share between threads, and computes each value once.

>>> squares = LRUCache(max_size=2)
>>> [squares.get_or_create(number, lambda number=number: number**2) for number in (3, 4, 3, 5, 3)], squares.created
([9, 16, 9, 25, 9], 3)
>>> 4 in squares, len(squares)
(False, 2)

`ArrayCache` counts bytes of arrays instead of values.

>>> vectors = ArrayCache(max_bytes=100)
>>> for name in ("a", "b", "a", "c", "a"):
...     kept = vectors.get_or_create(name, lambda: np.zeros(10, np.float32))
>>> vectors.created, vectors.size, "b" in vectors, kept.flags.writeable
(3, 80, False, False)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

import cachetools
import numpy as np

from hardlook.errors import OptionError

GIBIBYTE = 1 << 30

Value = TypeVar("Value")
Created = TypeVar("Created")


class LRUCache(Generic[Value]):
    """Values by key, up to a total size of `max_size`; the least recently used are removed first.

    `size_of` gives the size of a value, by default 1, so that `max_size` is a number of values. The latest value is
    kept even if it is larger than `max_size`; with `max_size=0` nothing is kept. `created` counts the values that had
    to be created. A copy, such as one that is sent to another process, starts empty.
    """

    def __init__(self, max_size: float, size_of: Callable[[Value], float] | None = None) -> None:
        if max_size < 0:
            raise OptionError(f"a cache cannot have the size {max_size}", remedy="give 0 (keep nothing) or more")
        self.max_size, self.size_of, self.created = max_size, size_of, 0
        # cachetools refuses values above the bound: one counts as the bound at most, and so displaces all others.
        self._values: cachetools.LRUCache[Hashable, Value] = cachetools.LRUCache(
            max_size, lambda value: min(size_of(value) if size_of else 1, max_size)
        )
        self._pending: dict[Hashable, Future[Value]] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.max_size, self.size_of)

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._values

    def __len__(self) -> int:
        with self._lock:
            return len(self._values)

    @property
    def size(self) -> float:
        """The size of what is kept; a value above `max_size` counts as `max_size`."""
        return self._values.currsize

    def get_or_create(self, key: Hashable, create: Callable[[], Value]) -> Value:
        """The value of the key, created now if it is not kept.

        Callers that ask for a key while its value is being created wait for that value. An exception in `create`
        reaches all of them and is not kept: the next caller tries again.
        """
        with self._lock:
            if key in self._values:
                return self._values[key]
            awaited = self._pending.get(key)
            if awaited is None:
                future = self._pending[key] = Future()
        if awaited is not None:
            return awaited.result()
        try:
            value = create()
            with self._lock:
                self.created += 1
                if self._remove_pending(key, future) and self.max_size > 0:
                    self._values[key] = value
        except BaseException as error:
            with self._lock:
                self._remove_pending(key, future)
            future.set_exception(error)
            raise
        future.set_result(value)
        return value

    def discard(self, key: Hashable) -> None:
        """Forget the value of the key; one that is being created reaches those who wait for it and is not kept."""
        with self._lock:
            self._values.pop(key, None)
            self._pending.pop(key, None)

    def _remove_pending(self, key: Hashable, future: Future[Value]) -> bool:
        """Whether the value was still wanted: it was not discarded while it was created."""
        wanted = self._pending.get(key) is future
        if wanted:
            del self._pending[key]
        return wanted


class ArrayCache(LRUCache[Any]):
    """Arrays, or objects with arrays as attributes, up to `max_bytes`; read-only, since callers share them."""

    def __init__(self, max_bytes: int = GIBIBYTE) -> None:
        super().__init__(max_bytes, count_array_bytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.max_size,)

    def get_or_create(self, key: Hashable, create: Callable[[], Created]) -> Created:
        """As `LRUCache.get_or_create`, with read-only arrays."""
        found: Created = super().get_or_create(key, lambda: freeze_arrays(create()))
        return found


def count_array_bytes(value: object) -> int:
    """Bytes of an array, or of the arrays among an object's attributes; anything else counts as 64.

    >>> count_array_bytes(np.zeros((2, 3), np.uint8)), count_array_bytes("a text")
    (6, 64)
    """
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    return sum(map(count_array_bytes, vars(value).values())) if hasattr(value, "__dict__") else 64


def freeze_arrays(value: Created) -> Created:
    """The array, or the object with arrays as attributes, made read-only; a view is copied, to let go of its base."""
    if isinstance(value, np.ndarray):
        frozen = value if value.base is None else value.copy()
        frozen.setflags(write=False)
        return frozen
    for part in vars(value).values() if hasattr(value, "__dict__") else ():
        if isinstance(part, np.ndarray):
            part.setflags(write=False)
        else:
            freeze_arrays(part)
    return value
