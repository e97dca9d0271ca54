"""OpenPQ of training loops equals hardlook.metrics bit for bit; its vanilla PQ is torchmetrics'."""

import pickle

import numpy as np
import pytest

pytest.importorskip("torchmetrics", reason="needs the extra torchmetrics")
import torch
from torchmetrics import MetricCollection
from torchmetrics.detection import PanopticQuality
from training_batches import LABELS, SIMILARITY, THINGS, panoptic_maps, plain_pq, same

from hardlook.errors import DataError, OptionError
from hardlook.metrics import panoptic
from hardlook.torchmetrics import OpenPQ, open_pq

BATCHES = [panoptic_maps(seed, images=2 + seed % 2) for seed in range(5)]
PREDS, TARGET = (torch.cat(maps) for maps in zip(*BATCHES, strict=True))


def flatten(result, groups=("all", "things", "stuff")):
    suffixes = {"all": "", "things": "-things", "stuff": "-stuff", "known": "-known", "unknown": "-unknown"}
    return {
        f"{prefix}{kind}{suffixes[group]}": getattr(getattr(scores, group), kind)
        for prefix, scores in (("open-", result.open), ("", result.vanilla))
        for group in groups
        for kind in ("pq", "sq", "rq")
    }


def make_metric(**options):
    return OpenPQ(LABELS, SIMILARITY, THINGS, **options)


def test_updates_and_forward_equal_one_pass():
    by_update, by_forward = make_metric(), make_metric()
    for preds, target in BATCHES:
        by_update.update(preds, target)
        assert same(by_forward(preds, target), flatten(plain_pq(preds, target).compute()))
    expected = flatten(plain_pq(PREDS, TARGET).compute())
    assert 0 < expected["pq"] < expected["open-pq"] < 1
    assert same(by_update.compute(), expected)
    assert same(by_forward.compute(), expected)
    one_by_one = make_metric()
    for preds, target in zip(PREDS, TARGET, strict=True):
        one_by_one.update(preds, target)
    assert same(one_by_one.compute(), expected)
    by_update.reset()
    by_update.update(*BATCHES[2])
    assert same(by_update.compute(), flatten(plain_pq(*BATCHES[2]).compute()))


def test_known_classes_have_scores_of_their_own():
    known = [True, False, True, True]
    metric, plain = make_metric(known=known), plain_pq(PREDS, TARGET)
    plain.known = known
    metric.update(PREDS, TARGET)
    assert same(metric.compute(), flatten(plain.compute(), ("all", "things", "stuff", "known", "unknown")))


def test_vanilla_scores_are_those_of_torchmetrics():
    # Without void in predictions: torchmetrics then also excuses missed segments, which panopticapi does not.
    batches = [panoptic_maps(seed, images=4, void_predictions=False) for seed in range(10, 14)]
    theirs = PanopticQuality(things={0, 1}, stuffs={2, 3}, return_sq_and_rq=True)
    metric = make_metric()
    for preds, target in batches:
        theirs.update(preds, target)
        metric.update(preds, target)
    scores = metric.compute()
    values = [float(scores[name]) for name in ("pq", "sq", "rq")]
    assert values == pytest.approx(theirs.compute().tolist(), abs=1e-6)
    assert values[0] > 0.1


def test_merged_pickled_cloned_and_restored_states_go_on():
    expected = flatten(plain_pq(PREDS, TARGET).compute())
    parts = make_metric(), make_metric()
    for number, batch in enumerate(BATCHES[:-1]):
        parts[number % 2].update(*batch)
    parts[0].merge_state(parts[1])
    parts[0].persistent(True)
    restored = make_metric()
    restored.load_state_dict(parts[0].state_dict())
    for metric in (parts[0], pickle.loads(pickle.dumps(parts[0])), parts[0].clone(), restored):
        metric.update(*BATCHES[-1])
        assert same(metric.to("cpu").half().compute(), expected)


@pytest.mark.parametrize("shift", [0, 10**6, -(2**62)])
def test_any_numbers_of_instances(shift):
    def moved(maps):
        # Instances 2**61 apart: their span times the classes does not fit into 64 bits.
        return torch.stack([maps[..., 0], maps[..., 1] * (2**56 if shift < 0 else 1) + shift // 2], -1)

    metric = make_metric()
    metric.update(moved(PREDS), moved(TARGET))
    assert same(metric.compute(), flatten(plain_pq(PREDS, TARGET).compute()))


def test_maps_that_are_counted_on_their_device_give_the_same(monkeypatch):
    on_device = lambda *arrays: all(hasattr(one, "detach") for one in arrays)  # noqa: E731
    monkeypatch.setattr(panoptic, "is_on_device", on_device)
    monkeypatch.setattr(open_pq, "is_on_device", on_device)
    metric = make_metric()
    metric.update(PREDS, TARGET)
    assert same(metric.compute(), flatten(plain_pq(PREDS, TARGET).compute()))


def test_a_collection_keeps_the_states_of_other_things_apart():
    one_segment = torch.tensor([[[[0, 1], [0, 1], [2, 0]]]])  # things or not, the segments are the same
    collection = MetricCollection({"some": make_metric(), "none": OpenPQ(LABELS, SIMILARITY, [False] * 4)})
    collection.update(one_segment, one_segment)
    assert len(collection.compute_groups) == 2
    collection.reset()
    collection.update(PREDS, TARGET)
    scores = collection.compute()
    assert float(scores["some_pq"]) == flatten(plain_pq(PREDS, TARGET).compute())["pq"] != float(scores["none_pq"])
    assert np.isnan(float(scores["none_pq-things"]))


@pytest.mark.parametrize(
    ("preds", "target", "words"),
    [
        (torch.zeros(1, 4, 4, 2), torch.zeros(1, 4, 4, 2).long(), "preds: expected integers, got torch.float32"),
        (torch.zeros(1, 4, 4).long(), torch.zeros(1, 4, 4).long(), r"one shape \(N, H, W, 2\), got preds \(1, 4, 4\)"),
        (torch.zeros(1, 4, 4, 2).long(), torch.zeros(2, 4, 4, 2).long(), r"target \(2, 4, 4, 2\)"),
        (torch.zeros(1, 2, 2, 2).long(), torch.full((1, 2, 2, 2), 4), "target: expected categories 0 to 3, got 4"),
        (torch.full((1, 2, 2, 2), -1), torch.zeros(1, 2, 2, 2).long(), "preds: expected categories 0 to 3, got -1"),
    ],
)
def test_bad_input_is_named_with_a_remedy_and_leaves_the_state(preds, target, words):
    metric = make_metric()
    metric.update(*BATCHES[0])
    with pytest.raises(DataError, match=words) as error:
        metric.update(preds, target)
    assert error.value.remedy
    assert same(metric.compute(), flatten(plain_pq(*BATCHES[0]).compute()))


def test_another_number_for_void_and_none():
    metric = make_metric(ignore=-1)
    metric.update(PREDS.masked_fill(PREDS == 255, -1), TARGET.masked_fill(TARGET == 255, -1))
    assert same(metric.compute(), flatten(plain_pq(PREDS, TARGET).compute()))
    with pytest.raises(DataError, match="expected categories 0 to 3, got 255"):
        make_metric(ignore=None).update(PREDS, TARGET)
    with pytest.raises(OptionError, match="ignore: 2 is one of the 4 classes"):
        make_metric(ignore=2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_the_value_is_the_same():
    for device in ("cpu", "cuda"):
        metric = make_metric().to(device)
        metric.update(PREDS.cuda(), TARGET.cuda())
        assert same(metric.compute(), flatten(plain_pq(PREDS, TARGET).compute()))
