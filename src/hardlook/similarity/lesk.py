"""Lesk similarity: the words that two dictionary entries share (after Lesk 1986).

>>> cat = ("feline", "mammal", "fur")
>>> dog = ("canine", "mammal", "fur", "pack")
>>> lesk_matrix([cat, dog, ()]).round(3)
array([[1.   , 0.571, 0.   ],
       [0.571, 1.   , 0.   ],
       [0.   , 0.   , 1.   ]])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def lesk_matrix(tokens: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """(K, K) gloss overlap of K entries, in [0, 1]: 2 |A & B| / (|A| + |B|), A and B the sets of their words.

    `tokens` holds one sequence of words an entry; the caller has cut the text into words and left out those that say
    nothing. A word counts once however often it comes, and words are equal only if spelled alike. The overlap (Dice's
    coefficient) is 1 for equal sets and 0 for disjoint ones. An entry without words has 0 with every other entry; the
    diagonal is 1.
    """
    entries = [frozenset(words) for words in tokens]
    sizes = np.array([len(words) for words in entries], np.float64)
    column: dict[str, int] = {}
    filled = [
        (row, column.setdefault(word, len(column))) for row, words in enumerate(entries) for word in sorted(words)
    ]
    rows, columns = np.array(filled, np.int64).reshape(-1, 2).T
    # A word of one entry only adds nothing to any overlap; without those the product is several times smaller.
    kept, place = np.unique(columns, return_inverse=True)
    several = np.bincount(place, minlength=len(kept)) > 1
    narrow = np.cumsum(several) - 1
    chosen = several[place]
    holds = np.zeros((len(entries), int(several.sum())), np.float32)
    holds[rows[chosen], narrow[place[chosen]]] = 1
    # Whole numbers below 2**24 are exact in float32.
    common = (holds @ holds.T).astype(np.float64)
    both = sizes[:, None] + sizes[None, :]
    overlap = np.divide(2.0 * common, both, out=np.zeros(both.shape), where=both > 0)
    np.fill_diagonal(overlap, 1.0)
    return overlap
