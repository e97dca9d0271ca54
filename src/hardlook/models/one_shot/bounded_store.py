"""Arrays kept in memory up to a bound of bytes; what was used least recently goes first.

>>> import numpy as np
>>> store = BoundedStore(most_bytes=100)
>>> for name in ("a", "b", "a", "c", "a"):
...     kept = store.array((name,), lambda: np.zeros(10, np.float32))
>>> store.made, store.bytes, ("b",) in store
(3, 80, False)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from hardlook.errors import OptionError

GIBIBYTE = 1 << 30


class BoundedStore:
    """Arrays by key; `made` counts those that had to be computed, `bytes` what is held now.

    An array larger than the bound is given and not kept. Arrays come back read-only, since others will read them.
    """

    def __init__(self, most_bytes: int = GIBIBYTE) -> None:
        if most_bytes < 0:
            raise OptionError(f"a store of {most_bytes} bytes cannot be", remedy="give 0 (keep nothing) or more")
        self.most_bytes, self.bytes, self.made = most_bytes, 0, 0
        self._arrays: OrderedDict[tuple[str, ...], NDArray[Any]] = OrderedDict()

    def __contains__(self, key: tuple[str, ...]) -> bool:
        return key in self._arrays

    def array(self, key: tuple[str, ...], make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """The array of that key, made now if it is not there."""
        found = self._arrays.get(key)
        if found is not None:
            self._arrays.move_to_end(key)
            return found
        made = make()
        if made.base is not None:
            made = made.copy()  # a view would keep all of its base alive, and the bound would not know
        made.setflags(write=False)
        self.made += 1
        if made.nbytes <= self.most_bytes:
            self._arrays[key] = made
            self.bytes += made.nbytes
            while self.bytes > self.most_bytes:
                self.bytes -= self._arrays.popitem(last=False)[1].nbytes
        return made
