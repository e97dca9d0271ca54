"""Objects and detections of one image as arrays, and how much they overlap.

Fields may come as lists, numpy arrays or torch tensors; torch is never imported. Classes are indices 0..K-1 in the
order of their category ids, because equal scores are ordered by class. A crowd's overlap is the share of the detection
that lies in it, as in COCO.

>>> found = Detections([1, 0], [0.9, 0.5], boxes=[[0, 0, 10, 10], [5, 5, 4, 4]])
>>> compute_areas(found, "bbox").tolist(), len(found.classes)
([100.0, 16.0], 2)
>>> box_overlap(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 2, 2], [0, 0, 9, 9]]), np.array([False, True])).round(3)
array([[0.333, 1.   ]])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.arrays import Values, as_bools, as_numpy, integer_array, is_on_device

IouType = Literal["segm", "bbox"]

_LARGEST_SIDE = 1e100  # pixels: areas of such boxes and their sums are finite
UNMATCHED, IGNORED = -1, -2  # in place of the index of the object that a detection found


@dataclass(frozen=True, eq=False, init=False)
class Objects:
    """Ground truth of one image: n objects.

    `classes` (n,); `boxes` (n, 4) as x, y, width, height; `masks` (n, H, W) bool; `area` (n,) pixels as the dataset
    states them; `crowd` (n,) bool marks regions of many objects; `ignore` (n,) bool marks further objects that
    count neither as found nor as missed; `ids` (n,) annotation ids, which only the reading `released` uses.

    In a federated dataset such as LVIS only some classes of an image are annotated. `negative` lists classes that are
    known to be absent, `not_exhaustive` those that have further objects; both are None where every class is annotated.

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
    negative: NDArray[np.int64] | None
    not_exhaustive: NDArray[np.int64] | None

    def __init__(
        self, classes: Values, *, boxes: Values | None = None, masks: Values | None = None,
        area: Values | None = None, crowd: Values | None = None, ignore: Values | None = None,
        ids: Values | None = None, negative: Values | None = None, not_exhaustive: Values | None = None,
    ) -> None:  # fmt: skip
        _set_regions(self, classes, boxes, masks, area)
        n = len(self.classes)
        crowds = np.zeros(n, bool) if crowd is None else _to_array(crowd, np.bool_, "crowd", (n,))
        ignored = crowds if ignore is None else crowds | _to_array(ignore, np.bool_, "ignore", (n,))
        _set(self, crowd=crowds, ignore=ignored, ids=_whole(ids, "ids", (n,)))
        if negative is None and not_exhaustive is not None:
            raise ValueError("not_exhaustive: expected negative beside it, [] where no class is known to be absent")
        partial = () if not_exhaustive is None and negative is not None else not_exhaustive
        _set(
            self,
            negative=_whole(negative, "negative", (None,)),
            not_exhaustive=_whole(partial, "not_exhaustive", (None,)),
        )

    def without_regions(self, area: NDArray[np.float64]) -> Objects:
        """A copy without boxes and masks, of this `area` (n,)."""
        copy = object.__new__(Objects)
        copy.__dict__.update(
            classes=self.classes.copy(), boxes=None, masks=None, area=area, crowd=self.crowd.copy(),
            ignore=self.ignore.copy(), ids=None if self.ids is None else self.ids.copy(),
            negative=None if self.negative is None else self.negative.copy(),
            not_exhaustive=None if self.not_exhaustive is None else self.not_exhaustive.copy(),
        )  # fmt: skip
        return copy


@dataclass(frozen=True, eq=False, init=False)
class Detections:
    """Detections of one image, n of them in file order: `classes` (n,), `scores` (n,), regions as in `Objects`.

    >>> Detections([0], [float("nan")])
    Traceback (most recent call last):
    ...
    ValueError: scores: expected finite numbers, got nan at detection 0
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
        _set_regions(self, classes, boxes, masks, area)
        _set(self, scores=_to_array(scores, np.float64, "scores", (len(self.classes),)))
        if not np.isfinite(self.scores).all():
            k = int((~np.isfinite(self.scores)).argmax())
            raise ValueError(f"scores: expected finite numbers, got {self.scores[k]:g} at detection {k}")


def compute_areas(shapes: Objects | Detections, iou_type: IouType) -> NDArray[np.float64]:
    """(n,) pixels: as given, else of the masks (`segm`) or the boxes (`bbox`).

    >>> compute_areas(Detections([0], [0.5], masks=[[[True, True, False]]]), "segm")
    array([2.])
    """
    if shapes.area is not None:
        return shapes.area
    if iou_type == "segm" and shapes.masks is not None:
        return count_mask_pixels(shapes.masks)
    if iou_type == "bbox" and shapes.boxes is not None:
        return np.asarray(shapes.boxes[:, 2] * shapes.boxes[:, 3])
    if len(shapes.classes) == 0:
        return np.zeros(0)
    wanted = "masks" if iou_type == "segm" else "boxes"
    raise ValueError(f"{type(shapes).__name__} for {iou_type}: expected area or {wanted}, got neither")


def box_overlap(
    found: NDArray[np.float64], truth: NDArray[np.float64], crowd: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """(D, G) intersection over union of boxes (D, 4) and (G, 4) as x, y, width, height; `crowd` is (G,)."""
    x, y, width, height = found.T[:, :, None]
    truth_x, truth_y, truth_width, truth_height = truth.T
    across = np.minimum(x + width, truth_x + truth_width) - np.maximum(x, truth_x)
    down = np.minimum(y + height, truth_y + truth_height) - np.maximum(y, truth_y)
    common = np.maximum(across, 0) * np.maximum(down, 0)
    return _share(common, width * height, truth_width * truth_height, crowd)


def mask_overlap(found: Any, truth: Any, crowd: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(D, G) intersection over union of bool masks (D, H, W) and (G, H, W), arrays, or tensors on one device.

    Masks on a GPU are compared there, and only counts of pixels are copied.

    >>> left, all_ = np.array([[[True, False]]]), np.array([[[True, True]]])
    >>> mask_overlap(left, all_, np.array([False]))
    array([[0.5]])
    """
    if len(found) == 0 or len(truth) == 0:
        return np.zeros((len(found), len(truth)))
    if found.shape[1:] != truth.shape[1:]:
        sizes = tuple(found.shape[1:]), tuple(truth.shape[1:])
        raise ValueError(f"masks: detections are {sizes[0]}, objects {sizes[1]}; one image has one size")
    if is_on_device(found, truth):
        # Sums of bools are exact in any mode of precision, which products on a GPU are not.
        shared = np.stack([count_mask_pixels(found & mask) for mask in truth], axis=1)
        return _share(shared, count_mask_pixels(found)[:, None], count_mask_pixels(truth), crowd)
    flat_found, flat_truth = found.reshape(len(found), -1), truth.reshape(len(truth), -1)
    # Whole numbers stay exact in float32 below 2**24 pixels, and its products take half the time.
    exact = np.float32 if flat_found.shape[1] < 2**24 else np.float64
    common = np.asarray(np.matmul(flat_found.astype(exact), flat_truth.astype(exact).T), np.float64)
    return _share(common, count_mask_pixels(found)[:, None], count_mask_pixels(truth), crowd)


