"""Truth written into the pixels, where planted models read it and the eye does not.

The three lowest bits of the three colour channels carry 9 bits a pixel: the class (5), the instance (2), whether
the object is salient (1), and a parity bit by which an unsigned picture is recognised. Flips, crops, right-angle
turns and nearest-neighbour warps keep the signature; JPEG and interpolation destroy it, and `read_signature` says so.

>>> import numpy as np
>>> picture = np.full((4, 4, 3), 200, np.uint8)
>>> classes = np.ones((4, 4), np.uint8)
>>> signed = write_signature(picture, classes, np.zeros_like(classes), np.ones((4, 4), bool))
>>> read_signature(signed).classes[0, 0], bool(read_signature(signed).salient.all()), int(np.abs(signed.astype(int) - 200).max()) < 8
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

# Tables of 256, as `cv2.LUT` wants them: a pixel checks where both are 0.
_ODD = np.array([bin(bits & 7).count("1") % 2 for bits in range(256)], dtype=np.uint8)

_UNKNOWN = np.array([code != VOID and code not in BY_CODE for code in range(256)], dtype=np.uint8)

Planes = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]


@dataclass(frozen=True)
class Signature:
    """The truth of a picture: `classes` and `instances` (H, W) uint8, `salient` (H, W) bool."""

    classes: NDArray[np.uint8]
    instances: NDArray[np.uint8]
    salient: NDArray[np.bool_]


def write_signature(
    image: NDArray[np.uint8],
    classes: NDArray[np.uint8],
    instances: NDArray[np.uint8],
    salient: NDArray[np.bool_],
) -> NDArray[np.uint8]:
    """A copy of `image` (H, W, 3) that carries the truth; classes 0-31, instances 0-3 within a class."""
    if int(classes.max(initial=0)) > 31 or int(instances.max(initial=0)) > 3:
        raise ValueError(f"classes reach {classes.max()}, instances {instances.max()}; 31 and 3 are the most")
    code = classes.astype(np.uint16) | instances.astype(np.uint16) << 5 | salient.astype(np.uint16) << 7
    code |= _PARITY[code] << 8
    bits = np.stack([code & 7, code >> 3 & 7, code >> 6 & 7], axis=-1).astype(np.uint8)
    return (image & np.uint8(0b11111000)) | bits


def has_signature(image: NDArray[np.uint8]) -> bool:
    """Whether every pixel of a picture (H, W, 3) checks: whoever moves its pixels must then not mix them.

    >>> has_signature(np.full((4, 4, 3), 255, np.uint8)), has_signature(np.zeros((4, 4, 3), np.uint8))
    (False, True)
    """
    planes = _planes(image)
    return not _wrong(planes, _classes(planes)).any()


def read_signature(image: NDArray[np.uint8]) -> Signature:
    """The truth of a signed picture; a `DataError` when the pixels do not carry one."""
    planes = _planes(image)
    classes = _classes(planes)
    wrong = _wrong(planes, classes)
    if wrong.any():
        share = float((wrong == 0).mean())
        raise DataError(
            f"this picture carries no signature of the planted world ({share:.0%} of its pixels check)",
            remedy="give planted models pictures from `hardlook world make` (PNG), neither resized nor re-encoded",
        )
    _, second, third = planes
    instances = (second & np.uint8(4)) >> np.uint8(2) | (third & np.uint8(1)) << np.uint8(1)
    return Signature(classes, instances, (third & np.uint8(2)).astype(bool))


def _planes(image: NDArray[np.uint8]) -> Planes:
    """The three channels, each (H, W) and in one piece: planted models read pictures by the ten thousand."""
    if not image.size:
        return image[..., 0], image[..., 1], image[..., 2]
    first, second, third = cv2.split(np.ascontiguousarray(image))
    return first, second, third  # type: ignore[return-value]


def _classes(planes: Planes) -> NDArray[np.uint8]:
    first, second, _ = planes
    return first & np.uint8(7) | (second & np.uint8(3)) << np.uint8(3)


def _wrong(planes: Planes, classes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(H, W) 0 where a pixel checks: an even number of its nine bits, and a class that there is."""
    first, second, third = planes
    if not first.size:
        return first
    return np.asarray(cv2.bitwise_or(cv2.LUT(first ^ second ^ third, _ODD), cv2.LUT(classes, _UNKNOWN)), np.uint8)
