"""Objects and detections of one image, as arrays.

Fields may come as lists, numpy arrays or torch tensors; torch is never imported. Classes are indices 0..K-1, in the
order of their category ids, because equal scores are settled in that order.

>>> found = Detections([1, 0], [0.9, 0.5], boxes=[[0, 0, 10, 10], [5, 5, 4, 4]])
>>> areas(found, "bbox").tolist(), len(found.classes)
([100.0, 16.0], 2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.array_input import Values, as_numpy

IouType = Literal["segm", "bbox"]


@dataclass(frozen=True, eq=False, init=False)
class Objects:
    """Ground truth of one image: n objects.

    `classes` (n,); `boxes` (n, 4) as x, y, width, height; `masks` (n, H, W) bool; `area` (n,) pixels as the dataset
    states them; `crowd` (n,) bool marks regions of many objects; `ignore` (n,) bool marks further objects that
    neither count nor harm; `ids` (n,) annotation ids, which only the reading `released` looks at.

    >>> Objects([0, 2], boxes=[[0, 0, 4, 4], [1, 1, 2, 2]], crowd=[False, True]).ignore.tolist()
    [False, True]
    """

    classes: NDArray[np.int64]
    boxes: NDArray[np.float64] | None
    masks: NDArray[np.bool_] | None
    area: NDArray[np.float64] | None
    crowd: NDArray[np.bool_]
    ignore: NDArray[np.bool_]
    ids: NDArray[np.int64] | None

    def __init__(
        self, classes: Values, *, boxes: Values | None = None, masks: Values | None = None,
        area: Values | None = None, crowd: Values | None = None, ignore: Values | None = None,
        ids: Values | None = None,
    ) -> None:  # fmt: skip
        _take_regions(self, classes, boxes, masks, area)
        n = len(self.classes)
        crowds = np.zeros(n, bool) if crowd is None else _vector(crowd, np.bool_, "crowd", n)
        _take(self, "crowd", crowds)
        _take(self, "ignore", crowds if ignore is None else crowds | _vector(ignore, np.bool_, "ignore", n))
        _take(self, "ids", None if ids is None else _vector(ids, np.int64, "ids", n))


@dataclass(frozen=True, eq=False, init=False)
class Detections:
    """Detections of one image, n of them in file order: `classes` (n,), `scores` (n,), regions as in `Objects`.

    >>> Detections([0], [float("nan")])
    Traceback (most recent call last):
    ...
    ValueError: scores: expected numbers, got NaN at detection 0
    """

    classes: NDArray[np.int64]
    scores: NDArray[np.float64]
    boxes: NDArray[np.float64] | None
    masks: NDArray[np.bool_] | None
    area: NDArray[np.float64] | None

    def __init__(
        self, classes: Values, scores: Values, *, boxes: Values | None = None, masks: Values | None = None,
        area: Values | None = None,
    ) -> None:  # fmt: skip
        _take_regions(self, classes, boxes, masks, area)
        _take(self, "scores", _vector(scores, np.float64, "scores", len(self.classes)))
        odd = np.isnan(self.scores)
        if odd.any():
            raise ValueError(f"scores: expected numbers, got NaN at detection {int(odd.argmax())}")


def areas(shapes: Objects | Detections, iou_type: IouType) -> NDArray[np.float64]:
    """(n,) pixels: as given, else of the masks (`segm`) or the boxes (`bbox`).

    >>> areas(Detections([0], [0.5], masks=[[[True, True, False]]]), "segm")
    array([2.])
    """
    if shapes.area is not None:
        return shapes.area
    if iou_type == "segm" and shapes.masks is not None:
        return np.asarray(shapes.masks.sum((1, 2)), np.float64)
    if iou_type == "bbox" and shapes.boxes is not None:
        return np.asarray(shapes.boxes[:, 2] * shapes.boxes[:, 3])
    if len(shapes.classes) == 0:
        return np.zeros(0)
    wanted = "masks" if iou_type == "segm" else "boxes"
    raise ValueError(f"{type(shapes).__name__} for {iou_type}: expected area or {wanted}, neither came")


def _take(record: object, name: str, value: object) -> None:
    object.__setattr__(record, name, value)


def _take_regions(
    record: object, classes: Values, boxes: Values | None, masks: Values | None, area: Values | None
) -> None:
    vector = _vector(classes, np.int64, "classes", None)
    n = len(vector)
    _take(record, "classes", vector)
    _take(record, "boxes", None if boxes is None else _shaped(boxes, np.float64, "boxes", (n, 4)))
    _take(record, "masks", None if masks is None else _shaped(masks, np.bool_, "masks", (n, None, None)))
    _take(record, "area", None if area is None else _vector(area, np.float64, "area", n))


def _vector(values: Values, dtype: Any, name: str, n: int | None) -> NDArray[Any]:
    return _shaped(values, dtype, name, (n,))


def _shaped(values: Values, dtype: Any, name: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
    array = np.asarray(as_numpy(values), dtype)
    if array.shape == shape:
        return array
    if array.size == 0 and shape[0] in (0, None) and array.ndim != len(shape):
        # An empty list has lost its further axes.
        array = array.reshape(tuple(side or 0 for side in shape))
    if array.ndim != len(shape) or any(e not in (None, s) for e, s in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if side is None else str(side) for side in shape)
        raise ValueError(f"{name}: expected shape ({wanted}), got {array.shape}")
    return array
