"""Attributes that make a mask easy or hard: its size, position and connected components, and other objects around it.

The attributes of "What Ails One-Shot Image Segmentation: A Data Perspective" (NeurIPS 2022 D&B), as in its
published table. Box and components are those of the mask at 512 x 512 (nearest neighbour), whatever the image's shape.

The paper describes the box of the class mask, and `area_ratio` and `offset_ratio` take any mask. The published
columns have one value per image, whatever the class: they fit the box of the authors' saliency mask.

>>> import numpy as np
>>> mask = np.zeros((512, 512), bool)
>>> mask[100:229, 100:357] = True
>>> area_ratio(mask), blob_count(mask)
(0.125, 2)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.regions import find_bounding_box

SIDE = 512


def area_ratio(mask: NDArray[np.generic]) -> float:
    """Size: area of the mask's box over the area of the image, both at 512 x 512.

    `mask` has shape (H, W), bool or with nonzero as foreground. The box runs from the first to the last pixel, so
    its sides are (w - 1) and (h - 1) and the result lies in [0, (511/512)**2]; an empty mask has 0.

    >>> area_ratio(np.ones((300, 500), bool)) == (511 / 512) ** 2
    True
    """
    box = find_bounding_box(_resize(mask))
    return (box.width - 1) * (box.height - 1) / SIDE**2 if box else 0.0


def offset_ratio(mask: NDArray[np.generic]) -> float:
    """Centredness: one minus the distance of the box's centre from the image's centre, over half a side.

    `mask` has shape (H, W). The box's centre is cut to whole pixels and the image's centre is (256, 256): the
    published values are all of this form. 1 is the centre and 1 - sqrt(2) a corner; an empty mask has -1.

    >>> corner = np.zeros((512, 512), bool)
    >>> corner[0, 256] = True
    >>> offset_ratio(corner), offset_ratio(np.zeros((4, 4), bool))
    (0.0, -1.0)
    """
    box = find_bounding_box(_resize(mask))
    if box is None:
        return -1.0
    half = SIDE // 2
    x, y = (box.left + box.right - 1) // 2, (box.top + box.bottom - 1) // 2
    return 1 - math.hypot(x - half, y - half) / half


def blob_count(mask: NDArray[np.generic]) -> int:
    """Number of connected components of the mask at 512 x 512, plus one for the background.

    `mask` has shape (H, W). Pixels that touch at a corner are connected. An empty mask has 1, and so
    has a mask that vanishes when it is resized.

    >>> two = np.zeros((512, 512), bool)
    >>> two[0, 0] = two[1, 1] = two[9, 9] = True
    >>> blob_count(two)
    3
    """
    import cv2

    return int(cv2.connectedComponents(_resize(mask).astype(np.uint8), connectivity=8)[0])


def distractor_weight(labels: NDArray[np.integer], label: int, *, void: int | None = 255) -> float:
    """Share of the labelled foreground pixels that belong to other classes than `label`.

    `labels` has shape (H, W): 0 is background, `void` is left out. The image keeps its own size here. The result
    lies in [0, 1]; it is NaN where no pixel has a class.

    >>> distractor_weight(np.array([[0, 7, 7], [255, 9, 7]]), 7)
    0.25
    """
    array = np.asarray(labels)
    classes = array != 0
    if void is not None:
        classes &= array != void
    every = int(np.count_nonzero(classes))
    own = int(np.count_nonzero(classes & (array == label)))
    return (every - own) / every if every else math.nan


def mask_iou(a: NDArray[np.generic], b: NDArray[np.generic]) -> float:
    """Intersection over union of two masks of one shape, from integer counts; NaN where both are empty.

    >>> mask_iou(np.array([[1, 1, 0]]), np.array([[0, 1, 1]])) == 1 / 3
    True
    """
    first, second = np.asarray(a).astype(bool), np.asarray(b).astype(bool)
    if first.shape != second.shape:
        raise ValueError(f"mask_iou: expected masks of one shape, got {first.shape} and {second.shape}")
    union = int(np.count_nonzero(first | second))
    return int(np.count_nonzero(first & second)) / union if union else math.nan


def _resize(mask: NDArray[np.generic]) -> NDArray[np.bool_]:
    import cv2

    array = np.asarray(mask)
    if array.ndim != 2 or not array.size:
        raise ValueError(f"mask: expected shape (H, W) with pixels, got {array.shape}")
    binary = (array != 0).astype(np.uint8)
    return np.asarray(cv2.resize(binary, (SIDE, SIDE), interpolation=cv2.INTER_NEAREST), bool)
