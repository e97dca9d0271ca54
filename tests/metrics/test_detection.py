import numpy as np
import pytest

from hardlook import metrics
from hardlook.metrics import detection
from hardlook.metrics.detection import Detections, Objects, mask_overlap
from hardlook.metrics.panoptic import Segments


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
        (lambda: Objects([0.5]), "classes: expected integers, got float64"),
        (lambda: Detections([1.0], [0.5]), "classes: expected integers, got float64"),
        (lambda: Objects([1], ids=[0.5]), "ids: expected integers, got float64"),
        (lambda: Detections([0, 0], [0.5, np.inf]), "scores: expected finite numbers, got inf at detection 1"),
        (lambda: Detections([0], [-np.inf]), "scores: expected finite numbers, got -inf at detection 0"),
        (lambda: Objects([0, 1], boxes=[[0, 0, 1, 1], [5, 5, -2, 4]]), r"boxes\[1\]: .* got \[5.0, 5.0, -2.0, 4.0\]"),
        (lambda: Objects([0], area=[1], crowd=["0"]), "crowd: expected true or false, got 0"),
        (lambda: Objects([0], area=[1], ignore=[2]), "ignore: expected true or false, got 2"),
        (lambda: Objects([0, 0], boxes=[[0, 0, 1, 1], [0, 0, 1e200, 1e200]]), r"boxes\[1\]: .* \(up to 1e\+100\)"),
        (lambda: Detections([0], [0.5], boxes=[[0, 0, 1, -1]]), r"boxes\[0\]: .* sides that are not negative"),
        (
            lambda: Detections([0], [0.5], boxes=[[np.nan, 0, 1, 1]]),
            r"boxes\[0\]: expected x, y, width, height, finite",
        ),
        (
            lambda: Detections([0], [0.5], boxes=[[np.inf, 0, 1, 1]]),
            r"boxes\[0\]: expected x, y, width, height, finite",
        ),
        (lambda: Objects([0], area=[-3]), r"area\[0\]: expected pixels, got -3"),
        (lambda: Objects([0], area=[np.nan]), r"area\[0\]: expected pixels, got nan"),
        (lambda: Detections([0], [0.5], masks=[[[0.1, 0.7]]]), "masks: expected true or false, got 0.1"),
        (lambda: Detections([0], [0.5], masks=[[[1.0, np.nan]]]), "masks: expected true or false, got nan"),
        (lambda: Objects([0], area=[4], crowd=[0.3]), "crowd: expected true or false, got 0.3"),
    ],
)
def test_what_is_missing_or_too_much_is_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_tensors_of_sixteen_bits_are_taken_as_they_are():
    torch = pytest.importorskip("torch")
    boxes = torch.tensor([[0, 0, 10, 8.5]], dtype=torch.bfloat16)
    found = Detections(torch.tensor([3]), torch.tensor([0.75], dtype=torch.bfloat16), boxes=boxes)
    assert (found.scores.tolist(), found.boxes.tolist()) == ([0.75], [[0, 0, 10, 8.5]])


def test_masks_may_be_numbers_of_any_type():
    mask = np.array([[[0, 1], [1, 1]]])
    for kind in (np.uint8, np.float32, np.float64):
        assert Detections([0], [0.5], masks=mask.astype(kind)).masks.tolist() == (mask > 0).tolist()
    assert Detections([0], [0.5], masks=(255 * mask).astype(np.uint8)).masks.tolist() == (mask > 0).tolist()


def test_they_are_names_of_the_package():
    assert (metrics.Objects, metrics.Detections, metrics.Segments) == (Objects, Detections, Segments)


@pytest.mark.parametrize("found", [1, 4])
def test_masks_that_are_compared_on_a_device_overlap_as_on_the_host(found, monkeypatch):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(found)
    masks = rng.random((found, 9, 11)) < 0.5, rng.random((3, 9, 11)) < 0.5
    masks[1][2] = False
    crowd = np.array([False, True, False])
    expected = detection.mask_overlap(*masks, crowd)
    assert expected[0, 0] == (masks[0][0] & masks[1][0]).sum() / (masks[0][0] | masks[1][0]).sum()
    monkeypatch.setattr(detection, "is_on_device", lambda *arrays: all(hasattr(one, "detach") for one in arrays))
    tensors = [torch.from_numpy(one) for one in masks]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert np.array_equal(detection.mask_overlap(*tensors, crowd), expected)
    with pytest.raises(ValueError, match=r"detections are \(9, 11\), objects \(9, 10\)"):
        detection.mask_overlap(tensors[0], tensors[1][:, :, :10], crowd)


def test_masks_of_another_size_and_classes_that_are_not_exhaustive_alone_are_refused():
    with pytest.raises(ValueError, match=r"masks: detections are \(2, 3\), objects \(3, 2\); one image has one size"):
        mask_overlap(np.ones((1, 2, 3), bool), np.ones((1, 3, 2), bool), np.array([False]))
    with pytest.raises(ValueError, match="not_exhaustive: expected negative beside it"):
        Objects([0], not_exhaustive=[1])
    assert Objects([0], negative=[1]).not_exhaustive.tolist() == []
    assert Objects([0], negative=[], not_exhaustive=[1]).not_exhaustive.tolist() == [1]
    assert Objects([0]).negative is None and Objects([0]).not_exhaustive is None


def test_no_detections_or_no_objects_overlap_with_nothing():
    some, none = np.ones((2, 2, 3), bool), np.ones((0, 2, 3), bool)
    assert mask_overlap(none, some, np.zeros(2, bool)).shape == (0, 2)
    assert mask_overlap(some, none, np.zeros(0, bool)).shape == (2, 0)
