import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.metrics import panoptic
from hardlook.metrics.kernels.segment_overlaps import count_overlaps
from hardlook.metrics.panoptic import (
    NO_PARTNER,
    Segments,
    count_overlaps_numpy,
    count_overlaps_on_device,
    join_matches,
    match_segments,
    segment_overlaps,
)


def matched(truth, true_classes, prediction, predicted_classes, crowd=None, **options):
    """Matches of two rows of ids, the classes given in the order of the ids."""
    tables = (
        Segments(np.setdiff1d(truth, 0), true_classes, crowd),
        Segments(np.setdiff1d(prediction, 0), predicted_classes),
    )
    return match_segments(np.array([truth]), tables[0], np.array([prediction]), tables[1], **options)


def rows(matches):
    columns = matches.true, matches.called, matches.intersection, matches.union, matches.excused
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_exactly_one_half_is_no_match():
    assert rows(matched([1, 1, 1, 1], [0], [2, 2, 0, 0], [0])) == [
        (0, NO_PARTNER, 0, 0, False),
        (NO_PARTNER, 0, 0, 0, False),
    ]
    assert rows(matched([1, 1, 1], [0], [2, 2, 0], [0])) == [(0, 0, 2, 3, False)]


def test_other_classes_match_as_well():
    assert rows(matched([1, 1], [3], [1, 1], [5])) == [(3, 5, 2, 2, False)]


def test_void_is_taken_out_of_the_union_and_can_excuse_a_match():
    assert rows(matched([1, 1, 0, 0, 0], [0], [1, 1, 1, 1, 1], [4])) == [(0, 4, 2, 2, True)]


def test_half_on_void_is_not_excused():
    assert rows(matched([1, 1, 0, 0], [0], [0, 2, 2, 0], [0])) == [
        (0, NO_PARTNER, 0, 0, False),
        (NO_PARTNER, 0, 0, 0, False),
    ]


def test_crowds_match_nothing_and_excuse_their_own_class():
    assert rows(matched([1, 1, 1], [0], [2, 2, 2], [0], crowd=[True])) == [(NO_PARTNER, 0, 0, 0, True)]
    assert rows(matched([1, 1, 1], [0], [2, 2, 2], [1], crowd=[True])) == [(NO_PARTNER, 1, 0, 0, False)]


def test_of_several_crowds_the_last_excuses_or_all_do():
    image = [1, 1, 2, 2], [0, 0], [3, 3, 3, 3], [0], [True, True]
    assert rows(matched(*image)) == [(NO_PARTNER, 0, 0, 0, False)]
    assert rows(matched(*image, crowds="all")) == [(NO_PARTNER, 0, 0, 0, True)]


def test_images_without_segments():
    nothing = Segments([], [])
    blank = np.zeros((2, 2), int)
    assert len(match_segments(blank, nothing, blank, nothing)) == 0
    assert rows(match_segments(blank + 1, Segments([1], [2]), blank, nothing)) == [(2, NO_PARTNER, 0, 0, False)]
    assert rows(match_segments(blank, nothing, blank + 1, Segments([1], [2]))) == [(NO_PARTNER, 2, 0, 0, True)]


def test_joined_images_keep_their_order_and_their_number():
    one, none = matched([1, 1], [3], [1, 1], [5]), match_segments([[0]], Segments([], []), [[0]], Segments([], []))
    joined = join_matches([one, none, join_matches([none, one])])
    assert joined.image.tolist() == [0, 3]
    assert joined.images == 4
    assert rows(joined) == 2 * rows(one)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (Segments([1], [2]), "true segments: expected classes from 0 to 1, got 2"),
        (Segments([1], [-1]), "true segments: expected classes from 0 to 1, got -1"),
        (Segments([1], [0, 1]), r"true segments: expected as many .* ids \(1,\), classes \(2,\), crowd \(1,\)"),
        (Segments([1], [0], ["0"]), "true segments, crowd: expected true or false, got 0"),
        (Segments([1], [0], [False, True]), r"got ids \(1,\), classes \(1,\), crowd \(2,\)"),
        (Segments([1], [0.0]), "true segments, classes: expected integers, got float64"),
    ],
)
def test_what_does_not_fit_is_named(table, words):
    with pytest.raises(ValueError, match=words):
        match_segments([[1]], table, [[0]], Segments([], []), classes=2)


@given(st.integers(0, 2**32 - 1), st.integers(0, 9000), st.sampled_from([np.uint8, np.uint16, np.int32, np.int64]))
def test_kernel_and_plain_numpy_equal_a_count_of_each_pair(seed, pixels, dtype):
    rng = np.random.default_rng(seed)
    ids = rng.choice(np.iinfo(dtype).max, 9, replace=False) if dtype != np.uint8 else rng.permutation(256)[:9]
    truth, prediction = (
        np.repeat(rng.choice(ids, pixels), rng.integers(1, rng.integers(2, 60), pixels))[:pixels].astype(dtype)
        for _ in range(2)
    )
    rows, columns = rng.permutation(ids)[:6].astype(np.int64), rng.permutation(ids)[:7].astype(np.int64)
    fast, plain = (count(truth, prediction, rows, columns) for count in (count_overlaps, count_overlaps_numpy))
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
def test_segment_overlaps_what_does_not_fit_is_named(truth, prediction, true_ids, predicted_ids, words):
    with pytest.raises(ValueError, match=words):
        segment_overlaps(truth, prediction, np.array(true_ids, np.int64), np.array(predicted_ids, np.int64))


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_maps_that_are_counted_on_a_device_overlap_as_on_the_host(seed, segments):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    ids = np.append(0, rng.choice(np.arange(-50, 50)[np.arange(-50, 50) != 0], segments, replace=False))
    maps = ids[rng.integers(0, segments + 1, (2, 5, 6))]
    listed = rng.permutation(ids)[: segments + 1], rng.permutation(ids)[:segments]
    counted = count_overlaps_on_device(*(torch.from_numpy(one) for one in maps), *listed)
    assert np.array_equal(counted, count_overlaps_numpy(*maps, *listed))


def test_tensors_on_a_device_have_the_matches_and_errors_of_the_host(monkeypatch):
    torch = pytest.importorskip("torch")
    maps = np.array([[1, 1, 1, 1], [2, 2, 0, 0]]), np.array([[8, 8, 8, 0], [0, 9, 9, 9]])
    tables = Segments([1, 2], [0, 1]), Segments([8, 9], [0, 0])
    expected = rows(match_segments(maps[0], tables[0], maps[1], tables[1]))
    monkeypatch.setattr(panoptic, "is_on_device", lambda *arrays: all(hasattr(one, "detach") for one in arrays))
    true, called = map(torch.from_numpy, maps)
    assert rows(match_segments(true, tables[0], called, tables[1])) == expected
    for given_maps, given_tables, words in (
        ((true, called), (Segments([1], [0]), tables[1]), "true map holds segment 2, which its table does not list"),
        ((true, called), (tables[0], Segments([8, 9, 7], [0, 0, 0])), "lists 7, which its map does not hold"),
        ((true, called[:1]), tables, r"true map has shape \(2, 4\), predicted map \(1, 4\)"),
        ((true.float(), called), tables, "true map: expected integers, got torch.float32"),
    ):
        with pytest.raises(ValueError, match=words):
            match_segments(given_maps[0], given_tables[0], given_maps[1], given_tables[1])
