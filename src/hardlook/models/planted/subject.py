"""What a picture is of, and where: its main concept and its context, read off its signature.

>>> import numpy as np
>>> from hardlook.world.signature import Signature
>>> classes = np.array([[16, 16, 16], [1, 3, 3]], np.uint8)
>>> truth = Signature(classes, np.zeros_like(classes), classes == 1)
>>> main_concept(truth), ground(truth)
(1, 16)
"""

from __future__ import annotations

import numpy as np

from hardlook.models.roles import Mask
from hardlook.world.signature import Signature
from hardlook.world.vocabulary import BY_NAME, CONCEPTS, CONTEXTS, VOID

THINGS = tuple(label.code for label in CONCEPTS)
GROUNDS = tuple(BY_NAME[context.ground].code for context in CONTEXTS)


def main_concept(truth: Signature) -> int:
    """Code of the concept with the largest area among salient objects, else among all; `VOID` without objects."""
    return _commonest(truth, THINGS, truth.salient) or _commonest(truth, THINGS, np.ones_like(truth.salient))


def ground(truth: Signature) -> int:
    """Code of the largest ground class, which names the context; `VOID` where there is none."""
    return _commonest(truth, GROUNDS, np.ones_like(truth.salient))


def _commonest(truth: Signature, codes: tuple[int, ...], where: Mask) -> int:
    counts = np.bincount(truth.classes[where], minlength=32)[list(codes)]
    return codes[int(counts.argmax())] if counts.any() else VOID
