"""Columns named by options, and what is said where none fits."""

from pathlib import Path

import pytest

from hardlook.data.stored_files.columns import choose_column, find_column, parse_columns, read_box_format
from hardlook.errors import DataError, OptionError

FILE = Path("a.parquet")


@pytest.mark.parametrize("text", ["image", "image=", "picture=photo", "box=cxcywh", "=a"])
def test_words_that_mean_nothing(text):
    with pytest.raises(OptionError, match="--columns") as caught:
        parse_columns(text)
    assert "image (the image)" in caught.value.remedy


def test_the_format_of_boxes():
    assert read_box_format(parse_columns("box=xyxy")) == "xyxy"
    assert read_box_format(parse_columns("")) == "xywh"


def test_a_column_is_the_one_named_the_usual_one_or_the_only_one():
    usual = {"photo": "image", "image": "image"}
    assert choose_column("image", usual, ("image",), {}, file=FILE) == "image"
    assert choose_column("image", usual, ("image",), {"image": "photo"}, file=FILE) == "photo"
    assert choose_column("image", {"photo": "image"}, ("image",), {}, file=FILE) == "photo"
    assert find_column("context", {"photo": "text"}, ("context",), {}, file=FILE, only=False) is None


def test_errors_list_the_columns():
    with pytest.raises(DataError, match=r"columns are a \(text\), b \(number\)") as caught:
        choose_column("label", {}, ("label",), {}, file=FILE, present={"a": "text", "b": "number"})
    assert "--columns label=NAME" in caught.value.remedy
    with pytest.raises(DataError, match="no such column"):
        choose_column("label", {"a": "text"}, ("label",), {"label": "c"}, file=FILE)
    with pytest.raises(DataError, match="several columns may be the label of an image: label, class"):
        choose_column("label", {"class": "text", "label": "text"}, ("label", "class"), {}, file=FILE)
