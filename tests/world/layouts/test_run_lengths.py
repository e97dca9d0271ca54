from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pycocotools import mask as pycocotools_mask

from hardlook.world.layouts.run_lengths import compressed

masks = arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 40)))


@settings(max_examples=150, deadline=None)
@given(mask=masks)
def test_equals_pycocotools(mask: np.ndarray) -> None:
    theirs = pycocotools_mask.encode(np.asfortranarray(mask.astype(np.uint8)))
    assert compressed(mask) == {"size": theirs["size"], "counts": theirs["counts"].decode()}


def test_long_runs() -> None:
    mask = np.zeros((300, 400), bool)
    mask[3:250, 100:390] = True
    theirs = pycocotools_mask.encode(np.asfortranarray(mask.astype(np.uint8)))
    assert compressed(mask)["counts"] == theirs["counts"].decode()
