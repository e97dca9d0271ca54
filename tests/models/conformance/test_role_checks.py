"""The faults that only one role can have: kinds, shapes, types, ranges, attributes and sessions."""

from types import SimpleNamespace

import numpy as np
import pytest
from broken_models import Broken, changed, part, stained

from hardlook.models.conformance import check_model
from hardlook.models.interactive.grabcut import GrabCut
from hardlook.models.planted.disc import Disc
from hardlook.models.planted.few_shot import PlantedLearner
from hardlook.models.planted.segmenters import PlantedSegmenter
from hardlook.models.roles import Features


class Tensor:
    """What a network leaves on its device when nobody fetches it."""

    device = "cuda:0"


def wide(array):
    return np.concatenate([array, array], axis=-1)


ORDINARY = [
    ("saliency", changed(lambda a: Tensor()), "expected a numpy array, got", "on cuda:0"),
    ("saliency", changed(wide), "expected shape (H, W) = (72, 96)", "got (72, 192)"),
    ("saliency", changed(lambda a: a.astype(float)), "expected float32", "got float64"),
    ("saliency", changed(lambda a: a * 255), "expected values in [0, 1]", "at index"),
    ("saliency", changed(stained(np.nan)), "expected finite values", "got nan at index (0, 0)"),
    ("semantic-segmenter", changed(lambda a: a.astype(np.int64)), "expected int32", "got int64"),
    ("semantic-segmenter", changed(wide), "expected shape (H, W)", "(72, 192)"),
    ("semantic-segmenter", changed(stained(22)), "expected values in [-1, 21]", "got 22 at index (0, 0)"),
    ("instance-segmenter", changed(lambda a: None), "expected an answer with `masks`", "NoneType"),
    ("instance-segmenter", part("masks", lambda a: a.astype(np.uint8)), "masks: expected bool", "uint8"),
    ("instance-segmenter", part("masks", lambda a: a[:, ::2]), "masks: expected shape (N, H, W)", "36"),
    ("instance-segmenter", part("boxes", lambda a: a[:, :3]), "boxes: expected shape (N, 4)", "3)"),
    ("instance-segmenter", part("boxes", lambda a: a[:, [2, 3, 0, 1]]), "x0 <= x1", "got ["),
    ("instance-segmenter", part("scores", lambda a: a + 1), "scores: expected values in [0, 1]", "at index"),
    ("instance-segmenter", part("scores", lambda a: a[::-1]), "scores: expected the best first", "before"),
    ("instance-segmenter", part("labels", lambda a: a + 22), "labels: expected values in [0, 21]", "at index"),
    ("panoptic-segmenter", changed(lambda a: a.map), "expected an answer with `map`", "ndarray"),
    ("panoptic-segmenter", part("map", stained(99)), "expected a label for every segment", "segment 99"),
    ("panoptic-segmenter", part("labels", lambda a: [*a.values()]), "expected {segment id: label index}", "list"),
    ("panoptic-segmenter", part("labels", lambda a: a | {50: 70}), "an index from 0 to 21", "got 70 for segment 50"),
    ("panoptic-segmenter", part("labels", lambda a: a | {50: 12, 51: 12}), "at most one segment of the stuff", "'sky'"),
    ("one-shot-segmenter", changed(lambda a: a.astype(np.uint8)), "mask: expected bool", "got uint8"),
    ("one-shot-segmenter", changed(wide), "mask: expected shape (H, W) = (72, 96)", "(72, 192)"),
    ("encoder", changed(lambda a: (a[0], a[1].astype(float))), "map: expected float32", "got float64"),
    ("encoder", changed(lambda a: (a[0], a[1][0])), "map: expected shape (C, h, w)", "(9, 12)"),
    ("encoder", changed(lambda a: (stained(np.inf)(a[0]), a[1])), "vector: expected finite values", "inf"),
    ("encoder", changed(lambda a: (a[0][:5], a[1])), "vectors: expected shape (N, D) = (1, 64)", "(1, 5)"),
    ("image-text-encoder", changed(lambda a: a * 2), "expected length 1", "got 2"),
    ("promptable-segmenter", changed(lambda a: a.mask), "expected an answer with `mask`", "ndarray"),
    ("promptable-segmenter", part("mask", lambda a: a.T), "mask: expected shape (H, W) = (72, 96)", "(96, 72)"),
    ("promptable-segmenter", part("mask", lambda a: a.astype(np.float32)), "mask: expected bool", "float32"),
    ("click-model", changed(lambda a: a.astype(np.float32)), "expected float64", "got float32"),
    ("click-model", changed(lambda a: a - 1), "expected values of at least 0", "got -1"),
    ("click-model", changed(lambda a: a * 0), "some chance of a click", "got 0"),
    ("click-model", changed(wide), "expected shape (H, W)", "(72, 192)"),
]


