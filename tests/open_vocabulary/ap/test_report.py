import json

import numpy as np
import polars as pl
import pytest
from two_vocabularies import spoken_records

from hardlook.data.coco_detection import ImageDetections
from hardlook.harness.registry import find_benchmark
from hardlook.open_vocabulary.ap.evaluation import MAX_KEPT, encode_detections
from hardlook.open_vocabulary.ap.report import draw_box_outline

BENCHMARK = find_benchmark("open-ap")

OPTIONS = BENCHMARK.options(resamples=0, compare=())


@pytest.fixture(scope="module")
def records():
    return spoken_records("open-ap", 12)


@pytest.mark.parametrize(
    ("objects", "labels", "pairs", "caption"),
    [
        ([0], [0], [0], "1 of 1 objects is found by name (IoU .5)."),
        ([0, 0, 1], [1, 1, 0], [0, 4, 8],
         "0 of 3 objects are found by name (IoU .5), 3 by another (most: cat called dog, 2 times)."),
        ([], [1], [], "There is no object to find; 1 is detected."),
        ([0, 1], [], [], "0 of 2 objects are found by name (IoU .5), 2 are missed."),
    ],
)  # fmt: skip
def test_captions_in_words(objects, labels, pairs, caption):
    record = {"names": "cat\ndog", "object_labels": objects, "object_crowd": [0] * len(objects), "labels": labels,
              "scores": [0.9] * len(labels), "pairs": pairs, "overlaps": [0.9] * len(pairs)}  # fmt: skip
    assert BENCHMARK.caption(record) == caption


def test_the_gallery_of_confusions_says_how_alike_the_labels_are(records):
    card = BENCHMARK.score(records, OPTIONS)
    (gallery,) = [block for section in BENCHMARK.report(records, card) for block in section.blocks
                  if type(block).__name__ == "Gallery"]  # fmt: skip
    true, called = gallery.examples[0].caption.split(" (")[0].split(" called ")
    hard, soft = (card.get(f"{kind}-objects", true=true, called=called).value for kind in ("confused", "unforgiven"))
    assert f"(similarity {1 - soft / hard:.2f})" in gallery.examples[0].caption
    own = BENCHMARK.score(records.filter(pl.col("unit") == gallery.examples[0].unit), OPTIONS)
    assert own.get("confused-objects", true=true, called=called).value > 0


def test_pictures_show_the_best_detections():
    scores = np.linspace(0.1, 0.9, MAX_KEPT + 3)
    boxes = np.stack([np.arange(len(scores)), *np.ones((3, len(scores)))], axis=1)
    found = ImageDetections(1, 40, 30, np.zeros(len(scores), int), scores, boxes, ())
    kept = json.loads(encode_detections(found, [5] * len(scores), "bbox"))
    assert kept == [[5, scores[row], boxes[row].tolist()] for row in range(len(scores) - 1, 2, -1)]


@pytest.mark.parametrize("far", [40, 1e12, 1e99])
def test_boxes_far_beyond_the_image_are_drawn_as_far_as_they_are_in_it(far):
    drawn = draw_box_outline([5, -far, 2 * far, 2 * far], 12, 16)
    assert drawn[:, 5:7].all() and drawn.sum() == 2 * 12  # the left side alone is in the image
    assert not draw_box_outline([far, far, far, far], 12, 16).any()
    assert not draw_box_outline([-far, 2, far / 2, 3], 12, 16).any()
