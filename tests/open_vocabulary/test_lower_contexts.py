"""Why all contexts can lie below all images: each of the three reasons by a worked example, and none where none is."""

import numpy as np

from hardlook.metrics.mean_iou import mean_iou
from hardlook.open_vocabulary.lower_contexts import explain_lower_contexts

NAMES = ["sky", "sea", "cat"]


def explain(contexts, over="detectron2", total=None):
    contexts = np.array(contexts)
    return explain_lower_contexts(contexts.sum(0) if total is None else total, contexts, NAMES, over)


def test_classes_of_few_contexts():
    """Sky and sea are perfect, each in one context; cat has 5 of 10 pixels of its union in both."""
    contexts = [[[9, 0, 5], [9, 0, 9], [9, 0, 6]], [[0, 9, 5], [0, 9, 9], [0, 9, 6]]]
    assert explain(contexts) == (
        "All images together have 0.833, more than any context: mIoU is a mean over classes, not over contexts. "
        "A context has 2 of the 3 classes, mostly harder ones: over all images, their mean IoU is 0.750. "
        "An easier one is sky (IoU 1.000), in 1 of 2 contexts."
    )


def test_classes_predicted_where_they_never_occur():
    """Two pixels of each context's 100 are called the class that only the other context has."""
    contexts = [[[98, 0, 100], [100, 0, 100], [98, 2, 100]], [[0, 98, 100], [0, 100, 100], [2, 98, 100]]]
    text = explain(contexts)
    assert "Per context, 1 classes are predicted" not in text
    assert "Per context, 1 class is predicted that never occurs there and counts as 0." in text
    assert "harder ones" not in text and "few pixels" not in text
    # With the reading gt-only such a class does not count; the contexts are then no lower.
    assert explain(contexts, "gt-only") == ""


def test_classes_that_are_rare_where_they_are_worse():
    """Both classes are in both contexts: 100 pixels right in one, 2 pixels wrong in the other."""
    contexts = [[[100, 0, 0], [100, 2, 0], [102, 0, 0]], [[0, 100, 0], [2, 100, 0], [0, 102, 0]]]
    text = explain(contexts)
    assert "mean IoU of 0.490 there and of 0.962 over all images" in text
    assert "harder ones" not in text and "predicted" not in text


def test_nothing_is_said_where_a_context_is_not_below():
    assert explain([[[9, 0, 5], [9, 0, 9], [9, 0, 6]], [[9, 0, 0], [9, 0, 0], [9, 0, 0]]]) == ""
    assert explain([[[9, 9, 9]] * 3, [[9, 0, 0]] * 3]) == ""
    assert explain(np.zeros((0, 3, 3), int)) == ""


def test_a_context_without_labelled_pixels_and_images_without_a_context_are_no_hindrance():
    contexts = np.array([[[9, 0, 5], [9, 0, 9], [9, 0, 6]], [[0] * 3] * 3])
    total = contexts.sum(0) + [[0, 90, 0]] * 3
    assert "in 0 of" not in explain(contexts, total=total)
    assert "A context has 2 of the 3 classes" in explain(contexts, total=total)


def test_a_reason_is_given_for_any_counts():
    """The three parts sum to the difference, so that the largest is always worth naming."""
    draw, explained = np.random.default_rng(7), 0
    for _ in range(1000):
        hit, rest = draw.integers(0, 9, (2, 4, 3)) * draw.integers(0, 2, (2, 4, 3))
        contexts = np.stack([hit, hit + rest, hit + np.roll(rest, 1, axis=1)], axis=1)
        for over in ("detectron2", "gt-only"):
            text, inside = explain(contexts, over), mean_iou(contexts, over)
            lower = (inside < mean_iou(contexts.sum(0), over))[~np.isnan(inside)].all() and not np.isnan(inside).all()
            assert bool(text) == bool(lower)
            explained += bool(text)
            assert not text or len(text) > 110
    assert explained > 10
