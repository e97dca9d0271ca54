import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import DataError, OptionError
from hardlook.similarity.labels import Label, LabelSet
from hardlook.similarity.matrix_files import open_matrix, read_matrix, write_matrix

NAMES = ("dog", "traffic light", "Möwe", "a, b")

LABELS = LabelSet("four", "file", tuple(Label(i, name) for i, name in enumerate(NAMES)))

FORMATS = ["csv", "npy", "parquet"]


def matrix(seed=0, size=4):
    half = np.triu(np.random.default_rng(seed).random((size, size)), 1)
    return half + half.T + np.eye(size)


@pytest.mark.parametrize("suffix", FORMATS)
@given(seed=st.integers(0, 2**32 - 1))
def test_written_and_read_is_the_same_to_the_last_bit(tmp_path_factory, suffix, seed):
    path = tmp_path_factory.mktemp("files") / f"S.{suffix}"
    write_matrix(path, matrix(seed), NAMES)
    read = read_matrix(path)
    assert read.names == NAMES
    assert np.array_equal(read.values, matrix(seed))


@pytest.mark.parametrize("suffix", FORMATS)
def test_rows_follow_the_labels(tmp_path, suffix):
    order = [2, 0, 3, 1]
    write_matrix(tmp_path / f"S.{suffix}", matrix()[np.ix_(order, order)], [NAMES[place] for place in order])
    read = read_matrix(tmp_path / f"S.{suffix}", LABELS)
    assert read.names == NAMES
    assert np.array_equal(read.values, matrix())


def test_names_may_differ_in_case_and_be_aliases(tmp_path):
    labels = LabelSet("two", "file", (Label(7, "tv", ("television set",)), Label(9, "dog")))
    write_matrix(tmp_path / "S.csv", np.array([[1, 0.25], [0.25, 1]]), ["Dog", "Television_Set"])
    assert read_matrix(tmp_path / "S.csv", labels).names == ("tv", "dog")


def test_rows_of_a_csv_may_come_in_another_order_than_its_columns(tmp_path):
    (tmp_path / "S.csv").write_text("\ufeff,a,b,c\nc,.2,.3,1\na,1,.1,.2\nb,.1,1,.3\n", encoding="utf-8")
    assert read_matrix(tmp_path / "S.csv").values.tolist() == [[1, 0.1, 0.2], [0.1, 1, 0.3], [0.2, 0.3, 1]]


def test_an_array_may_come_with_names_or_without(tmp_path):
    np.save(tmp_path / "S.npy", matrix().astype(np.float32))
    assert read_matrix(tmp_path / "S.npy").names is None
    assert read_matrix(tmp_path / "S.npy", LABELS).names == NAMES
    (tmp_path / "S.json").write_text(json.dumps(NAMES[::-1]))
    turned = read_matrix(tmp_path / "S.npy", LABELS).values
    assert turned == pytest.approx(matrix()[::-1, ::-1], abs=1e-6)
    assert np.array_equal(turned, turned.T)


def test_a_label_called_label_is_a_label(tmp_path):
    write_matrix(tmp_path / "S.parquet", np.eye(2), ["label", "x"])
    assert read_matrix(tmp_path / "S.parquet").names == ("label", "x")


def fault(path, labels=None):
    with pytest.raises(DataError) as caught:
        read_matrix(path, labels)
    assert caught.value.file == str(path) and caught.value.remedy
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (",a,b\na,1,.2\nb,.3,1\n", r"symmetric matrix, got 0.2 at row 0 (a), column 1 (b) and 0.3 mirrored"),
        (",a,b\na,1,.2\nb,.2,.9\n", "1 on the diagonal, got 0.9 at row 1 (b), column 1 (b)"),
        (",a,b\na,1,1.2\nb,1.2,1\n", "values in [0, 1], got 1.2 at row 0 (a), column 1 (b)"),
        (",a,b\na,1,nan\nb,nan,1\n", "finite values, got nan at row 0 (a), column 1 (b)"),
        (",a,b\na,1,\nb,.2,1\n", "'' is not a number\n  file"),
        (",a,b\na,1,.2\nb,.2\n", "expected 3 cells as in the header, got 2"),
        (",a,b\na,1,.2\nc,.2,1\n", "rows without a column: c"),
        (",a,a\na,1,.2\na,.2,1\n", "duplicate names: a"),
        ("", "not a readable CSV file"),
    ],
)
def test_faults_name_the_cell(tmp_path, text, expected):
    (tmp_path / "S.csv").write_text(text)
    assert expected in fault(tmp_path / "S.csv")


