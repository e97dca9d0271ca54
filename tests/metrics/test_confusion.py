import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from hardlook.metrics import confusion as module
from hardlook.metrics.confusion import PairCounts, choose_ignored, confusion_costs, confusion_counts, count_pairs_numpy
from hardlook.metrics.kernels.confusion import count_pairs
from hardlook.metrics.mean_iou import class_counts
from hardlook.metrics.open_miou import soft_counts

TYPES = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64]


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 400))
def test_equals_scikit_learn(seed, classes, pixels):
    rng = np.random.default_rng(seed)
    truth, prediction = rng.integers(0, classes, (2, pixels))
    ours = confusion_counts(truth, prediction, classes=classes)
    assert (ours[:, :classes] == confusion_matrix(truth, prediction, labels=range(classes))).all()
    assert ours[:, classes].sum() == 0


@pytest.mark.parametrize("dtype", TYPES)
def test_any_integer_type_and_shape(dtype):
    truth = np.array([[0, 1], [1, 2]], dtype)
    assert np.diag(confusion_counts(truth, truth, classes=3)).tolist() == [1, 2, 1]


def test_ignored_pixels_count_nowhere_and_unknown_predictions_have_their_own_column():
    counts = confusion_counts(np.array([255, 0, 1]), np.array([0, 7, -1]), classes=2)
    assert counts.tolist() == [[0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize("ignore", [255, 0, -1, 65535, None])
@pytest.mark.parametrize("classes", [1, 5, 254, 255, 256, 300])
@pytest.mark.parametrize("types", [(np.uint8, np.uint8), (np.int8, np.int64), (np.uint16, np.int8), (np.int64,) * 2])
def test_kernel_equals_plain_numpy(types, classes, ignore):
    rng = np.random.default_rng(classes)
    # Several blocks and a rest; regions, noise, and the ends of both types.
    draws = [rng.choice([0, 1, 2, 4, 126, 127, 128, 254, 255, 256, 299, -1, -128], 9001) for _ in types]
    truth, prediction = (
        np.repeat(draw, rng.integers(1, 6, draw.size))[:9001].astype(dtype)
        for draw, dtype in zip(draws, types, strict=True)
    )
    fast, plain = np.zeros((2, classes + 2, classes + 1), np.int64)
    for _ in range(2):  # both add to what is there
        count_pairs(truth, prediction, classes, ignore, fast)
        count_pairs_numpy(truth, prediction, classes, ignore, plain)
    assert (fast == plain).all()
    assert fast.sum() == 2 * truth.size


def test_the_plain_version_equals_a_loop():
    truth, prediction = [0, 1, 1, 9, -4, 2, 1], [0, 2, 1, 1, 0, 3, -1]
    expected = np.zeros((5, 4), int)
    for true, called in zip(truth, prediction, strict=True):
        row = 3 if true == 9 else true if 0 <= true < 3 else 4
        expected[row, called if 0 <= called < 3 else 3] += 1
    table = np.zeros((5, 4), int)
    count_pairs_numpy(np.array(truth), np.array(prediction), 3, 9, table)
    assert (table == expected).all()


def test_parts_of_an_image_and_read_only_arrays_are_counted_alike():
    rng = np.random.default_rng(0)
    truth, prediction = rng.integers(0, 4, (2, 40, 60))
    expected = confusion_counts(truth[::2, 1:].copy(), prediction[::2, 1:].copy(), classes=4)
    truth.flags.writeable = False
    assert (confusion_counts(truth[::2, 1:], prediction[::2, 1:], classes=4) == expected).all()
    swapped = truth[::2, 1:].astype(">i8"), prediction[::2, 1:].T.copy().T
    assert (confusion_counts(*swapped, classes=4) == expected).all()


def test_tensors_are_taken_as_they_are():
    torch = pytest.importorskip("torch")
    truth, prediction = torch.tensor([[0, 1], [1, 255]]), torch.tensor([[0, 1], [0, 0]], dtype=torch.uint8)
    assert confusion_counts(truth, prediction, classes=2).tolist() == [[1, 0, 0], [1, 1, 0]]


def test_an_empty_image_counts_nothing():
    assert confusion_counts(np.zeros((0, 5), int), np.zeros((0, 5), int), classes=3).sum() == 0


@pytest.mark.parametrize(("label", "dtype"), [(2, np.int64), (-1, np.int8), (-3, np.int64), (200, np.uint8)])
def test_a_true_label_without_a_name_is_an_error(label, dtype):
    with pytest.raises(ValueError, match=rf"label {label}, outside 0\.\.1"):
        confusion_counts(
            np.array([0, 255 if dtype == np.uint8 else 0, label]).astype(dtype), np.zeros(3, int), classes=2
        )


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"\(2,\), prediction \(3,\)"):
        confusion_counts(np.zeros(2, int), np.zeros(3, int), classes=2)


def test_probabilities_are_not_labels():
    with pytest.raises(ValueError, match="prediction: expected integers, got float64"):
        confusion_counts(np.zeros(2, int), np.array([0.2, 0.8]), classes=2)


@pytest.mark.parametrize("classes", [255, 256, 300, 4096, 4097, 22_000])
def test_by_default_no_class_is_ignored(classes):
    # 255 is the number of a class from 256 classes on.
    last = min(255, classes - 1)
    counts = PairCounts(classes)
    counts.add([0, last, last], [0, last, 0])
    assert counts.pairs()[2].sum() == 3
    if classes == 255:
        counts.add([255], [0])
        assert counts.pairs()[2].sum() == 3
    else:
        with pytest.raises(ValueError, match=f"ignore: 255 is one of the {classes} classes"):
            PairCounts(classes, 255)


def test_ignoring_a_class_is_an_error_with_a_way_out():
    with pytest.raises(
        ValueError, match=r"ignore: 0 is one of the 3 classes, 0\.\.2; give a number that is not a class"
    ):
        confusion_counts([0], [0], classes=3, ignore=0)
    assert choose_ignored(-1, 3) == -1


@pytest.mark.parametrize("numba", [True, False])
@given(seed=st.integers(0, 2**32 - 1), classes=st.integers(1, 300), ignore=st.sampled_from(["auto", None, -1, 70_000]))
def test_the_pairs_seen_are_the_cells_of_the_table(numba, seed, classes, ignore):
    rng = np.random.default_rng(seed)
    images = []
    for _ in range(3):
        pixels = int(rng.integers(0, 3000))
        truth = np.repeat(rng.integers(0, classes, pixels), rng.integers(1, 5, pixels))[:pixels]
        chosen = choose_ignored(ignore, classes)
        if chosen is not None:
            truth = np.where(rng.random(pixels) < 0.1, chosen, truth)
        images.append((truth, rng.integers(-2, classes + 2, pixels)))
    with pytest.MonkeyPatch.context() as patch:
        dense = PairCounts(classes, ignore)
        patch.setattr(module, "MAX_TABLE_CLASSES", 0)
        if not numba:
            patch.setattr(module, "load_kernels", lambda name: None)
        sparse, other = PairCounts(classes, ignore), PairCounts(classes, ignore)
        for index, maps in enumerate(images):
            dense.add(*maps)
            (other if index == 1 else sparse).add(*maps)
        sparse.merge(pickle.loads(pickle.dumps(other)))
        assert not sparse.is_table
        assert (sparse.table() == dense.table()).all()
        for one, same in zip(sparse.pairs(), dense.pairs(), strict=True):
            assert one.tolist() == same.tolist()


@pytest.mark.parametrize("limit", [0, 2048])
@pytest.mark.parametrize("numba", [True, False])
def test_a_wrong_image_leaves_the_counts_as_they_were(monkeypatch, limit, numba):
    monkeypatch.setattr(module, "MAX_TABLE_CLASSES", limit)
    if not numba:
        monkeypatch.setattr(module, "load_kernels", lambda name: None)
    counts = PairCounts(3)
    counts.add([0, 1, 2], [0, 0, 9])
    before = counts.table().tolist()
    with pytest.raises(ValueError, match=r"truth holds label 7, outside 0\.\.2"):
        counts.add([0, 7, 1], [0, 0, 1])
    assert counts.table().tolist() == before
    counts.add([255, 2], [0, 2])
    assert counts.pairs()[2].tolist() == [1, 1, 1, 1]


def test_memory_grows_with_the_pairs_and_not_with_the_classes():
    counts = PairCounts(100_000)
    tracemalloc.start()
    counts.add(np.arange(10_000) * 10, np.arange(10_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(counts.pairs()[0]) == 10_000
    assert peak < 4e6


def test_negative_counts_are_named():
    with pytest.raises(ValueError, match=r"confusion\[1, 0\]: expected a count, got -3"):
        confusion_costs([[1, 0], [-3, 1]], np.eye(2))


SIMILARITY = np.array([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])

CONFUSION = np.array([[50, 20, 3, 0], [0, 40, 0, 4], [0, 0, 30, 0]])


def test_by_either_cost():
    soft, hard = confusion_costs(CONFUSION, SIMILARITY), confusion_costs(CONFUSION, SIMILARITY, by="hard")
    assert list(zip(soft.true, soft.called, strict=True)) == [(1, 3), (0, 2), (0, 1)]
    assert soft.soft == pytest.approx([4, 2.7, 2])
    assert list(zip(hard.true, hard.called, hard.hard, strict=True)) == [(0, 1, 20), (1, 3, 4), (0, 2, 3)]


def test_only_the_dearest():
    assert confusion_costs(CONFUSION, SIMILARITY, by="hard", most=1).hard.tolist() == [20]


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_costs_add_up_to_what_the_scores_miss(seed, classes):
    rng = np.random.default_rng(seed)
    confusion = rng.integers(0, 5, (classes, classes + 1))
    similarity = np.maximum(rng.random((classes, classes)), np.eye(classes))
    costs = confusion_costs(confusion, similarity)
    for spent, counts in ((costs.hard, class_counts(confusion)), (costs.soft, soft_counts(confusion, similarity))):
        assert spent.sum() == pytest.approx((counts[1] - counts[0]).sum())


def test_a_square_matrix_has_no_nameless_label():
    assert 3 not in confusion_costs(CONFUSION[:, :3], SIMILARITY).called


def test_another_shape_is_named():
    with pytest.raises(ValueError, match=r"got \(2, 5\)"):
        confusion_costs(np.zeros((2, 5), int), np.eye(2))


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 300), st.sampled_from([None, 255, -3]),
    st.sampled_from(["int64", "int32", "uint8"]),
)  # fmt: skip
def test_pairs_that_are_counted_on_a_device_are_those_of_the_host(seed, classes, pixels, ignore, dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, pixels)
    if ignore is not None:
        truth[rng.random(pixels) < 0.2] = ignore
    # -3 is 253 as a byte, which is ignored by nobody.
    truth = truth if dtype != "uint8" or ignore != -3 else truth.clip(0)
    prediction = rng.integers(-2 if dtype != "uint8" else 0, classes + 2, pixels)
    maps = truth.astype(dtype), prediction.astype(dtype)
    expected = np.zeros((classes + 2, classes + 1), np.int64)
    count_pairs_numpy(*maps, classes, ignore, expected)
    # The device's function is called on the host: of a table and, with few pixels, of the pairs seen.
    cells, counts = module.count_pairs_on_device(*map(torch.from_numpy, maps), classes, ignore)
    table = np.zeros(classes * (classes + 1), np.int64)
    table[cells] = counts
    assert np.array_equal(table.reshape(classes, classes + 1), expected[:classes])


@pytest.mark.parametrize("classes", [3, 5000])
def test_tensors_on_a_device_have_the_errors_of_the_host(classes, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(module, "is_on_device", lambda *arrays: all(hasattr(one, "detach") for one in arrays))
    counts = PairCounts(classes)
    counts.add(torch.tensor([0, 1, 255 if classes == 3 else 2]), torch.tensor([0, 7000, 1]))
    before = [values.tolist() for values in counts.pairs()]
    assert before[:2] == ([[0, 1], [0, 3]] if classes == 3 else [[0, 1, 2], [0, 5000, 1]])
    for truth, prediction, words in (
        (torch.tensor([0, classes + 2]), torch.tensor([0, 0]), f"truth holds label {classes + 2}, outside"),
        (torch.tensor([0, -1]), torch.tensor([0, 0]), "truth holds label -1, outside"),
        (torch.tensor([0.0]), torch.tensor([0]), "truth: expected integers, got torch.float32"),
        (torch.tensor([0]), torch.tensor([0, 1]), r"truth has shape \(1,\), prediction \(2,\)"),
    ):
        with pytest.raises(ValueError, match=words):
            counts.add(truth, prediction)
        with pytest.raises(ValueError, match=words.replace("torch.", "")):
            PairCounts(classes).add(truth.numpy(), prediction.numpy())
    assert [values.tolist() for values in counts.pairs()] == before


@given(st.integers(0, 2**31), st.sampled_from([3, 40, 300]), st.sampled_from([1, 7, 64]))
def test_notes_are_sorted_into_the_pairs_however_few_fit(seed, classes, notes):
    kernels = pytest.importorskip("hardlook.metrics.kernels.confusion")
    rng = np.random.default_rng(seed)
    maps = [rng.integers(0, classes, (2, 50)) for _ in range(4)]
    # Longer than one note can count.
    maps.append((np.zeros(20_000, np.uint8), np.ones(20_000, np.uint8)))
    dense = PairCounts(classes, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "NOTES", notes)
        sparse = PairCounts(classes, None, most_in_table=0)
        for truth, prediction in maps:
            sparse.add(truth, prediction)
            dense.add(truth, prediction)
            with pytest.raises(ValueError, match="outside"):
                sparse.add(np.append(truth.astype(int), classes), np.append(prediction, 0))
        for one, same in zip(sparse.cells(), dense.cells(), strict=True):
            assert one.tolist() == same.tolist()


def test_pairs_of_very_many_classes_fit_their_notes():
    last = 2**24 - 2
    counts = PairCounts(last + 1, None)
    counts.add(np.full(9_000, last), np.full(9_000, last + 1))
    counts.add([0, last], [last, 0])
    assert [values.tolist() for values in counts.pairs()] == [[0, last, last], [last, 0, last + 1], [1, 1, 9_000]]
    with pytest.raises(ValueError, match="classes: expected at most 16777215, got 16777216"):
        PairCounts(last + 2)


def test_costs_of_the_pairs_seen_are_those_of_their_table():
    pairs = PairCounts(3)
    pairs.add([0, 0, 0, 1, 1, 2], [1, 1, 2, 3, 1, 0])
    expected = confusion_costs(pairs.table(), SIMILARITY)
    assert len(expected) == 4
    for similarity in (SIMILARITY, lambda true, called: SIMILARITY[true, called]):
        found = confusion_costs(pairs, similarity)
        for name in ("true", "called", "hard"):
            assert getattr(found, name).tolist() == getattr(expected, name).tolist()
        assert found.soft == pytest.approx(expected.soft)


def test_equal_costs_are_ordered_by_the_other_cost_then_by_label():
    similarity = np.array([[1, 0.5, 0, 0.5], [0.5, 1, 0, 0.5], [0, 0, 1, 0], [0.5, 0.5, 0, 1]])
    counts = np.zeros((4, 5), int)
    counts[0, 1], counts[0, 2], counts[3, 2], counts[1, 2], counts[1, 4] = 4, 2, 4, 2, 2
    soft, hard = confusion_costs(counts, similarity), confusion_costs(counts, similarity, by="hard")
    assert list(zip(soft.true.tolist(), soft.called.tolist(), strict=True)) == [(3, 2), (0, 1), (0, 2), (1, 2), (1, 4)]
    assert list(zip(hard.true.tolist(), hard.called.tolist(), strict=True)) == [(3, 2), (0, 1), (0, 2), (1, 2), (1, 4)]
    assert confusion_costs(counts, similarity, most=2).soft.tolist() == [4, 2]
