"""The space of planted vectors: one direction a word, siblings close, strangers at right angles.

A concept is its own direction and its family's, a ground its own and its context's; any other text has a direction
drawn from its letters.

>>> cosine = lambda a, b: round(float(of_word(a) @ of_word(b)), 2)
>>> cosine("cat", "dog"), cosine("cat", "bus"), cosine("sand", "beach"), cosine("cat", "cat")
(0.4, 0.0, 0.6, 1.0)
>>> round(float(of_text("A photo of a cat.") @ of_word("cat")), 2)
1.0
"""

from __future__ import annotations

import math
import re
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hardlook.randomness import generator
from hardlook.world.vocabulary import BY_NAME, CONCEPTS, CONTEXTS, STUFF, context_of_ground

DIMENSION = 64
FAMILY_SHARE, CONTEXT_SHARE = 0.4, 0.36
_FAMILIES = tuple(dict.fromkeys(label.family for label in CONCEPTS))
_GROUNDS = tuple(context.ground for context in CONTEXTS)
_AXES = (
    *(f"concept {label.name}" for label in CONCEPTS),
    *(f"family {family}" for family in _FAMILIES),
    *(f"stuff {label.name}" for label in STUFF),
    *(f"context {context.name}" for context in CONTEXTS),
)
WORDS = frozenset(BY_NAME) | {context.name for context in CONTEXTS}


@cache
def of_word(word: str) -> NDArray[np.float64]:
    """The unit vector (64,) of a label or context of the vocabulary."""
    if word not in BY_NAME:
        vector = _axis(f"context {word}")
    elif BY_NAME[word].thing:
        vector = _between(f"concept {word}", f"family {BY_NAME[word].family}", FAMILY_SHARE)
    elif word in _GROUNDS:
        vector = _between(f"stuff {word}", f"context {context_of_ground(word)}", CONTEXT_SHARE)
    else:
        vector = _axis(f"stuff {word}")
    vector.setflags(write=False)
    return vector


def of_text(text: str) -> NDArray[np.float64]:
    """The unit vector (64,) of a text: its vocabulary words together, else a direction of its own."""
    known = [word for word in re.findall(r"[a-z]+", text.lower()) if word in WORDS]
    total = np.sum([of_word(word) for word in known], axis=0) if known else drawn(0, "text", text)
    vector: NDArray[np.float64] = total / np.linalg.norm(total)
    return vector


def drawn(seed: int, *key: str | int) -> NDArray[np.float64]:
    """A random vector (64,) of length about 1 that belongs to a key."""
    normal: NDArray[np.float64] = generator(seed, "planted space", *key).standard_normal(DIMENSION)
    return normal / math.sqrt(DIMENSION)


def turned(vectors: NDArray[np.float64], dial: float) -> NDArray[np.float64]:
    """Vectors (..., 64) turned by up to a right angle in 32 planes: every length and cosine stays."""
    angle = dial * np.pi / 2
    even, odd = vectors[..., 0::2], vectors[..., 1::2]
    out = np.empty_like(vectors)
    out[..., 0::2] = np.cos(angle) * even - np.sin(angle) * odd
    out[..., 1::2] = np.sin(angle) * even + np.cos(angle) * odd
    return out


def _between(own: str, shared: str, share: float) -> NDArray[np.float64]:
    vector: NDArray[np.float64] = (1 - share) ** 0.5 * _axis(own) + share**0.5 * _axis(shared)
    return vector


def _axis(name: str) -> NDArray[np.float64]:
    return _basis()[:, _AXES.index(name)].copy()


@cache
def _basis() -> NDArray[np.float64]:
    # Right angles by construction: random directions of 64 numbers would have cosines of .12 by chance.
    basis, _ = np.linalg.qr(generator(0, "planted space").standard_normal((DIMENSION, DIMENSION)))
    return basis
