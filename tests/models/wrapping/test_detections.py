"""Detections and segments of torchvision's and transformers' outputs, against the same computed by hand with torch."""

import numpy as np
import pytest
from tiny_networks import Detector, picture, resize, to_input

from hardlook.errors import ModelError
from hardlook.models.wrapping.class_names import ClassNames
from hardlook.models.wrapping.detections import fill_boxes, find_boxes, read_detections, read_segments
from hardlook.models.wrapping.outputs import MaskReading, read_label_maps
from hardlook.models.wrapping.preprocessing import Prepared

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

SHAPE = Prepared({}, (24, 60), (12, 20), (12, 20))
NAMES = ClassNames.of(["__background__", "cat", "dog"]).without_background()
THREE = ClassNames.of(["cat", "dog", "sky"])
READING = MaskReading()


def random_tensor(*shape, seed=0, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("as_arrays", [False, True], ids=["tensors", "arrays"])
def test_dictionaries_of_detectors(as_arrays):
    raw = Detector().eval()(to_input(picture(12, 20)))
    raw = [{name: value.detach() for name, value in one.items()} for one in raw]
    [theirs] = raw
    given = [{name: value.numpy() for name, value in theirs.items()}] if as_arrays else raw
    [found] = read_detections(given, [SHAPE], NAMES, READING)
    order = theirs["scores"].argsort(descending=True)
    assert np.array_equal(found.scores, theirs["scores"][order].numpy())
    assert np.array_equal(found.labels, theirs["labels"][order].numpy() - 1), "without the background"
    scaled = theirs["boxes"][order].numpy() * [3, 2, 3, 2]
    assert np.allclose(found.boxes, scaled), "the image is twice as high and three times as wide as the input"
    expected = (resize(theirs["masks"], (24, 60))[order, 0] > 0.5).numpy()
    assert found.masks.dtype == bool
    assert np.mean(found.masks == expected) > 0.999
    assert 0 < expected.mean() < 1


def one_answer(**more):
    boxes = torch.tensor([[-1.0, 2.0, 6.0, 99.0], [3.0, 1.0, 9.0, 7.0]])
    return {"boxes": boxes, "labels": torch.tensor([1, 2]), "scores": torch.tensor([0.3, 0.8]), **more}


def test_boxes_are_clipped_sorted_and_filled_without_masks():
    [found] = read_detections([one_answer()], [SHAPE], NAMES, READING)
    assert found.boxes.tolist() == [[9, 2, 27, 14], [0, 4, 18, 24]]
    assert found.labels.tolist() == [1, 0]
    first = np.zeros((24, 60), bool)
    first[2:14, 9:27] = True
    assert np.array_equal(found.masks[0], first)
    assert np.array_equal(find_boxes(found.masks), found.boxes)


def test_boxes_in_padded_inputs():
    padded = Prepared({}, (24, 60), (32, 32), (12, 20))
    [found] = read_detections([one_answer()], [padded], NAMES, READING)
    assert found.boxes.tolist() == [[9, 2, 27, 14], [0, 4, 18, 24]]


def test_scripted_detectors_and_single_dictionaries():
    expected = read_detections([one_answer()], [SHAPE], NAMES, READING)[0].boxes
    for raw in (({}, [one_answer()]), one_answer(), (one_answer(),)):
        assert np.array_equal(read_detections(raw, [SHAPE], NAMES, READING)[0].boxes, expected)


def test_background_gaps_and_stuff_are_left_out():
    answer = {"boxes": torch.zeros(4, 4), "labels": torch.arange(4), "scores": torch.tensor([0.9, 0.8, 0.7, 0.6])}
    names = ClassNames.of(["__background__", "cat", "N/A", "sky"]).without_background()
    [found] = read_detections([answer], [SHAPE], names, READING)
    assert (found.labels.tolist(), found.scores.tolist()) == ([0, 1], pytest.approx([0.8, 0.6]))
    [counted] = read_detections([answer], [SHAPE], names, READING, things=(True, False))
    assert counted.labels.tolist() == [0]


def test_no_detections():
    nothing = {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0).long(), "scores": torch.zeros(0)}
    for answer in (nothing, {**nothing, "masks": torch.zeros(0, 1, 12, 20)}):
        [found] = read_detections([answer], [SHAPE], NAMES, READING, things=(True, True))
        assert found.masks.shape == (0, 24, 60)
        assert found.boxes.shape == (0, 4)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (torch.zeros(1, 4), "gives torch Tensor"),
        ([{"boxes": torch.zeros(0, 4)}], "a list of 1: dict"),
        ([one_answer(), one_answer()], "a list of 2"),
        ([one_answer(masks=torch.zeros(3, 1, 12, 20))], "'masks': torch Tensor \\(3, 1, 12, 20\\)"),
        ([one_answer(masks=3 * random_tensor(2, 1, 12, 20))], "not probabilities"),
        ([{**one_answer(), "labels": torch.tensor([1, 3])}], "answers class 3"),
        ([one_answer(labels=torch.tensor([1.0, 1.5]))], "'labels': torch Tensor \\(2,\\) of torch.float32"),
        ([one_answer(labels=torch.tensor([1]))], "'labels': torch Tensor \\(1,\\)"),
        ([one_answer(scores=torch.tensor([0.5]))], "'scores': torch Tensor \\(1,\\)"),
        ([one_answer(boxes=torch.zeros(3, 4))], "'boxes': torch Tensor \\(3, 4\\)"),
        ([one_answer(boxes=torch.zeros(4, 2))], "'boxes': torch Tensor \\(4, 2\\)"),
    ],
)
def test_other_outputs_are_named(raw, words):
    with pytest.raises(ModelError, match=words):
        read_detections(raw, [SHAPE], NAMES, READING)


