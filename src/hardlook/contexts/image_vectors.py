"""The vectors of a dataset's images, each image read and encoded once and kept on disk.

>>> import tempfile
>>> from hardlook.data.concept_context import read_rows
>>> from hardlook.models.registry import build
>>> from hardlook.world.write import write_world
>>> folder = Path(tempfile.mkdtemp())
>>> rows = read_rows(write_world(folder / "world", "concept-context", count=4))
>>> image_vectors(build("planted-encoder", role="encoder"), "planted", rows, folder / "cache").shape
(4, 64)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from hardlook.data.concept_context import ConceptContextImage
from hardlook.errors import HardlookError, ModelError
from hardlook.models.feature_cache import CachedEncoder
from hardlook.models.roles import Encoder, Features, Image, ImageTextEncoder, Vectors

Moved = Callable[[int, int], None]


class _VectorsAlone:
    """Vectors without maps, which would fill the cache with what nobody asks for here."""

    def __init__(self, encoder: Encoder | ImageTextEncoder) -> None:
        self.encoder, self.dimension = encoder, encoder.dimension

    def encode(self, images: Sequence[Image]) -> Features:
        if isinstance(self.encoder, ImageTextEncoder):
            return Features(self.encoder.encode_images(images))
        return Features(self.encoder.encode(images).vectors)


def image_vectors(
    encoder: Encoder | ImageTextEncoder,
    identity: str,
    rows: Sequence[ConceptContextImage],
    folder: Path,
    *,
    progress: Callable[[int, int], Moved] | None = None,
) -> Vectors:
    """(n, D) float32 in the rows' order, of an encoder or of the image half of an image-text encoder.

    `identity` is the encoder's fingerprint (`models.identity`); one image a call, so that no vector depends on which
    images came with it.
    """
    # The size slot keeps these apart from entries of the same encoder that hold maps.
    cached = CachedEncoder(_VectorsAlone(encoder), identity, folder, size="vectors alone")
    moved = progress(len(rows), 0) if progress else (lambda units, failed: None)
    vectors = np.zeros((len(rows), encoder.dimension), np.float32)
    for i, row in enumerate(rows):
        vectors[i] = _encoded(cached, row)
        moved(1, 0)
    return vectors


def _encoded(encoder: Encoder, row: ConceptContextImage) -> Vectors:
    try:
        return encoder.encode([row.read()]).vectors
    except HardlookError as error:
        raise error.at(file=row.path) from error
    except Exception as error:  # an encoder of another package may raise anything; the image tells where to look
        raise ModelError(f"the image cannot be encoded: {type(error).__name__}: {error}", file=row.path) from error
