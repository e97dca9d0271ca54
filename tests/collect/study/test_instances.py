"""Words for objects: a dataset's classes, or a researcher's own."""

import json

import numpy as np
import PIL.Image
import pytest

from hardlook.collect.study.instances import Descriptions, read_descriptions
from hardlook.data.object_instances import list_instances
from hardlook.errors import DataError


@pytest.fixture
def coco(tmp_path):
    """A dog at the left and a fire hydrant at the right."""
    PIL.Image.new("RGB", (8, 4)).save(tmp_path / "7.png")
    squares = {1: [[0, 0, 2, 0, 2, 2, 0, 2]], 2: [[4, 0, 8, 0, 8, 4, 4, 4]]}
    (tmp_path / "mine.json").write_text(
        json.dumps(
            {
                "images": [{"id": 7, "file_name": "7.png", "width": 8, "height": 4}],
                "categories": [{"id": 18, "name": "dog"}, {"id": 3, "name": "fire_hydrant"}],
                "annotations": [
                    {"id": i, "image_id": 7, "category_id": {1: 18, 2: 3}[i], "bbox": [0, 0, 2, 2], "area": 4,
                     "iscrowd": 0, "segmentation": squares[i]}
                    for i in squares
                ],
            }
        )
    )  # fmt: skip
    return {"instances": tmp_path / "mine.json", "images": tmp_path}


def test_cocos_classes(coco):
    describe = Descriptions(coco)
    words = {one.full_stem: describe(one) for one in list_instances(coco).instances}
    assert words == {"7_______1": "dog", "7_______2": "fire hydrant"}


def test_own_words_go_first(coco, tmp_path):
    (tmp_path / "words.csv").write_text('description,full_stem\n"the dog,\n running",7_______1\n', encoding="utf-8-sig")
    describe = Descriptions(coco, tmp_path / "words.csv")
    assert [describe(one) for one in list_instances(coco).instances] == ["the dog, running", "fire hydrant"]
    assert describe.unused == ()


def test_panoptic_classes(tmp_path):
    PIL.Image.new("RGB", (4, 2)).save(tmp_path / "5.jpg")
    ids = np.zeros((2, 4, 3), np.uint8)
    ids[:, :2, 0], ids[:, 2:, 0] = 9, 4
    PIL.Image.fromarray(ids).save(tmp_path / "5.png")
    segments = [
        {"id": 9, "category_id": 1, "area": 4, "bbox": [0, 0, 2, 2], "iscrowd": 0},
        {"id": 4, "category_id": 2, "area": 4, "bbox": [2, 0, 2, 2], "iscrowd": 0},
    ]
    content = {
        "images": [{"id": 5, "file_name": "5.jpg", "width": 4, "height": 2}],
        "annotations": [{"image_id": 5, "file_name": "5.png", "segments_info": segments}],
        "categories": [{"id": 1, "name": "cat", "isthing": 1}, {"id": 2, "name": "sky", "isthing": 0}],
    }
    (tmp_path / "panoptic.json").write_text(json.dumps(content))
    data = {"panoptic": tmp_path / "panoptic.json", "segments": tmp_path, "images": tmp_path}
    describe = Descriptions(data)
    assert [describe(one) for one in list_instances(data).instances] == ["cat"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("full_stem,words\na,b\n", "no column description"),
        ("", "the file is empty"),
        ("full_stem,description\na,\n", "line 2: no name, or no words"),
        ("full_stem,description\na,b\na,c\n", "line 3: a second description"),
        ("full_stem,description\na," + "b" * 301 + "\n", "line 2"),
        ('full_stem,description\na,"b\n', "not a readable csv file"),
        (b"full_stem,description\na,\xff\n", "not a readable csv file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, text, words):
    path = tmp_path / "words.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match=words):
        read_descriptions(path)
