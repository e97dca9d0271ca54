"""The files in `data/` beside this module: WordNet 3.0's nouns in compact form, built by tools/build_wordnet.py.

>>> numbers = read_numbers()
>>> len(numbers["offset"]), len(read_lines("glosses"))
(82115, 82115)
"""

from __future__ import annotations

import io
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Text = Literal["lemmas", "glosses", "exceptions"]


def read_numbers() -> dict[str, NDArray[Any]]:
    """The arrays of `nouns.npz`, by name.

    A synset's place is its rank by offset. `offset` (n,); `hypernym_count` (n,) and `hypernym`, their places one synset
    after the other; `lemma_count` (n,), and for each lemma in turn `sense_number` (1 is the word's first sense) and
    `tag_count` (occurrences in the tagged texts).
    """
    content = resources.files(__package__).joinpath("data", "nouns.npz").read_bytes()
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return dict(archive)


def read_lines(name: Text) -> list[str]:
    """The lines of a text: `lemmas` and `glosses` have one a synset, `exceptions` one an irregular plural."""
    import lzma

    content = resources.files(__package__).joinpath("data", f"{name}.txt.xz").read_bytes()
    return lzma.decompress(content).decode("ascii").splitlines()


def read_licence() -> str:
    """Princeton's licence for WordNet 3.0, which goes wherever the data goes."""
    return resources.files(__package__).joinpath("data", "LICENSE-WORDNET.txt").read_text(encoding="ascii")
