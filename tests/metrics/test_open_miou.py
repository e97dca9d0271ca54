import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.metrics.confusion import confusion_counts
from hardlook.metrics.mean_iou import MeanIoU, class_counts, class_iou, mean_iou
from hardlook.metrics.open_miou import (
    OpenMeanIoU,
    OpenMiouResult,
    harmonic_mean,
    open_miou,
    soft_counts,
    soft_counts_by_image,
)

# The package exports the function of the same name.
arrays = sys.modules["hardlook.metrics.arrays"]

# The worked checks of the open metrics' specification.
SIMILARITY_A = np.array([[1, 0.5, 0.25], [0.5, 1, 0.2], [0.25, 0.2, 1]])

TRUTH = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 255])

PREDICTION_A = np.array([0, 0, 0, 1, 1, 1, 0, 2, 1, 0])

PREDICTION_B = np.array([0, 0, 0, 1, 1, 1, 0, 2, 3, 0])

SIMILARITY_B = np.array([[1, 0.5, 0.25, 0.1], [0.5, 1, 0.2, 0.1], [0.25, 0.2, 1, 0.5], [0.1, 0.1, 0.5, 1]])


def draw(seed, classes, pixels=200):
    rng = np.random.default_rng(seed)
    truth = rng.choice([*range(classes), 255], pixels)
    prediction = np.where(rng.random(pixels) < 0.6, truth, rng.integers(-1, classes + 1, pixels))
    similarity = rng.choice([0.0, 0.3, 0.8, 1.0], (classes, classes))
    similarity = np.maximum(np.maximum(similarity, similarity.T), np.eye(classes))
    return truth, prediction, similarity, rng


def scored(truth, prediction, similarity, ignore="auto", **options):
    counts = confusion_counts(truth, prediction, classes=len(similarity), ignore=ignore)
    return open_miou(counts, similarity, **options)


def means(scores):
    return np.array([scores.miou, scores.fwiou, scores.macc, scores.pacc, scores.seen, scores.unseen, scores.harmonic])


def test_worked_check_a():
    result = scored(TRUTH, PREDICTION_A, SIMILARITY_A)
    assert result.vanilla.per_class == pytest.approx([0.6, 0.4, 0.5])
    assert result.vanilla.miou == pytest.approx(0.5)
    assert result.open.per_class == pytest.approx([0.777778, 0.581395, 0.6], abs=5e-7)
    assert result.open.miou == pytest.approx(0.653058, abs=5e-7)
    assert result.open.fwiou == pytest.approx(0.672811, abs=5e-7)
    assert result.open.pacc == pytest.approx(0.8)
    assert result.open.macc == pytest.approx(0.769444, abs=5e-7)


def test_worked_check_b():
    assert scored(TRUTH, PREDICTION_B, SIMILARITY_B).open.miou == pytest.approx(0.560516, abs=5e-7)


def test_a_label_outside_the_vocabulary_is_missed_in_full_and_claimed_by_nobody():
    result = scored(np.array([0, 0, 1]), np.array([0, 9, 1]), np.ones((2, 2)))
    assert result.open.per_class.tolist() == [0.5, 1.0]


def test_seen_and_unseen_are_means_of_their_own():
    result = scored(TRUTH, PREDICTION_B, SIMILARITY_B, seen=[True, True, False, False])
    iou = result.open.per_class
    assert result.open.seen == pytest.approx((iou[0] + iou[1]) / 2)
    # Class 3 is predicted and has no truth: nothing above, one below.
    assert result.open.unseen == pytest.approx(iou[2] / 2)
    assert 1 / result.open.harmonic == pytest.approx((1 / result.open.seen + 1 / result.open.unseen) / 2)


def test_harmonic_mean_of_nothing_is_nothing():
    assert harmonic_mean(0, 0) == 0
    assert np.isnan(harmonic_mean(np.nan, 0.5))


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_identity_gives_the_closed_metric_exactly(seed, classes):
    truth, prediction, _, rng = draw(seed, classes)
    result = scored(truth, prediction, np.eye(classes), seen=rng.random(classes) < 0.5)
    assert np.array_equal(means(result.open), means(result.vanilla), equal_nan=True)
    assert np.array_equal(result.open.per_class, result.vanilla.per_class, equal_nan=True)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from(["detectron2", "gt-only"]))
