"""Where the images and class masks of a pair list come from: what every source answers.

A token names one class in one image, such as `3_2007_000032`. A source turns tokens into images and masks.

>>> truth = ClassMask(np.ones((2, 2), bool), np.zeros((2, 2), bool))
>>> truth.mask.shape == truth.void.shape
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ClassMask:
    """The truth of one class in one image.

    `mask` (H, W) bool: the class's pixels. `void` (H, W) bool: pixels that the truth leaves open (VOC's 255).
    """

    mask: NDArray[np.bool_]
    void: NDArray[np.bool_]


class ClassMasks(Protocol):
    """A source of images and class masks; small when pickled, since every worker gets one."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names; the class number n of a token is `classes[n - 1]` (FSS-1000: tokens hold the names)."""

    def paths(self) -> Mapping[str, Path]:
        """The folders and files that are read, by name, for fingerprints."""

    def class_of(self, token: str) -> str:
        """The class name of a token, such as "aeroplane"."""

    def image_of(self, token: str) -> str:
        """The id of a token's image: queries of one image belong together."""

    def missing(self, token: str) -> str:
        """Empty when image and mask can be had, else what is not there, in words ("the image 2007_000032")."""

    def read_image(self, token: str) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB of a token."""

    def read_mask(self, token: str) -> ClassMask:
        """The truth of a token; a `DataError` when unreadable or not of the image's size."""

    def read_classes(self, image: str) -> NDArray[np.int32]:
        """The label map (H, W) of an image: 0 background, n the class number n, 255 left open."""

    def tokens(self) -> tuple[str, ...]:
        """Every class that has pixels in every image, sorted by class, then image; reads all maps, once."""

    def unreadable(self) -> Mapping[str, str]:
        """The images that `tokens` leaves out since image or truth cannot be read, and why, in a line each."""
