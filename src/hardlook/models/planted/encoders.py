"""Planted encoders of images and texts: they know concepts and contexts, and mix them up as their dials say.

The space has one direction per word, siblings close and strangers at right angles: a concept is its own direction and
its family's, a ground its own and its context's; any other text has a direction drawn from its letters.

>>> cosine = lambda a, b: round(float(word_vector(a) @ word_vector(b)), 2)
>>> cosine("cat", "dog"), cosine("cat", "bus"), cosine("sand", "beach"), cosine("cat", "cat")
(0.4, 0.0, 0.6, 1.0)

An image is a vector between its concept and its context.

>>> import numpy as np
>>> from hardlook.world.signature import write_signature
>>> classes = np.full((16, 16), 16, np.uint8)
>>> classes[4:12, 4:12] = 1
>>> picture = write_signature(np.full((16, 16, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> for dial in (0.0, 1.0):
...     encoder = PlantedImageTextEncoder(context=dial)
...     texts = encoder.encode_text(["a photo of a cat", "a photo of beach"])
...     int((encoder.encode_images([picture]) @ texts.T).argmax())
0
1
>>> seen = PlantedEncoder().encode([picture])
>>> seen.vectors.shape, seen.maps[0].shape
((1, 64), (64, 2, 2))
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hardlook.fingerprints import hash_array
from hardlook.models.planted.dials import check_dials
from hardlook.models.planted.truth import ground, main_concept
from hardlook.models.roles import Features, Image, Vectors
from hardlook.randomness import generator
from hardlook.world.signature import read_signature
from hardlook.world.vocabulary import BY_CODE, BY_NAME, CONCEPTS, CONTEXTS, STUFF, VOID, context_of_ground

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
NOISE = 0.3  # the length of what no two pictures share
STRIDE = 8


class PlantedEncoder:
    """Vectors and maps from the picture's signature.

    `context`: weight of the context against the concept; `turn`: turns the whole space by up to a right angle,
    which leaves every distance as it was. Both from 0 to 1.
    """

    dimension: int = DIMENSION

    def __init__(self, context: float = 0.0, turn: float = 0.0, seed: int = 0) -> None:
        check_dials(context=context, turn=turn)
        self.context, self.turn, self.seed = context, turn, seed

    def encode(self, images: Sequence[Image]) -> Features:
        """Vectors (N, 64), and one map (64, ceil(H/8), ceil(W/8)) per image."""
        vectors = np.array([image_vector(image, self.context, self.seed) for image in images]).reshape(-1, DIMENSION)
        cells = [turn_vectors(np.moveaxis(image_map(image, self.context), 0, -1), self.turn) for image in images]
        maps = [np.moveaxis(one, -1, 0).astype(np.float32) for one in cells]
        return Features(turn_vectors(vectors, self.turn).astype(np.float32), maps)


class PlantedTextEncoder:
    """Vectors of the vocabulary's words.

    `forgetful`: weight of a direction drawn from the letters against the meaning, so that siblings drift apart;
    `turn`: turns the whole space, which leaves every cosine as it was. Both from 0 to 1.
    """

    dimension: int = DIMENSION

    def __init__(self, forgetful: float = 0.0, turn: float = 0.0, seed: int = 0) -> None:
        check_dials(forgetful=forgetful, turn=turn)
        self.forgetful, self.turn, self.seed = forgetful, turn, seed

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, 64) float32."""
        rows = [
            (1 - self.forgetful) * text_vector(t) + self.forgetful * draw_vector(self.seed, "spelling", t)
            for t in texts
        ]
        return turn_vectors(np.array(rows).reshape(-1, DIMENSION), self.turn).astype(np.float32)


