"""Columns of records that hold labels: reading the labels of a run, and changing their numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl


def read_label_names(records: pl.DataFrame) -> list[str]:
    """The labels of a run, those of the truth first."""
    return str(records["names"][0]).split("\n")


def flatten_column(lists: pl.Series, dtype: type = np.int64) -> NDArray[Any]:
    """The numbers of all lists, one after another.

    >>> import polars as pl
    >>> flatten_column(pl.Series([[0, 1], [], [1]])).tolist()
    [0, 1, 1]
    """
    # An empty list explodes to a null.
    return lists.explode().drop_nulls().to_numpy().astype(dtype)


def relabel_column(lists: pl.Series, change: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> pl.Series:
    """A column of lists of integers with every number changed by `change`, which maps (n,) to (n,).

    >>> import polars as pl
    >>> relabel_column(pl.Series("labels", [[0, 1], [], [1]]), lambda labels: labels + 5).to_list()
    [[5, 6], [], [6]]
    """
    import polars as pl

    rows = np.arange(len(lists))
    numbers = change(flatten_column(lists))
    flat = pl.DataFrame({"row": np.repeat(rows, lists.list.len().to_numpy()), lists.name: numbers})
    filled = pl.DataFrame({"row": rows}).join(
        flat.group_by("row", maintain_order=True).agg(lists.name), on="row", how="left", maintain_order="left"
    )
    empty = pl.lit([], pl.List(pl.Int64))
    return filled.select(pl.coalesce(lists.name, empty).alias(lists.name)).to_series()
