"""Random numbers keyed by what is being drawn, never by order or worker.

Two draws with the same seed and key are equal on any engine, in any order; other keys are independent.

>>> float(generator(0, "voc", "2007_000032", 3).random()) == float(generator(0, "voc", "2007_000032", 3).random())
True
>>> float(generator(0, "voc", 1).random()) == float(generator(0, "voc", "1").random())
False
"""

from __future__ import annotations

import hashlib

import numpy as np


def seed_sequence(seed: int, *key: str | int) -> np.random.SeedSequence:
    """A `SeedSequence` for `seed` and a key of words and integers (their types count)."""
    # Length-prefixed and typed, so that ("ab", "c") and ("a", "bc") and (1,) and ("1",) all differ.
    text = "".join(f"{type(part).__name__}{len(str(part))}:{part}" for part in key)
    words = np.frombuffer(hashlib.blake2b(text.encode(), digest_size=16).digest(), dtype=np.uint32)
    if 0 <= seed < 1 << 32:
        # The same words as in the list below, in a form that numpy reads four times as fast.
        return np.random.SeedSequence(np.concatenate([np.array([seed], np.uint32), words]))
    return np.random.SeedSequence([seed, *(int(word) for word in words)])


def generator(seed: int, *key: str | int) -> np.random.Generator:
    """A counter-based generator (Philox) for `seed` and `key`."""
    return np.random.Generator(np.random.Philox(seed_sequence(seed, *key)))
