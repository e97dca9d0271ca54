"""Signatures: the ground truth of an image, written invisibly into its pixels for planted models to read.

The three lowest bits of the three colour channels carry 9 bits per pixel: the class (5), the instance (2), whether the
object is salient (1), and a parity bit that identifies images without a signature. Flips, crops, right-angle rotations
and nearest-neighbour resampling keep the signature; JPEG and interpolation destroy it, which `read_signature` reports.

>>> image, classes = np.full((4, 4, 3), 200, np.uint8), np.ones((4, 4), np.uint8)
>>> signed = write_signature(image, classes, np.zeros_like(classes), np.ones((4, 4), bool))
>>> truth = read_signature(signed)
>>> truth.classes[0, 0], bool(truth.salient.all()), int(np.abs(signed.astype(int) - 200).max()) < 8
(np.uint8(1), True, True)
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.world.vocabulary import BY_CODE, VOID

_PARITY = np.array([bin(code).count("1") % 2 for code in range(256)], dtype=np.uint16)

# Lookup tables of 256 values for `cv2.LUT`: a pixel is valid where both give 0.
_ODD = np.array([bin(bits & 7).count("1") % 2 for bits in range(256)], dtype=np.uint8)
_UNKNOWN = np.array([code != VOID and code not in BY_CODE for code in range(256)], dtype=np.uint8)
_Channels = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]


@dataclass(frozen=True)
class Signature:
    """The ground truth of an image: `classes` and `instances` (H, W) uint8, `salient` (H, W) bool."""

    classes: NDArray[np.uint8]
    instances: NDArray[np.uint8]
    salient: NDArray[np.bool_]


def write_signature(
    image: NDArray[np.uint8],
    classes: NDArray[np.uint8],
    instances: NDArray[np.uint8],
    salient: NDArray[np.bool_],
) -> NDArray[np.uint8]:
    """A copy of `image` (H, W, 3) that carries the ground truth; classes 0-31, instances 0-3 within a class."""
    if int(classes.max(initial=0)) > 31 or int(instances.max(initial=0)) > 3:
        raise ValueError(f"classes reach {classes.max()}, instances {instances.max()}; at most 31 and 3 are allowed")
    code = classes.astype(np.uint16) | instances.astype(np.uint16) << 5 | salient.astype(np.uint16) << 7
    code |= _PARITY[code] << 8
    bits = np.stack([code & 7, code >> 3 & 7, code >> 6 & 7], axis=-1).astype(np.uint8)
    return (image & np.uint8(0b11111000)) | bits


def has_signature(image: NDArray[np.uint8]) -> bool:
    """Whether every pixel of an image (H, W, 3) is valid; if so, transforms must move pixels without mixing them.

    >>> has_signature(np.full((4, 4, 3), 255, np.uint8)), has_signature(np.zeros((4, 4, 3), np.uint8))
    (False, True)
    """
    channels = _split_channels(image)
    return not _find_invalid(channels, _decode_classes(channels)).any()


def read_signature(image: NDArray[np.uint8]) -> Signature:
    """The ground truth that an image carries; a `DataError` if it carries none."""
    channels = _split_channels(image)
    classes = _decode_classes(channels)
    invalid = _find_invalid(channels, classes)
    if invalid.any():
        share = float((invalid == 0).mean())
        raise DataError(
            f"no signature of the planted world in this image ({share:.0%} of its pixels are valid)",
            remedy="give planted models images from `hardlook world make` (PNG), neither resized nor re-encoded",
        )
    _, second, third = channels
    instances = (second & np.uint8(4)) >> np.uint8(2) | (third & np.uint8(1)) << np.uint8(1)
    return Signature(classes, instances, (third & np.uint8(2)).astype(bool))


def _split_channels(image: NDArray[np.uint8]) -> _Channels:
    """The three channels, each (H, W) and contiguous, which makes reading them faster."""
    if not image.size:
        return image[..., 0], image[..., 1], image[..., 2]
    first, second, third = cv2.split(np.ascontiguousarray(image))
    return first, second, third  # type: ignore[return-value]


def _decode_classes(channels: _Channels) -> NDArray[np.uint8]:
    first, second, _ = channels
    return first & np.uint8(7) | (second & np.uint8(3)) << np.uint8(3)


def _find_invalid(channels: _Channels, classes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(H, W) 0 where a pixel is valid: an even number of its nine bits is set, and its class exists."""
    first, second, third = channels
    if not first.size:
        return first
    return np.asarray(cv2.bitwise_or(cv2.LUT(first ^ second ^ third, _ODD), cv2.LUT(classes, _UNKNOWN)), np.uint8)
