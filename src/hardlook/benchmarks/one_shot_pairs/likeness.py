"""How alike the two images of a pair look to an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.one_shot_pairs.asked_models import AskedModel
from hardlook.benchmarks.one_shot_pairs.pairs import OneShotPair
from hardlook.benchmarks.one_shot_pairs.shelf import Shelf
from hardlook.contract.records import Column
from hardlook.models.feature_cache import CachedEncoder, default_cache_folder
from hardlook.models.roles import Encoder, Features, Image

NOT_ASKED = -2.0
SIMILARITY = Column("similarity", "float", "cosine of the images of query and support; -2 where no encoder was asked")


class VectorsOnly:
    """An encoder whose maps nobody needs: kept on disk they would take a thousand times the room."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.dimension = encoder.dimension

    def encode(self, images: Sequence[Image]) -> Features:
        """The vectors (N, D) alone."""
        return Features(self.encoder.encode(images).vectors, None)


@lru_cache(maxsize=2)
def cached_encoder(asked: AskedModel) -> CachedEncoder:
    """The encoder with its vectors on disk, built once a process."""
    encoder = VectorsOnly(asked.built("encoder").model)
    return CachedEncoder(encoder, asked.identity("encoder"), default_cache_folder(), size="vectors only")


def with_similarity(pair: OneShotPair, shelf: Shelf) -> OneShotPair:
    """The read pair with the cosine of its query's and its first support's image."""
    image, shown = pair.image, pair.support[0].image
    assert image is not None and not pair.transform
    first, second = _vector(pair, pair.query, image, shelf), _vector(pair, pair.supports[0], shown, shelf)
    return replace(pair, similarity=float((first * second).sum()))


def _vector(pair: OneShotPair, token: str, image: Image, shelf: Shelf) -> NDArray[np.float64]:
    settings = pair.settings
    assert settings.encoder is not None
    asked = settings.encoder

    def make() -> NDArray[np.float64]:
        # One image a call, so that its vector does not depend on its neighbours.
        vector = np.asarray(cached_encoder(asked).encode([image]).vectors[0], np.float64)
        length = float(np.sqrt((vector * vector).sum()))
        return vector / length if length > 0 else vector

    return shelf.get((settings.key, settings.size, settings.source.image_of(token), asked, "vector"), make)
