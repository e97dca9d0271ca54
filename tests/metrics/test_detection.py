import numpy as np
import pytest

from hardlook.metrics.detection import Detections, Objects


def test_empty_lists_are_no_objects_and_no_detections():
    nothing, none_found = Objects([], boxes=[], masks=[], area=[]), Detections([], [], boxes=[])
    assert (nothing.classes.shape, nothing.boxes.shape, nothing.masks.shape) == ((0,), (0, 4), (0, 0, 0))
    assert (none_found.scores.shape, none_found.boxes.shape) == ((0,), (0, 4))


def test_no_masks_keep_the_size_of_their_image():
    assert Objects([], masks=np.zeros((0, 5, 6), bool)).masks.shape == (0, 5, 6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Objects([0], boxes=[]), r"boxes: expected shape \(1, 4\), got \(0,\)"),
        (lambda: Objects([0, 1], masks=[]), r"masks: expected shape \(2, any, any\), got \(0,\)"),
        (lambda: Objects([], boxes=[0, 0, 2, 2]), r"boxes: expected shape \(0, 4\), got \(4,\)"),
        (lambda: Objects([[0, 1]]), r"classes: expected shape \(any\), got \(1, 2\)"),
        (lambda: Detections([0], []), r"scores: expected shape \(1\), got \(0,\)"),
    ],
)
def test_what_is_missing_or_too_much_is_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()
