"""What a matcher knows of images: their cells' vectors, computed once an image and kept while there is room.

Every image goes through the encoder alone. So its numbers depend on nothing but itself: not on its neighbours in a
batch, nor on what was asked before, nor on which worker asks.

>>> from hardlook.models.registry import build
>>> from hardlook.world.planted import PlantedWorld
>>> described = DescribedImages(build("planted-encoder", "encoder"), "planted-encoder")
>>> picture = PlantedWorld(count=1)[0].image
>>> with described.one_call() as images:
...     cells = images.cells(picture)
>>> cells.shape == (-(-picture.shape[0] // 8), -(-picture.shape[1] // 8), 64)
True
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.one_shot.bounded_store import GIBIBYTE, BoundedStore
from hardlook.models.one_shot.cell_coverage import cell_coverage
from hardlook.models.one_shot.content_keys import ContentKeys, Key
from hardlook.models.roles import Encoder, Image, Support

Cells = NDArray[np.float32]
"""(h, w, C): a vector of length 1 a cell, or 0 where the encoder's map is 0."""
Coverage = NDArray[np.float32]
"""(h, w): the part of each cell that is covered."""


class DescribedImages:
    """Cells of images by an encoder, `name` in errors; at most `most_bytes` of them and of what follows are kept."""

    def __init__(self, encoder: Encoder, name: str, most_bytes: int = GIBIBYTE) -> None:
        self.encoder, self.name = encoder, name
        self.store, self.keys = BoundedStore(most_bytes), ContentKeys()

    @contextlib.contextmanager
    def one_call(self) -> Iterator[ImagesOfCall]:
        """Access to the descriptions while the arrays of one call stay as they are."""
        with self.keys.one_call() as key:
            yield ImagesOfCall(self, key)

    def describe(self, image: Image) -> Cells:
        """The cells of an image, computed now."""
        maps = self.encoder.encode([image]).maps
        if maps is None:
            raise ModelError(f"the encoder {self.name!r} gives vectors only", remedy="matching needs feature maps")
        channels_last = np.moveaxis(np.asarray(maps[0], np.float32), 0, -1)
        return unit(np.ascontiguousarray(channels_last))


@dataclass(frozen=True)
class ImagesOfCall:
    """The images of one call: every array object is looked at once."""

    described: DescribedImages
    key: Key

    def cells(self, image: Image) -> Cells:
        """The cells of an image, from the store where it has them."""
        return self.described.store.array(("cells", self.key(image)), lambda: self.described.describe(image))

    def of_support(
        self, support: Support, what: str, make: Callable[[Cells, Coverage, Coverage], NDArray[Any]]
    ) -> NDArray[Any]:
        """What `make` gets out of the support's cells, the mask's share of each and the background's; kept by `what`.

        Both shares are measured and not subtracted, so that a cell without background has exactly none.
        """
        if support.mask.shape != support.image.shape[:2]:
            came, expected = support.mask.shape, support.image.shape[:2]
            raise ModelError(
                f"a support's mask is {came}, its image {expected}", remedy="masks have their image's size"
            )

        def made() -> NDArray[Any]:
            cells = self.cells(support.image)
            grid = cells.shape[0], cells.shape[1]
            return make(cells, cell_coverage(support.mask, grid), cell_coverage(~support.mask, grid))

        return self.described.store.array((what, self.key(support.image), self.key(support.mask)), made)


def check_lengths(queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> None:
    """A `ModelError` unless every query has its list of supports."""
    if len(queries) != len(supports):
        raise ModelError(f"{len(queries)} queries came with {len(supports)} lists of supports")


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors (..., C) of length 1; a vector of length 0 stays.

    >>> unit(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.sqrt(np.einsum("...c,...c->...", vectors, vectors))[..., None]
    units: NDArray[np.float32] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return units
