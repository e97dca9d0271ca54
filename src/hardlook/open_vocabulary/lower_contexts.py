"""Why mIoU over all images can lie above that of every context: which classes a context has, and how they weigh."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.rounding import format_fixed
from hardlook.metrics.mean_iou import MeanOver, class_iou, mean_iou

WORTH_NAMING = 0.25
"""A reason is given where it makes at least this share of the mean difference; the largest of the three always does."""


def explain_lower_contexts(
    total: NDArray[np.int64], contexts: NDArray[np.int64], names: Sequence[str], over: MeanOver
) -> str:
    """Why all contexts lie below all images; empty where one does not.

    `total` (3, K) are pixels hit, true and predicted of each class over all images, `contexts` (contexts, 3, K) over
    those of one context. The difference is the sum of three parts, in IoU: a context has other classes, which are
    harder over all images as well; classes are predicted that never occur in it; its own classes are worse in it.

    >>> from functools import partial
    >>> contexts = np.array([[[9, 0, 5], [9, 0, 9], [9, 0, 6]], [[0, 9, 5], [0, 9, 9], [0, 9, 6]]])
    >>> explain = partial(explain_lower_contexts, contexts.sum(0), contexts, ["sky", "sea", "cat"])
    >>> for sentence in explain("gt-only").split(". "): print(sentence)
    All images together have 0.833, more than any context: mIoU is a mean over classes, not over contexts
    A context has 2 of the 3 classes, mostly harder ones: over all images, their mean IoU is 0.750
    An easier one is sky (IoU 1.000), in 1 of 2 contexts.
    """
    whole, inside = float(mean_iou(total, over)), mean_iou(contexts, over)
    if not (inside < whole).any() or (inside >= whole).any():
        return ""
    counts = contexts[~np.isnan(inside)]
    true, overall = counts[:, 1] > 0, _known(class_iou(total))
    counted = true | (counts[:, 2] > 0) if over == "detectron2" else true
    sizes, occurring = counted.sum(1), true.sum(1)
    strange = counted & ~true
    there = np.where(true, _known(class_iou(counts)), 0.0)
    pooled = np.where(true, overall, 0.0)
    parts = (
        (whole - (counted * overall).sum(1) / sizes).mean(),
        ((strange * overall).sum(1) / sizes).mean(),
        ((pooled - there).sum(1) / sizes).mean(),
    )
    gap = sum(parts)
    reasons = [
        f"All images together have {format_fixed(whole, 3)}, more than any context: mIoU is a mean over classes, "
        "not over contexts."
    ]
    if parts[0] >= WORTH_NAMING * gap:
        classes = int((total[1:].sum(0) > 0).sum() if over == "detectron2" else (total[1] > 0).sum())
        reasons.append(
            f"A context has {_span(sizes, 0)} of the {classes} classes, mostly harder ones: over all images, their "
            f"mean IoU is {_span((counted * overall).sum(1) / sizes, 3)}."
        )
        reasons += _name_easy_class(counted, overall, whole, names)
    if parts[1] >= WORTH_NAMING * gap:
        number = _span(strange.sum(1), 0)
        words = "class is predicted that never occurs" if number == "1" else "classes are predicted that never occur"
        reasons.append(f"Per context, {number} {words} there and count{'s' if number == '1' else ''} as 0.")
    if parts[2] >= WORTH_NAMING * gap:
        reasons.append(
            "A class with few pixels in a context counts there as much as any other, and over all images its other "
            f"pixels outweigh them: the classes of a context have a mean IoU of {_span(there.sum(1) / occurring, 3)} "
            f"there and of {_span(pooled.sum(1) / occurring, 3)} over all images."
        )
    return " ".join(reasons)


def _name_easy_class(
    counted: NDArray[np.bool_], overall: NDArray[np.float64], whole: float, names: Sequence[str]
) -> list[str]:
    """The class above the mean that most contexts lack, as a sentence; none where every context has all of them."""
    contexts = counted.sum(0)
    lacking = np.where((overall > whole) & (contexts > 0), (len(counted) - contexts) * (overall - whole), 0.0)
    first = int(lacking.argmax())
    if not lacking[first] > 0:
        return []
    iou, where = format_fixed(overall[first], 3), f"{contexts[first]} of {len(counted)} contexts"
    return [f"An easier one is {names[first]} (IoU {iou}), in {where}."]


def _known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.nan_to_num(values, nan=0.0)


def _span(values: NDArray[np.generic], decimals: int) -> str:
    low, high = (format_fixed(float(value), decimals) for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"
