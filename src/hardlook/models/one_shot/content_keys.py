"""Arrays known by their content, with as little hashing as is safe: an image is hashed longer than it is matched.

>>> import numpy as np
>>> keys, picture = ContentKeys(), np.zeros((2, 2, 3), np.uint8)
>>> with keys.one_call() as key:
...     key(picture) == key(picture.copy()), key(picture) == key(picture + 1)
(True, False)
>>> keys.hashed
3
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from numpy.typing import NDArray

from hardlook.fingerprint import of_array

Key = Callable[[NDArray[Any]], str]


class ContentKeys:
    """Keys of arrays by content; `hashed` counts how many were computed.

    An array object is hashed once a call. One that is read-only and owns its memory (`setflags(write=False)`) cannot
    change between calls either, so it is hashed once in its life.
    """

    def __init__(self) -> None:
        self.hashed = 0
        self._lasting: dict[int, tuple[weakref.ref[NDArray[Any]], str]] = {}

    @contextlib.contextmanager
    def one_call(self) -> Iterator[Key]:
        """A function from array to key, for as long as the caller keeps the arrays as they are."""
        met: dict[int, tuple[NDArray[Any], str]] = {}

        def key(array: NDArray[Any]) -> str:
            number = id(array)
            if number not in met:
                # The array is kept too, so that no other can come to its id while the call lasts.
                met[number] = (array, self._key(array, number))
            return met[number][1]

        yield key

    def _key(self, array: NDArray[Any], number: int) -> str:
        fixed = not array.flags.writeable and array.flags.owndata
        if fixed and number in self._lasting and self._lasting[number][0]() is array:
            return self._lasting[number][1]
        self.hashed += 1
        key = of_array(array)
        if fixed:
            lasting = self._lasting
            lasting[number] = (weakref.ref(array, lambda _: lasting.pop(number, None)), key)
        return key
