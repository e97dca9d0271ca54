"""A file of word vectors as a text encoder: any words that the file knows, as vectors of length 1.

Words are looked up as `hardlook.similarity.label_vectors` says: as written, in lower case, in the singular; a text of
several words as a whole, else as the mean over those of its words that the file has.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.models.weights.install import locate_weights
from hardlook.similarity.label_vectors import label_vector, list_words_to_read
from hardlook.similarity.word_vectors import read_word_vectors

GLOVE, GLOVE_FILE = "glove-6b-50d", "glove_6B_50d_emb.npy"
_LISTED = 20


class WordEncoder:
    """Vectors of length 1 for words, from a file of word vectors.

    `source` is a file or folder of word vectors in any format of `hardlook.similarity.word_vectors` (default: the
    installed `glove-6b-50d`, 50 dimensions). A text without any known word is an error that names all such texts;
    with `unknown=zero` it has a vector of zeros.
    """

    def __init__(self, source: Path | None = None, unknown: Literal["error", "zero"] = "error") -> None:
        self._path = Path(source).expanduser() if source else locate_weights(GLOVE)[GLOVE_FILE]
        read = read_word_vectors(self._path, {"the"})
        self.dimension, self._unknown = read.dimension, unknown
        self.weights_files: tuple[Path, ...] = read.files

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(N, dimension) float32 of length 1; zeros where a text has no vector and `unknown` is zero."""
        known = read_word_vectors(self._path, list_words_to_read(texts))
        found = [label_vector(text, known).vector for text in texts]
        without = [text for text, vector in zip(texts, found, strict=True) if vector is None or not vector.any()]
        if without and self._unknown == "error":
            listed = ", ".join(map(repr, without[:_LISTED]))
            more = f" and {len(without) - _LISTED} more" if len(without) > _LISTED else ""
            what = f"{len(without)} of {len(texts)} texts have no word vector: {listed}{more}"
            remedy = "write other words for them; a file of labels may name one after a comma, as in `tvmonitor, tv`"
            raise DataError(what, file=self._path, remedy=remedy)
        rows = [np.zeros(self.dimension, np.float32) if vector is None else vector for vector in found]
        vectors = np.array(rows, np.float64).reshape(len(texts), self.dimension)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0), np.float32)
