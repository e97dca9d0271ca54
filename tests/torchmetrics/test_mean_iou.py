"""MeanIoU and OpenMeanIoU of training loops equal hardlook.metrics bit for bit, and torchmetrics' Jaccard index."""

import pickle

import numpy as np
import pytest

pytest.importorskip("torchmetrics", reason="needs the extra torchmetrics")
import torch
from torchmetrics import JaccardIndex, MetricCollection
from torchmetrics.segmentation import MeanIoU as MeanOverImages
from training_batches import CLASSES, LABELS, MANY, SIMILARITY, label_maps, same

from hardlook import metrics
from hardlook.errors import DataError, OptionError
from hardlook.torchmetrics import MeanIoU, OpenMeanIoU

BATCHES = [label_maps(seed, images=2 + seed % 3) for seed in range(5)]
PREDS, TARGET = (torch.cat(maps) for maps in zip(*BATCHES, strict=True))


def alike(true, called):
    """A similarity of very many labels, as a function."""
    return np.where(true == called, 1.0, 1 / (2 + (true + called) % 7))


def plain_scores(preds, target, labels=LABELS, similarity=SIMILARITY, **options):
    """All scores of hardlook.metrics in one pass, under the names of the scores on the command line."""
    metric = metrics.OpenMeanIoU(labels, similarity, **options)
    metric.update(target.numpy(), preds.numpy())
    result = metric.compute()
    fields = {"miou": "miou", "pixel-accuracy": "pacc", "mean-accuracy": "macc", "fw-iou": "fwiou"}
    if options.get("seen") is not None:
        fields |= {"miou-seen": "seen", "miou-unseen": "unseen", "miou-harmonic": "harmonic"}
    return {
        prefix + name: getattr(scores, field)
        for prefix, scores in (("open-", result.open), ("", result.vanilla))
        for name, field in fields.items()
    }


@pytest.mark.parametrize("seen", [None, [True, False, True, True]])
@pytest.mark.parametrize("mean_over", ["detectron2", "gt-only"])
def test_updates_and_forward_equal_one_pass(seen, mean_over):
    options = {"mean_over": mean_over, "seen": seen}
    by_update = OpenMeanIoU(LABELS, SIMILARITY, **options)
    by_forward = OpenMeanIoU(LABELS, SIMILARITY, **options)
    for preds, target in BATCHES:
        by_update.update(preds, target)
        assert same(by_forward(preds, target), plain_scores(preds, target, **options))
    expected = plain_scores(PREDS, TARGET, **options)
    assert same(by_update.compute(), expected)
    assert same(by_forward.compute(), expected)
    by_update.reset()
    by_update.update(*BATCHES[1])
    assert same(by_update.compute(), plain_scores(*BATCHES[1], **options))


def test_mean_iou_equals_one_pass_and_the_jaccard_index():
    plain, metric = metrics.MeanIoU(CLASSES), MeanIoU(CLASSES)
    # Predictions that are no label are none of torchmetrics' inputs.
    preds = PREDS.clamp(0, CLASSES - 1)
    theirs = JaccardIndex(task="multiclass", num_classes=CLASSES, average="macro", ignore_index=255)
    for part in range(0, len(preds), 4):
        metric.update(preds[part : part + 4], TARGET[part : part + 4])
    plain.update(TARGET.numpy(), preds.numpy())
    theirs.update(preds, TARGET)
    assert same(metric.compute(), plain.compute())
    assert float(metric.compute()) == pytest.approx(float(theirs.compute()), abs=1e-6)


def test_torchmetrics_mean_over_images_is_the_mean_of_ours_for_each():
    preds, target = label_maps(9, images=4, shape=(20, 20), ignore=1)
    preds = preds.clamp(0, CLASSES - 1)
    theirs = MeanOverImages(num_classes=CLASSES, input_format="index")
    theirs.update(preds, target)
    metric = MeanIoU(CLASSES)
    single = [float(metric(one[None], other[None])) for one, other in zip(preds, target, strict=True)]
    assert np.mean(single) == pytest.approx(float(theirs.compute()), abs=1e-6)
    assert abs(float(metric.compute()) - float(theirs.compute())) > 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_logits_are_read_by_their_highest(dtype):
    target = TARGET
    logits = torch.randn((len(target), CLASSES, *target.shape[1:]), generator=torch.Generator().manual_seed(1))
    logits = logits.to(dtype).requires_grad_()
    expected = plain_scores(logits.detach().float().argmax(1), target)
    metric = OpenMeanIoU(LABELS, SIMILARITY)
    assert same(metric(logits, target), expected)
    single = OpenMeanIoU(LABELS, SIMILARITY)
    for scores, labels in zip(logits, target, strict=True):
        single.update(scores, labels)
    assert same(single.compute(), expected)


