"""A one-shot pair: one query, its supports, and reading their files.

`OneShotPair` is the payload of a unit. `read_pair` adds the arrays: images, truth, supports and, for stored
predictions, the predicted mask. `add_salient_mask` and `add_similarity` add what an auxiliary model says about them.
Each file is read once while it stays in the cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.caching import ArrayCache
from hardlook.data.class_masks import ClassMask, ClassMaskSource
from hardlook.data.label_maps import read_label_map
from hardlook.errors import DataError
from hardlook.models.answer_checks import check_answers
from hardlook.models.feature_cache import CachedEncoder, default_cache_folder
from hardlook.models.roles import Encoder, Features, Image, Mask, Support
from hardlook.toss.options import AuxiliaryModel
from hardlook.toss.saliency_cache import THRESHOLD, SaliencyMaskCache, default_mask_folder
from hardlook.toss.tiers.rigid_transforms import draw_visible_transform, transform_image, transform_mask
from hardlook.world.signature import has_signature

SupportContent = Literal["as it is", "no mask", "no image", "nothing"]
"""What the supports contain: image and mask; an empty mask; a black image; both empty."""

Labels = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class PairSettings:
    """What all pairs of a list share; `size` 0 leaves images as they are, `key` names the source in caches.

    `training_classes` are those of the fold's model, None where they are not known.
    """

    source: ClassMaskSource
    key: str
    listing: str
    size: int = 0
    seed: int = 0
    keep_prediction: bool = True
    predictions: Path | None = None
    saliency: AuxiliaryModel | None = None
    encoder: AuxiliaryModel | None = None
    training_classes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class OneShotPair:
    """One unit: `query` and `supports` are tokens, `slices` its labels.

    `transform` numbers the query's rigid transform (0: none); the fields below `content` are empty before `read_pair`.
    """

    settings: PairSettings
    query: str
    supports: tuple[str, ...]
    slices: Labels
    transform: int = 0
    content: SupportContent = "as it is"
    image: Image | None = field(default=None, repr=False)
    truth: ClassMask | None = field(default=None, repr=False)
    support: tuple[Support, ...] = field(default=(), repr=False)
    predicted: Mask | None = field(default=None, repr=False)
    salient: Mask | None = field(default=None, repr=False)
    similarity: float = -2.0

    @property
    def shows_class(self) -> bool:
        """Whether its supports have image and mask."""
        return self.content == "as it is"


def read_pair(pair: OneShotPair, unit: str, cache: ArrayCache) -> OneShotPair:
    """The pair with its arrays; a `DataError` names the file that cannot be read."""
    settings = pair.settings
    image, truth = _read_image(settings, pair.query, cache), _read_truth(settings, pair.query, cache)
    if pair.transform:
        image, truth = _transform_query(pair, image, truth, cache)
    support = tuple(_read_support(pair, token, cache) for token in pair.supports)
    predicted = _read_prediction(settings.predictions, unit, truth) if settings.predictions else None
    return replace(pair, image=image, truth=truth, support=support, predicted=predicted)


def add_salient_mask(pair: OneShotPair, cache: ArrayCache) -> OneShotPair:
    """The read pair with the saliency mask of its query, predicted once per image."""
    settings, image = pair.settings, pair.image
    assert settings.saliency is not None and image is not None and not pair.transform
    saliency = settings.saliency

    def predict() -> Mask:
        if has_signature(image):
            # Planted scenes are drawn anew by every run, so their masks are not worth a file.
            model = saliency.build("saliency").model
            [salient] = check_answers("saliency", model, model.saliency([image]), [image])
            return np.asarray(salient > THRESHOLD, np.bool_)
        return _open_saliency_cache(saliency).masks([image])[0]

    key = (settings.key, settings.size, settings.source.image_of(pair.query), saliency, "salient")
    return replace(pair, salient=cache.get_or_create(key, predict))


def add_similarity(pair: OneShotPair, cache: ArrayCache) -> OneShotPair:
    """The read pair with the cosine of its query's and its first support's image."""
    assert pair.image is not None and not pair.transform
    query = _encode_image(pair.settings, pair.query, pair.image, cache)
    support = _encode_image(pair.settings, pair.supports[0], pair.support[0].image, cache)
    return replace(pair, similarity=float((query * support).sum()))


def _read_image(settings: PairSettings, token: str, cache: ArrayCache) -> Image:
    """The image of a token at the evaluation's size."""

    def read() -> Image:
        image = settings.source.read_image(token)
        # Planted models read truth from a picture's low bits: such pixels may be moved and not mixed.
        return _resize(image, settings.size, cv2.INTER_NEAREST if has_signature(image) else cv2.INTER_LINEAR)

    # By image, not by token: two classes of one image share it.
    return cache.get_or_create((settings.key, settings.size, settings.source.image_of(token), "image"), read)