def test_no_open_score_is_below_the_vanilla_one(seed, classes, mean_over):
    truth, prediction, similarity, rng = draw(seed, classes)
    seen = rng.random(classes) < 0.5
    result = scored(truth, prediction, similarity, mean_over=mean_over, seen=seen)
    gained = means(result.open) - means(result.vanilla)
    assert (gained[~np.isnan(gained)] >= -1e-12).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_permuting_the_classes_with_their_similarity_changes_nothing(seed, classes):
    truth, prediction, similarity, rng = draw(seed, classes)
    confusion = confusion_counts(truth, prediction, classes=classes)
    order = rng.permutation(classes)
    renamed = confusion[order][:, [*order, classes]]
    one, other = open_miou(confusion, similarity), open_miou(renamed, similarity[np.ix_(order, order)])
    assert means(one.open) == pytest.approx(means(other.open), nan_ok=True)
    assert one.open.per_class[order] == pytest.approx(other.open.per_class, nan_ok=True)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_merging_parts_in_any_order_equals_one_pass_exactly(seed, parts):
    truth, prediction, similarity, rng = draw(seed, 4)
    labels = ["a", "b", "c", "d"]
    whole = OpenMeanIoU(labels, similarity)
    whole.update(truth, prediction)
    pieces = []
    for piece in np.array_split(rng.permutation(truth.size), parts):
        pieces.append(OpenMeanIoU(labels, similarity))
        pieces[-1].update(truth[piece], prediction[piece])
    for other in pieces[1:]:
        pieces[0].merge(other)
    assert (pieces[0].confusion == whole.confusion).all()
    assert pieces[0].compute().open.miou == whole.compute().open.miou


def test_reset_forgets():
    metric = OpenMeanIoU(["a", "b"], np.eye(2), ignore_index=None)
    metric.update([0], [1])
    metric.reset()
    metric.update([0], [0])
    assert metric.compute().open.miou == 1


def test_tensors_are_taken_as_they_are():
    torch = pytest.importorskip("torch")
    metric = OpenMeanIoU(["a", "b", "c"], torch.tensor(SIMILARITY_A))
    metric.update(torch.tensor(TRUTH), torch.tensor(PREDICTION_A))
    assert metric.compute().open.miou == pytest.approx(0.653058, abs=5e-7)


def test_nothing_at_all_is_undefined_and_not_zero():
    result = OpenMeanIoU(["a"], [[1]]).compute()
    assert np.isnan(means(result.open)).all()


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match=r"similarity: expected shape \(1, 1\)"):
        OpenMeanIoU(["a"], np.eye(2))
    with pytest.raises(ValueError, match="expected the same 1 labels"):
        OpenMeanIoU(["a"], np.eye(1)).merge(OpenMeanIoU(["b"], np.eye(1)))
    with pytest.raises(ValueError, match=r"seen: expected shape \(2,\), got \(3,\)"):
        open_miou(np.zeros((2, 3), int), np.eye(2), seen=[True, False, True])
    with pytest.raises(ValueError, match=r"confusion: .* got \(1, 2, 3\)"):
        open_miou(np.zeros((1, 2, 3), int), np.eye(2))


def random_similarity(rng, classes):
    matrix = rng.choice([0.0, 0.2, 0.5, 1.0], (classes, classes))
    matrix = np.maximum(matrix, matrix.T)
    np.fill_diagonal(matrix, 1)
    return matrix


def random_confusions(rng, classes, images):
    return rng.integers(0, 30, (images, classes, classes + 1)) * (rng.random((images, classes, classes + 1)) < 0.4)


def literal(confusion, similarity):
    """TP, FP and FN as the specification writes them, a class and a pair at a time."""
    classes = len(confusion)
    tp, fp, fn = np.zeros(classes), np.zeros(classes), np.zeros(classes)
    for i in range(classes):
        for j in range(classes):
            tp[i] += similarity[i, j] * confusion[i, j]
            fn[i] += (1 - similarity[i, j]) * confusion[i, j]
            fp[i] += (1 - similarity[j, i]) * confusion[j, i]
        fn[i] += confusion[i, classes]
    return tp, fp, fn


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_equals_the_text_of_the_specification(seed, classes):
    rng = np.random.default_rng(seed)
    confusion, similarity = random_confusions(rng, classes, 1)[0], random_similarity(rng, classes)
    tp, fp, fn = literal(confusion, similarity)
    found, true, claimed = soft_counts(confusion, similarity)
    assert found == pytest.approx(tp)
    assert true == pytest.approx(tp + fn)
    assert claimed == pytest.approx(tp + fp)
    expected = np.divide(tp, tp + fp + fn, out=np.full(classes, np.nan), where=tp + fp + fn > 0)
    assert class_iou(soft_counts(confusion, similarity)) == pytest.approx(expected, nan_ok=True)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 5))