def test_bytes_and_any_layout():
    preds, target = PREDS.clamp(min=0).to(torch.uint8), TARGET.to(torch.uint8)
    metric = OpenMeanIoU(LABELS, SIMILARITY)
    metric.update(preds.transpose(1, 2), target.transpose(1, 2))
    assert same(metric.compute(), plain_scores(preds, target))


def test_very_many_classes_keep_the_pairs_seen():
    labels = [f"label {k}" for k in range(MANY)]
    batches = [label_maps(seed, MANY, images=1, ignore=-7) for seed in range(40)]
    metric = OpenMeanIoU(labels, alike, -7)
    for preds, target in batches:
        metric.update(preds, target)
        assert len(metric.pairs) <= 17
    preds, target = (torch.cat(maps) for maps in zip(*batches, strict=True))
    expected = plain_scores(preds, target, labels, alike, ignore_index=-7)
    assert same(metric.compute(), expected)
    other = OpenMeanIoU(labels, alike, -7)
    for batch in batches:
        other(*batch)
    assert same(other.compute(), expected)


def test_merged_pickled_cloned_and_restored_states_go_on():
    parts = [OpenMeanIoU(LABELS, SIMILARITY) for _ in range(2)]
    for number, batch in enumerate(BATCHES):
        parts[number % 2].update(*batch)
    first = float(parts[0].compute()["miou"])
    parts[0].merge_state(parts[1])
    expected = plain_scores(PREDS, TARGET)
    assert first != expected["miou"]
    assert same(parts[0].compute(), expected)
    fresh = OpenMeanIoU(LABELS, SIMILARITY)
    fresh.merge_state(parts[0])
    assert same(fresh.compute(), expected)
    again = pickle.loads(pickle.dumps(parts[0]))
    again.update(*BATCHES[0])
    assert same(parts[0].compute(), expected)
    twice = torch.cat([PREDS, BATCHES[0][0]]), torch.cat([TARGET, BATCHES[0][1]])
    assert same(again.compute(), plain_scores(*twice))
    assert same(again.clone().compute(), plain_scores(*twice))
    parts[0].persistent(True)
    restored = OpenMeanIoU(LABELS, SIMILARITY)
    restored.load_state_dict(parts[0].state_dict())
    restored.update(*BATCHES[0])
    assert same(restored.compute(), plain_scores(*twice))


def test_the_type_of_the_network_does_not_change_counts():
    metric = OpenMeanIoU(LABELS, SIMILARITY)
    metric.update(PREDS, TARGET)
    network = torch.nn.ModuleDict({"metric": metric})
    network.half().to(torch.bfloat16)
    metric.set_dtype(torch.float16)
    assert metric.counts.dtype == torch.int64
    assert same(metric.to("cpu").compute(), plain_scores(PREDS, TARGET))


def test_a_collection_shares_one_state_between_similarities_and_only_these():
    named = {"near": (SIMILARITY, 255), "exact": (np.eye(CLASSES), 255), "other": (SIMILARITY, -9)}
    collection = MetricCollection({name: OpenMeanIoU(LABELS, *given) for name, given in named.items()})
    batches = [(preds, target.clamp(max=CLASSES - 1)) for preds, target in BATCHES]
    collection.update(*batches[0])  # nothing to ignore: the states of all three are equal
    assert sorted(map(sorted, collection.compute_groups.values())) == [["exact", "near"], ["other"]]
    for batch in batches[1:]:
        collection.update(*batch)
    scores = collection.compute()
    target = TARGET.clamp(max=CLASSES - 1)
    for name, (similarity, _) in named.items():
        assert float(scores[f"{name}_open-miou"]) == plain_scores(PREDS, target, similarity=similarity)["open-miou"]
    with pytest.raises(DataError, match="truth holds label 255"):
        collection.update(*BATCHES[0])


