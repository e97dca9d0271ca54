"""Scores of contexts and the similarity of labels that are used, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from hardlook.errors import DataError
from hardlook.harness.registry import find_benchmark
from hardlook.open_vocabulary.ap.scores import compute_run_similarity

BENCHMARK = find_benchmark("open-ap")

OPTIONS = BENCHMARK.options(resamples=0, compare=())


def frame(*images, names="cat\ndog\ncar"):
    """Records of (context, labels of objects, labels of detections); detection i lies on object i."""
    rows = []
    for number, (context, objects, said) in enumerate(images):
        on = range(min(len(objects), len(said)))
        rows.append({
            "unit": f"image-{number}", "context": context, "image_id": number, "names": names, "known": 3, "zero": -1,
            "object_labels": objects, "object_areas": [400.0] * len(objects), "object_crowd": [0] * len(objects),
            "object_ids": list(range(len(objects))), "labels": said, "scores": [0.9] * len(said),
            "areas": [400.0] * len(said), "pairs": [one * len(objects) + one for one in on],
            "overlaps": [1.0 for _ in on],
        })  # fmt: skip
    return replace(BENCHMARK.schema, columns=BENCHMARK.schema.columns[:-1]).frame(rows)


def test_a_context_is_the_mean_over_the_classes_that_it_has():
    records = frame(("beach", [0], [0]), ("dusk", [0, 1], [0]), ("fog", [1], [0]), ("void", [], [2]))
    card = BENCHMARK.score(records, OPTIONS)
    found = {context: card.get("ap", context=context) for context in ("beach", "dusk", "fog")}
    assert {context: score.value for context, score in found.items()} == pytest.approx(
        {"beach": 1.0, "dusk": 0.5, "fog": 0.0}
    )
    assert {score.n for score in found.values()} == {1}
    # In the fog a dog is called cat: WordNet's path between the two makes them one fifth alike.
    assert card.get("dagger-ap", context="fog").value == 0
    assert card.get("open-ap", context="fog").value == card.get("open-gain", context="fog").value > 0
    assert np.isnan(card.get("ap", context="void").value)


def test_words_that_no_object_and_no_detection_has_need_no_sense():
    names = "cat\ndog\nglorp"
    # Cat and dog are four steps apart in WordNet: 1 / (1 + 4).
    expected = [[1, 0.2, 0], [0.2, 1, 0], [0, 0, 1]]
    for image in (("", [0], [1]), ("", [1], [0])):
        assert compute_run_similarity(frame(image, names=names), OPTIONS) == pytest.approx(np.array(expected))
    for image in (("", [2, 0], [1]), ("", [0, 1], [2])):
        with pytest.raises(DataError, match="glorp"):
            compute_run_similarity(frame(image, names=names), OPTIONS)
