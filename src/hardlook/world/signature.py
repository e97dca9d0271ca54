"""Truth written into the pixels, where planted models read it and the eye does not.

The three lowest bits of the three colour channels carry 9 bits a pixel: the class (5), the instance (2), whether
the object is salient (1), and a parity bit by which an unsigned picture is recognised. Flips, crops, right-angle
turns and nearest-neighbour warps keep the signature; JPEG and interpolation destroy it, and `read` says so.

>>> import numpy as np
>>> picture = np.full((4, 4, 3), 200, np.uint8)
>>> classes = np.ones((4, 4), np.uint8)
>>> signed = sign(picture, classes, np.zeros_like(classes), np.ones((4, 4), bool))
>>> read(signed).classes[0, 0], bool(read(signed).salient.all()), int(np.abs(signed.astype(int) - 200).max()) < 8
(np.uint8(1), True, True)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.world.vocabulary import BY_CODE, VOID

_PARITY = np.array([bin(code).count("1") % 2 for code in range(256)], dtype=np.uint16)
_KNOWN = np.array([code == VOID or code in BY_CODE for code in range(32)])


@dataclass(frozen=True)
class Signature:
    """The truth of a picture: `classes` and `instances` (H, W) uint8, `salient` (H, W) bool."""

    classes: NDArray[np.uint8]
    instances: NDArray[np.uint8]
    salient: NDArray[np.bool_]


def sign(
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


def is_signed(image: NDArray[np.uint8]) -> bool:
    """Whether every pixel of a picture (H, W, 3) checks: whoever moves its pixels must then not mix them.

    >>> is_signed(np.full((4, 4, 3), 255, np.uint8)), is_signed(np.zeros((4, 4, 3), np.uint8))
    (False, True)
    """
    return bool(_codes(image)[1].all())


def read(image: NDArray[np.uint8]) -> Signature:
    """The truth of a signed picture; a `DataError` when the pixels do not carry one."""
    code, valid = _codes(image)
    classes = (code & 31).astype(np.uint8)
    if not valid.all():
        share = float(valid.mean())
        raise DataError(
            f"this picture carries no signature of the planted world ({share:.0%} of its pixels check)",
            remedy="give planted models pictures from `hardlook world make` (PNG), neither resized nor re-encoded",
        )
    return Signature(classes, (code >> 5 & 3).astype(np.uint8), (code >> 7 & 1).astype(bool))


def _codes(image: NDArray[np.uint8]) -> tuple[NDArray[np.uint16], NDArray[np.bool_]]:
    """The nine bits of each pixel, and whether they check."""
    bits = (image & np.uint8(7)).astype(np.uint16)
    code = (bits[..., 0] | bits[..., 1] << 3 | bits[..., 2] << 6).astype(np.uint16)
    return code, (_PARITY[code & 255] == code >> 8) & _KNOWN[code & 31]
