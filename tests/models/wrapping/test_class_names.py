"""Names of classes: given, from the network, with backgrounds and gaps."""

from types import SimpleNamespace

import numpy as np
import pytest

from hardlook.errors import ModelError, OptionError
from hardlook.models.wrapping.class_names import ClassNames, find_class_names, find_things

COCO = ["__background__", "person", "N/A", "car", "N/A", "dog"]


def test_background_is_a_label_of_maps_and_none_of_detections():
    names = ClassNames.of(COCO)
    assert names.labels == ("background", "person", "car", "dog")
    assert names.to_labels(np.array([[0, 1, 2], [3, 4, 5]])).tolist() == [[0, 1, -1], [2, -1, 3]]
    detected = names.without_background()
    assert detected.labels == ("person", "car", "dog")
    assert detected.to_labels(np.arange(6)).tolist() == [-1, 0, -1, 1, -1, 2]


def test_a_class_that_is_called_background_stays_one():
    assert ClassNames.of(["background", "cat"]).without_background().labels == ("background", "cat")


def test_two_classes_of_one_name_are_one_label():
    names = ClassNames.of(["screen", "door", "screen"])
    assert names.labels == ("screen", "door")
    assert names.to_labels(np.array([2, 1, 0])).tolist() == [0, 1, 0]


def test_what_is_outside_the_classes():
    names = ClassNames.of(["cat", "dog"])
    assert names.to_labels(np.array([-1, 255, 1], np.int64)).tolist() == [-1, -1, 1]
    assert names.to_labels(np.array([255], np.uint8)).tolist() == [-1]
    with pytest.raises(ModelError, match="answers class 2, and `classes` has 2 names"):
        names.to_labels(np.array([0, 2, 255]))
    many = ClassNames.of([f"class {number}" for number in range(300)])
    assert many.to_labels(np.array([255])).tolist() == [255]


def test_names_are_read_from_the_network():
    hub = SimpleNamespace(config=SimpleNamespace(id2label={0: "cat", 2: "dog"}))
    assert find_class_names(hub, None).names == ("cat", "N/A", "dog")
    vision = SimpleNamespace(weights=SimpleNamespace(meta={"categories": ["__background__", "cat"]}))
    assert find_class_names(vision, None).labels == ("background", "cat")
    assert find_class_names(vision, ["a", "b"]).labels == ("a", "b"), "what is given comes first"


@pytest.mark.parametrize(
    ("network", "classes", "words"),
    [
        (None, None, "are not known"),
        (SimpleNamespace(config=SimpleNamespace(id2label={0: "LABEL_0", 1: "LABEL_1"})), None, "are not known"),
        (None, "cat", "is the text 'cat'"),
        (None, [], "not a list of names"),
        (None, [1, 2], "not a list of names"),
    ],
)
def test_an_error_says_how_to_give_them(network, classes, words):
    with pytest.raises(OptionError, match=words) as caught:
        find_class_names(network, classes)
    assert "pass classes=[...]" in str(caught.value)


def test_the_number_of_classes_is_checked():
    with pytest.raises(ModelError, match="has 21 classes, and `classes` has 2 names"):
        ClassNames.of(["cat", "dog"]).check_count(21, "the output")
    ClassNames.of(["cat", "dog"]).check_count(2, "the output")


def test_things_by_name_and_by_flag():
    names = ClassNames.of(["__background__", "sky", "N/A", "cat"]).without_background()
    assert find_things(names, ["cat"]) == find_things(names, [False, False, False, True]) == (False, True)
    assert find_things(names, []) == (False, False)
    for wrong, words in ((None, "not known"), ([True], "1 flags for 4 classes"), (["cow"], "names 'cow'")):
        with pytest.raises(OptionError, match=words):
            find_things(names, wrong)