def test_names_that_do_not_match_are_listed_on_both_sides(tmp_path):
    write_matrix(tmp_path / "S.csv", matrix(size=4), ["dog", "traffic light", "tram", "bus"])
    said = fault(tmp_path / "S.csv", LABELS)
    assert "labels of four that the file lacks: Möwe, a, b" in said
    assert "names that it does not have: bus, tram" in said


def test_other_faults(tmp_path):
    assert "does not exist" in fault(tmp_path / "S.npy")
    np.save(tmp_path / "S.npy", np.eye(3))
    assert "expected 4 rows, one per label, got 3" in fault(tmp_path / "S.npy", LABELS)
    (tmp_path / "T.npy").write_bytes(b"no array")
    assert "not a readable NumPy file" in fault(tmp_path / "T.npy")
    (tmp_path / "T.parquet").write_bytes(b"no table")
    assert "not a readable Parquet file" in fault(tmp_path / "T.parquet")
    pl.DataFrame({"a": [1.0], "b": ["x"]}).write_parquet(tmp_path / "U.parquet")
    assert "not those of a similarity matrix" in fault(tmp_path / "U.parquet")
    with pytest.raises(OptionError, match=r"no format for \.xls"):
        write_matrix(tmp_path / "S.xls", np.eye(1), ["a"])
    with pytest.raises(DataError, match="symmetric"):
        write_matrix(tmp_path / "S.csv", np.array([[1, 0.5], [0.4, 1]]), ["a", "b"])
    assert not (tmp_path / "S.csv").exists()


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_pairs_of_a_file_are_the_cells_of_its_matrix(tmp_path, kind):
    order = [2, 0, 3, 1]
    stored = matrix()[np.ix_(order, order)].astype(kind)
    np.save(tmp_path / "S.npy", stored)
    (tmp_path / "S.txt").write_text("".join(f"{NAMES[place]}\n" for place in order))
    pairs, expected = open_matrix(tmp_path / "S.npy", LABELS), read_matrix(tmp_path / "S.npy", LABELS).values
    true, called = np.indices((4, 4)).reshape(2, -1)
    assert (pairs(true, called).reshape(4, 4) == expected).all()
    some = LabelSet("some", "file", LABELS.labels[1:3])
    with pytest.raises(DataError, match="names that it does not have: a, b, dog"):
        open_matrix(tmp_path / "S.npy", some)
    few = open_matrix(tmp_path / "S.npy", some, more_names=True)
    assert few(np.array([0]), np.array([1])) == expected[1, 2]


def test_rounding_that_differs_between_the_halves_is_evened_out_in_pairs_too(tmp_path):
    uneven = matrix()
    uneven[0, 1] += 4e-7
    np.save(tmp_path / "S.npy", uneven)
    pairs, expected = open_matrix(tmp_path / "S.npy", LABELS), read_matrix(tmp_path / "S.npy", LABELS).values
    both = pairs(np.array([0, 1]), np.array([1, 0]))
    assert both[0] == both[1] == expected[0, 1] == pytest.approx(matrix()[0, 1] + 2e-7, abs=1e-12)


@pytest.mark.parametrize("kind", [bool, np.uint8])
def test_pairs_of_whole_numbers(tmp_path, kind):
    np.save(tmp_path / "S.npy", np.eye(4).astype(kind))
    assert open_matrix(tmp_path / "S.npy", LABELS)(np.array([0, 1]), np.array([0, 2])).tolist() == [1, 0]


@pytest.mark.parametrize("reader", [read_matrix, open_matrix])
def test_halves_that_differ_are_an_error_unless_they_are_meant(tmp_path, reader, monkeypatch):
    monkeypatch.setattr("hardlook.similarity.matrix.TILE", 3)
    uneven = matrix()
    uneven[3, 2] = 0.0
    np.save(tmp_path / "S.npy", uneven)
    with pytest.raises(DataError, match=r"at row 2 \(Möwe\), column 3 \(a, b\) and 0 mirrored") as caught:
        reader(tmp_path / "S.npy", LABELS)
    assert "pass --asymmetric" in caught.value.remedy
    meant = reader(tmp_path / "S.npy", LABELS, asymmetric=True)
    cells = (np.array([2, 3]), np.array([3, 2]))
    found = meant(*cells) if reader is open_matrix else meant.values[cells]
    assert found.tolist() == [uneven[2, 3], 0]
