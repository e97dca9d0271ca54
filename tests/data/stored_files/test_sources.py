"""Datasets by their name in --data: one at a time, and only with options that are used."""

from pathlib import Path

import pytest

from hardlook.data.stored_files.sources import (
    LABEL_SOURCES,
    MAP_SOURCES,
    find_source,
    read_labelled_samples,
    read_map_samples,
    read_object_samples,
)
from hardlook.errors import OptionError

HERE = Path("x")


def test_one_dataset_at_a_time():
    assert find_source({"voc": HERE}, MAP_SOURCES) is None
    assert find_source({"fiftyone": HERE}, MAP_SOURCES) == "fiftyone"
    assert find_source({"fiftyone": HERE}, LABEL_SOURCES) is None
    with pytest.raises(OptionError, match="--data webdataset has its own images") as caught:
        find_source({"webdataset": HERE, "images": HERE}, MAP_SOURCES)
    assert "leave out --data images" in caught.value.remedy


@pytest.mark.parametrize(
    ("read", "columns"),
    [
        (lambda columns: read_map_samples("hf-dataset", HERE, "val", columns), "label=kind"),
        (lambda columns: read_object_samples("hf-dataset", HERE, None, columns), "mask=kind"),
        (lambda columns: read_labelled_samples("hf-dataset", HERE, columns), "box=xyxy"),
    ],
)
def test_columns_that_would_not_be_used(read, columns):
    with pytest.raises(OptionError, match=f"--columns {columns} would not be used"):
        read(columns)


def test_only_tables_have_columns():
    with pytest.raises(OptionError, match="--data webdataset has no columns"):
        read_map_samples("webdataset", HERE, "val", "image=photo")
