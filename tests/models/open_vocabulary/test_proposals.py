"""Masks that models propose: objects, segments, answers to clicks."""

import numpy as np
import pytest

from hardlook.errors import ModelError
from hardlook.models.identity import ModelIdentity
from hardlook.models.named_model import NamedModel
from hardlook.models.open_vocabulary.proposals import build_proposer, drop_repeated, propose
from hardlook.models.roles import Instances, Prompted, Segments

IMAGE = np.zeros((4, 6, 3), np.uint8)


class Objects:
    """Four objects, the second without a pixel, the last of score 0."""

    labels = ("cat", "dog")

    def detect(self, images):
        masks = np.zeros((4, 4, 6), bool)
        masks[0, :2], masks[2, 2:], masks[3] = True, True, True
        scores = np.array([0.9, 0.8, 0.1, 0], np.float32)
        labels = np.array([1, 0, 0, 1], np.int32)
        return [Instances(masks, np.zeros((4, 4), np.float32), scores, labels) for _ in images]


class Parts:
    """The left third is segment 7, the middle 2, the right none; 9 has no pixel."""

    labels, things = ("sky", "cat"), (False, True)

    def segment_panoptic(self, images):
        numbers = np.repeat(np.array([7, 2, 0], np.int32), 2)[None].repeat(4, 0)
        return [Segments(numbers, {7: 1, 2: 0, 9: 1}) for _ in images]


class Clicked:
    """A click takes its half of the image, or nothing in the last row."""

    def open(self, image):
        return self

    def predict(self, prompts):
        _, columns = np.mgrid[:4, :6]
        return [
            Prompted(((columns < 3) == (prompt.points[0, 0] < 2.5)) & (prompt.points[0, 1] < 3)) for prompt in prompts
        ]


def name_model(model, role):
    return NamedModel(model, ModelIdentity("x", role, {}, "source"))


def test_objects_are_proposed_with_their_scores_and_labels():
    [found, again] = propose(name_model(Objects(), "instance-segmenter"), [IMAGE, IMAGE])
    assert found.masks.sum((1, 2)).tolist() == [12, 12, 24]
    assert found.scores.tolist() == pytest.approx([0.9, 0.1, 0]) and found.labels.tolist() == [1, 0, 1]
    assert again.labels.tolist() == [1, 0, 1] and found.select(found.scores > 0).labels.tolist() == [1, 0]


def test_segments_are_proposed_by_number():
    [found] = propose(name_model(Parts(), "panoptic-segmenter"), [IMAGE])
    assert found.labels.tolist() == [0, 1] and found.scores.tolist() == [1, 1]
    assert found.masks[0, :, 2:4].all() and found.masks[1, :, :2].all() and found.masks.sum() == 16


def test_a_promptable_segmenter_is_clicked_on_a_grid():
    [found] = propose(name_model(Clicked(), "promptable-segmenter"), [IMAGE], points=2)
    assert found.masks.sum((1, 2)).tolist() == [12, 12] and found.labels.tolist() == [-1, -1]
    assert found.masks.any(0).all()


def test_an_image_without_proposals_has_none():
    class Nothing:
        labels = things = ()

        def segment_panoptic(self, images):
            return [Segments(np.zeros(image.shape[:2], np.int32), {}) for image in images]

        def detect(self, images):
            empty = [np.zeros(shape, np.float32) for shape in ((0, 4), (0,))]
            return [Instances(np.zeros((0, 4, 6), bool), *empty, np.zeros(0, np.int32)) for _ in images]

    for role in ("panoptic-segmenter", "instance-segmenter"):
        [found] = propose(name_model(Nothing(), role), [IMAGE])
        assert found.masks.shape == (0, 4, 6) and len(found.scores) == len(found.labels) == 0


@pytest.mark.parametrize(
    "name, roles, expected",
    [
        ("fc-clip", ("panoptic-segmenter", "instance-segmenter"), "panoptic-segmenter"),
        ("fc-clip", ("instance-segmenter", "panoptic-segmenter"), "instance-segmenter"),
        ("grabcut", ("panoptic-segmenter", "promptable-segmenter"), "promptable-segmenter"),
        (f"{__name__}:Parts", ("instance-segmenter", "panoptic-segmenter"), "panoptic-segmenter"),
        (f"{__name__}:Objects", ("panoptic-segmenter", "instance-segmenter"), "instance-segmenter"),
    ],
)
def test_the_first_role_counts_that_a_model_has(monkeypatch, name, roles, expected):
    monkeypatch.setattr(
        "hardlook.models.open_vocabulary.proposals.build_inner", lambda name, role, text, device: (role, text)
    )
    assert build_proposer(name, "a=1", roles=roles) == (expected, "a=1")


def test_a_model_that_takes_no_device_may_propose_for_one_on_a_gpu():
    assert build_proposer("planted-panoptic", device="cuda").identity.role == "panoptic-segmenter"


def test_a_model_without_masks_is_refused():
    with pytest.raises(ModelError, match="'deeplabv3-voc' proposes no masks: it is a semantic-segmenter") as caught:
        build_proposer("deeplabv3-voc")
    assert "hardlook models --role panoptic-segmenter" in caught.value.remedy


def test_repeated_masks_are_dropped_by_their_iou():
    rng = np.random.default_rng(0)
    masks = rng.random((12, 6, 6)) < 0.6
    kept = drop_repeated(masks, 0.5)
    for place in range(12):
        ious = [(masks[place] & masks[one]).sum() / (masks[place] | masks[one]).sum() for one in kept if one != place]
        assert (max(ious, default=0) <= 0.5) or place not in kept
        assert place in kept or max(ious) > 0.5
