import csv
import math

import pytest

from hardlook.bias.attribute_file import attribute_frame
from hardlook.errors import DataError

HEADER = "filename,oss_perf,iou,area_ratio,offset_ratio,saliou,blob_count,distractor_weight"


def written(tmp_path, text):
    path = tmp_path / "attributes.csv"
    path.write_text(text)
    return path


def test_our_columns_class_and_image_are_taken_and_gaps_are_nan(tmp_path):
    path = written(tmp_path, f"{HEADER},class,image\n3_x_1,,0.5,.1,.2,.3,2,0,owl,x_1\n")
    (row,) = attribute_frame(path).to_dicts()
    assert (row["class"], row["image"], row["iou"], row["blob_count"]) == ("owl", "x_1", 0.5, 2.0)
    assert math.isnan(row["oss_perf"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("name,iou\na,1\n", "lacks filename"),
        ("filename,size\n1_a,1\n", "no number in any of the columns"),
        ("\0" * 9, "lacks filename"),
        (f"{HEADER}\n1_a,,x,1,1,1,1,1\n", "iou is no number: 'x'"),
        (f"{HEADER}\n21_a,,1,1,1,1,1,1\n", "'21', which is no class"),
        (f"{HEADER}\nowl_a,,1,1,1,1,1,1\n", "'owl', which is no class"),
        (f"{HEADER}\n1_a,,1,1,1,1,1,1\n1_a,,1,1,1,1,1,1\n", "comes twice"),
    ],
)
def test_bad_tables_say_what_and_where(tmp_path, text, said):
    path = written(tmp_path, text)
    with pytest.raises(DataError, match=said) as raised:
        attribute_frame(path)
    assert str(path) in str(raised.value) and raised.value.remedy


def test_a_picture_is_no_table_and_says_what_to_give(tmp_path):
    path = tmp_path / "attributes.csv"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    with pytest.raises(DataError, match="this is no text") as raised:
        attribute_frame(path)
    assert "hardlook attributes" in raised.value.remedy and "polars" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        attribute_frame(tmp_path / "none.csv")


@pytest.mark.real
def test_the_published_file_as_it_is(shared_data):
    path = shared_data / "reference" / "toss" / "data" / "analysis" / "test_stats.csv"
    table = attribute_frame(path)
    with path.open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(table) == len(rows) == 15_052
    assert table["saliou"].to_list() == [float(row["saliou"]) for row in rows]
    assert (table["class"][0], table["image"][0]) == ("car", "2009_003977")
