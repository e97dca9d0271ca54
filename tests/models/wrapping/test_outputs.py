"""Outputs of networks, read at the image's size; against the same computed by hand with torch."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_networks import resize

from hardlook.errors import ModelError
from hardlook.models.wrapping.class_names import ClassNames
from hardlook.models.wrapping.outputs import (
    MaskReading,
    find_queries,
    fit_maps,
    read_features,
    read_label_maps,
    read_masks,
    read_vectors,
    resize_maps,
    sigmoid,
    softmax,
)
from hardlook.models.wrapping.preprocessing import Prepared

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

SHAPE = Prepared({}, (12, 20), (6, 10), (6, 10))
PADDED = Prepared({}, (12, 20), (16, 32), (8, 16))
NAMES = ClassNames.of(["cat", "dog", "sky"])
READING = MaskReading()


def random_tensor(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 20), st.integers(1, 20), st.integers(1, 130))
@settings(max_examples=40, deadline=None)
def test_arrays_are_resized_as_tensors(height, width, rows, columns, channels):
    values = random_tensor(1, channels, height, width)
    expected = resize(values, (rows, columns))
    assert np.allclose(resize_maps(values.numpy(), (rows, columns)), expected.numpy(), atol=2e-5)
    assert torch.equal(resize_maps(values, (rows, columns)), expected)


def test_nothing_to_resize_keeps_its_shape():
    assert resize_maps(np.zeros((0, 1, 3, 3)), (5, 6)).shape == (0, 1, 5, 6)
    assert resize_maps(torch.zeros(0, 1, 3, 3), (5, 6)).shape == (0, 1, 5, 6)


def test_padding_is_cut_off_before_the_last_resize():
    values = random_tensor(1, 3, 4, 8)
    by_hand = resize(resize(values, (16, 32))[:, :, :8, :16], (12, 20))
    assert torch.equal(fit_maps(values, PADDED), by_hand)
    assert np.allclose(fit_maps(values.numpy(), PADDED), by_hand.numpy(), atol=1e-5)


@pytest.mark.parametrize("kind", [lambda values: values, lambda values: values.numpy()], ids=["tensor", "array"])
@pytest.mark.parametrize(
    "put",
    [
        lambda values: values,
        lambda values: (values, -values),
        lambda values: {"out": values, "aux": -values},
        lambda values: {"logits": values},
        lambda values: {"anything": values},
        lambda values: SimpleNamespace(logits=values),
    ],
    ids=["plain", "tuple", "out and aux", "logits", "only entry", "attribute"],
)
def test_logits_are_resized_before_the_largest_is_taken(kind, put):
    values = random_tensor(2, 3, 3, 5)
    expected = resize(values, (12, 20)).argmax(1).numpy()
    maps = read_label_maps(put(kind(values)), [SHAPE, SHAPE], NAMES, READING)
    assert [one.dtype for one in maps] == [np.int32] * 2
    assert np.mean(np.stack(maps) == expected) == 1


@pytest.mark.parametrize("kind", [lambda values: values, lambda values: values.numpy()], ids=["tensor", "array"])
def test_a_class_that_is_ruled_out_is_never_chosen(kind):
    logits = random_tensor(1, 3, 6, 10)
    without = kind(logits.clone())
    without[:, 1] = -float("inf")
    expected = resize(logits[:, [0, 2]], (12, 20))[0].argmax(0).numpy() * 2
    [labels] = read_label_maps(without, [SHAPE], NAMES, READING)
    assert np.array_equal(labels, expected)


@pytest.mark.parametrize("kind", [lambda values: values, lambda values: values.numpy()], ids=["tensor", "array"])
def test_nan_is_no_answer(kind):
    logits = random_tensor(1, 3, 6, 10)
    logits[0, 1, 2, 3] = float("nan")
    with pytest.raises(ModelError, match="the network's output holds NaN"):
        read_label_maps(kind(logits), [SHAPE], NAMES, READING)
    with pytest.raises(ModelError, match="the map holds NaN"):
        read_masks(kind(logits[:, :2]), [SHAPE], READING, "the map")
    with pytest.raises(ModelError, match="the map holds NaN"):
        read_masks(kind(logits[:, 1:2]), [SHAPE], MaskReading(activation="sigmoid"), "the map")


def test_half_precision_is_read_as_float32():
    values = random_tensor(1, 3, 3, 5).to(torch.bfloat16)
    [labels] = read_label_maps(values, [SHAPE], NAMES, READING)
    assert np.array_equal(labels, resize(values.float(), (12, 20)).argmax(1)[0].numpy())


def test_maps_of_classes_are_resized_by_the_nearest():
    values = torch.randint(-1, 3, (1, 6, 10), generator=torch.Generator().manual_seed(0))
    expected = torch.nn.functional.interpolate(values[None].float(), size=(12, 20))[0, 0].int().numpy()
    for raw in (values, values[:, None], values.numpy().astype(np.int8)):
        [labels] = read_label_maps(raw, [SHAPE], NAMES, READING)
        assert np.array_equal(labels, expected)


def test_one_channel_is_two_classes():
    values = random_tensor(1, 1, 6, 10)
    names = ClassNames.of(["rest", "road"])
    [labels] = read_label_maps(values, [SHAPE], names, MaskReading(activation="sigmoid"))
    assert np.array_equal(labels, (resize(values.sigmoid(), (12, 20)) > 0.5)[0, 0].int().numpy())


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (torch.zeros(1, 4, 3, 3), r"Tensor \(1, 4, 3, 3\) of torch.float32 has 4 classes"),
        (torch.zeros(1, 1, 3, 3), "has 1 classes"),
        (torch.zeros(1, 3), r"gives torch Tensor \(1, 3\) of torch.float32, which is not understood"),
        (torch.zeros(1, 6, 10), r"Tensor \(1, 6, 10\) of torch.float32, which is not understood"),
        (torch.zeros(2, 3, 3, 3), r"\(2, 3, 3, 3\)"),
        ({"a": torch.zeros(1), "b": 3}, r"a dict of 'a': torch Tensor \(1,\) of torch.float32, 'b': int"),
        ([], "a list of 0"),
        (object(), "builtins.object"),
        (None, "NoneType"),
    ],
)
def test_what_is_not_understood_is_described(raw, words):
    with pytest.raises(ModelError, match=words):
        read_label_maps(raw, [SHAPE], NAMES, READING)


def test_masks_of_one_channel_are_probabilities():
    soft = random_tensor(2, 1, 6, 10).sigmoid()
    expected = resize(soft, (12, 20))[:, 0].numpy()
    for raw in (soft, soft[:, 0], {"out": soft}, (soft, None)):
        assert np.allclose(np.stack(read_masks(raw, [SHAPE] * 2, READING, "it")), expected, atol=1e-6)
    assert np.allclose(np.stack(read_masks(soft.numpy(), [SHAPE] * 2, READING, "it")), expected, atol=1e-6)
    [hard] = read_masks(soft[:1] > 0.5, [SHAPE], READING, "it")
    assert (hard.dtype, hard.shape) == (np.float32, (12, 20))


def test_logits_are_not_taken_for_probabilities():
    logits = 3 * random_tensor(1, 1, 6, 10)
    with pytest.raises(ModelError, match=r"the map has values from -.* which are not probabilities") as caught:
        read_masks(logits, [SHAPE], READING, "the map")
    assert 'activation="sigmoid"' in str(caught.value)
    [soft] = read_masks(logits, [SHAPE], MaskReading(activation="sigmoid"), "the map")
    assert np.allclose(soft, resize(logits.sigmoid(), (12, 20))[0, 0].numpy(), atol=1e-6)
    with pytest.raises(ModelError, match="not probabilities"):
        read_masks(logits * float("nan"), [SHAPE], READING, "the map")


def test_two_channels_are_background_and_object():
    logits = random_tensor(1, 2, 6, 10)
    [soft] = read_masks(logits, [SHAPE], READING, "it")
    assert np.allclose(soft, resize(logits, (12, 20)).softmax(1)[0, 1].numpy(), atol=1e-6)
    with pytest.raises(ModelError, match="a mask is"):
        read_masks(random_tensor(1, 3, 6, 10), [SHAPE], READING, "it")


def test_vectors_and_maps():
    vectors, maps = random_tensor(2, 5), random_tensor(2, 5, 3, 4)
    plain = read_features(vectors, [SHAPE] * 2)
    assert np.array_equal(plain.vectors, vectors.numpy())
    assert plain.maps is None
    for raw in (maps, [random_tensor(2, 3, 6, 8), maps], {"layer4": maps}, SimpleNamespace(feature_maps=(maps,))):
        pooled = read_features(raw, [SHAPE] * 2)
        assert np.allclose(pooled.vectors, maps.mean((2, 3)).numpy(), atol=1e-6)
        assert np.array_equal(np.stack(pooled.maps), maps.numpy())
    both = read_features({"last_hidden_state": maps, "pooler_output": vectors[:, :, None, None]}, [SHAPE] * 2)
    assert np.array_equal(both.vectors, vectors.numpy())
    assert np.array_equal(np.stack(both.maps), maps.numpy())
    chosen = read_features({"image_embeds": vectors, "pooler_output": -vectors}, [SHAPE] * 2)
    assert np.array_equal(chosen.vectors, vectors.numpy())


def test_tokens_of_patches():
    tokens = random_tensor(1, 2 + 3 * 5, 4)  # the class, a register, and 3 x 5 patches of two pixels
    found = read_features({"last_hidden_state": tokens, "pooler_output": None}, [SHAPE], (2, 2))
    assert np.array_equal(found.vectors, tokens[:, 0].numpy())
    assert np.array_equal(found.maps[0], tokens[0, 2:].reshape(3, 5, 4).permute(2, 0, 1).numpy())
    alone = read_features(tokens[:, 2:], [SHAPE], (2, 2))
    assert np.allclose(alone.vectors, tokens[:, 2:].mean(1).numpy(), atol=1e-6)
    with pytest.raises(ModelError, match="an encoder gives vectors"):
        read_features(tokens, [SHAPE])
    with pytest.raises(ModelError, match=r"\(2, 5\)"):
        read_features(random_tensor(2, 5), [SHAPE])


def test_vectors_of_length_one():
    vectors = random_tensor(3, 5)
    expected = torch.nn.functional.normalize(vectors, dim=1).numpy()
    for raw in (vectors, {"text_embeds": vectors}, SimpleNamespace(pooler_output=vectors), (vectors, None)):
        assert np.allclose(read_vectors(raw, 3), expected, atol=1e-6)
    with pytest.raises(ModelError, match="an encoder of images and texts gives"):
        read_vectors(vectors, 2)


@given(st.lists(st.floats(-200, 200, width=32), min_size=1, max_size=9))
def test_probabilities_are_torchs(values):
    tensor = torch.tensor(values)
    assert np.allclose(sigmoid(tensor.numpy()), tensor.sigmoid().numpy(), atol=1e-6)
    assert np.allclose(softmax(tensor.numpy()), tensor.softmax(0).numpy(), atol=1e-6)


def test_queries_label_by_the_sum_of_class_times_mask():
    classes, masks = random_tensor(1, 7, 4), random_tensor(1, 7, 3, 5, seed=1)
    raw = {"class_queries_logits": classes, "masks_queries_logits": masks}
    sums = torch.einsum("bqc,bqhw->bchw", classes.softmax(-1)[..., :-1], masks.sigmoid())
    [labels] = read_label_maps(raw, [SHAPE], NAMES, READING)
    assert np.mean(labels == resize(sums, (12, 20)).argmax(1)[0].numpy()) > 0.999
    with pytest.raises(ModelError, match="has 4 classes, and `classes` has 2 names"):
        read_label_maps(raw, [SHAPE], ClassNames.of(["cat", "dog"]), READING)
    with pytest.raises(ModelError, match="boxes and no masks"):
        read_label_maps({"logits": classes, "pred_boxes": torch.zeros(1, 7, 4)}, [SHAPE], NAMES, READING)
    assert find_queries(torch.zeros(1, 3)) is None
    assert find_queries({"logits": torch.zeros(1, 3, 4, 4)}) is None
