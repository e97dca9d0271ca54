"""The masks to work on: all of a source or those of a list, and what cannot be read."""

import numpy as np
import pytest
from PIL import Image

from hardlook.errors import DataError, OptionError
from hardlook.toss.tiers.attributes import FailedImage
from hardlook.toss.tiers.dataset import (
    describe_failures,
    find_label_indices,
    list_unreadable_images,
    open_source,
    open_tokens,
)
from hardlook.world.layouts import write_world


@pytest.fixture(scope="module")
def devkit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world") / "voc"
    write_world(folder, layout="voc", seed=0, count=6, size=(64, 64), correlation=0.0, image_format="png")
    return folder


@pytest.fixture
def folders(tmp_path):
    """Three images: a cat, one without a class, and one whose mask is cut off."""
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
    for name, value in (("a", 1), ("b", 0), ("c", 1)):
        Image.fromarray(np.zeros((6, 8, 3), np.uint8)).save(tmp_path / "images" / f"{name}.png")
        Image.fromarray(np.full((6, 8), value, np.uint8)).save(tmp_path / "masks" / f"{name}.png")
    broken = tmp_path / "masks" / "c.png"
    broken.write_bytes(broken.read_bytes()[:20])
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    return {"images": tmp_path / "images", "masks": tmp_path / "masks"}, tmp_path / "names.txt"


def test_a_list_of_the_devkit_chooses_images_and_without_one_all_are_taken(devkit):
    listed = set((devkit / "ImageSets" / "Segmentation" / "val.txt").read_text().split())
    assert open_source({"voc": devkit}, None, None)[1] is None
    assert open_source({"voc": devkit}, None, "val")[1] == listed
    whole, part = (open_tokens({"voc": devkit}, None, split) for split in (None, "val"))
    assert whole.tokens == whole.source.tokens() and whole.failures == ()
    assert part.tokens == tuple(token for token in whole.tokens if token.partition("_")[2] in listed)
    assert 0 < len(part.tokens) < len(whole.tokens)


def test_a_list_without_a_devkit_is_refused(folders):
    with pytest.raises(OptionError, match="--split names a list of a VOC devkit") as caught:
        open_source(*folders, "val")
    assert caught.value.remedy


def test_images_that_cannot_be_read_are_listed_and_the_others_are_taken(folders):
    opened = open_tokens(*folders, None)
    assert opened.tokens == ("1_a",)
    assert [failure.image for failure in opened.failures] == ["c"] and opened.failures[0].error
    assert list_unreadable_images(opened.source, {"a", "b"}) == ()
    assert list_unreadable_images(opened.source, {"c"}) == list_unreadable_images(opened.source) == opened.failures


def test_data_without_a_mask_is_refused_with_what_failed(folders):
    paths, labels = folders
    (paths["masks"] / "a.png").unlink()
    with pytest.raises(DataError, match=r"^no image here holds a class; 1 image failed, the first: c: ") as caught:
        open_tokens(paths, labels, None)
    assert caught.value.remedy
    (paths["masks"] / "c.png").unlink()
    with pytest.raises(DataError) as caught:
        open_tokens(paths, labels, None)
    assert caught.value.what == "no image here holds a class"


def test_failures_are_counted_and_the_first_is_named():
    first, second = FailedImage("a", "cut off"), FailedImage("b", "too large")
    assert describe_failures([]) == ""
    assert describe_failures([first]) == "1 image failed, the first: a: cut off"
    assert describe_failures([second, first]) == "2 images failed, the first: b: too large"


def test_of_two_labels_with_one_name_the_first_counts():
    assert find_label_indices(["cat", "dining table"], ["Cat", "dining_table", "cat"]) == {"cat": 0, "dining table": 1}
