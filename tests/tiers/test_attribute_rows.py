"""Tables of attributes: they read back, and what cannot be is refused with its line."""

import csv

import pytest

from hardlook.errors import DataError
from hardlook.tiers.attribute_rows import (
    PUBLISHED_COLUMNS,
    AttributeRow,
    append_attributes,
    read_attributes,
    write_attributes,
)


def test_a_table_reads_back_with_the_published_columns_first(tmp_path):
    rows = [
        AttributeRow("1_2007_000032", 0.1 + 0.2, None, 1 / 3, -1.0, 0.0, 7, None, "cat", "2007_000032"),
        AttributeRow("2_a,b", None, 1.0, 0.5, 0.5, 1.0, 2, 0.25, "dog", "a,b"),
    ]
    path = tmp_path / "deep" / "attributes.csv"
    write_attributes(path, rows)
    assert read_attributes(path) == tuple(rows)
    assert tuple(next(csv.reader(path.open()))[:8]) == PUBLISHED_COLUMNS
    third = AttributeRow("3_c", None, None, None, None, None, None, None, "cup", "c")
    append_attributes(path, [third])
    assert read_attributes(path) == (*rows, third)


def test_what_is_no_table_says_so(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_attributes(tmp_path / "none.csv")
    path = tmp_path / "other.csv"
    path.write_text("filename,iou\n1_a,.5\n")
    with pytest.raises(DataError, match="lacks oss_perf"):
        read_attributes(path)
    path.write_text(",".join(PUBLISHED_COLUMNS) + "\n1_a,,.5,x,.1,.1,2,0\n")
    with pytest.raises(DataError, match="area_ratio is no number: 'x'") as caught:
        read_attributes(path)
    assert (caught.value.unit, caught.value.file) == ("line 2", str(path))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\xff", "this is no text"),
        (b"", "empty"),
        (None, "this is a folder"),
    ],
)
def test_what_is_no_text_says_so_with_a_remedy(tmp_path, content, said):
    path = tmp_path / "table.csv"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(DataError, match=said) as caught:
        read_attributes(path)
    assert caught.value.file == str(path) and caught.value.remedy


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("1_a,.1,.5,.5,.1,.1,2,0", "1_a comes twice, first in line 2"),
        ("2_a,.1,1.5,.5,.1,.1,2,0", "iou is 1.5, above 1"),
        ("2_a,.1,.5,.5,.1,-.1,2,0", "saliou is -.1, below 0"),
        ("2_a,.1,.5,.5,.1,.1,2,93", "distractor_weight is 93, above 1"),
        ("2_a,.1,.5,.5,1.1,.1,2,0", "offset_ratio is 1.1, above 1"),
        ("2_a,.1,.5,.5,.1", "5 cells under 8 columns"),
    ],
)
def test_rows_that_cannot_be_are_refused_with_their_line(tmp_path, second, said):
    path = tmp_path / "table.csv"
    path.write_text(",".join(PUBLISHED_COLUMNS) + f"\n1_a,.1,.5,.5,.1,.1,2,0\n{second}\n")
    with pytest.raises(DataError) as caught:
        read_attributes(path)
    assert caught.value.what == said and caught.value.unit == "line 3" and caught.value.remedy


def test_numbers_that_are_not_finite_are_unknown(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(",".join(PUBLISHED_COLUMNS) + "\n1_a,,nan,inf,-.5,NaN,2.0,-inf\n2_a,1,1,1,1,1,1,1")
    first, last = read_attributes(path)
    assert (first.oss_perf, first.iou, first.area_ratio, first.saliou, first.distractor_weight) == (None,) * 5
    assert (first.offset_ratio, first.blob_count) == (-0.5, 2)
    assert last.filename == "2_a"  # without an end to its line: somebody's editor, not a stopped run
    assert [row.filename for row in read_attributes(path, unfinished=True)] == ["1_a"]


@pytest.mark.real
def test_the_published_table_reads_whole(shared_data):
    rows = read_attributes(shared_data / "reference" / "toss" / "data" / "analysis" / "test_stats.csv")
    # The spec counts six degenerate rows: six are negative, and four of them are -1.
    assert len(rows) == 15052 and sum(row.offset_ratio < 0 for row in rows) == 6
    assert sum(row.offset_ratio == -1 for row in rows) == 4