@pytest.mark.parametrize(("role", "fault", "expected", "came"), ORDINARY)
def test_a_wrong_answer_is_described(role, fault, expected, came):
    messages = {f.check: f.message for f in check_model(Broken(role, fault), role) if not f.passed}
    assert expected in messages["ordinary image"]
    assert came in messages["ordinary image"]


@pytest.mark.parametrize(
    ("role", "check", "fault", "expected"),
    [
        ("text-encoder", "word", changed(lambda a: a * np.float32(np.nan)), "expected finite values"),
        ("text-encoder", "phrase", changed(lambda a: a[:7]), "expected shape (N, D) = (1, 64)"),
        ("few-shot-learner", "episode", changed(lambda a: a[:, :2]), "expected shape (queries, ways) = (4, 3)"),
        ("few-shot-learner", "one query", changed(lambda a: a[0]), "expected shape (queries, ways) = (1, 2)"),
        ("few-shot-learner", "uneven shots", changed(lambda a: a.astype(float)), "expected float32"),
        ("few-shot-learner", "several shots", changed(lambda a: a * np.float32(np.nan)), "expected finite values"),
    ],
)
def test_a_wrong_answer_to_other_probes_is_described(role, check, fault, expected):
    messages = {f.check: f.message for f in check_model(Broken(role, fault), role) if not f.passed}
    assert expected in messages[check]


@pytest.mark.parametrize(
    ("role", "attributes", "expected"),
    [
        ("encoder", {"dimension": 0}, "dimension: expected a whole number above 0, got 0"),
        ("text-encoder", {"dimension": "64"}, "expected a whole number above 0, got '64'"),
        ("semantic-segmenter", {"labels": "cat"}, "labels: expected a sequence of names, got str"),
        ("semantic-segmenter", {"labels": ()}, "labels: expected at least one name"),
        ("instance-segmenter", {"labels": ["cat", "cat", "dog"]}, "expected each name once, got cat"),
        ("panoptic-segmenter", {"things": [True]}, "expected one flag for each of 22 labels, got 1"),
        ("few-shot-learner", {"accepts": "sounds"}, 'expected "images", "features" or "maps", got \'sounds\''),
    ],
)
def test_a_wrong_attribute_is_described(role, attributes, expected):
    model = Broken(role, lambda model, inputs, answers: answers, **attributes)
    messages = {f.check: f.message for f in check_model(model, role) if not f.passed}
    assert expected in messages["attributes"]


def test_a_list_is_wanted():
    class Generating(PlantedSegmenter):
        def segment(self, images):
            return (answer for answer in super().segment(images))

    messages = {f.check: f.message for f in check_model(Generating, "semantic-segmenter")}
    assert "expected a list with one answer for each of 1 images, got generator" in messages["ordinary image"]


def test_features_are_wanted():
    class Bare:
        dimension = 3

        def encode(self, images):
            return np.zeros((len(images), 3), np.float32)

    class Mapless(Bare):
        def encode(self, images):
            return Features(super().encode(images))

    messages = {f.check: f.message for f in check_model(Bare, "encoder") if not f.passed}
    assert "expected an answer with `vectors`" in messages["ordinary image"]
    assert all(finding.passed for finding in check_model(Mapless, "encoder"))


def test_rows_must_follow_the_queries():
    class Rowwise(PlantedLearner):
        def classify(self, episodes):
            return [scores * np.arange(len(scores), dtype=np.float32)[:, None] for scores in super().classify(episodes)]

    messages = {f.check: f.message for f in check_model(Rowwise, "few-shot-learner") if not f.passed}
    assert "expected rows that follow the queries" in messages["order of queries"]


def test_a_learner_on_features_is_tried_with_features():
    class Nearest:
        accepts = "features"

        def classify(self, episodes):
            return [self._scores(e) for e in episodes]

        def _scores(self, e):
            means = np.stack([e.support[e.support_labels == way].mean(axis=0) for way in range(e.ways)])
            return -((e.query[:, None] - means) ** 2).sum(axis=2).astype(np.float32)

    assert [finding.line() for finding in check_model(Nearest, "few-shot-learner") if not finding.passed] == []


