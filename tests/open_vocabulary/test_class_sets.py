from pathlib import Path

import pytest

from hardlook.errors import DataError
from hardlook.open_vocabulary.class_sets import load_class_sets
from hardlook.similarity.label_sets import load_label_set


def test_class_sets_are_masks_over_the_names(tmp_path):
    (tmp_path / "sets.json").write_text('{"base": ["Traffic_Light"], "novel": ["cat"]}')
    masks = load_class_sets(tmp_path / "sets.json", ["cat", "traffic light", "sky"])
    assert {name: mask.tolist() for name, mask in masks.items()} == {
        "base": [False, True, False],
        "novel": [True, False, False],
    }


def test_a_set_is_a_list_of_names(tmp_path):
    (tmp_path / "sets.json").write_bytes(b'\xef\xbb\xbf{"base": "cat"}')
    with pytest.raises(DataError, match="the set 'base' is no list of names"):
        load_class_sets(tmp_path / "sets.json", ["c", "a", "t"])


def test_cocos_base_and_novel_classes_are_disjoint_and_need_its_labels():
    names = load_label_set("coco80").names
    masks = load_class_sets(Path("coco-48-17"), names)
    assert {name: int(mask.sum()) for name, mask in masks.items()} == {"base": 48, "novel": 17}
    assert not (masks["base"] & masks["novel"]).any()
    with pytest.raises(DataError, match="1 classes of the set 'base' are not labels of the run: person"):
        load_class_sets(Path("coco-48-17"), names[1:])
