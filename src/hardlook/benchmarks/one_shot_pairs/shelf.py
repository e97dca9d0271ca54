"""A shelf: what was read lately, up to so many bytes, so that an image of many pairs is read once.

It never changes an answer: everything on it can be made again from its key.

>>> shelf = Shelf(most_bytes=100)
>>> [len(shelf.get(key, lambda: np.zeros(40, np.uint8))) for key in ("a", "b", "c", "a")]
[40, 40, 40, 40]
>>> shelf.made
4
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np

GIBIBYTE = 1 << 30
Arrays = TypeVar("Arrays")


class Shelf:
    """Arrays, or dataclasses of arrays, by key, frozen; the longest unused go first.

    `made` counts what had to be made.
    """

    def __init__(self, most_bytes: int = GIBIBYTE) -> None:
        self.most_bytes = most_bytes
        self.made = 0
        self._bytes = 0
        self._kept: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Arrays]) -> Arrays:
        """What stands under the key, made now if need be."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]  # type: ignore[return-value]
        value = make()
        size = _frozen_bytes(value)
        self.made += 1
        self._kept[key] = (value, size)
        self._bytes += size
        while self._bytes > self.most_bytes and len(self._kept) > 1:
            _, (_, freed) = self._kept.popitem(last=False)
            self._bytes -= freed
        return value


def _frozen_bytes(value: object) -> int:
    """How many bytes its arrays have. They can be written to no more: many pairs share them."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
        return int(value.nbytes)
    return sum(_frozen_bytes(part) for part in vars(value).values()) if hasattr(value, "__dict__") else 64