def count_mask_pixels(masks: Any) -> NDArray[np.float64]:
    """(n,) pixels of bool masks (n, H, W), an array or a tensor, which is counted on its device.

    >>> count_mask_pixels(np.ones((1, 2, 3), bool))
    array([6.])
    """
    return np.asarray(as_numpy(masks.reshape(len(masks), masks.shape[1] * masks.shape[2]).sum(1)), np.float64)


def compute_overlaps(found: Detections, truth: Objects, iou_type: IouType) -> NDArray[np.float64]:
    """(D, G) overlaps of one image's detections and objects, of their boxes or their masks.

    >>> compute_overlaps(Detections([0], [0.5], boxes=[[0, 0, 2, 2]]), Objects([0], boxes=[[0, 0, 2, 4]]), "bbox")
    array([[0.5]])
    """
    if len(found.classes) == 0 or len(truth.classes) == 0:
        return np.zeros((len(found.classes), len(truth.classes)))
    if iou_type == "bbox" and found.boxes is not None and truth.boxes is not None:
        return box_overlap(found.boxes, truth.boxes, truth.crowd)
    if iou_type == "segm" and found.masks is not None and truth.masks is not None:
        return mask_overlap(found.masks, truth.masks, truth.crowd)
    wanted = "boxes" if iou_type == "bbox" else "masks"
    raise ValueError(f"{iou_type}: expected {wanted} of objects and detections, or their overlap; got neither")


def _set(record: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(record, name, value)


def _set_regions(
    record: object, classes: Values, boxes: Values | None, masks: Values | None, area: Values | None
) -> None:
    indices = _whole(classes, "classes", (None,))
    n = len(indices)
    corners, pixels = _to_array(boxes, np.float64, "boxes", (n, 4)), _to_array(area, np.float64, "area", (n,))
    if n and corners is not None and not (np.abs(corners).max() <= _LARGEST_SIDE and corners[:, 2:].min() >= 0):
        k = int((~((corners[:, 2:] >= 0).all(1) & (np.abs(corners) <= _LARGEST_SIDE).all(1))).argmax())
        wanted = f"x, y, width, height, finite (up to {_LARGEST_SIDE:g}) and with sides that are not negative"
        raise ValueError(f"boxes[{k}]: expected {wanted}, got {corners[k].tolist()}")
    if n and pixels is not None and not pixels.min() >= 0:
        k = int((~(pixels >= 0)).argmax())
        raise ValueError(f"area[{k}]: expected pixels, got {pixels[k]:g}")
    masked = _to_array(masks, np.bool_, "masks", (n, None, None))
    _set(record, classes=indices, boxes=corners, masks=masked, area=pixels)


def _whole(values: Values | None, name: str, shape: tuple[int | None, ...]) -> Any:
    """The values as an array of whole numbers of this shape; None for None."""
    return None if values is None else _to_array(integer_array(values, name), np.int64, name, shape)


def _to_array(values: Values | None, dtype: Any, name: str, shape: tuple[int | None, ...]) -> Any:
    """The values as an array of this type and shape, where None stands for any length; None for None."""
    if values is None:
        return None
    given = as_numpy(values)
    if dtype is np.bool_ and (given.dtype.kind not in "iu" or len(shape) == 1):
        # A soft mask would be true wherever it is not exactly 0, and so would the text "0"; masks of 255 are usual.
        given = as_bools(given, name)
    array = np.asarray(given, dtype)
    if array.shape == shape:
        return array
    if array.size == 0 and shape[0] in (0, None) and array.ndim != len(shape):
        # An empty list has lost its further axes.
        array = array.reshape(tuple(side or 0 for side in shape))
    if array.ndim != len(shape) or any(e not in (None, s) for e, s in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if side is None else str(side) for side in shape)
        raise ValueError(f"{name}: expected shape ({wanted}), got {array.shape}")
    return array


def _share(
    common: NDArray[np.float64], found: NDArray[np.float64], truth: NDArray[np.float64], crowd: NDArray[np.bool_]
) -> NDArray[np.float64]:
    union = found + truth - common
    if crowd.any():
        union = np.where(crowd, found, union)
    # Two regions without a pixel have no union; they overlap by nothing.
    union[common == 0] = 1
    return common / union
