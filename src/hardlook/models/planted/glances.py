"""What was read off the arrays of one call: pairs and episodes show the same picture again and again.

>>> import numpy as np
>>> glances = Glances()
>>> picture = np.zeros((2, 2, 3), np.uint8)
>>> read = [glances.look(np.sum, shown) for shown in (picture, picture, picture.copy())]
>>> read[0] is read[1], read[0] is read[2]
(True, False)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numpy.typing import NDArray

Read = TypeVar("Read")


class Glances:
    """Whatever is read off an array, worked out once; for one call, in which no array changes."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Callable[[Any], Any], int], tuple[NDArray[Any], Any]] = {}

    def look(self, reader: Callable[[Any], Read], array: NDArray[Any]) -> Read:
        """What `reader` makes of the array, of any shape."""
        place = reader, id(array)
        if place not in self._seen:
            # The array is kept beside it: as long as it lives, no other has its id.
            self._seen[place] = array, reader(array)
        found: Read = self._seen[place][1]
        return found
