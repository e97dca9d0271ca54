"""Published TOSS scores of five methods: the leaderboard and, behind it, every fold, split and level.

From "What Ails One-Shot Image Segmentation: A Data Perspective" (NeurIPS 2022 D&B): Table 4 and the supplement's
Tables 2 to 4. Values are fractions of 1, as printed; folds are 0 to 3. The bias studies are in `published_biases`.

How they fit together: LCA and HCA of all folds follow from the splits within rounding. SCS follows from the levels in
the reading `paper` for Baseline, RPMM and RePRI, for PFENet only from its printed means, for HSNet not at all. GS of
Baseline lies .5 above the mean of its folds. Printed means that contradict their folds are kept: L2+L3 of Baseline,
PFENet and RePRI, and L4 of HSNet.

>>> [row.method for row in PUBLISHED][:2], PUBLISHED[0].values["lca"]
(['Baseline', 'PFENet'], 0.5859)
>>> TIER_1["HSNet"]["hard_nsal"].folds
(0.22, 0.27, 0.26, 0.3)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hardlook.contract.published import PublishedResult


@dataclass(frozen=True)
class FoldResult:
    """A printed row: the value of each of the four folds, and the mean that is printed beside them."""

    folds: tuple[float, float, float, float]
    mean: float


Rows = Mapping[str, FoldResult]
METHODS = ("Baseline", "PFENet", "RPMM", "RePRI", "HSNet")
_NOTE = (
    "comparable with a run of all the published pairs of all four folds; the networks are those that the paper trained"
)
# Folds 1 to 4 of the paper, then the printed mean, in hundredths.
_Printed = tuple[float, float, float, float, float]
_TIER_1: dict[str, tuple[_Printed, ...]] = {
    "Baseline": (
        (65, 75, 61, 68, 67),
        (46, 57, 51, 48, 51),
        (49, 64, 49, 55, 54),
        (22, 26, 29, 27, 26),
        (56, 66, 54, 59, 59),
        (34, 41, 39, 39, 38),
    ),
    "PFENet": (
        (71, 78, 56, 70, 69),
        (45, 58, 47, 48, 50),
        (56, 66, 47, 59, 57),
        (23, 25, 24, 29, 25),
        (60, 68, 50, 61, 60),
        (36, 42, 34, 41, 38),
    ),
    "RPMM": (
        (62, 73, 54, 62, 63),
        (40, 54, 45, 41, 45),
        (49, 66, 43, 53, 53),
        (18, 23, 25, 23, 22),
        (52, 64, 48, 53, 54),
        (30, 39, 33, 34, 34),
    ),
    "RePRI": (
        (67, 72, 59, 57, 64),
        (44, 52, 43, 39, 45),
        (48, 58, 45, 39, 48),
        (18, 22, 22, 19, 20),
        (56, 62, 51, 48, 54),
        (32, 37, 33, 29, 33),
    ),
    "HSNet": (
        (66, 74, 63, 69, 68),
        (48, 55, 52, 51, 51),
        (52, 65, 47, 53, 54),
        (22, 27, 26, 30, 26),
        (57, 65, 55, 60, 59),
        (34, 42, 37, 40, 38),
    ),
}
_TIER_2: dict[str, tuple[_Printed, ...]] = {
    "Baseline": (
        (80, 85, 79, 81, 81),
        (67, 79, 74, 73, 73),
        (50, 60, 50, 53, 51),
        (46, 46, 37, 52, 45),
        (17, 23, 16, 19, 19),
        (35, 51, 37, 42, 41),
    ),
    "PFENet": (
        (64, 69, 62, 65, 65),
        (57, 70, 58, 57, 60),
        (54, 60, 46, 55, 51),
        (54, 41, 35, 50, 45),
        (11, 19, 13, 27, 17),
        (28, 30, 33, 41, 33),
    ),
    "RPMM": (
        (51, 64, 45, 54, 54),
        (48, 64, 49, 49, 53),
        (45, 48, 36, 44, 43),
        (45, 43, 31, 46, 41),
        (25, 25, 14, 15, 20),
        (33, 37, 29, 28, 32),
    ),
    "RePRI": (
        (81, 84, 78, 79, 80),
        (68, 75, 70, 66, 70),
        (49, 53, 53, 37, 52),
        (73, 68, 54, 52, 62),
        (0, 0, 0, 0, 0),
        (17, 33, 33, 17, 25),
    ),
    "HSNet": (
        (79, 81, 76, 76, 78),
        (68, 75, 69, 64, 69),
        (52, 59, 51, 52, 53),
        (41, 48, 37, 44, 54),
        (0, 0, 18, 0, 5),
        (8, 21, 18, 14, 15),
    ),
}
_TIER_3: dict[str, _Printed] = {
    "Baseline": (82, 81, 82, 82, 82),
    "PFENet": (84, 83, 84, 84, 84),
    "RPMM": (78, 79, 78, 79, 79),
    "RePRI": (86, 84, 84, 85, 85),
    "HSNet": (88, 88, 87, 87, 88),
}
_TABLE_4 = {
    "Baseline": (58.59, 38.06, 68.82, 82.29),
    "PFENet": (59.75, 38.08, 61.36, 83.68),
    "RPMM": (54.49, 34.20, 54.66, 78.79),
    "RePRI": (54.14, 32.52, 67.81, 84.75),
    "HSNet": (59.10, 38.27, 64.72, 87.47),
}


def fold_result(printed: _Printed) -> FoldResult:
    """Four folds and their printed mean in percent, as fractions of 1.

    >>> fold_result((51.06, 64.35, 55.70, 50.44, 55.39)).mean
    0.5539
    """
    first, second, third, fourth, mean = (round(value / 100, 6) for value in printed)
    return FoldResult((first, second, third, fourth), mean)


def _table(rows: Mapping[str, tuple[_Printed, ...]], names: tuple[str, ...]) -> Mapping[str, Rows]:
    named = {
        method: {name: fold_result(row) for name, row in zip(names, printed, strict=True)}
        for method, printed in rows.items()
    }
    return MappingProxyType({method: MappingProxyType(printed) for method, printed in named.items()})


# Splits, then the scores printed below them.
TIER_1 = _table(_TIER_1, ("easy_sal", "easy_nsal", "hard_sal", "hard_nsal", "lca", "hca"))
TIER_2 = _table(_TIER_2, ("L0", "L1", "L2+L3", "L4", "L5", "L6"))
TIER_3: Rows = MappingProxyType({method: fold_result(row) for method, row in _TIER_3.items()})
PUBLISHED = tuple(
    PublishedResult(
        method,
        "Table 4",
        {
            name: round(value / 100, 6)
            for name, value in zip(("lca", "hca", "scs", "gs"), _TABLE_4[method], strict=True)
        },
        _NOTE,
    )
    for method in METHODS
)
