import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.metrics.segment_overlap_kernel import count_overlaps
from hardlook.metrics.segment_overlaps import count_overlaps_plainly, segment_overlaps


@given(st.integers(0, 2**32 - 1), st.integers(0, 9000), st.sampled_from([np.uint8, np.uint16, np.int32, np.int64]))
def test_kernel_and_plain_numpy_equal_a_count_of_each_pair(seed, pixels, dtype):
    rng = np.random.default_rng(seed)
    ids = rng.choice(np.iinfo(dtype).max, 9, replace=False) if dtype != np.uint8 else rng.permutation(256)[:9]
    truth, prediction = (
        np.repeat(rng.choice(ids, pixels), rng.integers(1, rng.integers(2, 60), pixels))[:pixels].astype(dtype)
        for _ in range(2)
    )
    rows, columns = rng.permutation(ids)[:6].astype(np.int64), rng.permutation(ids)[:7].astype(np.int64)
    fast, plain = (count(truth, prediction, rows, columns) for count in (count_overlaps, count_overlaps_plainly))
    for i, one in enumerate(rows):
        for j, other in enumerate(columns):
            assert fast[i, j] == np.count_nonzero((truth == one) & (prediction == other))
    assert (fast == plain).all()
    assert fast.sum() == pixels


def test_ids_that_differ_in_the_last_bits_of_large_numbers_are_told_apart():
    ids = 2**40 + np.arange(64)
    table = segment_overlaps(ids[None], ids[None, ::-1], ids, ids)
    assert (table[1:, 1:] == np.eye(64)[::-1]).all()


def test_tensors_and_types_may_differ():
    torch = pytest.importorskip("torch")
    truth, prediction = torch.tensor([[3, 3, 0]]), np.array([[1, 1, 1]], np.uint8)
    assert segment_overlaps(truth, prediction, np.array([3]), np.array([1])).tolist() == [[0, 1], [0, 2]]


@pytest.mark.parametrize(
    ("truth", "prediction", "true_ids", "predicted_ids", "words"),
    [
        ([[1, 2]], [[1]], [1, 2], [1], r"true map has shape \(1, 2\), predicted map \(1, 1\)"),
        ([[1, 2]], [[1, 1]], [1], [1], "true map holds segment 2, which its table does not list"),
        ([[1, 1]], [[-7, 8]], [1], [], r"predicted map holds segment -7 \(and 1 more\), which its table does not list"),
        ([[1, 1]], [[1, 1]], [1, 5], [1], "table of true segments lists 5, which its map does not hold"),
        ([[1, 1]], [[1, 1]], [1], [1, 4], "table of predicted segments lists 4, which its map does not hold"),
        ([[1, 1]], [[1, 1]], [1, 1], [1], "table of true segments lists id 1 more than once"),
        ([[1, 0]], [[1, 1]], [0, 1], [1], "table of true segments lists id 0, which is void"),
        ([[0.5, 1]], [[1, 1]], [1], [1], "true map: expected integers, got float64"),
    ],
)
def test_what_does_not_fit_is_named(truth, prediction, true_ids, predicted_ids, words):
    with pytest.raises(ValueError, match=words):
        segment_overlaps(truth, prediction, np.array(true_ids, np.int64), np.array(predicted_ids, np.int64))