def test_sessions_must_not_share_what_they_opened():
    class Shared(Disc):
        def open(self, image):
            self.session = super().open(image)
            return SimpleNamespace(predict=lambda prompts: self.session.predict(prompts))

    class Sessionless(Disc):
        def open(self, image):
            return image

    messages = {f.check: f.message for f in check_model(Shared, "promptable-segmenter") if not f.passed}
    assert "expected session 0 to answer as if it were alone" in messages["sessions side by side"]
    messages = {f.check: f.message for f in check_model(Sessionless, "promptable-segmenter") if not f.passed}
    assert "expected `open` to give a session with `predict`, got ndarray" in messages["ordinary image"]


def test_settings_of_a_dataset_leave_the_model_as_it_is():
    class Fitted(Disc):
        def for_dataset(self, dataset):
            return Disc(blunt=1.0)

    class Changed(Disc):
        def for_dataset(self, dataset):
            self.open = Disc(blunt=1.0).open
            return self

    class Nothing(Disc):
        def for_dataset(self, dataset):
            return None

    found = {f.check: f.passed for f in check_model(Fitted, "promptable-segmenter")}
    assert found["settings of a dataset"] and "settings of a dataset" not in {
        f.check for f in check_model(Disc, "promptable-segmenter")
    }
    messages = {f.check: f.message for f in check_model(Changed, "promptable-segmenter") if not f.passed}
    assert "expected `for_dataset` to leave the model as it is" in messages["settings of a dataset"]
    messages = {f.check: f.message for f in check_model(Nothing, "promptable-segmenter") if not f.passed}
    assert "expected `for_dataset` to give a model with `open`, got NoneType" in messages["settings of a dataset"]


def test_a_state_may_be_used_twice():
    class Consuming(Disc):
        def open(self, image):
            session = super().open(image)

            def predict(prompts):
                answers = []
                for prompt, answer in zip(prompts, session.predict(prompts), strict=True):
                    used = prompt.state is not None and not prompt.state
                    answers.append(SimpleNamespace(mask=~answer.mask if used else answer.mask, state=[1]))
                    if prompt.state:
                        prompt.state.clear()
                return answers

            return SimpleNamespace(predict=predict)

    messages = {f.check: f.message for f in check_model(Consuming, "promptable-segmenter") if not f.passed}
    assert "expected a state that a prompt may use again" in messages["state given back"]


class OneSupport:
    """A model that takes a single support, and the class in words."""

    supports_at_once = 1

    def segment_queries(self, queries, supports, contexts):
        if any(len(shown) != 1 for shown in supports):
            raise ValueError("one support, please")
        assert [context.class_name for context in contexts] == ["cat"] * len(queries)
        return [
            np.asarray(query[..., 0] > shown[0].image.mean()) for query, shown in zip(queries, supports, strict=True)
        ]


class FloatMasks(OneSupport):
    def segment_queries(self, queries, supports, contexts):
        return [mask.astype(np.float32) for mask in super().segment_queries(queries, supports, contexts)]


def test_a_model_of_one_support_is_asked_once_per_support():
    assert [finding.message for finding in check_model(OneSupport, "one-shot-segmenter") if not finding.passed] == []
    wrong = {one.check: one.message for one in check_model(FloatMasks, "one-shot-segmenter") if not one.passed}
    assert "mask: expected bool, got float32" in wrong["several supports"]


def test_a_model_that_takes_boxes_is_tried_with_boxes():
    class Boxless(Disc):
        takes_boxes = True

        def open(self, image):
            session = super().open(image)

            def predict(prompts):
                assert all(len(prompt.points) for prompt in prompts), "a prompt without clicks"
                return session.predict(prompts)

            return SimpleNamespace(predict=predict)

    findings = {f.check: f for f in check_model(Boxless, "promptable-segmenter")}
    assert not findings["a box"].passed and "a prompt without clicks" in findings["a box"].message
    assert "a box" not in {f.check for f in check_model(Disc, "promptable-segmenter")}
    assert all(f.passed for f in check_model(GrabCut, "promptable-segmenter") if "box" in f.check)
    assert {"a box", "a box and clicks", "a box of one pixel"} <= {
        f.check for f in check_model(GrabCut, "promptable-segmenter")
    }
