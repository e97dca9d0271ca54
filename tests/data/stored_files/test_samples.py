"""Objects of any source as COCO's json: masks of all formats, categories by number or name, boxes as corners."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from hardlook.data import rle
from hardlook.data.stored_files import FolderFile
from hardlook.data.stored_files.samples import ObjectRows
from hardlook.errors import DataError

FILE = Path("data.parquet")
MASK = np.zeros((4, 6), bool)
MASK[1:3, 2:5] = True


def make_rows(names=("cat", "dog"), **more):
    rows = ObjectRows(FILE, None if names is None else list(names), **more)
    rows.add_image("a", (6, 4), FolderFile(Path("a.png")))
    return rows


def png(mask):
    return {"bytes": cv2.imencode(".png", mask.astype(np.uint8) * 255)[1].tobytes(), "path": None}


@pytest.mark.parametrize(
    "mask",
    [
        rle.encode(MASK),
        {**rle.encode(MASK), "counts": rle.encode(MASK)["counts"].encode()},
        {"size": [4, 6], "counts": [9, 2, 2, 2, 2, 2, 5]},
        [[2, 1, 5, 1, 5, 3, 2, 3]],
        [2, 1, 5, 1, 5, 3, 2, 3],
        png(MASK),
        MASK,
        MASK.astype(int).tolist(),
        (MASK * 255).tolist(),
    ],
    ids=["encoded", "bytes", "runs", "polygons", "one polygon", "png", "array", "rows", "rows of bytes"],
)
def test_masks_in_every_format(mask):
    rows = make_rows()
    rows.add_object(1, segmentation=mask)
    (image,) = rows.build().truth.images
    assert (image.masks()[0] == MASK).all()
    # Box and area come from the mask where they are not given.
    assert image.boxes.tolist() == [[2, 1, 3, 2]] and image.area.tolist() == [6]


def test_the_area_is_that_of_the_mask_where_none_is_given():
    corner = MASK.copy()
    corner[1, 2] = False
    rows = make_rows()
    rows.add_object(1, bbox=[0, 0, 6, 4], segmentation=corner)
    rows.add_object(1, bbox=[0, 0, 6, 4], segmentation=corner, area=4.5)
    rows.add_object(1, bbox=[0, 0, 6, 4])
    assert rows.build().truth.images[0].area.tolist() == [5, 4.5, 24]


@pytest.mark.parametrize("mask", [None, [], {}, {"bytes": None, "path": None}])
def test_no_mask(mask):
    rows = make_rows()
    rows.add_object(0, bbox=[0, 0, 2, 2], segmentation=mask)
    built = rows.build()
    assert built.truth.images[0].segmentations == (None,) and not built.has_masks()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "neither a box nor a mask"),
        ({"bbox": [1, 2, 3]}, "a box of 3 numbers"),
        ({"bbox": "none"}, "could not convert"),
        ({"segmentation": png(MASK[:3])}, "for an image of 6x4 pixels"),
        ({"segmentation": {"size": [4, 6], "counts": "\x00\x01broken"}}, "not a COCO segmentation"),
        ({"segmentation": {"size": [10**9, 10**9], "counts": "1"}}, "megapixels"),
    ],
)
def test_objects_that_cannot_be_read(given, message):
    with pytest.raises(DataError, match=message) as caught:
        make_rows().add_object(0, **given)
    assert (caught.value.file, caught.value.unit) == (str(FILE), "object 1, in the image a")


@pytest.mark.parametrize("box", [[0, 0, -1, 2], [0, 0, float("nan"), 1], [0, 0, float("inf"), 1]])
def test_boxes_are_checked_as_those_of_a_json(box):
    rows = make_rows()
    rows.add_object(0, bbox=box)
    with pytest.raises(DataError, match="boxes that are not x, y, width, height"):
        rows.build()


def test_categories_by_number_or_name():
    rows = make_rows()
    rows.add_object(1, bbox=[0, 0, 1, 1])
    rows.add_object("cat", bbox=[0, 0, 1, 1])
    truth = rows.build().truth
    assert truth.categories == {0: "cat", 1: "dog"} and truth.images[0].category_ids.tolist() == [1, 0]
    named = make_rows(None)
    for name in ("zebra", "ant"):
        named.add_object(name, bbox=[0, 0, 1, 1])
    assert named.build().truth.categories == {1: "ant", 2: "zebra"}
    with pytest.raises(DataError, match="the category 3 has no name"):
        make_rows(None).add_object(3, bbox=[0, 0, 1, 1])
    with pytest.raises(DataError, match="'owl' is none of the dataset's"):
        make_rows().add_object("owl", bbox=[0, 0, 1, 1])
    rows.add_object(7, bbox=[0, 0, 1, 1])
    with pytest.raises(DataError, match="unknown category ids: 7"):
        rows.build()


def test_corners_are_noticed():
    rows = make_rows()
    rows.add_image("wide", (20, 4), FolderFile(Path("wide.png")))
    rows.add_object(0, bbox=[0, 0, 20, 4])
    assert rows.build().truth.images[1].boxes.tolist() == [[0, 0, 20, 4]]
    rows = make_rows()
    rows.add_object(0, bbox=[4, 2, 6, 4])
    with pytest.raises(DataError, match="1 of 1 boxes end outside") as caught:
        rows.build()
    assert "--columns box=xyxy" in caught.value.remedy
    rows = make_rows(box_format="xyxy")
    rows.add_object(0, bbox=[4, 2, 6, 4])
    assert rows.build().truth.images[0].boxes.tolist() == [[4, 2, 2, 2]]


def test_ids_are_kept_where_all_objects_have_one():
    for given, expected in (([30, 20], [30, 20]), ([30, None], [1, 2]), ([30, 30], [1, 2])):
        rows = make_rows()
        for one in given:
            rows.add_object(0, bbox=[0, 0, 1, 1], object_id=one)
        assert rows.build().truth.images[0].ids.tolist() == expected
    rows.add_image("b", (6, 4), FolderFile(Path("b.png")), 1)
    with pytest.raises(DataError, match="two images have one id"):
        rows.build()
    with pytest.raises(DataError, match="no images"):
        ObjectRows(FILE, None).build()
