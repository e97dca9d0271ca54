"""What the signature of a picture says: its main concept, its context, and a cache of what was read off arrays.

>>> import numpy as np
>>> from hardlook.world.signature import Signature
>>> classes = np.array([[16, 16, 16], [1, 3, 3]], np.uint8)
>>> truth = Signature(classes, np.zeros_like(classes), classes == 1)
>>> main_concept(truth), ground(truth)
(1, 16)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hardlook.caching import LRUCache
from hardlook.models.roles import Mask
from hardlook.world.signature import Signature
from hardlook.world.vocabulary import BY_NAME, CONCEPTS, CONTEXTS, VOID

THINGS = tuple(label.code for label in CONCEPTS)
GROUNDS = tuple(BY_NAME[context.ground].code for context in CONTEXTS)

Result = TypeVar("Result")


def main_concept(truth: Signature) -> int:
    """Code of the concept with the largest area among salient objects, else among all; `VOID` without objects."""
    everywhere = np.ones_like(truth.salient)
    return _find_most_common(truth, THINGS, truth.salient) or _find_most_common(truth, THINGS, everywhere)


def ground(truth: Signature) -> int:
    """Code of the largest ground class, which names the context; `VOID` where there is none."""
    return _find_most_common(truth, GROUNDS, np.ones_like(truth.salient))


def _find_most_common(truth: Signature, codes: tuple[int, ...], where: Mask) -> int:
    counts = np.bincount(truth.classes[where], minlength=32)[list(codes)]
    return codes[int(counts.argmax())] if counts.any() else VOID


def compute_once(cache: LRUCache[Any], function: Callable[[Any], Result], array: NDArray[Any]) -> Result:
    """`function(array)`, computed once per array object; for one call, in which no array changes.

    Pairs and episodes show the same picture again and again.

    >>> cache, picture = LRUCache(float("inf")), np.zeros((2, 2, 3), np.uint8)
    >>> _ = [compute_once(cache, np.sum, shown) for shown in (picture, picture, picture.copy())]
    >>> cache.created
    2
    """
    # The array is kept with its result: as long as it lives, no other array has its id.
    result: Result = cache.get_or_create((function, id(array)), lambda: (array, function(array)))[1]
    return result
