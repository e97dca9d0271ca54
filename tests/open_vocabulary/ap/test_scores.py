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


def test_only_confusions_are_better_when_low_and_no_model_is_ranked_by_what_is_given_back():
    meanings = BENCHMARK.card.scores
    assert {one.name for one in meanings if not one.higher_is_better} == {"confused-objects", "unforgiven-objects"}
    assert [one.name for one in meanings if not one.ranked] == ["open-gain", "said-in"]
    assert [one.name for one in meanings if one.headline] == ["ap", "dagger-ap", "open-ap", "open-gain"]


def test_a_class_counts_the_images_that_show_or_name_it_and_none_where_there_is_nothing_to_find():
    card = BENCHMARK.score(frame(("", [0], [0]), ("", [0, 1], [0]), ("", [1], [2]), ("", [], [0])), OPTIONS)
    assert {name: card.get("ap", **{"class": name}).n for name in ("cat", "dog")} == {"cat": 3, "dog": 2}
    assert {one.n for one in card.scores if one.slice.get("class") == "car"} <= {0}
    # Two classes have an object.
    assert card.get("ap").rests_on["class"] == 2


def notes_of(*images, **options):
    card = BENCHMARK.score(frame(*images), OPTIONS.model_copy(update=options))
    return {one.what: (one.count, one.examples, one in card.noted) for one in (*card.left_out, *card.noted)}


def test_what_enters_no_score_or_only_in_part_is_counted():
    assert notes_of(("", [0, 1, 2], [0, 1, 2])) == {}
    assert notes_of(("", [0, 1], [0]), ("", [], [0])) == {
        "images without objects": (1, ("image-1",), True),
        "classes that no detection names": (1, ("dog",), True),
        "labels without objects": (1, ("car",), False),
    }
    silent = notes_of(("", [0, 1, 2], []), ("", [0], []))
    assert silent["images without detections"] == (2, (), True)
    beyond = notes_of(("", [0, 1, 2], [0, 1, 2]), ("", [0], [0]), max_detections=2)
    assert beyond["detections beyond the best of their image"] == (1, ("image-0",), False)
    beyond = notes_of(("", [0, 1, 2], [0, 1, 2]), ("", [0], [0, 1, 2]), max_detections=1)
    assert beyond["detections beyond the best of their image"] == (4, ("image-0", "image-1"), False)


def test_of_many_units_five_are_named():
    notes = notes_of(("", [0, 1, 2], [0, 1, 2]), *(("", [], [0]) for _ in range(7)))
    assert notes["images without objects"] == (7, tuple(f"image-{number}" for number in range(1, 6)), True)


WORDS = ("cat", "dog", "car", "bus", "horse", "sofa")


def test_the_25_most_costly_confusions_are_listed():
    pairs = [(a, b) for a in range(6) for b in range(6) if a != b]
    card = BENCHMARK.score(frame(*(("", [a], [b]) for a, b in pairs), names="\n".join(WORDS)), OPTIONS)
    alike = compute_run_similarity(frame(*(("", [a], [a]) for a in range(6)), names="\n".join(WORDS)), OPTIONS)
    costs = sorted((1 - alike[a, b] for a, b in pairs), reverse=True)
    assert [one.value for one in card.scores if one.name == "unforgiven-objects"] == pytest.approx(costs[:25])
    assert [one.value for one in card.scores if one.name == "confused-objects"] == [1] * 25


@pytest.mark.parametrize(("added", "word"), [(1, "lower"), (-1, "higher"), (0, "")])
def test_labels_that_are_all_off_by_one_are_told(tmp_path, added, word):
    images = [("", [label], [label + added]) for label in range(1, 5)] * 2
    names = "\n".join(WORDS)
    records = frame(*images, names=names).with_columns(known=6)
    card = BENCHMARK.score(records, OPTIONS.model_copy(update={"gt": tmp_path}))
    told = [one.why for one in card.noted if one.warning]
    assert told == [] if not word else len(told) == 1
    if word:
        assert told[0].startswith(f"the AP is 0.000, and 1.000 with every predicted label one {word}: check the")
    # On the planted world the labels are known.
    assert not [one for one in BENCHMARK.score(records, OPTIONS).noted if one.warning]


def test_each_compared_similarity_has_an_open_ap_of_its_own():
    options = BENCHMARK.options(resamples=0, compare=("wup",))
    card = BENCHMARK.score(frame(("", [0], [1]), ("", [1], [1])), options)
    alone = BENCHMARK.score(frame(("", [0], [1]), ("", [1], [1])), OPTIONS.model_copy(update={"measure": "wup"}))
    found = card.get("open-ap", measure="wup")
    assert found.value == alone.get("open-ap").value != card.get("open-ap").value and found.n == 2


def test_an_image_has_the_precision_of_its_own_ranking():
    judged = BENCHMARK.qualities(frame(("", [0, 1], [0, 2]), ("", [0], [0]), ("", [], [0])), OPTIONS)
    assert judged.columns == ["unit", *(quality.name for quality in BENCHMARK.card.qualities)]
    # Of two objects one is found by its name; a dog that is called car is hardly forgiven.
    assert judged["image-ap50"].to_list()[:2] == [0.5, 1.0]
    assert 0.5 < judged["image-open-ap50"][0] < 0.6 and judged["image-open-ap50"][1] == 1.0
    assert np.isnan(judged["image-ap50"][2]) and np.isnan(judged["image-open-ap50"][2])
    limited = BENCHMARK.qualities(frame(("", [0, 1], [0, 1])), OPTIONS.model_copy(update={"max_detections": 1}))
    assert limited["image-ap50"].to_list() == [0.5]


def test_a_class_of_a_single_image_is_one_that_scores_rest_on():
    card = BENCHMARK.score(frame(("", [0], [0]), ("", [1], [1]), ("", [1], [1])), OPTIONS)
    assert {name: card.get("ap", **{"class": name}).n for name in ("cat", "dog")} == {"cat": 1, "dog": 2}
    assert card.get("ap").rests_on["class"] == card.get("open-ap").rests_on["class"] == 2