class PlantedImageTextEncoder:
    """Images and texts as unit vectors of one space.

    `context`: weight of the context against the concept in an image; `turn`: turns the whole space, which leaves
    every cosine as it was. Both from 0 to 1.
    """

    dimension: int = DIMENSION

    def __init__(self, context: float = 0.0, turn: float = 0.0, seed: int = 0) -> None:
        check_dials(context=context, turn=turn)
        self.context, self.turn, self.seed = context, turn, seed

    def encode_images(self, images: Sequence[Image]) -> Vectors:
        """(N, 64) float32 of unit length."""
        return self._unit([image_vector(image, self.context, self.seed) for image in images])

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, 64) float32 of unit length."""
        return self._unit([text_vector(text) for text in texts])

    def _unit(self, rows: Sequence[NDArray[np.float64]]) -> Vectors:
        vectors = turn_vectors(np.array(rows).reshape(-1, DIMENSION), self.turn)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray((vectors / lengths).astype(np.float32))


@cache
def word_vector(word: str) -> NDArray[np.float64]:
    """The unit vector (64,) of a label or context of the vocabulary."""
    if word not in BY_NAME:
        vector = _find_axis(f"context {word}")
    elif BY_NAME[word].thing:
        vector = _mix_axes(f"concept {word}", f"family {BY_NAME[word].family}", FAMILY_SHARE)
    elif word in _GROUNDS:
        vector = _mix_axes(f"stuff {word}", f"context {context_of_ground(word)}", CONTEXT_SHARE)
    else:
        vector = _find_axis(f"stuff {word}")
    vector.setflags(write=False)
    return vector


def text_vector(text: str) -> NDArray[np.float64]:
    """The unit vector (64,) of a text: its vocabulary words together, else a direction of its own.

    >>> round(float(text_vector("A photo of a cat.") @ word_vector("cat")), 2)
    1.0
    """
    known = [word for word in re.findall(r"[a-z]+", text.lower()) if word in WORDS]
    total = np.sum([word_vector(word) for word in known], axis=0) if known else draw_vector(0, "text", text)
    return total / np.linalg.norm(total)


def draw_vector(seed: int, *key: str | int) -> NDArray[np.float64]:
    """A random vector (64,) of length about 1 that belongs to a key."""
    return generator(seed, "planted space", *key).standard_normal(DIMENSION) / math.sqrt(DIMENSION)


def turn_vectors(vectors: NDArray[np.float64], dial: float) -> NDArray[np.float64]:
    """Vectors (..., 64) turned by up to a right angle in 32 planes: every length and cosine stays."""
    angle = dial * np.pi / 2
    even, odd = vectors[..., 0::2], vectors[..., 1::2]
    out = np.empty_like(vectors)
    out[..., 0::2] = np.cos(angle) * even - np.sin(angle) * odd
    out[..., 1::2] = np.sin(angle) * even + np.cos(angle) * odd
    return out


def _mix_axes(own: str, shared: str, share: float) -> NDArray[np.float64]:
    return np.asarray((1 - share) ** 0.5 * _find_axis(own) + share**0.5 * _find_axis(shared))


def _find_axis(name: str) -> NDArray[np.float64]:
    return _basis()[:, _AXES.index(name)].copy()


@cache
def _basis() -> NDArray[np.float64]:
    # Right angles by construction: random directions of 64 numbers would have cosines of .12 by chance.
    basis, _ = np.linalg.qr(generator(0, "planted space").standard_normal((DIMENSION, DIMENSION)))
    return basis


def image_vector(image: Image, context: float, seed: int) -> NDArray[np.float64]:
    """(64,): the main concept's direction x (1 - context) + the context's x context + noise of the picture's own."""
    truth = read_signature(image)
    concept, place = main_concept(truth), ground(truth)
    vector = NOISE * draw_vector(seed, hash_array(image))
    if concept != VOID:
        vector += (1 - context) * word_vector(BY_CODE[concept].name)
    if place != VOID:
        vector += context * word_vector(context_of_ground(BY_CODE[place].name))
    return vector


def image_map(image: Image, context: float) -> NDArray[np.float64]:
    """(64, ceil(H/8), ceil(W/8)): the mean direction of the classes in each cell of 8 x 8 pixels."""
    truth = read_signature(image)
    place = ground(truth)
    around = word_vector(context_of_ground(BY_CODE[place].name)) if place != VOID else np.zeros(DIMENSION)
    directions = np.zeros((32, DIMENSION))
    for code, label in BY_CODE.items():
        directions[code] = (1 - context) * word_vector(label.name) + context * around
    height, width = truth.classes.shape
    rows, columns = -(-height // STRIDE), -(-width // STRIDE)
    cell = (np.arange(height) // STRIDE)[:, None] * columns + np.arange(width) // STRIDE
    shares = np.bincount((cell * 32 + truth.classes).ravel(), minlength=rows * columns * 32).reshape(-1, 32)
    means = shares @ directions / shares.sum(axis=1, keepdims=True)
    return np.ascontiguousarray(means.T.reshape(DIMENSION, rows, columns))
