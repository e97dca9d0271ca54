import numpy as np
import pytest

from hardlook.metrics import arrays
from hardlook.metrics.arrays import (
    as_numpy,
    check_similarity,
    checked_similarity,
    divide,
    flat_row,
    integer_array,
    pixel_counts,
    unique_labels,
)


def test_rounding_is_put_on_the_edge_of_the_range():
    matrix = np.array([[1.0000002, -1e-8], [0.3, 0.9999999]], np.float32)
    assert checked_similarity(matrix, 2) == pytest.approx(np.array([[1, 0], [0.3, 1]]))
    assert checked_similarity(matrix, 2).diagonal().tolist() == [1, 1]
    assert checked_similarity(matrix, 2).min() == 0


def test_the_matrix_given_stays_as_it_was():
    matrix = np.eye(2)
    checked_similarity(matrix, 2)[0, 1] = 0.5
    assert matrix[0, 1] == 0


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.eye(3), r"expected shape \(2, 2\), got \(3, 3\)"),
        ([[1, -0.2], [0, 1]], r"similarity\[0, 1\]: expected a number from 0 to 1, got -0.2"),
        ([[1, 0], [np.nan, 1]], r"similarity\[1, 0\]: expected a number from 0 to 1, got nan"),
        ([[1, 0], [0, 0.5]], r"similarity\[1, 1\]: expected 1, a label is like itself, got 0.5"),
        ([[1, 2], [3, 0.5]], r"similarity\[0, 1\]: expected a number from 0 to 1, got 2"),
        ([[0.2, 0], [0, 0.5]], r"similarity\[0, 0\]: expected 1, a label is like itself, got 0.2"),
    ],
)
def test_what_is_wrong_is_named(matrix, words):
    with pytest.raises(ValueError, match=words):
        checked_similarity(matrix, 2)


@pytest.mark.parametrize("rows", [1, 2, 100])
@pytest.mark.parametrize("size", [1, 5, 7])
def test_blocks_of_rows_find_every_wrong_cell(monkeypatch, rows, size):
    monkeypatch.setattr(arrays, "BLOCK_CELLS", rows * size)
    check_similarity(np.eye(size), size, symmetric=True)
    for row, column in np.ndindex(size, size):
        matrix = np.eye(size)
        matrix[row, column] = -1
        with pytest.raises(ValueError, match=rf"similarity\[{row}, {column}\]: expected a number from 0 to 1, got -1"):
            check_similarity(matrix, size)


def test_a_matrix_that_is_not_symmetric_is_named_unless_it_is_meant():
    matrix = np.eye(3)
    matrix[1, 2], matrix[2, 1] = 0.5, 0.25
    words = r"similarity\[1, 2\] is 0.5 and similarity\[2, 1\] is 0.25: expected a symmetric .* asymmetric=True"
    with pytest.raises(ValueError, match=words):
        checked_similarity(matrix, 3, symmetric=True)
    assert checked_similarity(matrix, 3)[2, 1] == 0.25
    matrix[2, 1] = 0.5 + 1e-8
    checked_similarity(matrix, 3, symmetric=True)


def test_bfloat16_keeps_its_values():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([0.1, 0.5, 300.0], dtype=torch.bfloat16, requires_grad=True)
    assert as_numpy(tensor).tolist() == tensor.tolist()
    assert checked_similarity(torch.eye(2, dtype=torch.bfloat16), 2).tolist() == [[1, 0], [0, 1]]


def test_names_that_come_twice_are_an_error():
    assert unique_labels(["a", "b"]) == ("a", "b")
    with pytest.raises(ValueError, match="got 'b' at 1 and 3"):
        unique_labels(["a", "b", "c", "b", "a"])


def test_counts_are_whole_and_not_negative():
    assert pixel_counts(np.array([0, 255], np.uint8), "pixels").tolist() == [0, 255]
    with pytest.raises(ValueError, match=r"pixels\[1\]: expected a count, got -1"):
        pixel_counts([4, -1, -2], "pixels")
    with pytest.raises(ValueError, match="pixels: expected integers, got float64"):
        pixel_counts([1.5], "pixels")


def test_tensors_of_the_host_share_their_memory():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6).reshape(2, 3)
    assert np.shares_memory(as_numpy(tensor), tensor.numpy())
    assert np.shares_memory(as_numpy(tensor.T), tensor.numpy())
    assert as_numpy(torch.ones(2, requires_grad=True)).tolist() == [1, 1]


def test_only_tensors_of_one_device_are_on_it():
    torch = pytest.importorskip("torch")
    there, here = torch.zeros(2, device="meta"), torch.zeros(2)
    assert arrays.is_on_device(there, there)
    assert not arrays.is_on_device(there, here)
    assert not arrays.is_on_device(here, here)
    assert not arrays.is_on_device(there, np.zeros(2))


def test_truth_values_are_counted_as_0_and_1_and_nothing_is_no_number():
    assert integer_array(np.array([True, False]), "prediction").tolist() == [1, 0]
    assert integer_array([], "prediction").dtype == np.int64
    for values in ([0.5], ["a"], [1 + 0j]):
        with pytest.raises(ValueError, match="prediction: expected integers, got"):
            integer_array(values, "prediction")


def test_rows_of_another_byte_order_or_layout_are_one_native_row():
    swapped = np.array([[1, 2], [3, 4]], np.dtype(np.int32).newbyteorder())
    for values, expected in ((swapped, [1, 2, 3, 4]), (swapped.T, [1, 3, 2, 4])):
        row = flat_row(values)
        assert row.tolist() == expected and row.dtype.isnative and not row.flags.writeable
    plain = np.arange(4)
    assert np.shares_memory(flat_row(plain), plain) and plain.flags.writeable


def test_a_ratio_over_nothing_or_less_is_undefined():
    assert np.isnan(divide(np.array([1, 1]), np.array([0, -2]))).all()
    assert divide(np.array([1, 3, 1, 1]), np.array([4, 1, 0.5, 2])).tolist() == [0.25, 3.0, 2.0, 0.5]
