"""How scores go together over checkpoints, as in the paper's figure 14.

For each dataset the correlation of every pair of scores over checkpoints, then the mean over datasets and its size.
Pearson's stands above the diagonal and Spearman's below it (the figure's labels say the opposite). A score that is the
same for all checkpoints of a dataset has no correlation there, which counts as 0, on the diagonal too.

The printed figure is the size of the mean (`released`): what is positive in one dataset and negative in another
cancels. `ours` is the mean of the sizes.

>>> names, matrix = published_correlations()
>>> first, second = names.index("user-iou1"), names.index("sample-iou1")
>>> round(float(matrix[first, second]), 2), round(float(matrix[second, first]), 2)
(1.0, 0.99)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.published import CHECKPOINTS, DATASETS
from hardlook.stats.correlation import average_ranks, pearson

Numbers = NDArray[np.float64]
Averaging = Literal["released", "ours"]
# By dataset, a mapping of scores by name for each checkpoint.
Rows = Mapping[str, Sequence[Mapping[str, float]]]
_AVERAGES: Mapping[str, Callable[[Numbers], Numbers]] = MappingProxyType(
    {"released": lambda signed: np.abs(signed.mean(0)), "ours": lambda signed: np.abs(signed).mean(0)}
)
_NO_ROWS: Rows = MappingProxyType({})

# The figure's order; its last row, NSR of the groups' first clicks, is in no table.
FIGURE_14 = (
    *("dgr", "dhh", "dsb", "dgr-nof", "dhh-nof", "dsb-nof", "dgr-iou", "dhh-iou", "dsb-iou"),
    *("noc90-base", "noc90", "noc90-std", "nof-base", "nof", "nof-std", "auc-base", "auc", "auc-std", "nsr"),
    *("base-iou1", "user-iou1", "sample-iou1", "user-iou1-std", "sample-iou1-std", "nsr1"),
)


def correlation_matrix(rows: Rows, names: Sequence[str], averaging: Averaging = "released") -> Numbers:
    """Correlations of the named scores over checkpoints, (K, K) in [0, 1], mean over datasets.

    Every checkpoint of a dataset has a finite value of every score; datasets may have different checkpoints.

    >>> here = [{"noc90": 1.0, "dgr": 5.0}, {"noc90": 2.0, "dgr": 9.0}, {"noc90": 4.0, "dgr": 4.0}]
    >>> correlation_matrix({"mine": here}, ("noc90", "dgr")).round(3)
    array([[1.   , 0.371],
           [0.5  , 1.   ]])
    """
    if averaging not in _AVERAGES:
        raise ValueError(f"averaging: expected one of {', '.join(_AVERAGES)}, got {averaging!r}")
    if not rows:
        raise ValueError("rows: expected at least one dataset, got none")
    return _AVERAGES[averaging](np.stack([_of_dataset(name, here, names) for name, here in rows.items()]))


def published_correlations(
    more: Rows = _NO_ROWS, averaging: Averaging = "released", names: Sequence[str] = FIGURE_14
) -> tuple[tuple[str, ...], Numbers]:
    """Names (K,) and correlations (K, K) over the 33 published checkpoints, and `more` of your own beside them.

    `more` holds scores by dataset, under the names of the paper's five; a dataset may be left out.

    >>> own = {"grabcut": [{"noc90": 1.5, "dgr": 40.0}]}
    >>> published_correlations(own, names=("noc90", "dgr"))[1].shape
    (2, 2)
    """
    others = [name for name in more if name not in DATASETS]
    if others:
        raise ValueError(f"more: expected datasets out of {', '.join(DATASETS)}, got {', '.join(others)}")
    rows = {name: (*(one.scores[name] for one in CHECKPOINTS), *more.get(name, ())) for name in DATASETS}
    return tuple(names), correlation_matrix(rows, names, averaging)


def _of_dataset(dataset: str, rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Numbers:
    """Signed correlations within one dataset, 0 where there is none."""
    absent = sorted({name for row in rows for name in names if name not in row})
    if absent:
        raise ValueError(f"{dataset}: expected every checkpoint to have {', '.join(absent)}")
    columns = [[row[name] for row in rows] for name in names]
    ranks = [average_ranks(column) for column in columns]
    matrix = np.zeros((len(names), len(names)))
    for one in range(len(names)):
        for other in range(one, len(names)):
            matrix[other, one] = pearson(ranks[one], ranks[other])
            matrix[one, other] = pearson(columns[one], columns[other])
    return np.nan_to_num(matrix)
