"""Similarity of images to an encoder: each image is encoded once, a pair has the cosine of its two vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.data.class_masks import ClassMaskSource
from hardlook.models.answer_checks import check_answers
from hardlook.models.roles import Encoder, Image
from hardlook.toss.tiers.attributes import Advance, FailedImage, process_images


@dataclass(frozen=True)
class ImageVectors:
    """Vectors of length 1, (D,) float64, by image; and the images that could not be encoded."""

    vectors: Mapping[str, NDArray[np.float64]]
    failures: tuple[FailedImage, ...] = ()


def encode_images(
    source: ClassMaskSource,
    tokens: Iterable[str],
    encoder: Encoder,
    *,
    advance: Advance = lambda images, failed: None,
) -> ImageVectors:
    """Encode the image of each token once; a vector of zeros stays as it is.

    An image that cannot be read, or that the encoder fails on, is returned with its reason and stops nothing.
    """
    images = {source.image_of(token): token for token in tokens}
    vectors: dict[str, NDArray[np.float64]] = {}
    failures = process_images(
        images,
        lambda name: source.read_image(images[name]),
        lambda read: _unit_vectors(read, encoder),
        vectors.update,
        advance,
    )
    return ImageVectors(vectors, tuple(failures))


def _unit_vectors(images: Mapping[str, Image], encoder: Encoder) -> dict[str, NDArray[np.float64]]:
    asked = list(images.values())
    answers = check_answers("encoder", encoder, encoder.encode(asked), asked)
    encoded = np.array([vector for vector, _ in answers], np.float64)
    lengths = np.linalg.norm(encoded, axis=1, keepdims=True)
    unit = np.divide(encoded, lengths, out=np.zeros_like(encoded), where=lengths > 0)
    return dict(zip(images, unit, strict=True))


def pair_cosines(
    vectors: Mapping[str, NDArray[np.float64]], image_of: Callable[[str], str], pairs: Sequence[tuple[str, str]]
) -> NDArray[np.float64]:
    """Cosine in [-1, 1] of the two images of each pair, (n,).

    >>> vectors = {"a": np.array([1.0, 0.0]), "b": np.array([0.6, 0.8])}
    >>> pair_cosines(vectors, lambda token: token[2:], [("1_a", "1_b"), ("1_a", "1_a")])
    array([0.6, 1. ])
    """
    if not pairs:
        return np.zeros(0)
    left = np.stack([vectors[image_of(query)] for query, _ in pairs])
    right = np.stack([vectors[image_of(support)] for _, support in pairs])
    # Sums in float64 over one pair each, so that the value does not depend on the other pairs.
    return np.asarray((left * right).sum(axis=1))


def split_at_mean(
    pools: Mapping[str, Sequence[tuple[str, str]]], cosines: Mapping[str, NDArray[np.float64]]
) -> tuple[dict[tuple[str, str], bool], float]:
    """Which pairs are similar: those above the mean over the pairs of all classes; and that mean, NaN without pairs.

    >>> similar, mean = split_at_mean({"cat": [("1_a", "1_b"), ("1_a", "1_c")]}, {"cat": np.array([0.9, 0.1])})
    >>> list(similar.values()), mean
    ([True, False], 0.5)
    """
    every = np.concatenate([cosines[name] for name in pools]) if pools else np.zeros(0)
    mean = float(every.mean()) if every.size else float("nan")
    similar = {
        pair: bool(cosine > mean)
        for name, pairs in pools.items()
        for pair, cosine in zip(pairs, cosines[name], strict=True)
    }
    return similar, mean
