"""Keys of arrays by their content, hashed as rarely as is safe: hashing an image can cost more than using it.

>>> import numpy as np
>>> keys, picture = ContentKeys(), np.zeros((2, 2, 3), np.uint8)
>>> key = keys.key_function()
>>> key(picture) == key(picture.copy()), key(picture) == key(picture + 1)
(True, False)
>>> keys.hashed
3
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from hardlook.fingerprints import hash_array

Key = Callable[[NDArray[Any]], str]


class ContentKeys:
    """Keys of arrays by content; `hashed` counts how many were computed.

    An array object is hashed once per key function. One that is read-only and owns its memory
    (`setflags(write=False)`) cannot change later either, so it is hashed once in its lifetime.
    """

    def __init__(self) -> None:
        self.hashed = 0
        self._permanent: dict[int, tuple[weakref.ref[NDArray[Any]], str]] = {}

    def key_function(self) -> Key:
        """A function from array to key, valid as long as no array that it was given changes: for one call."""
        known: dict[int, tuple[NDArray[Any], str]] = {}

        def key(array: NDArray[Any]) -> str:
            number = id(array)
            if number not in known:
                # The array is kept too, so that no other array gets its id meanwhile.
                known[number] = (array, self._key(array, number))
            return known[number][1]

        return key

    def _key(self, array: NDArray[Any], number: int) -> str:
        fixed = not array.flags.writeable and array.flags.owndata
        permanent = self._permanent
        if fixed and number in permanent and permanent[number][0]() is array:
            return permanent[number][1]
        self.hashed += 1
        key = hash_array(array)
        if fixed:
            permanent[number] = (weakref.ref(array, lambda _: permanent.pop(number, None)), key)
        return key
