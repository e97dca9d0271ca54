"""The splits of tier 1 and the levels of tier 2 in words."""

from __future__ import annotations

SPLIT_WORDS = {
    "easy_sal": "easy, salient",
    "easy_nsal": "easy, not salient",
    "hard_sal": "hard, salient",
    "hard_nsal": "hard, not salient",
}
LEVEL_WORDS = {
    "L0": "L0 the query itself",
    "L1": "L1 the query's original, moved",
    "L2": "L2 same class, similar",
    "L3": "L3 same class, dissimilar",
    "L2+L3": "L2+L3 same class",
    "L4": "L4 another class",
    "L5": "L5 no mask",
    "L6": "L6 black image, no mask",
}
