"""Matching of feature maps: the cells of images by an encoder, how much of them a mask covers, and masks from scores.

A cell is one place of a feature map with its vector. Every image goes through the encoder alone, so its numbers depend
on nothing but itself: not on its batch, nor on earlier calls, nor on the worker.

>>> from hardlook.world.planted import PlantedWorld
>>> encoder = build_inner("planted-encoder", "encoder")
>>> picture = PlantedWorld(count=1)[0].image
>>> cells = ImagesOfCall(encoder, ArrayCache(), ContentKeys().key_function()).cells(picture)
>>> cells.shape == (-(-picture.shape[0] // 8), -(-picture.shape[1] // 8), 64)
True
>>> mask_from_scores(np.array([[1, -1]], np.float32), (2, 4)).tolist()
[[True, True, False, False], [True, True, False, False]]
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.caching import ArrayCache
from hardlook.errors import ModelError
from hardlook.models.answer_checks import check_answers
from hardlook.models.content_keys import ContentKeys, Key
from hardlook.models.named_model import NamedModel, OuterModel, build_inner
from hardlook.models.roles import Image, Mask, Support, check_supports
from hardlook.models.unit_vectors import unit_vectors

Cells = NDArray[np.float32]
"""(h, w, C): a vector of length 1 per cell, or 0 where the encoder's map is 0."""

Coverage = NDArray[np.float32]
"""(h, w): the share of each cell that is covered, from 0 to 1."""

ENCODER_DEFAULTS = {"efficientnet-lite0": {"layer": "stride16+stride32", "size": "320"}}
"""Arguments of an encoder, by its name, unless `encoder_args` gives others.

Mean IoU over 20 classes of 150 random pairs of one class, from 537 images of Pascal VOC (void left out), and the mean
over pairs in brackets; the fourth row is the default, at less than half the time of the last.

| EfficientNet-Lite0 | prototype | nearest |
|---|---|---|
| stride16 at 224 px | .331 (.303) | .247 (.206) |
| stride16+stride32 at 224 px | .346 (.315) | .312 (.259) |
| stride16+head at 320 px | .367 (.337) | .319 (.269) |
| stride16+stride32 at 320 px | .377 (.343) | .347 (.292) |
| stride16+stride32 at 448 px | .386 (.348) | .350 (.315) |
"""


class CellMatcher(OuterModel, ABC):
    """Base of one-shot segmenters that match the cells of queries with those of supports.

    `encoder` is any encoder with maps, by name, and `encoder_args` its arguments (`layer=stride16,size=448`); `memory`
    bounds the bytes kept of images seen before.
    """

    def __init__(self, encoder: str, encoder_args: str, device: str, memory: int) -> None:
        defaults = ENCODER_DEFAULTS.get(encoder)
        super().__init__(build_inner(encoder, "encoder", encoder_args, device=device, defaults=defaults))
        self._cache, self._keys = ArrayCache(memory), ContentKeys()

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask (H, W) per query."""
        check_supports(queries, supports)
        images = ImagesOfCall(self._inner, self._cache, self._keys.key_function())
        return [self._segment(images, query, shown) for query, shown in zip(queries, supports, strict=True)]

    @abstractmethod
    def _segment(self, images: ImagesOfCall, query: Image, supports: Sequence[Support]) -> Mask: ...


@dataclass(frozen=True)
class ImagesOfCall:
    """The images of one call, in which no array changes, so that every array object is hashed once."""

    encoder: NamedModel
    cache: ArrayCache
    key: Key

    def cells(self, image: Image) -> Cells:
        """The cells of an image, from the cache if they are there."""
        return self.cache.get_or_create(("cells", self.key(image)), lambda: self._encode(image))

    def _encode(self, image: Image) -> Cells:
        model = self.encoder.model
        [(_, cells)] = check_answers("encoder", model, model.encode([image]), [image])
        if cells is None:
            name = self.encoder.identity.name
            raise ModelError(f"the encoder {name!r} gives vectors only", remedy="matching needs feature maps")
        return unit_vectors(np.ascontiguousarray(np.moveaxis(np.asarray(cells, np.float32), 0, -1)))

    def from_support(
        self, support: Support, what: str, compute: Callable[[Cells, Coverage, Coverage], NDArray[Any]]
    ) -> NDArray[Any]:
        """`compute(cells, the mask's share of each cell, the background's share)` of a support, cached as `what`.

        Both shares are measured and not subtracted, so that a cell without background has exactly none.
        """
        if support.mask.shape != support.image.shape[:2]:
            raise ModelError(
                f"a support's mask is {support.mask.shape}, its image {support.image.shape[:2]}",
                remedy="masks have their image's size",
            )

        def create() -> NDArray[Any]:
            cells = self.cells(support.image)
            grid = cells.shape[0], cells.shape[1]
            return compute(cells, cell_coverage(support.mask, grid), cell_coverage(~support.mask, grid))

        return self.cache.get_or_create((what, self.key(support.image), self.key(support.mask)), create)


def cell_coverage(mask: Mask, grid: tuple[int, int]) -> Coverage:
    """Share of each cell's area that the mask (H, W) covers: (h, w) float32 in [0, 1] for a grid of h x w cells.

    The grid covers the whole picture, with any ratio of sizes: a pixel on a border counts for both cells by its
    parts, and a picture of fewer pixels than cells is right too. Exactly 0 where a cell has no pixel of the mask.

    >>> mask = np.zeros((4, 6), bool)
    >>> mask[:, :2] = True
    >>> cell_coverage(mask, (2, 2)).tolist()
    [[0.6666666865348816, 0.0], [0.6666666865348816, 0.0]]
    """
    down, across = _pixel_shares(mask.shape[0], grid[0]), _pixel_shares(mask.shape[1], grid[1])
    return np.asarray(np.minimum(down @ mask.astype(np.float32) @ across.T, np.float32(1)))


@functools.lru_cache(maxsize=1024)
def _pixel_shares(pixels: int, cells: int) -> NDArray[np.float32]:
    """(cells, pixels): which part of the cell's length lies in the pixel; rows sum to 1."""
    borders = np.arange(cells + 1)[:, None] * (pixels / cells)
    starts = np.arange(pixels)
    common = np.minimum(borders[1:], starts + 1) - np.maximum(borders[:-1], starts)
    shares: NDArray[np.float32] = (np.clip(common, 0, None) * (cells / pixels)).astype(np.float32)
    shares.setflags(write=False)
    return shares


def mask_from_scores(scores: NDArray[np.float32], size: tuple[int, int]) -> Mask:
    """The pixels (H, W) whose score is above 0, scores (h, w) interpolated bilinearly between the cells' centres."""
    return cv2.resize(scores, size[::-1], interpolation=cv2.INTER_LINEAR) > 0