def test_detr_has_one_class_per_query():
    logits, boxes = random_tensor(1, 6, 4, scale=3), random_tensor(1, 6, 4, seed=1).sigmoid() * 0.5
    [found] = read_detections({"logits": logits, "pred_boxes": boxes}, [SHAPE], THREE, READING)
    scores, labels = logits[0].softmax(-1)[:, :-1].max(-1)
    order = scores.argsort(descending=True)
    x, y, width, height = boxes[0][order].unbind(-1)
    corners = torch.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], 1).clamp(0, 1)
    assert np.allclose(found.scores, scores[order].numpy(), atol=1e-6)
    assert np.array_equal(found.labels, labels[order].numpy())
    assert np.allclose(found.boxes, (corners * torch.tensor([60, 24, 60, 24])).numpy(), atol=1e-4)
    assert np.array_equal(found.masks, fill_boxes(found.boxes, (24, 60)))


def test_without_a_class_for_none_every_class_has_its_own_score():
    logits, boxes = random_tensor(1, 60, 3, scale=3), random_tensor(1, 60, 4, seed=1).sigmoid() * 0.5
    [found] = read_detections({"logits": logits, "pred_boxes": boxes}, [SHAPE], THREE, READING)
    scores, kept = logits[0].sigmoid().flatten().topk(100)
    assert np.allclose(found.scores, scores.numpy(), atol=1e-6)
    assert np.array_equal(found.labels, (kept % 3).numpy())
    centres = boxes[0][kept // 3, :2].numpy() * [60, 24]
    inside = (found.boxes.min(axis=1) > 0) & (found.boxes[:, 2] < 60) & (found.boxes[:, 3] < 24)
    assert inside.any()
    assert np.allclose(((found.boxes[:, :2] + found.boxes[:, 2:]) / 2)[inside], centres[inside], atol=1e-4)


def mask_queries():
    classes, masks = random_tensor(1, 5, 4, scale=2), random_tensor(1, 5, 3, 5, seed=1, scale=4)
    masks[0, 3] = -9  # never drawn
    return classes, masks


def test_mask2former_scores_masks_too():
    classes, masks = mask_queries()
    raw = {"class_queries_logits": classes, "masks_queries_logits": masks}
    [found] = read_detections(raw, [SHAPE], THREE, READING)
    scores, kept = classes[0].softmax(-1)[:, :-1].flatten().topk(5)
    soft = resize(masks, (24, 60))[0].sigmoid()[kept // 3]
    hard = soft > 0.5
    certainty = (soft * hard).sum((1, 2)) / (hard.sum((1, 2)) + 1e-6)
    drawn = hard.any(2).any(1)
    total, labels, hard = (scores * certainty)[drawn], (kept % 3)[drawn], hard[drawn]
    order = total.argsort(descending=True)
    assert np.allclose(found.scores, total[order].numpy(), atol=1e-5)
    assert np.array_equal(found.labels, labels[order].numpy())
    assert np.mean(found.masks == hard[order].numpy()) > 0.999
    assert np.array_equal(find_boxes(found.masks), found.boxes)


def test_detr_with_masks():
    classes, masks = mask_queries()
    boxes = random_tensor(1, 5, 4, seed=2).sigmoid()
    raw = {"logits": classes, "pred_boxes": boxes, "pred_masks": masks}
    [found] = read_detections(raw, [SHAPE], THREE, READING)
    scores = classes[0].softmax(-1)[:, :-1].max(-1).values
    hard = resize(masks, (24, 60))[0] > 0
    order = [query for query in scores.argsort(descending=True).tolist() if query != 3]
    assert np.allclose(found.scores, scores[order].numpy(), atol=1e-6)
    assert np.mean(found.masks == hard[order].numpy()) > 0.999


def segment_by_hand(classes, masks, things, threshold=0.5):
    """MaskFormer's panoptic inference, one query after the other."""
    scores, labels = classes[0].softmax(-1).max(-1)
    kept = [query for query in range(len(scores)) if labels[query] != 3 and scores[query] > threshold]
    soft = resize(masks, (24, 60))[0].sigmoid()
    answer, drawn = torch.zeros(24, 60, dtype=torch.int32), {}
    if not kept:
        return answer.numpy(), drawn
    winner = torch.stack([scores[query] * soft[query] for query in kept]).argmax(0)
    for place, query in enumerate(kept):
        own, won, label = soft[query] >= threshold, winner == place, int(labels[query])
        if not (own & won).any() or won.sum() / own.sum() < 0.8:
            continue
        known = [segment for segment, name in drawn.items() if name == label]
        segment = known[0] if known and not things[label] else len(drawn) + 1
        answer[own & won], drawn[segment] = segment, label
    return answer.numpy(), drawn


def test_panoptic_segments_of_queries():
    things, counts = (True, False, False), []
    for seed in range(12):
        classes = random_tensor(1, 8, 4, seed=seed, scale=4)
        # Four upright bands, each claimed by two queries.
        bands = torch.arange(20)[None, None, None] // 5 == torch.arange(8)[None, :, None, None] // 2
        masks = 12.0 * bands - 6 + random_tensor(1, 8, 12, 20, seed=seed + 100, scale=3)
        raw = {"class_queries_logits": classes, "masks_queries_logits": masks}
        [found] = read_segments(raw, [SHAPE], THREE, things, READING)
        expected, labels = segment_by_hand(classes, masks, things)
        assert found.labels == labels
        assert np.mean(found.map == expected) > 0.999
        [same] = read_segments({"logits": classes, "pred_masks": masks}, [SHAPE], THREE, things, READING)
        assert np.array_equal(same.map, found.map)
        counts.append(len(labels))
    assert max(counts) > 2


def test_stuff_of_two_queries_is_one_segment_and_things_are_two():
    classes = torch.full((1, 2, 4), -9.0)
    classes[0, :, 1] = 9
    masks = torch.full((1, 2, 12, 20), -9.0)
    masks[0, 0, :, :10], masks[0, 1, :, 10:] = 9, 9
    raw = {"class_queries_logits": classes, "masks_queries_logits": masks}
    for things, labels in (((True, False, True), {1: 1}), ((True, True, True), {1: 1, 2: 1})):
        [found] = read_segments(raw, [SHAPE], THREE, things, READING)
        assert found.labels == labels
        assert found.map[0, [0, 39]].tolist() == [1, max(labels)]


def test_a_query_that_wins_too_little_of_its_mask_is_no_segment():
    classes = torch.full((1, 2, 4), -9.0)
    classes[0, 0, 0], classes[0, 1, 1] = 9, 2  # the first is surer of its class
    masks = torch.full((1, 2, 12, 20), 9.0)
    masks[0, 0, :, 10:] = -9  # the second loses half of its mask
    [found] = read_segments(
        {"class_queries_logits": classes, "masks_queries_logits": masks}, [SHAPE], THREE, (True,) * 3, READING
    )
    assert found.labels == {1: 0}
    assert found.map[0, [0, 39]].tolist() == [1, 0]


@pytest.mark.parametrize("place", ["class_queries_logits", "masks_queries_logits"])
def test_queries_that_are_no_numbers_are_refused(place):
    sure = {"class_queries_logits": 9 * torch.eye(4)[None, :3], "masks_queries_logits": random_tensor(1, 3, 12, 20)}
    raw = {**sure, place: sure[place] * float("nan")}
    with pytest.raises(ModelError, match="holds NaN"):
        read_detections(raw, [SHAPE], THREE, READING)
    with pytest.raises(ModelError, match="holds NaN"):
        read_segments(raw, [SHAPE], THREE, (True, True, False), READING)
    with pytest.raises(ModelError, match="holds NaN"):
        read_label_maps(raw, [SHAPE], THREE, READING)


def test_a_probability_of_a_half_is_on():
    raw = {"class_queries_logits": 9 * torch.eye(4)[None, :1], "masks_queries_logits": torch.zeros(1, 1, 12, 20)}
    [found] = read_segments(raw, [SHAPE], THREE, (True, True, False), READING)
    assert (found.map == 1).all(), "MaskFormer: mask >= 0.5"


def test_queries_that_are_sure_of_nothing_draw_nothing():
    classes = torch.zeros(1, 4, 4)
    raw = {"class_queries_logits": classes, "masks_queries_logits": torch.ones(1, 4, 3, 5)}
    [found] = read_segments(raw, [SHAPE], THREE, (True, True, True), READING)
    assert (found.map.any(), found.labels) == (False, {})


def test_maps_of_segments_with_their_classes():
    ids = torch.full((12, 20), -1)
    ids[:4], ids[4:8], ids[8:10] = 0, 1, 2
    infos = [{"id": 0, "label_id": 2}, {"id": 1, "label_id": 0}, {"id": 2, "category_id": 2}, {"id": 9, "label_id": 1}]
    [found] = read_segments(
        [{"segmentation": ids, "segments_info": infos}], [SHAPE], THREE, (True, True, False), READING
    )
    assert found.labels == {1: 2, 2: 0}
    assert found.map[:, 0].tolist() == [1] * 8 + [2] * 8 + [1] * 4 + [0] * 4, "stuff is one segment"
    [nothing] = read_segments([{"segmentation": None, "segments_info": []}], [SHAPE], THREE, (True,) * 3, READING)
    assert not nothing.map.any()
    with pytest.raises(ModelError, match="a panoptic segmenter gives"):
        read_segments(torch.zeros(1, 3, 4, 4), [SHAPE], THREE, (True,) * 3, READING)
