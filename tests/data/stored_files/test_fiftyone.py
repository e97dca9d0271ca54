"""Folders as FiftyOne's documentation describes its exports."""

import json

import numpy as np
import PIL.Image
import pytest

from hardlook.data.stored_files import read_stored_image, read_stored_map
from hardlook.data.stored_files.fiftyone import read_objects, read_samples
from hardlook.errors import DataError

XML = """<annotation>
  <folder>data</folder><filename>{name}.png</filename><path>data/{name}.png</path>
  <source><database></database></source>
  <size><width>10</width><height>8</height><depth>3</depth></size><segmented></segmented>
  {objects}
</annotation>"""
OBJECT = """<object><name>{name}</name><pose></pose><truncated>0</truncated><difficult>0</difficult>
  <bndbox><xmin>{0}</xmin><ymin>{1}</ymin><xmax>{2}</xmax><ymax>{3}</ymax></bndbox></object>"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("a", "b"):
        PIL.Image.new("RGB", (10, 8), 200).save(tmp_path / "data" / f"{name}.png")
    return tmp_path


def write_labels(folder, labels, classes=("cat", "dog")):
    content = {"labels": labels, **({"classes": list(classes)} if classes else {})}
    (folder / "labels.json").write_text(json.dumps(content))


def test_relative_boxes(folder):
    box = {"bounding_box": [0.1, 0.25, 0.5, 0.5], "confidence": 0.9, "attributes": {"iscrowd": 1}}
    write_labels(folder, {"a": [{"label": 1, **box}], "b": None})
    found = read_objects(folder)
    first, second = found.truth.images
    assert found.truth.categories == {0: "cat", 1: "dog"}
    assert first.boxes.tolist() == [[1, 2, 5, 4]] and first.category_ids.tolist() == [1] and first.crowd.all()
    assert len(second.ids) == 0 and read_stored_image(found.files[second.id]).shape == (8, 10, 3)
    write_labels(folder, {"a.png": [{"label": "owl", **box}]}, classes=None)
    assert read_objects(folder).truth.categories == {1: "owl"}


def test_the_export_in_cocos_format(folder):
    content = {
        "images": [{"id": 3, "file_name": "b.png", "width": 10, "height": 8}],
        "categories": [{"id": 18, "name": "dog", "supercategory": None}],
        "annotations": [
            {
                "id": 1, "image_id": 3, "category_id": 18, "bbox": [0, 0, 2, 2], "area": 4, "iscrowd": 0,
                "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]],
            }
        ],
    }  # fmt: skip
    (folder / "labels.json").write_text(json.dumps({"info": {}, "licenses": [], **content}))
    found = read_objects(folder)
    assert found.has_masks() and found.truth.categories == {18: "dog"} and list(found.files) == [3]


def test_the_export_in_vocs_format(folder):
    (folder / "labels").mkdir()
    objects = OBJECT.format(1, 2, 6, 8, name="cat") + OBJECT.format(0, 0, 10, 8, name="dog &amp; bone")
    (folder / "labels" / "a.xml").write_text(XML.format(name="a", objects=objects))
    (folder / "labels" / "b.xml").write_text(XML.format(name="b", objects=""))
    found = read_objects(folder)
    first, second = found.truth.images
    assert first.boxes.tolist() == [[1, 2, 5, 6], [0, 0, 10, 8]] and len(second.ids) == 0
    assert list(found.truth.categories.values()) == ["cat", "dog & bone"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<annotation><object></annotation>",
        XML.format(name="a", objects="<object><name>cat</name></object>"),
        XML.format(name="a", objects=OBJECT.format("x", 2, 6, 8, name="cat")),
        '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]>' + XML.format(name="a", objects=""),
        "<a>" * 100_000,
    ],
)
def test_damaged_xml(folder, text):
    (folder / "labels").mkdir()
    (folder / "labels" / "a.xml").write_text(text)
    with pytest.raises(DataError) as caught:
        read_objects(folder)
    assert caught.value.file


def test_label_maps(folder):
    (folder / "labels").mkdir()
    for number, name in enumerate("ab"):
        PIL.Image.fromarray(np.full((8, 10), number, np.uint8)).save(folder / "labels" / f"{name}.png")
    samples = read_samples(folder)
    assert [sample.id for sample in samples] == ["a", "b"]
    assert (read_stored_map(samples[1].mask) == 1).all()
    (folder / "data" / "b.png").unlink()
    with pytest.raises(DataError, match="1 label maps have no image, such as b"):
        read_samples(folder)


@pytest.mark.parametrize(
    "labels", [[], {"c": []}, {"a": [{"label": 0}]}, {"a": [{"label": 9, "bounding_box": [0, 0, 1, 1]}]}, {"a": 3}]
)
def test_damaged_labels(folder, labels):
    write_labels(folder, labels)
    with pytest.raises(DataError):
        read_objects(folder)


def test_folders_that_are_no_export_say_what_they_hold(tmp_path, folder):
    for read in (read_objects, read_samples):
        with pytest.raises(DataError, match="found data"):
            read(folder)
        with pytest.raises(DataError, match="there is no such folder"):
            read(tmp_path / "nowhere")


def test_two_label_maps_of_one_image_are_both_named(folder):
    (folder / "labels").mkdir()
    for name in ("a.png", "a.tif", "b.png"):
        PIL.Image.new("L", (10, 8), 1).save(folder / "labels" / name)
    with pytest.raises(DataError, match=r"two label maps are called 'a': a\.png and a\.tif") as caught:
        read_samples(folder)
    assert caught.value.file == str(folder / "labels") and caught.value.unit == "a"
    (folder / "labels" / "a.tif").unlink()
    assert [sample.id for sample in read_samples(folder)] == ["a", "b"]