def test_images_from_their_cells_equal_images_from_their_matrices(seed, classes, images):
    rng = np.random.default_rng(seed)
    confusions, similarity = random_confusions(rng, classes, images), random_similarity(rng, classes)
    flat = confusions.reshape(images, -1)
    image, cell = np.nonzero(flat)
    order = rng.permutation(len(image))
    records = image[order], cell[order], flat[image, cell][order]
    by_image = soft_counts_by_image(*records, similarity, images=images)
    assert by_image == pytest.approx(soft_counts(confusions, similarity))
    assert by_image.sum(0) == pytest.approx(soft_counts(confusions.sum(0), similarity))


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_identity_gives_the_closed_counts_exactly(seed, classes):
    confusions = random_confusions(np.random.default_rng(seed), classes, 3)
    assert (soft_counts(confusions, np.eye(classes)) == class_counts(confusions)).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_raising_a_similarity_lowers_no_true_positives(seed, classes):
    rng = np.random.default_rng(seed)
    confusion, similarity = random_confusions(rng, classes, 1)[0], random_similarity(rng, classes)
    raised = similarity.copy()
    i, j = rng.choice(classes, 2, replace=False)
    raised[i, j] += (1 - raised[i, j]) * rng.random()
    assert (soft_counts(confusion, raised)[0] >= soft_counts(confusion, similarity)[0]).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_similarity_of_classes_that_never_meet_changes_nothing(seed, classes):
    rng = np.random.default_rng(seed)
    confusion, similarity = random_confusions(rng, classes, 1)[0], random_similarity(rng, classes)
    apart = (confusion[:, :classes] == 0) & ~np.eye(classes, dtype=bool)
    changed = np.where(apart, rng.random((classes, classes)), similarity)
    assert (soft_counts(confusion, changed) == soft_counts(confusion, similarity)).all()


def test_a_class_claimed_only_where_the_truth_is_its_equal_leaves_the_mean():
    confusion = np.array([[4, 0, 0], [0, 0, 0]])
    confusion[0, 1] = 2
    assert mean_iou(soft_counts(confusion, np.ones((2, 2)))) == 1
    almost = np.array([[1, 0.5], [0.5, 1]])
    assert mean_iou(soft_counts(confusion, almost)) == pytest.approx((5 / 6) / 2)
    assert mean_iou(soft_counts(confusion, almost), "gt-only") == pytest.approx(5 / 6)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (([2], [0], [1]), "image: expected numbers from 0 to 1, got 2..2"),
        (([0], [6], [1]), "cell: expected numbers from 0 to 5, got 6..6"),
        (([0], [0], [0.5]), "pixels: expected integers, got float64"),
    ],
)
def test_records_out_of_range_are_named(records, words):
    with pytest.raises(ValueError, match=words):
        soft_counts_by_image(*records, np.eye(2), images=2)


def test_no_records_are_no_pixels():
    assert soft_counts_by_image([], [], [], np.eye(2), images=3).tolist() == np.zeros((3, 3, 2)).tolist()


def test_a_matrix_of_another_shape_is_named():
    with pytest.raises(ValueError, match=r"confusion: expected shape .* got \(2, 4\)"):
        soft_counts(np.zeros((2, 4), int), np.eye(2))


@pytest.mark.parametrize("build", [lambda k: OpenMeanIoU(map(str, range(k)), np.eye(k)), MeanIoU])
def test_class_255_counts_where_there_are_more_classes(build):
    metric = build(300)
    metric.update([255, 255, 0], [255, 0, 0])
    assert metric.confusion[255, 255] == metric.confusion[255, 0] == 1
    with pytest.raises(ValueError, match="255 is one of the 256 classes"):
        OpenMeanIoU(map(str, range(256)), np.eye(256), ignore_index=255)
    with pytest.raises(ValueError, match="0 is one of the 3 classes"):
        MeanIoU(3, ignore=0)


def test_predictions_that_are_no_label_are_counted():
    metric = OpenMeanIoU(["a", "b"], np.eye(2))
    metric.update([0, 0, 1, 1, 255], [0, 2, 1, -1, 9])
    result = metric.compute()
    assert (result.no_label, result.pixels) == (2, 4)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from(["function", "float32", "memmap"]))
