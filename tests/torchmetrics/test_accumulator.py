"""Records keep their bits; a state that is cut off is an error, and not another value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torchmetrics", reason="needs the extra torchmetrics")
import torch
from training_batches import LABELS, SIMILARITY, THINGS, panoptic_maps

from hardlook.errors import DataError
from hardlook.torchmetrics import OpenPQ
from hardlook.torchmetrics.accumulator import pack, unpack

ARRAYS = {
    "i": st.lists(st.integers(-(2**63), 2**63 - 1)).map(lambda values: np.array(values, np.int64)),
    "f": st.lists(st.floats()).map(lambda values: np.array(values, np.float64)),
    "b": st.lists(st.booleans()).map(lambda values: np.array(values, np.bool_)),
}
RECORDS = st.text("ifb", min_size=1, max_size=4).flatmap(
    lambda types: st.tuples(
        st.just(types), st.lists(st.tuples(*(st.none() | ARRAYS[kind] for kind in types)), max_size=4)
    )
)


@given(RECORDS)
def test_records_come_back_with_every_bit(given_records):
    types, records = given_records
    words = np.concatenate([np.zeros(0, np.int64), *map(pack, records)])
    back = list(unpack(torch.from_numpy(words).numpy(), types))
    assert len(back) == len(records)
    for ours, theirs in zip(back, records, strict=True):
        assert [None if one is None else (one.dtype, one.tobytes()) for one in ours] == [
            None if one is None else (one.dtype, one.tobytes()) for one in theirs
        ]


def test_a_state_that_is_cut_off_is_an_error():
    metric = OpenPQ(LABELS, SIMILARITY, THINGS)
    metric.update(*panoptic_maps(1))
    whole = metric.images[0]
    for length in range(1, len(whole), 5):
        metric.images[0] = whole[:length]
        metric._computed = None
        ends = np.cumsum([0, *(len(pack(record)) for record in unpack(whole.numpy(), "iiiib"))])
        if length in ends:
            continue
        with pytest.raises(DataError, match="the state of a metric is cut off") as error:
            metric.compute()
        assert error.value.remedy
