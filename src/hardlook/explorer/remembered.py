"""Costly values, made once: callers that ask for the same one meanwhile wait for it instead of making it again.

>>> squares = Remembered(most=2)
>>> [squares.get(number, lambda number=number: number**2) for number in (3, 4, 3)], squares.made
([9, 16, 9], 2)
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass
class _Place(Generic[Value]):
    """Where a value is or will be; the lock is held by who makes it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Value | None = None
    made: bool = False
    weight: float = 0.0


class Remembered(Generic[Value]):
    """Keeps what was asked for lately, up to a total weight of `most`; the latest is kept whatever it weighs.

    `weigh` gives a value's weight, 1 each by default. `made` counts values that were made. An error is not
    remembered: the next caller tries again.
    """

    def __init__(self, most: float, weigh: Callable[[Value], float] = lambda value: 1.0) -> None:
        self.most, self.weigh, self.made = most, weigh, 0
        self._places: OrderedDict[Hashable, _Place[Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of the key, made by the first who asks."""
        with self._lock:
            place = self._places.setdefault(key, _Place())
            self._places.move_to_end(key)
        with place.lock:
            if not place.made:
                place.value = make()
                place.weight, place.made = self.weigh(place.value), True
                with self._lock:
                    self.made += 1
                    self._let_go(place)
        return place.value  # type: ignore[return-value]

    def has(self, key: Hashable) -> bool:
        """Whether the value is there already."""
        with self._lock:
            return key in self._places and self._places[key].made

    def forget(self, key: Hashable) -> None:
        """Make the value anew when it is asked for again."""
        with self._lock:
            self._places.pop(key, None)

    def _let_go(self, newest: _Place[Value]) -> None:
        """Forget what was asked for longest ago, until the rest is light enough."""
        total = sum(place.weight for place in self._places.values())
        for key, place in list(self._places.items()):
            if total <= self.most:
                return
            if place is not newest and place.made:
                total -= place.weight
                del self._places[key]
