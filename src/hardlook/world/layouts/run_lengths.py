"""COCO's compressed run lengths, written from their definition, so that they can check the library that reads them.

>>> import numpy as np
>>> compressed(np.array([[0, 1], [0, 1]], bool))
{'size': [2, 2], 'counts': '22'}
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def compressed(mask: NDArray[np.bool_]) -> dict[str, Any]:
    """The encoding of a mask (H, W): runs down the columns, background first, as text."""
    flat = mask.ravel(order="F")
    edges = np.flatnonzero(np.diff(flat, prepend=False, append=~flat[-1:]))
    runs = [int(run) for run in np.diff(edges, prepend=0)]
    return {"size": list(mask.shape), "counts": "".join(_word(runs, i) for i in range(len(runs)))}


def _word(runs: list[int], position: int) -> str:
    """One run as characters of five bits; from the fourth on, the difference to the run before the last."""
    value = runs[position] - (runs[position - 2] if position > 2 else 0)
    word = ""
    while True:
        low, value = value & 31, value >> 5
        done = value == (-1 if low & 16 else 0)
        word += chr(48 + low + (0 if done else 32))
        if done:
            return word
