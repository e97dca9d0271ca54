"""How much detections and objects overlap: boxes or masks, every pair.

A crowd's overlap is the share of the detection that lies in it, as COCO has it.

>>> import numpy as np
>>> box_overlap(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 2, 2], [0, 0, 9, 9]]), np.array([False, True])).round(3)
array([[0.333, 1.   ]])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.detection_inputs import Detections, IouType, Objects


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


def mask_overlap(found: NDArray[np.bool_], truth: NDArray[np.bool_], crowd: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(D, G) intersection over union of masks (D, H, W) and (G, H, W).

    >>> left, all_ = np.array([[[True, False]]]), np.array([[[True, True]]])
    >>> mask_overlap(left, all_, np.array([False]))
    array([[0.5]])
    """
    if len(found) == 0 or len(truth) == 0:
        return np.zeros((len(found), len(truth)))
    if found.shape[1:] != truth.shape[1:]:
        raise ValueError(f"masks: detections are {found.shape[1:]}, objects {truth.shape[1:]}; one image has one size")
    flat_found, flat_truth = found.reshape(len(found), -1), truth.reshape(len(truth), -1)
    # Whole numbers stay exact in float32 below 2**24 pixels, and its products take half the time.
    exact = np.float32 if flat_found.shape[1] < 2**24 else np.float64
    common = np.asarray(np.matmul(flat_found.astype(exact), flat_truth.astype(exact).T), np.float64)
    found_area, truth_area = (np.asarray(masks.sum(1), np.float64) for masks in (flat_found, flat_truth))
    return _share(common, found_area[:, None], truth_area, crowd)


def overlap_of(found: Detections, truth: Objects, iou_type: IouType) -> NDArray[np.float64]:
    """(D, G) overlaps of one image's detections and objects, of their boxes or their masks.

    >>> overlap_of(Detections([0], [0.5], boxes=[[0, 0, 2, 2]]), Objects([0], boxes=[[0, 0, 2, 4]]), "bbox")
    array([[0.5]])
    """
    if len(found.classes) == 0 or len(truth.classes) == 0:
        return np.zeros((len(found.classes), len(truth.classes)))
    if iou_type == "bbox" and found.boxes is not None and truth.boxes is not None:
        return box_overlap(found.boxes, truth.boxes, truth.crowd)
    if iou_type == "segm" and found.masks is not None and truth.masks is not None:
        return mask_overlap(found.masks, truth.masks, truth.crowd)
    wanted = "boxes" if iou_type == "bbox" else "masks"
    raise ValueError(f"{iou_type}: expected {wanted} of objects and detections, or their overlap; neither came")


def _share(
    common: NDArray[np.float64], found: NDArray[np.float64], truth: NDArray[np.float64], crowd: NDArray[np.bool_]
) -> NDArray[np.float64]:
    union = found + truth - common
    if crowd.any():
        union = np.where(crowd, found, union)
    # Two regions without a pixel have no union; they overlap by nothing.
    union[common == 0] = 1
    return common / union