def test_names_of_a_collection_say_which_metric():
    collection = MetricCollection({"a": OpenMeanIoU(LABELS, SIMILARITY), "b": MeanIoU(CLASSES)}, prefix="val/")
    for preds, target in BATCHES:
        collection.update(preds, target)
    scores = collection.compute()
    expected = plain_scores(PREDS, TARGET)
    assert {"val/b", "val/open-miou", "val/miou"} <= set(scores)
    assert float(scores["val/b"]) == float(scores["val/miou"]) == expected["miou"]


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning", "ignore::DeprecationWarning")  # Lightning's
def test_a_lightning_module_logs_the_metric_over_the_epoch(tmp_path):
    """In training and validation, given as an object: Lightning computes it over the epoch and resets it."""
    lightning = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))
            self.own = OpenMeanIoU(LABELS, SIMILARITY)
            self.collection = MetricCollection({"closed": MeanIoU(CLASSES)})
            self.epochs = []

        def training_step(self, batch):
            self.log_dict({f"step-{name}": value for name, value in self.own(*batch).items()})
            return self.weight.sum()

        def on_train_epoch_end(self):
            self.epochs.append(self.own.compute())
            self.own.reset()

        def validation_step(self, batch):
            self.collection.update(*batch)

        def on_validation_epoch_end(self):
            self.log_dict(self.collection.compute())
            self.collection.reset()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    module = Module()
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, default_root_dir=tmp_path,
    )  # fmt: skip
    loader = torch.utils.data.DataLoader(BATCHES, batch_size=None)
    trainer.fit(module, loader, loader)
    expected = plain_scores(PREDS, TARGET)
    assert len(module.epochs) == 2 and all(same(epoch, expected) for epoch in module.epochs)
    last = plain_scores(*BATCHES[-1])
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    assert logged["step-open-miou"] == pytest.approx(last["open-miou"])
    plain = metrics.MeanIoU(CLASSES)
    plain.update(TARGET.numpy(), PREDS.numpy())
    assert logged["closed"] == pytest.approx(plain.compute())


def test_inference_mode_and_training_share_a_metric():
    metric = OpenMeanIoU(LABELS, SIMILARITY)
    with torch.inference_mode():
        metric.reset()
        metric.update(*BATCHES[0])
    metric.update(*BATCHES[1])
    joined = (torch.cat(maps) for maps in zip(*BATCHES[:2], strict=True))
    assert same(metric.compute(), plain_scores(*joined))


def test_single_classes_and_confusion_come_from_the_plain_metric():
    metric = OpenMeanIoU(LABELS, SIMILARITY)
    metric.update(PREDS, TARGET)
    plain = metrics.OpenMeanIoU(LABELS, SIMILARITY)
    plain.update(TARGET, PREDS)
    assert np.array_equal(metric.build_metric().confusion, plain.confusion)
    assert np.array_equal(metric.build_metric().compute().open.per_class, plain.compute().open.per_class)


@pytest.mark.parametrize(
    ("preds", "target", "words"),
    [
        (torch.zeros(2, 5, 4, 4), torch.zeros(2, 4, 4).long(), r"logits of shape \(2, 4, 4, 4\), got \(2, 5, 4, 4\)"),
        (torch.zeros(2, 4, 4), torch.zeros(2, 4, 4).long(), "prediction: expected integers, got float32"),
        (torch.zeros(2, 4, 4).long(), torch.zeros(2, 8, 8).long(), r"label ids of shape \(2, 8, 8\)"),
        (torch.zeros(2, 4, 4).long(), torch.full((2, 4, 4), 7), "truth holds label 7, outside 0..3"),
        (torch.full((1, 4, 2, 2), torch.nan), torch.zeros(1, 2, 2).long(), "the logits hold NaN"),
        (torch.zeros(2, 4, 4, device="meta").long(), torch.zeros(2, 4, 4).long(), "preds are on meta, target on cpu"),
    ],
)
def test_bad_input_is_named_with_a_remedy_and_leaves_the_state(preds, target, words):
    metric = OpenMeanIoU(LABELS, SIMILARITY)
    metric.update(*BATCHES[0])
    with pytest.raises(DataError, match=words) as error:
        metric.update(preds, target)
    assert error.value.remedy
    assert same(metric.compute(), plain_scores(*BATCHES[0]))


def test_bad_options_are_named():
    with pytest.raises(OptionError, match=r"similarity\[0, 1\]: expected a number from 0 to 1, got 2"):
        OpenMeanIoU(["a", "b"], [[1, 2], [2, 1]])
    with pytest.raises(OptionError, match="ignore: 1 is one of the 2 classes"):
        MeanIoU(2, ignore=1)


def test_states_of_other_labels_are_not_mixed():
    metric, other = OpenMeanIoU(LABELS, SIMILARITY), OpenMeanIoU(LABELS[::-1], SIMILARITY)
    for one in (metric, other):
        one.update(*BATCHES[0])
    with pytest.raises(OptionError, match="same labels and options"):
        metric.merge_state(other)
    other.persistent(True)
    metric.load_state_dict(other.state_dict())
    with pytest.raises(OptionError, match="same labels and options"):
        metric.compute()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_the_value_is_the_same():
    for labels, similarity, ignore in ((LABELS, SIMILARITY, 255), ([str(k) for k in range(MANY)], alike, -7)):
        preds, target = label_maps(1, len(labels), images=2, ignore=ignore)
        expected = plain_scores(preds, target, labels, similarity, ignore_index=ignore)
        for device in ("cpu", "cuda"):
            metric = OpenMeanIoU(labels, similarity, ignore).to(device)
            metric.update(preds.cuda(), target.cuda())
            assert same(metric.compute(), expected)
