"""The scores of TOSS in words."""

from __future__ import annotations

from hardlook.benchmarks.one_shot_pairs.following import MEANINGS as FOLLOWING
from hardlook.contract.benchmark import ScoreMeaning

# Supports that do not show the class: whoever finds much there does not look at them.
NOTHING_TO_FIND = tuple(("level", level) for level in ("L4", "L5", "L6"))
SCORES = (
    ScoreMeaning(
        "lca",
        "LCA",
        "low-complexity accuracy: mIoU of the four splits of tier 1, weighted towards easy and salient queries",
        headline=True,
    ),
    ScoreMeaning("hca", "HCA", "high-complexity accuracy: the same, weighted towards hard queries", headline=True),
    ScoreMeaning(
        "scs",
        "SCS",
        "support cognizance: high where the support shows the class, and finding nothing where it does not",
        headline=True,
    ),
    ScoreMeaning("gs", "GS", "generalisation: mean IoU over classes unlike any trained on", headline=True),
    ScoreMeaning("salient", "salient", "mIoU of queries whose target is salient"),
    ScoreMeaning("non-salient", "non-salient", "mIoU of queries whose target is not salient"),
    ScoreMeaning(
        "salience-gap", "salience gap", "mIoU of salient minus mIoU of other targets; near 0 is even", directed=False
    ),
    *FOLLOWING,
    ScoreMeaning("rejection", "rejection", "1 - mean IoU under spurious supports (L4 to L6): 1 finds nothing there"),
    ScoreMeaning(
        "miou", "mIoU", "mean over classes, then folds, of summed intersections / summed unions", turned=NOTHING_TO_FIND
    ),
    ScoreMeaning(
        "fb-iou",
        "FB-IoU",
        "mean of the IoU of object and background, the classes of a fold pooled, then over folds",
        turned=NOTHING_TO_FIND,
    ),
    ScoreMeaning(
        "pair-iou", "pair IoU", "mean IoU over single pairs; beside mIoU, never in its place", turned=NOTHING_TO_FIND
    ),
    ScoreMeaning("iou", "IoU", "summed intersections / summed unions of one class", turned=NOTHING_TO_FIND),
)
