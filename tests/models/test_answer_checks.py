"""Answers that break a role end as failed units of every benchmark of that role, and none of them is scored."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from broken_models import ROLE_ACCESS, Broken, changed, part, stained
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from small_runs import small_run

from hardlook.errors import ModelError, RunError
from hardlook.harness.runs.evaluation import PreparedBatch, evaluate_prepared
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.models.answer_checks import ANSWERS, CheckedSession, check_answers, find_array_faults, list_segment_ids
from hardlook.models.conformance import check_model
from hardlook.models.feature_cache import CachedEncoder
from hardlook.models.registry import build
from hardlook.models.roles import Clicks, Features, Instances, PhrasedAnswer, Prompted, Segments

RUNS = {
    "semantic-segmenter": [("closed-miou", {"scenes": 2}), ("open-miou", {"scenes": 2})],
    "instance-segmenter": [("open-ap", {"scenes": 2}), ("open-ap", {"scenes": 2, "iou": "bbox"})],
    "panoptic-segmenter": [("open-pq", {"scenes": 2})],
    "one-shot-segmenter": [("toss", {"scenes": 24, "tiers": "1", "shots": "1,2"})],
    "few-shot-learner": [("metacoco", {"tasks": 2, "modes": "iid", "queries": 2})],
    "promptable-segmenter": [("rclicks", {"scenes": 2, "rounds": 2})],
}
PREPARED: dict = {}


def prepared_units(role):
    """Two prepared units of each benchmark of the role."""
    if role not in PREPARED:
        runs = [InMemoryRun(name, {"resamples": 0, **options}) for name, options in RUNS[role]]
        PREPARED[role] = [(run.benchmark, [unit for batch in run.prepared for unit in batch.units][:2]) for run in runs]
    return PREPARED[role]


def as_view_of_bytes(mask):
    return (mask.astype(np.uint8) * 255).view(np.bool_)


def only_first(model, inputs, answers):
    return answers[:1] if len(answers) > 1 else []


def one_more(model, inputs, answers):
    return [*answers, answers[-1]]


def masked(array):
    return np.ma.masked_less(array, 0)


class Tensor:
    """What a network leaves on its device when nobody fetches it."""

    device = "cuda:0"


def boxes_as_sides(boxes):
    return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)


def stuff_in_two(answer):
    [sky] = [segment for segment, label in answer.labels.items() if label == 12][:1] or [min(answer.labels)]
    split = answer.map.copy()
    split[(split == sky) & (np.indices(split.shape)[1] % 2 == 0)] = 999
    return Segments(split, {**answer.labels, sky: 12, 999: 12})


def counted(role):
    """What a wrong number of answers is told, once units are evaluated alone: eleven courses click at a time."""
    return "expected 11 answers for 11 prompts" if role == "promptable-segmenter" else "expected 1 answers for 1 "


UNPACKED = [(lambda a: None, "NoneType"), (lambda a: Tensor(), "Tensor on cuda:0"), (lambda a: [], "got list")]

FAULTS = [
    *((role, fault, counted(role)) for role in RUNS for fault in (only_first, one_more)),
    *((role, changed(fault), words) for role in RUNS for fault, words in UNPACKED),
    ("semantic-segmenter", changed(stained(30000)), "map: expected values in [-1, 21], got 30000 at index (0, 0)"),
    ("semantic-segmenter", changed(stained(22)), "map: expected values in [-1, 21], got 22 at index (0, 0)"),
    ("semantic-segmenter", changed(stained(-2)), "map: expected values in [-1, 21], got -2 at index (0, 0)"),
    ("semantic-segmenter", changed(stained(255, np.uint8)), "expected values in [-1, 21], got 255"),
    ("semantic-segmenter", changed(lambda a: a.astype(np.float32)), "map: expected int32, got float32 (convert whole"),
    ("semantic-segmenter", changed(stained(np.nan, np.float64)), "map: expected int32, got float64"),
    ("semantic-segmenter", changed(lambda a: a.astype(bool)), "map: expected int32, got bool"),
    ("semantic-segmenter", changed(lambda a: a.astype(object)), "map: expected int32, got object"),
    ("semantic-segmenter", changed(lambda a: a.T), "map: expected shape (H, W) = (120, 160), got (160, 120)"),
    ("semantic-segmenter", changed(lambda a: a[None]), "got (1, 120, 160)"),
    ("semantic-segmenter", changed(lambda a: [[0, 1], [2]]), "map: expected a numpy array, got list"),
    ("semantic-segmenter", changed(lambda a: (a / 2).tolist()), "map: expected int32, got float64"),
    ("semantic-segmenter", changed(lambda a: a.astype(str).tolist()), "map: expected int32, got <U"),
    ("semantic-segmenter", changed(lambda a: [*a[:-1].tolist(), [None] * 160]), "map: expected int32, got object"),
    ("semantic-segmenter", changed(masked), "map: expected a numpy array, got numpy.ma.MaskedArray"),
    ("instance-segmenter", part("masks", lambda a: a.astype(np.float32) * 0.3), "masks: expected bool, got float32"),
    ("instance-segmenter", part("masks", lambda a: a.astype(np.uint8) * 255), "masks: expected values in [0, 1], got"),
    ("instance-segmenter", part("masks", as_view_of_bytes), "masks: expected values in [0, 1], got 255"),
    ("instance-segmenter", part("masks", lambda a: a[:-1]), "masks: expected shape (N, H, W) = ("),
    ("instance-segmenter", part("boxes", lambda a: a[:, [2, 1, 0, 3]]), "x0 <= x1, y0 <= y1, got ["),
    ("instance-segmenter", part("boxes", lambda a: a[:, [0, 3, 2, 1]]), "x0 <= x1, y0 <= y1, got ["),
    ("instance-segmenter", part("boxes", boxes_as_sides), "x0 <= x1, y0 <= y1, got ["),
    ("instance-segmenter", part("boxes", stained(np.inf)), "boxes: expected finite values, got inf at index (0, 0)"),
    ("instance-segmenter", part("boxes", lambda a: a[:, :3]), "boxes: expected shape (N, 4)"),
    ("instance-segmenter", part("scores", stained(np.nan)), "scores: expected finite values, got nan"),
    ("instance-segmenter", part("scores", lambda a: a * 100), "scores: expected values in [0, 1], got"),
    ("instance-segmenter", part("scores", lambda a: a[:, None]), "scores: expected shape (N) ="),
    ("instance-segmenter", part("scores", lambda a: None), "scores: expected a numpy array, got NoneType"),
    ("instance-segmenter", part("labels", lambda a: a + 22), "labels: expected values in [0, 21], got"),
    ("instance-segmenter", part("labels", stained(-1)), "labels: expected values in [0, 21], got -1"),
    ("instance-segmenter", part("labels", lambda a: a + 0.5), "labels: expected int32, got float64"),
    ("instance-segmenter", part("labels", lambda a: a[:-1]), "labels: expected shape (N) = ("),
    ("panoptic-segmenter", part("map", stained(99)), "expected a label for every segment, got none for segment 99"),
    ("panoptic-segmenter", part("map", stained(-1)), "map: expected values in [0, 2147483647], got -1"),
    ("panoptic-segmenter", part("map", stained(2**32 + 1, np.int64)), "in [0, 2147483647], got 4294967297"),
    ("panoptic-segmenter", part("map", lambda a: a + 0.5), "map: expected int32, got float64"),
    ("panoptic-segmenter", part("map", lambda a: a[:-1]), "map: expected shape (H, W) = (120, 160), got (119, 160)"),
    ("panoptic-segmenter", part("labels", lambda a: list(a.items())), "expected {segment id: label index}, got list"),
    ("panoptic-segmenter", part("labels", lambda a: {k: 70 for k in a}), "an index from 0 to 21, got 70"),
    ("panoptic-segmenter", part("labels", lambda a: {k: 1.5 for k in a}), "expected whole numbers, got 1.5 for"),
    ("panoptic-segmenter", part("labels", lambda a: {str(k): v for k, v in a.items()}), "expected whole numbers, got"),
    ("panoptic-segmenter", changed(stuff_in_two), "at most one segment of the stuff 'sky', got 2"),
    ("one-shot-segmenter", changed(lambda a: a.astype(np.float32)), "mask: expected bool, got float32 (answer a bool"),
    ("one-shot-segmenter", changed(stained(255, np.uint8)), "mask: expected values in [0, 1], got 255"),
    ("one-shot-segmenter", changed(stained(-1, np.int8)), "mask: expected values in [0, 1], got -1"),
    ("one-shot-segmenter", changed(lambda a: stained(255, np.uint8)(a).view(np.bool_)), "[0, 1], got 255"),
    ("one-shot-segmenter", changed(lambda a: a[:-1]), "mask: expected shape (H, W) = (120, 160), got (119, 160)"),
    ("few-shot-learner", changed(lambda a: a[:, 1:]), "scores: expected shape (queries, ways) = (10, 5), got (10, 4)"),
    ("few-shot-learner", changed(lambda a: a.argmax(1)), "scores: expected shape (queries, ways) = (10, 5), got (10,)"),
    ("few-shot-learner", changed(stained(np.nan)), "scores: expected finite values, got nan at index (0, 0)"),
    ("few-shot-learner", changed(stained(-np.inf)), "scores: expected finite values, got -inf at index (0, 0)"),
    ("few-shot-learner", changed(lambda a: a.astype(complex)), "scores: expected float32, got complex128"),
    ("promptable-segmenter", changed(lambda a: a.mask), "expected an answer with `mask`, got numpy.ndarray"),
    ("promptable-segmenter", part("mask", lambda a: a.astype(np.float32)), "mask: expected bool, got float32"),
    ("promptable-segmenter", part("mask", stained(255, np.uint8)), "mask: expected values in [0, 1], got 255"),
    ("promptable-segmenter", part("mask", lambda a: a[:-1]), "mask: expected shape (H, W) = ("),
    ("promptable-segmenter", changed(lambda a: SimpleNamespace(mask=a.mask)), "expected an answer with `state`"),
]  # fmt: skip


@pytest.mark.parametrize(("role", "fault", "words"), FAULTS)
def test_a_wrong_answer_fails_its_unit_and_is_not_scored(role, fault, words):
    for benchmark, units in prepared_units(role):
        outcome = evaluate_prepared(benchmark, PreparedBatch(units), Broken(role, fault))
        assert outcome.records == []
        assert [failure.unit for failure in outcome.failures] == [unit.id for unit in units]
        for failure in outcome.failures:
            assert failure.error.startswith(f"ModelError: the {role} broken_models.Broken: ")
            assert words in failure.error
            assert f"`hardlook check {role} MODEL`" in failure.error
            assert "unit: " in failure.error


@pytest.mark.parametrize(("role", "fault", "words"), FAULTS)
def test_what_a_run_refuses_the_check_refuses(role, fault, words):
    assert not all(finding.passed for finding in check_model(Broken(role, fault), role))


ATTRIBUTES = [
    ("semantic-segmenter", {"labels": "cat"}, "labels: expected a sequence of names, got str"),
    ("semantic-segmenter", {"labels": {0: "cat"}}, "labels: expected a sequence of names, got dict"),
    ("instance-segmenter", {"labels": [0, 1]}, "labels: expected a sequence of names, got list"),
    ("instance-segmenter", {"labels": ()}, "labels: expected at least one name, got none"),
    ("panoptic-segmenter", {"things": [True]}, "things: expected one flag for each of 22 labels, got 1"),
]


@pytest.mark.parametrize(("role", "attributes", "words"), ATTRIBUTES)
def test_a_wrong_attribute_fails_the_units(role, attributes, words):
    for benchmark, units in prepared_units(role):
        model = Broken(role, lambda model, inputs, answers: answers, **attributes)
        outcome = evaluate_prepared(benchmark, PreparedBatch(units), model)
        assert outcome.records == []
        assert all(words in failure.error and "ModelError" in failure.error for failure in outcome.failures)


def reordered(found):
    order = np.arange(len(found.scores))[::-1]
    return Instances(found.masks[order], found.boxes[order], found.scores[order], found.labels[order])


HARMLESS = [
    ("semantic-segmenter", changed(lambda a: a.astype(np.int64))),
    ("semantic-segmenter", changed(lambda a: a.astype(np.int8))),
    ("semantic-segmenter", changed(lambda a: a.astype(">i4"))),
    ("semantic-segmenter", changed(np.asfortranarray)),
    ("semantic-segmenter", lambda model, inputs, answers: tuple(answers)),
    ("instance-segmenter", part("masks", lambda a: a.astype(np.uint8))),
    ("instance-segmenter", part("labels", lambda a: a.astype(np.int64))),
    ("instance-segmenter", part("scores", lambda a: a.astype(np.float64))),
    ("instance-segmenter", part("boxes", lambda a: a.astype(np.float64))),
    ("panoptic-segmenter", part("map", lambda a: a.astype(np.uint16))),
    ("panoptic-segmenter", part("map", lambda a: a.astype(np.uint64))),
    ("panoptic-segmenter", part("labels", lambda a: {np.int64(k): np.int32(v) for k, v in a.items()})),
    ("panoptic-segmenter", part("labels", lambda a: a | {5000: 12, 5001: 12})),
    ("one-shot-segmenter", changed(lambda a: a.astype(np.uint8))),
    ("one-shot-segmenter", changed(lambda a: a.astype(np.int64))),
    ("few-shot-learner", changed(lambda a: a.astype(np.float64))),
    ("promptable-segmenter", part("mask", lambda a: a.astype(np.uint8))),
]


def as_lists(answer):
    """The same answer with nested lists in place of arrays."""
    if isinstance(answer, Instances):
        return Instances(*(getattr(answer, name).tolist() for name in ("masks", "boxes", "scores", "labels")))
    if isinstance(answer, Segments):
        return Segments(answer.map.tolist(), answer.labels)
    return Prompted(answer.mask.tolist(), answer.state) if isinstance(answer, Prompted) else answer.tolist()


def as_tensors(answer):
    """The same answer with torch tensors in place of arrays."""
    torch = pytest.importorskip("torch")
    if isinstance(answer, Instances):
        return Instances(*(torch.tensor(getattr(answer, name)) for name in ("masks", "boxes", "scores", "labels")))
    if isinstance(answer, Segments):
        return Segments(torch.tensor(answer.map), answer.labels)
    return Prompted(torch.tensor(answer.mask), answer.state) if isinstance(answer, Prompted) else torch.tensor(answer)


def stacked_tensors(model, inputs, answers):
    return pytest.importorskip("torch").tensor(np.stack(answers))


HARMLESS += [(role, changed(convert)) for role in RUNS for convert in (as_lists, as_tensors)]
HARMLESS += [("semantic-segmenter", stacked_tensors), ("one-shot-segmenter", stacked_tensors)]


def test_vectors_may_be_tensors_or_lists(tmp_path):
    torch = pytest.importorskip("torch")
    vectors = np.array([[0.5, 1.5, -2.0]], np.float32)
    maps = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    image = np.zeros((4, 6, 3), np.uint8)
    for features in (Features(torch.tensor(vectors), torch.tensor(maps)), Features(vectors.tolist(), maps.tolist())):
        [(vector, cells)] = check_answers("encoder", Encodes(features), features, [image])
        assert np.array_equal(vector, vectors[0]) and np.array_equal(cells, maps[0])
    [vector] = check_answers("text-encoder", SimpleNamespace(dimension=3), torch.tensor(vectors), ["a cat"])
    assert np.array_equal(vector, vectors[0])


def test_tensors_that_numpy_cannot_read_are_refused_with_what_to_call():
    torch = pytest.importorskip("torch")
    image, model = np.zeros((4, 6, 3), np.uint8), SimpleNamespace(labels=("cat",))
    scores = torch.zeros((4, 6), requires_grad=True)
    for answer, words in (
        (SimpleNamespace(device="cuda:0", dtype="torch.int32"), r"on cuda:0 \(call \.cpu\(\)\)"),
        (torch.zeros((4, 6), device="meta"), r"torch.Tensor on meta \(call \.cpu\(\)\)"),
        (scores, r"torch.Tensor on cpu \(call \.detach\(\)\)"),
        (torch.zeros((4, 6), dtype=torch.bfloat16), r"torch.Tensor on cpu \(call \.float\(\)\)"),
    ):
        with pytest.raises(ModelError, match=f"map: expected a numpy array, got .*{words}"):
            check_answers("saliency", model, [answer], [image])
    with pytest.raises(ModelError, match=r"one answer for each of 1 images, got torch.Tensor on meta \(call \.cpu"):
        check_answers("saliency", model, torch.zeros((1, 4, 6), device="meta"), [image])


@pytest.mark.parametrize(("role", "change"), HARMLESS)
def test_other_types_of_the_same_values_are_scored_alike(role, change):
    sound = build(ROLE_ACCESS[role].name, role)
    for benchmark, units in prepared_units(role):
        expected = evaluate_prepared(benchmark, PreparedBatch(units), sound)
        found = evaluate_prepared(benchmark, PreparedBatch(units), Broken(role, change))
        assert expected.failures == found.failures == []
        ours, theirs = ([dict(record) for record in outcome.records] for outcome in (found, expected))
        for record in (*ours, *theirs):
            record.pop("conduct", None)  # the wrapping has none
        assert ours == theirs and ours


def test_detections_in_another_order_and_boxes_that_overhang_are_scored():
    [(benchmark, units), *_] = prepared_units("instance-segmenter")
    for change in (changed(reordered), part("boxes", lambda a: a - np.float32(200))):
        outcome = evaluate_prepared(benchmark, PreparedBatch(units), Broken("instance-segmenter", change))
        assert len(outcome.records) == len(units)


def test_a_wrong_count_in_a_batch_costs_only_units_that_are_wrong_alone():
    def shy(model, inputs, answers):
        return answers[:-1] if len(answers) > 1 else answers

    [(benchmark, units), *_] = prepared_units("semantic-segmenter")
    outcome = evaluate_prepared(benchmark, PreparedBatch(units), Broken("semantic-segmenter", shy))
    assert len(outcome.records) == 2 and outcome.split


def test_labels_out_of_range_end_a_run(tmp_path):
    with pytest.raises(RunError, match=r"troubled_segmenters.OutOfRange: map: expected values .* got 30000 at index"):
        small_run(tmp_path, model="troubled_segmenters:OutOfRange")


def test_every_call_of_a_model_that_takes_one_support_is_checked():
    [(benchmark, _)] = prepared_units("one-shot-segmenter")
    rehearsal = InMemoryRun("toss", {"scenes": 24, "tiers": "1", "shots": "2", "resamples": 0})
    units = [unit for batch in rehearsal.prepared for unit in batch.units][:2]
    for fault, words in ((only_first, "expected 1 answers for 1 pairs, got 0"), (changed(lambda a: a[:-1]), "(119,")):
        model = Broken("one-shot-segmenter", fault)
        model.supports_at_once = 1
        outcome = evaluate_prepared(benchmark, PreparedBatch(units), model)
        assert [failure.unit for failure in outcome.failures] == [unit.id for unit in units]
        assert all(words in failure.error and f"unit: {failure.unit}" in failure.error for failure in outcome.failures)


class Miscounts:
    """A session that answers one prompt too few and, in the next call, one too many."""

    calls = 0

    def open(self, image):
        return self

    def predict(self, prompts):
        self.calls += 1
        count = len(prompts) + (1 if self.calls % 2 == 0 else -1)
        return [Prompted(np.zeros((4, 6), bool)) for _ in range(count)]


def test_counts_of_two_calls_do_not_make_up_for_each_other():
    session = CheckedSession(Miscounts(), np.zeros((4, 6, 3), np.uint8))
    prompts = [Clicks(np.zeros((1, 2), np.float32), np.ones(1, bool))] * 3
    for expected in ("got 2", "got 4"):
        with pytest.raises(ModelError, match=f"expected 3 answers for 3 prompts, {expected}"):
            session.predict(prompts)


def test_what_open_gives_must_be_a_session():
    with pytest.raises(ModelError, match="expected `open` to give a session with `predict`, got object"):
        CheckedSession(SimpleNamespace(open=lambda image: object()), np.zeros((4, 6, 3), np.uint8))


class Encodes:
    dimension = 3

    def __init__(self, features):
        self.features = features

    def encode(self, images):
        return self.features


WRONG_FEATURES = [
    (Features(np.full((1, 3), np.nan, np.float32)), "vector: expected finite values, got nan"),
    (Features(np.zeros((2, 3), np.float32)), r"expected shape \(N, D\) = \(1, 3\) for 1 images, got \(2, 3\)"),
    (Features(np.zeros((1, 3), np.float32), []), "expected 1 answers for 1 images, got 0"),
    (Features(np.zeros((1, 3), np.float32), [np.zeros((2, 2))]), r"map: expected shape \(C, h, w\)"),
    (np.zeros((1, 3), np.float32), "expected an answer with `vectors`, got numpy.ndarray"),
]


@pytest.mark.parametrize(("features", "words"), WRONG_FEATURES)
def test_wrong_features_are_not_cached(tmp_path, features, words):
    cached = CachedEncoder(Encodes(features), "wrong", tmp_path)
    with pytest.raises(ModelError, match=words):
        cached.encode([np.zeros((4, 6, 3), np.uint8)])
    assert not list(tmp_path.rglob("*.npz"))


@pytest.mark.parametrize(
    ("role", "answer", "words"),
    [
        ("text-encoder", np.zeros((2, 3), np.float32), "expected shape"),
        ("text-encoder", np.full((1, 3), np.inf), "expected finite values, got inf"),
        ("image-text-encoder", np.full((1, 3), 1.0, np.float32), "expected length 1, got 1.732"),
        ("saliency", [np.full((4, 6), 1.5, np.float32)], r"expected values in \[0, 1\], got 1.5"),
        ("saliency", [np.full((4, 6), 200, np.uint8)], r"expected values in \[0, 1\], got 200"),
        ("saliency", [np.full((4, 6), np.nan, np.float32)], "expected finite values"),
        ("click-model", [np.full((4, 6), -1.0)], "expected values of at least 0, got -1"),
    ],
)  # fmt: skip
def test_answers_of_models_beside_the_judged_one_are_checked(role, answer, words):
    image = np.zeros((4, 6, 3), np.uint8)
    value = (image, None, np.ones((4, 6), bool), True) if role == "click-model" else image
    with pytest.raises(ModelError, match=words):
        check_answers(role, SimpleNamespace(dimension=3), answer, [value])


def test_rounding_of_a_probability_is_no_fault_of_a_run():
    above = np.full((4, 6), np.nextafter(np.float32(1), np.float32(2)))
    image = np.zeros((4, 6, 3), np.uint8)
    assert check_answers("saliency", None, [above], [image])[0] is above
    assert ANSWERS["saliency"].find_faults(None, image, above, True)


@given(arrays(st.sampled_from([np.int32, np.uint8, np.int64, np.uint64]), (3, 4), elements=st.integers(0, 120)))
def test_segment_ids_are_the_different_numbers_but_0(segment_map):
    assert list_segment_ids(segment_map) == [one for one in np.unique(segment_map).tolist() if one]


@given(
    st.sampled_from([np.int8, np.int32, np.int64, np.float32, np.float64]).flatmap(
        lambda dtype: arrays(
            dtype,
            (2, 3),
            elements=st.integers(-3, 3)
            if np.issubdtype(dtype, np.integer)
            else st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0, np.nan, np.inf, -np.inf]),
        )
    )
)
def test_range_checks_say_what_looking_at_every_value_says(values):
    right = bool(np.isfinite(values).all() and (values >= -1).all() and (values <= 1).all())
    assert (find_array_faults("x", values, np.float32, {"H": 2, "W": 3}, -1, 1, exact=False) == []) is right


def test_answers_are_given_back_as_they_are_where_they_fit():
    label_map, image = np.zeros((4, 6), np.int32), np.zeros((4, 6, 3), np.uint8)
    model = SimpleNamespace(labels=("cat",))
    [same] = check_answers("semantic-segmenter", model, [label_map], [image])
    assert same is label_map
    found = Prompted(np.zeros((4, 6), bool), state=3)
    assert check_answers("promptable-segmenter", model, [found], [(image, None)])[0] is found
    turned = check_answers("promptable-segmenter", model, [replace(found, mask=label_map)], [(image, None)])[0]
    assert (turned.mask.dtype, turned.state) == (np.bool_, 3)


def phrased(answer, phrases=("a red car", "sky"), things=()):
    return PhrasedAnswer(answer, phrases, things)


class FreeWords:
    free_words = True
    labels = things = ()


FREE_MAP = np.array([[0, 1, -1]], np.int32)


def test_answers_in_free_words_are_converted_like_others():
    image = np.zeros((1, 3, 3), np.uint8)
    [found] = check_answers("semantic-segmenter", FreeWords(), [phrased(FREE_MAP.astype(np.int64))], [image])
    assert found.answer.dtype == np.int32 and found.phrases == ("a red car", "sky")
    segments = Segments(FREE_MAP + 1, {1: 0, 2: 1})
    [found] = check_answers("panoptic-segmenter", FreeWords(), [phrased(segments, things=(True, False))], [image])
    assert found.answer.labels == {1: 0, 2: 1}


@pytest.mark.parametrize(
    ("role", "answer", "fault"),
    [
        ("semantic-segmenter", FREE_MAP, "expected an answer with `answer`"),
        ("semantic-segmenter", phrased(FREE_MAP, ("sky",)), r"expected values in \[-1, 0\], got 1"),
        ("semantic-segmenter", phrased(FREE_MAP, "sky"), "expected a sequence of texts, got str"),
        ("semantic-segmenter", phrased(FREE_MAP, ("sky", 3)), "expected texts, got int"),
        ("semantic-segmenter", phrased(FREE_MAP, ("sky", None)), "expected texts, got NoneType"),
        (
            "panoptic-segmenter",
            phrased(Segments(FREE_MAP + 1, {1: 0, 2: 1})),
            "expected one flag for each of 2 phrases",
        ),
    ],
)
def test_faults_of_answers_in_free_words(role, answer, fault):
    with pytest.raises(ModelError, match=fault):
        check_answers(role, FreeWords(), [answer], [np.zeros((1, 3, 3), np.uint8)])


def test_a_model_with_labels_must_not_answer_in_free_words():
    model = SimpleNamespace(labels=("car", "sky"))
    with pytest.raises(ModelError, match=r"expected a numpy array, got .*PhrasedAnswer"):
        check_answers("semantic-segmenter", model, [phrased(FREE_MAP)], [np.zeros((1, 3, 3), np.uint8)])


@pytest.mark.parametrize(
    ("box", "fits"),
    [
        ([0, 0, 8, 5], True),
        ([0, 0, 8, 6], False),
        ([0, 0, 9, 5], False),
        ([-1, 0, 8, 5], False),
        ([0, -1, 8, 5], False),
    ],
)
def test_a_check_wants_boxes_within_the_image(box, fits):
    image, model = np.zeros((5, 8, 3), np.uint8), SimpleNamespace(labels=("cat",))
    boxes, scores, labels = np.array([box], np.float32), np.ones(1, np.float32), np.zeros(1, np.int32)
    found = Instances(np.ones((1, 5, 8), bool), boxes, scores, labels)
    faults = ANSWERS["instance-segmenter"].find_faults(model, image, found, True)
    assert [fault.startswith("boxes: expected x0, y0, x1, y1 within 8 x 5") for fault in faults] == [True] * (not fits)