def test_many_classes_score_as_few_do(seed, classes, given):
    truth, prediction, similarity, rng = draw(seed, classes)
    seen = rng.random(classes) < 0.5
    labels = [str(k) for k in range(classes)]
    small = OpenMeanIoU(labels, similarity, seen=seen)
    small.update(truth, prediction)
    stored = similarity.astype(np.float32) if given == "float32" else similarity
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hardlook.metrics.confusion.MAX_TABLE_CLASSES", 0)
        source = (lambda true, called: stored[true, called]) if given == "function" else stored
        large = OpenMeanIoU(labels, source, seen=seen)
        large.update(truth, prediction)
        assert not large.pairs.is_table
        one, other = small.compute(), large.compute()
    for kind in ("open", "vanilla"):
        few, many = getattr(one, kind), getattr(other, kind)
        assert means(many) == pytest.approx(means(few), abs=1e-7, nan_ok=True)
        assert many.per_class == pytest.approx(few.per_class, abs=1e-7, nan_ok=True)
    assert (one.no_label, one.pixels) == (other.no_label, other.pixels)


def test_twenty_two_thousand_classes_with_vectors_in_place_of_a_matrix():
    rng = np.random.default_rng(0)
    vectors = rng.random((22_000, 8), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    truth = np.repeat(rng.integers(0, 22_000, 300), 9)
    prediction = np.where(rng.random(truth.shape) < 0.5, truth, rng.integers(0, 22_000, truth.shape))
    labels = [str(k) for k in range(22_000)]

    def similarity(true, called):
        assert len(true) <= 7
        return np.einsum("nd,nd->n", vectors[true], vectors[called])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_PAIRS", 7)
        metric = OpenMeanIoU(labels, similarity)
        metric.update(truth, prediction)
        result = metric.compute()
    used, places = np.unique([truth, prediction], return_inverse=True)
    matrix = np.where(np.eye(len(used)), 1, vectors[used] @ vectors[used].T).clip(0, 1)
    expected = scored(*places.reshape(2, -1), matrix, ignore=None)
    assert result.open.miou == pytest.approx(expected.open.miou, abs=1e-6)
    assert result.vanilla.miou == pytest.approx(expected.vanilla.miou)
    assert result.open.per_class[used] == pytest.approx(expected.open.per_class, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize(
    ("similarity", "words"),
    [
        (lambda true, called: np.full(len(true), 1.5), "similarity of labels 0 and 0: expected 1, .* got 1.5"),
        (
            lambda true, called: np.where(true == called, 1, -0.5),
            "labels 0 and 1: expected a number from 0 to 1, got -0.5",
        ),
        (lambda true, called: np.where(true == called, 0.5, 0), "labels 0 and 0: expected 1, a label is like itself"),
        (lambda true, called: 1.0, "expected .* numbers for as many pairs"),
    ],
)
def test_what_a_function_returns_is_checked(similarity, words):
    metric = OpenMeanIoU(["a", "b"], similarity)
    metric.update([0, 0, 1, 1], [0, 1, 1, 7])
    with pytest.raises(ValueError, match=words):
        metric.compute()


def test_bad_arguments_get_a_sentence():
    uneven = [[1, 0.5], [0.25, 1]]
    for build in (
        lambda **o: OpenMeanIoU(["a", "b"], uneven, **o),
        lambda **o: open_miou(np.eye(2, dtype=int), uneven, **o),
    ):
        with pytest.raises(ValueError, match="expected a symmetric matrix"):
            build()
        build(asymmetric=True)
    with pytest.raises(ValueError, match="labels: expected names that differ, got 'a' at 0 and 1"):
        OpenMeanIoU(["a", "a"], np.eye(2))
    for work in (lambda: open_miou([[1, -1], [0, 1]], np.eye(2)), lambda: soft_counts([[1, -1], [0, 1]], np.eye(2))):
        with pytest.raises(ValueError, match=r"confusion\[0, 1\]: expected a count, got -1"):
            work()
    with pytest.raises(ValueError, match="expected a count, got -2"):
        class_counts(np.array([[1, -2], [0, 1]]))
    with pytest.raises(ValueError, match="expected a matrix beside a matrix of counts, got a function"):
        open_miou(np.eye(2, dtype=int), lambda true, called: true)
    for seen, got in ((["a", "b"], "a"), ([1, 2], "2"), ([0.5, 1], "0.5")):
        with pytest.raises(ValueError, match=f"seen: expected true or false for each class, got {got}"):
            OpenMeanIoU(["a", "b"], np.eye(2), seen=seen)
    with pytest.raises(ValueError, match=r"seen: expected shape \(2,\), got \(1,\)"):
        OpenMeanIoU(["a", "b"], np.eye(2), seen=[True])
    for work in (
        lambda: OpenMeanIoU(["a", "b"], np.eye(2), mean_over="gtonly"),
        lambda: MeanIoU(2, mean_over="gtonly"),
        lambda: open_miou([[1, 0], [0, 1]], np.eye(2), mean_over="gtonly"),
    ):
        with pytest.raises(ValueError, match="mean_over: expected detectron2 or gt-only, got 'gtonly'"):
            work()


def test_counts_in_a_table_too_large_for_matrices_are_scored_by_pairs(monkeypatch):
    monkeypatch.setattr(sys.modules["hardlook.metrics.open_miou"], "MAX_MATRIX_CLASSES", 2)
    similarity = np.array(SIMILARITY_A, np.float32)
    metric = OpenMeanIoU(["cat", "dog", "sky"], similarity)
    assert metric.pairs.is_table and metric.similarity is similarity
    metric.update([0, 0, 0, 0, 1, 1, 1, 2, 2, 255], [0, 0, 0, 1, 1, 1, 0, 2, 1, 0])
    assert metric.compute().open.miou == pytest.approx(0.653058, abs=1e-6)


def test_soft_counts_of_the_pairs_seen_are_those_of_their_table(monkeypatch):
    metric = OpenMeanIoU(["cat", "dog", "sky"], SIMILARITY_A)
    metric.update(TRUTH, PREDICTION_A)
    expected = soft_counts(metric.confusion, SIMILARITY_A)
    assert soft_counts(metric.pairs, SIMILARITY_A) == pytest.approx(expected)
    as_function = soft_counts(metric.pairs, lambda true, called: SIMILARITY_A[true, called])
    assert as_function == pytest.approx(expected)
    monkeypatch.setattr(sys.modules["hardlook.metrics.open_miou"], "MAX_MATRIX_CLASSES", 2)
    assert soft_counts(metric.pairs, SIMILARITY_A) == pytest.approx(expected)


def test_a_function_of_labels_needs_the_pairs_or_the_number_of_classes():
    def alike(true, called):
        return SIMILARITY_A[true, called]

    with pytest.raises(ValueError, match="expected a matrix beside a matrix of counts, got a function"):
        soft_counts(np.eye(3, dtype=int), alike)
    with pytest.raises(ValueError, match="classes: expected their number beside a similarity that is a function"):
        soft_counts_by_image([0], [0], [5], alike, images=1)
    found = soft_counts_by_image([0, 1], [1, 9], [5, 2], alike, images=2, classes=3)
    assert found == pytest.approx(soft_counts_by_image([0, 1], [1, 9], [5, 2], SIMILARITY_A, images=2))


def test_merging_with_other_labels_or_another_ignored_index_is_refused():
    one = OpenMeanIoU(["a", "b"], np.eye(2))
    with pytest.raises(ValueError, match="other: expected the same 2 labels, got 1 others"):
        one.merge(OpenMeanIoU(["a"], np.eye(1)))
    with pytest.raises(ValueError, match=r"other: expected ignore_index (None|255), got 7"):
        one.merge(OpenMeanIoU(["a", "b"], np.eye(2), ignore_index=7))


def test_soft_counts_of_stacked_matrices_are_those_of_each():
    confusions = np.random.default_rng(0).integers(0, 9, (2, 5, 3, 4))
    for counts in (confusions, confusions[..., :3]):
        found = soft_counts(counts, SIMILARITY_A)
        assert found.shape == (2, 5, 3, 3)
        for place in np.ndindex(2, 5):
            np.testing.assert_allclose(found[place], soft_counts(counts[place], SIMILARITY_A), rtol=1e-14)


def test_a_result_counts_no_pixels_unless_it_says_so():
    scores = scored(TRUTH, PREDICTION_A, SIMILARITY_A)
    assert (scores.pixels, scores.no_label) == (9, 0)
    bare = OpenMiouResult(scores.open, scores.vanilla)
    assert (bare.pixels, bare.no_label) == (0, 0)
