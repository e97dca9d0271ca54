"""Columns of records that hold labels: reading and renumbering them; label maps as PNG; a blank image to draw on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import decode_picture
from hardlook.errors import DataError
from hardlook.models.roles import Image, LabelMap

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


_LIGHT_GREY = 238


def encode_label_map(label_map: LabelMap) -> bytes:
    """A label map (labels from -1 to 2**24 - 2) as a PNG of label + 1: 16-bit grey, else in colours."""
    stored = label_map + 1
    if stored.max(initial=0) < 2**16:
        _, encoded = cv2.imencode(".png", stored.astype(np.uint16))
    else:
        _, encoded = cv2.imencode(".png", np.stack([stored >> 8 * k & 255 for k in range(3)], -1).astype(np.uint8))
    return bytes(encoded)


def decode_label_map(png: bytes) -> LabelMap:
    """Back from `encode_label_map`.

    >>> decode_label_map(encode_label_map(np.array([[-1, 0, 300]], np.int32)))
    array([[ -1,   0, 300]], dtype=int32)
    """
    stored = decode_picture(png, cv2.IMREAD_UNCHANGED)
    if stored is None or (stored.ndim != 2 and stored.shape[2] != 3):
        raise DataError("a label map in the records is damaged", remedy="run again")
    numbers = stored.astype(np.int32)
    return (numbers if stored.ndim == 2 else (numbers << np.array([0, 8, 16])).sum(2, dtype=np.int32)) - 1


def blank_image(height: int, width: int) -> Image:
    """A light grey image to draw on, for data without images."""
    return np.full((height, width, 3), _LIGHT_GREY, np.uint8)
