"""The torch version of learners equals the numpy version, on the processor here; a GPU runs the same code."""

import numpy as np
import pytest
from map_episodes import random_episode
from table_tasks import table_episodes
from vector_tasks import task

from hardlook.errors import ModelError
from hardlook.models.few_shot import on_device
from hardlook.models.few_shot.on_device import classify_on_device
from hardlook.models.registry import build
from hardlook.models.roles import Episode

torch = pytest.importorskip("torch")

VECTORS = [
    ("nearest-centroid", {}),
    ("cosine-centroid", {}),
    ("matching", {"scale": 10.0}),
    ("ridge", {"penalty": 0.5}),
]
MAPS = [
    ("dn4", {}),
    ("dn4", {"neighbours": 40}),
    ("covamnet", {}),
    ("covamnet", {"query": "descriptors"}),
    ("covamnet", {"query": "centred"}),
    ("frn", {}),
    ("frn", {"alpha": -1.0, "beta": 0.2, "downscale": False}),
    ("deepbdc", {}),
    ("deepbdc", {"dimension": 5}),
]

every_learner = pytest.mark.parametrize(("name", "args"), VECTORS + MAPS, ids=str)


def made(name, args):
    return build(name, "few-shot-learner", args)


def episodes_for(learner):
    if learner.accepts == "maps":
        return [random_episode(seed, shots) for seed in range(3) for shots in ((1, 1, 1), (2, 2, 2), (1, 3))]
    return [task(seed, shots=shots) for seed in range(3) for shots in (1, 5, [1, 4, 2, 3, 1])]


@every_learner
def test_equals_numpy(name, args):
    learner = made(name, args)
    episodes = episodes_for(learner)
    for ours, theirs in zip(classify_on_device(learner, episodes, "cpu"), learner.classify(episodes), strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5 * max(1, abs(theirs).max()))
        assert np.array_equal(ours.argmax(1), theirs.argmax(1))


@every_learner
def test_vectors_and_maps_of_zeros_are_finite(name, args):
    learner = made(name, args)
    [episode] = episodes_for(learner)[:1]
    silent = Episode(0 * episode.support, episode.support_labels, 0 * episode.query, episode.ways)
    [[ours], [theirs]] = classify_on_device(learner, [silent], "cpu"), learner.classify([silent])
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


@every_learner
@pytest.mark.parametrize("chunk", [1, 4])
def test_the_other_tasks_of_a_call_change_no_bit(name, args, chunk, monkeypatch):
    """At one size of chunks: a task alone, together with others, and in another place.

    DeepBDC multiplies many small matrices in one call. The bits of such a product depend on its place in the call on
    some processors (MKL on AMD), not on a GPU.
    """
    monkeypatch.setattr(on_device, "MAX_CHUNK", chunk)
    learner = made(name, args)
    shape = (320,) if learner.accepts == "features" else (6, 2, 3)
    episodes = list(table_episodes(6, shape=shape, count=7, shots=(3, 3, 3), queries=15))
    together = classify_on_device(learner, episodes, "cpu")
    turned = classify_on_device(learner, episodes[::-1], "cpu")[::-1]
    alone = [classify_on_device(learner, [episode], "cpu")[0] for episode in episodes]
    for one, other, single in zip(together, turned, alone, strict=True):
        if name == "deepbdc":
            np.testing.assert_allclose([one, one], [other, single], rtol=2e-5, atol=2e-6)
        else:
            assert np.array_equal(one, other) and np.array_equal(one, single)


@every_learner
def test_a_table_is_brought_once_and_gives_the_same_bits(name, args, monkeypatch):
    learner = made(name, args)
    shape = (24,) if learner.accepts == "features" else (6, 2, 3)
    episodes = table_episodes(3, shape=shape, read_only=True)
    by_rows = classify_on_device(learner, episodes, "cpu")
    resident = learner._resident[1]
    assert all(
        np.array_equal(one, other)
        for one, other in zip(by_rows, classify_on_device(learner, list(episodes), "cpu"), strict=True)
    )
    classify_on_device(learner, episodes[:2], "cpu")
    assert learner._resident[1] is resident
    other = table_episodes(4, shape=shape, read_only=True)
    assert not np.array_equal(classify_on_device(learner, other, "cpu")[0], by_rows[0])


def test_a_table_that_may_change_is_brought_again():
    learner, episodes = made("ridge", {}), table_episodes(3)
    before = classify_on_device(learner, episodes, "cpu")
    episodes.table[...] = episodes.table[::-1].copy()
    assert not np.array_equal(classify_on_device(learner, episodes, "cpu")[0], before[0])


def test_chunks_follow_from_the_shapes(monkeypatch):
    support, query = np.zeros((25, 1280), np.float32), np.zeros((75, 1280), np.float32)
    assert on_device.choose_chunk(support, query, 4.0) == on_device.MAX_CHUNK
    monkeypatch.setattr(on_device, "CHUNK_BYTES", 3 * 4 * (support.nbytes + query.nbytes))
    assert on_device.choose_chunk(support, query, 4.0) == 3
    assert on_device.choose_chunk(support, query, 1e9) == 1


def test_a_device_goes_to_torch_and_the_processor_does_not(monkeypatch):
    asked = []
    monkeypatch.setattr(on_device, "classify_on_device", lambda learner, episodes, device: asked.append(device))
    for device in ("", "cpu"):
        assert len(made("matching", {"device": device}).classify([task(0)])) == 1
    assert asked == []
    from hardlook.models.few_shot.matching import Matching

    assert Matching(device="cuda:1").classify([task(0)]) is None
    assert asked == ["cuda:1"]


def test_a_device_that_is_none():
    with pytest.raises(ModelError, match="no device 'gpu0'"):
        made("dn4", {"device": "gpu0"})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@every_learner
def test_a_gpu_gives_the_same_answers(name, args):
    learner = made(name, args)
    episodes = episodes_for(learner)
    for ours, theirs in zip(classify_on_device(learner, episodes, "cuda"), learner.classify(episodes), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5 * max(1, abs(theirs).max()))
        assert np.array_equal(ours.argmax(1), theirs.argmax(1))
