"""How planted encoders see a picture: as a vector between its concept and its context.

>>> import numpy as np
>>> from hardlook.world.signature import sign
>>> classes = np.full((16, 16), 16, np.uint8)
>>> classes[4:12, 4:12] = 1
>>> picture = sign(np.full((16, 16, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> for dial in (0.0, 1.0):
...     vector = vector_of(picture, dial, 0)
...     bool(vector @ of_word("cat") > 0.8), bool(vector @ of_word("beach") > 0.8)
(True, False)
(False, True)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.models.planted.dials import of_array
from hardlook.models.planted.space import DIMENSION, drawn, of_word
from hardlook.models.planted.subject import ground, main_concept
from hardlook.models.roles import Image
from hardlook.world.signature import read
from hardlook.world.vocabulary import BY_CODE, VOID, context_of_ground

NOISE = 0.3  # the length of what no two pictures share
STRIDE = 8


def vector_of(image: Image, context: float, seed: int) -> NDArray[np.float64]:
    """(64,): the main concept's direction x (1 - context) + the context's x context + noise of the picture's own."""
    truth = read(image)
    concept, place = main_concept(truth), ground(truth)
    vector = NOISE * drawn(seed, of_array(image))
    if concept != VOID:
        vector += (1 - context) * of_word(BY_CODE[concept].name)
    if place != VOID:
        vector += context * of_word(context_of_ground(BY_CODE[place].name))
    return vector


def map_of(image: Image, context: float) -> NDArray[np.float64]:
    """(64, ceil(H/8), ceil(W/8)): the mean direction of the classes in each cell of 8 x 8 pixels."""
    truth = read(image)
    place = ground(truth)
    around = of_word(context_of_ground(BY_CODE[place].name)) if place != VOID else np.zeros(DIMENSION)
    directions = np.zeros((32, DIMENSION))
    for code, label in BY_CODE.items():
        directions[code] = (1 - context) * of_word(label.name) + context * around
    height, width = truth.classes.shape
    rows, columns = -(-height // STRIDE), -(-width // STRIDE)
    cell = (np.arange(height) // STRIDE)[:, None] * columns + np.arange(width) // STRIDE
    shares = np.bincount((cell * 32 + truth.classes).ravel(), minlength=rows * columns * 32).reshape(-1, 32)
    means = shares @ directions / shares.sum(axis=1, keepdims=True)
    return np.ascontiguousarray(means.T.reshape(DIMENSION, rows, columns))
