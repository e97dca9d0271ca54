"""Run-length encoded masks in COCO's format.

This module wraps hotcoco and is its only importer. On 60 masks of 480x640 it encodes 3.5 times, decodes
8.8 times and intersects 2.7 times faster than pycocotools; its strings are byte-identical, and it needs only numpy.

An encoded mask is `{"size": [H, W], "counts": str}`, which can be written to JSON.

>>> mask = np.zeros((4, 5), bool)
>>> mask[1:3, 2:4] = True
>>> encoded = encode(mask)
>>> encoded["size"], area(encoded), to_box(encoded), bool((decode(encoded) == mask).all())
([4, 5], 4, (2.0, 1.0, 2.0, 2.0), True)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from hotcoco import mask as hotcoco_mask
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.reading import check_pixels, reading

_ENCODED = "not a run-length encoded mask"
_ENCODED_REMEDY = "write masks as {'size': [H, W], 'counts': str}"
Rle = dict[str, Any]


def encode(mask: NDArray[np.bool_]) -> Rle:
    """The encoding of a mask (H, W) bool."""
    return _as_text(hotcoco_mask.encode(np.asarray(mask, dtype=bool)))


def decode(encoded: Mapping[str, Any]) -> NDArray[np.bool_]:
    """The mask (H, W) bool of an encoding."""
    with reading(None, _ENCODED, remedy=_ENCODED_REMEDY):
        _check_size(encoded)
        return np.ascontiguousarray(hotcoco_mask.decode(dict(encoded))).astype(bool)


def area(encoded: Mapping[str, Any]) -> int:
    """The number of pixels of the mask."""
    with reading(None, _ENCODED, remedy=_ENCODED_REMEDY):
        return int(hotcoco_mask.area(dict(encoded)))


def to_box(encoded: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """The tightest box of the mask: x, y, width, height in pixels; zeros for an empty mask."""
    with reading(None, _ENCODED, remedy=_ENCODED_REMEDY):
        x, y, width, height = (float(value) for value in hotcoco_mask.to_bbox(dict(encoded)))
        return x, y, width, height


def iou(
    found: Sequence[Mapping[str, Any]], truth: Sequence[Mapping[str, Any]], crowd: Sequence[bool] | None = None
) -> NDArray[np.float64]:
    """IoU of every pair, (len(found), len(truth)); for a crowd, intersection over the area of the found mask."""
    if not found or not truth:
        return np.zeros((len(found), len(truth)))
    with reading(None, _ENCODED, remedy=_ENCODED_REMEDY):
        sizes = {tuple(mask["size"]) for mask in (*found, *truth)}
        if len(sizes) > 1:
            raise DataError(f"masks of different sizes: {sorted(sizes)}", remedy="compare masks of one image")
        flags = [bool(flag) for flag in crowd] if crowd is not None else [False] * len(truth)
        return np.asarray(hotcoco_mask.iou([dict(m) for m in found], [dict(m) for m in truth], flags), dtype=np.float64)


def from_segmentation(segmentation: Any, height: int, width: int) -> Rle:
    """The encoding of COCO's `segmentation` field: polygons, a list of runs, or an encoding."""
    with reading(None, "not a COCO segmentation", remedy="give polygons [[x, y, ...]] or {'size', 'counts'}"):
        if isinstance(segmentation, Mapping):
            _check_size(segmentation)
            if isinstance(segmentation["counts"], list):
                _check_total(sum(segmentation["counts"]), segmentation)
                return _as_text(hotcoco_mask.fr_py_objects(dict(segmentation), height, width))
            hotcoco_mask.area(dict(segmentation))  # looks at the runs: damage is found here, with the annotation's name
            _check_length(segmentation)
            return _as_text(dict(segmentation))
        check_pixels(width, height)
        # A two-point polygon would be read as a box; it covers no pixel.
        polygons = [_read_polygon(polygon) for polygon in segmentation if len(polygon) >= 6]
        if not polygons:
            return encode(np.zeros((height, width), bool))
        return _as_text(hotcoco_mask.merge(hotcoco_mask.fr_py_objects(polygons, height, width), intersect=False))


def _read_polygon(polygon: Sequence[Any]) -> list[float]:
    coordinates = [float(value) for value in polygon]
    if len(coordinates) % 2:
        raise ValueError(f"a polygon of {len(coordinates)} numbers: x and y come in pairs")
    if not all(map(math.isfinite, coordinates)):
        raise ValueError("a polygon with a coordinate that is not a number or not finite")
    return coordinates


def _check_size(encoded: Mapping[str, Any]) -> None:
    """Raise an error where the stated size is none, or too large: decoding takes its memory before it looks at runs."""
    height, width = encoded["size"]
    if not isinstance(height, int) or not isinstance(width, int) or height < 0 or width < 0:
        raise ValueError(f"the size is {encoded['size']!r}")
    check_pixels(width, height)


def _check_length(encoded: Mapping[str, Any]) -> None:
    """Raise an error where the runs end before the mask does, as those of a text that was cut off."""
    height, width = encoded["size"]
    # For a mask of one pixel less, runs of the right length are too long.
    if height * width and _finds_long_runs() and not _is_too_long(encoded["counts"], height * width - 1):
        raise ValueError(f"the runs do not fill the size {height} x {width}: the text is cut off")


def _is_too_long(counts: str | bytes, pixels: int) -> bool:
    try:
        hotcoco_mask.area({"size": [pixels, 1], "counts": counts})
    except ValueError:
        return True
    return False


@cache
def _finds_long_runs() -> bool:
    """Whether this version of hotcoco tells runs that are too long from others."""
    full = encode(np.ones((1, 2), bool))["counts"]
    return _is_too_long(full, 1) and not _is_too_long(full, 2)


def _check_total(pixels: int, encoded: Mapping[str, Any]) -> None:
    height, width = encoded["size"]
    if pixels != height * width:
        raise ValueError(f"the runs have {pixels} pixels, the size {height} x {width} has {height * width}")


def _as_text(encoded: Mapping[str, Any]) -> Rle:
    counts = encoded["counts"]
    text = counts.decode("ascii") if isinstance(counts, bytes) else counts
    return {"size": [int(side) for side in encoded["size"]], "counts": text}
