from __future__ import annotations

import numpy as np
import polars as pl

from hardlook.open_vocabulary.record_columns import decode_label_map, encode_label_map, relabel_column


def test_lists_change_number_by_number_and_keep_their_lengths():
    lists = pl.Series("labels", [[], [2, 0], [], [1]], dtype=pl.List(pl.Int64))
    changed = relabel_column(lists, lambda labels: np.array([7, 8, 9])[labels])
    assert changed.to_list() == [[], [9, 7], [], [8]]
    assert (changed.name, changed.dtype) == ("labels", lists.dtype)
    nothing = pl.Series("labels", [[]], dtype=pl.List(pl.Int64))
    assert relabel_column(nothing, lambda labels: labels).to_list() == [[]]


def test_kept_predictions_survive():
    for largest in (65534, 65535, 2**24 - 2):
        maps = np.array([[-1, 0], [149, largest]], np.int32)
        assert (decode_label_map(encode_label_map(maps)) == maps).all()
