import polars as pl

from hardlook.open_vocabulary.miou.evaluation import merge_vocabularies, sum_pairs


def test_cells_move_with_their_labels_and_no_label_stays_none():
    def records(own, cells):
        names = ["cat", "sky", own]
        return pl.DataFrame({"unit": ["a"], "labels": [3], "names": ["\n".join(names)], "cells": [cells],
                             "pixels": [list(range(1, len(cells) + 1))], "prediction": [b"png"]})  # fmt: skip

    # Of cat: called cat, the model's own word, and no label; of sky: called sky.
    one, other = merge_vocabularies([records("ox", [0, 2, 3, 5]), records("ape", [0, 2, 3, 5])])
    assert one["names"][0] == other["names"][0] == "cat\nsky\nape\nox"
    assert sum_pairs(one).table()[:2].tolist() == [[1, 0, 0, 2, 3], [0, 4, 0, 0, 0]]
    assert sum_pairs(other).table()[:2].tolist() == [[1, 0, 2, 0, 3], [0, 4, 0, 0, 0]]
    assert "prediction" not in one.columns
