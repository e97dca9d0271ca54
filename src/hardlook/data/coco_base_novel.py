"""COCO's usual split for open-vocabulary detection: 48 base classes, 17 novel ones, 15 of the 80 in neither.

>>> len(BASE), len(NOVEL), set(BASE) & set(NOVEL)
(48, 17, set())
"""

from __future__ import annotations

BASE = (
    "person", "bicycle", "car", "motorcycle", "train", "truck", "boat", "bench", "bird", "horse", "sheep", "bear",
    "zebra", "giraffe", "backpack", "handbag", "suitcase", "frisbee", "skis", "kite", "surfboard", "bottle", "fork",
    "spoon", "bowl", "banana", "apple", "sandwich", "orange", "broccoli", "carrot", "pizza", "donut", "chair", "bed",
    "toilet", "tv", "laptop", "mouse", "remote", "microwave", "oven", "toaster", "refrigerator", "book", "clock",
    "vase", "toothbrush",
)  # fmt: skip
NOVEL = (
    "airplane", "bus", "cat", "dog", "cow", "elephant", "umbrella", "tie", "snowboard", "skateboard", "cup", "knife",
    "cake", "couch", "keyboard", "sink", "scissors",
)  # fmt: skip
CLASS_SETS = {"base": BASE, "novel": NOVEL}