def _read_truth(settings: PairSettings, token: str, cache: ArrayCache) -> ClassMask:
    """The truth of a token at the evaluation's size."""

    def read() -> ClassMask:
        truth = settings.source.read_mask(token)
        if not settings.size:
            return truth
        return ClassMask(
            *(_resize(part.astype(np.uint8), settings.size).astype(bool) for part in (truth.mask, truth.void))
        )

    return cache.get_or_create((settings.key, settings.size, token, "truth"), read)


def _resize(array: NDArray[np.uint8], size: int, interpolation: int = cv2.INTER_NEAREST) -> NDArray[np.uint8]:
    return np.asarray(cv2.resize(array, (size, size), interpolation=interpolation), np.uint8) if size else array


def _transform_query(pair: OneShotPair, image: Image, truth: ClassMask, cache: ArrayCache) -> tuple[Image, ClassMask]:
    # The transform depends on seed, token and number alone, so what it makes can be cached too.
    settings = pair.settings
    key = (settings.key, settings.size, settings.seed, pair.query, pair.transform)
    transform = cache.get_or_create(
        (*key, "transform"), lambda: draw_visible_transform(truth.mask, settings.seed, pair.query, pair.transform)
    )
    return (
        cache.get_or_create((*key, "image"), lambda: transform_image(transform, image, exact=has_signature(image))),
        cache.get_or_create(
            (*key, "truth"),
            lambda: ClassMask(transform_mask(transform, truth.mask), transform_mask(transform, truth.void)),
        ),
    )


def _read_support(pair: OneShotPair, token: str, cache: ArrayCache) -> Support:
    image, mask = _read_image(pair.settings, token, cache), _read_truth(pair.settings, token, cache).mask
    shape = image.shape
    # One array for all supports of a size: models recognise by the array what they have encoded already.
    if pair.content in ("no image", "nothing"):
        image = cache.get_or_create(("black", shape), lambda: np.zeros(shape, np.uint8))
    if pair.content in ("no mask", "nothing"):
        mask = cache.get_or_create(("no mask", shape[:2]), lambda: np.zeros(shape[:2], bool))
    return Support(image, mask)


def _read_prediction(folder: Path, unit: str, truth: ClassMask) -> Mask:
    height, width = truth.mask.shape
    path = folder / f"{unit}.png"
    if not path.is_file():
        raise DataError("no stored prediction of this pair", file=path, unit=unit, remedy="masks are called UNIT.png")
    stored = read_label_map(path, size=(width, height))
    mask: Mask = stored != 0
    # A map of labels or of scores is not a mask, and would be one nearly everywhere.
    others = stored[mask & (stored != stored.max())]
    if others.size:
        what = f"the stored mask holds {others[0]} and {stored.max()} beside 0"
        remedy = "store 0 and one other number: the pixels of the pair's class, where your model's score is high enough"
        raise DataError(what, file=path, unit=unit, remedy=remedy)
    return mask


@lru_cache(maxsize=2)
def _open_saliency_cache(saliency: AuxiliaryModel) -> SaliencyMaskCache:
    """The saliency model with its masks on disk, built once per process."""
    return SaliencyMaskCache(saliency.build("saliency").model, saliency.fingerprint("saliency"), default_mask_folder())


class _VectorEncoder:
    """An encoder without feature maps: on disk they would take a thousand times the space of the vectors."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.dimension = encoder.dimension

    def encode(self, images: Sequence[Image]) -> Features:
        """The vectors (N, D) alone."""
        return Features(self.encoder.encode(images).vectors, None)


@lru_cache(maxsize=2)
def _open_encoder_cache(encoder: AuxiliaryModel) -> CachedEncoder:
    """The encoder with its vectors on disk, built once per process."""
    model = _VectorEncoder(encoder.build("encoder").model)
    return CachedEncoder(model, encoder.fingerprint("encoder"), default_cache_folder(), size="vectors only")


def _encode_image(settings: PairSettings, token: str, image: Image, cache: ArrayCache) -> NDArray[np.float64]:
    """The image's vector, scaled to length 1; a vector of zeros stays as it is."""
    assert settings.encoder is not None
    encoder = settings.encoder

    def encode() -> NDArray[np.float64]:
        # One image per call, so that its vector does not depend on its neighbours.
        vector = np.asarray(_open_encoder_cache(encoder).encode([image]).vectors[0], np.float64)
        length = float(np.sqrt((vector * vector).sum()))
        return vector / length if length > 0 else vector

    key = (settings.key, settings.size, settings.source.image_of(token), encoder, "vector")
    return cache.get_or_create(key, encode)
