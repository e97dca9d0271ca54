"""Mean IoU and open mIoU of logits or label maps."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hardlook import metrics
from hardlook.errors import DataError, OptionError
from hardlook.metrics.arrays import PairSimilarity, Values, as_numpy
from hardlook.metrics.confusion import Ignored, PairCounts
from hardlook.metrics.mean_iou import MeanOver
from hardlook.metrics.open_miou import MiouScores
from hardlook.torchmetrics.accumulator import Accumulator, check_devices, explain, load_torch

if TYPE_CHECKING:
    from torch import Tensor

# Up to this many classes the state is a table of counts (8 MB), above it the pairs of labels that were seen.
MAX_TABLE_CLASSES = 1024
# Lists of counts that are kept before they are added up.
MAX_PARTS = 16


class PairAccumulator(Accumulator):
    """Counts of (true, predicted) labels of pixels."""

    counts: Tensor
    pairs: list[Tensor]

    def _add_counts(self, classes: int, ignore: int | None) -> None:
        self._classes, self._ignore = classes, ignore
        if classes <= MAX_TABLE_CLASSES:
            torch = load_torch()
            self.add_state("counts", torch.zeros((classes, classes + 1), dtype=torch.int64), dist_reduce_fx="sum")
        else:
            self.add_state("pairs", [], dist_reduce_fx="cat")
            self._lists = ("pairs",)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: `target` (N, H, W) label ids, `preds` the same or logits (N, K, H, W).

        One image without the axis N, and volumes with a further axis, are taken as well. Label maps that are on a GPU
        are counted there, and only the counts are copied.
        """
        labels = _take_labels(preds, target, self._classes)
        added = PairCounts(self._classes, self._ignore, most_in_table=MAX_TABLE_CLASSES)
        with explain(f"number the labels 0 to {self._classes - 1}; pass the number of unlabelled pixels as ignore"):
            added.add(target, labels)
        if added.is_table:
            # A new tensor: one that was made in inference mode cannot be changed outside it.
            self.counts = self.counts + load_torch().from_numpy(added.table()).to(self.counts.device)
            return
        self.add_records("pairs", [added.cells()])
        if len(self.pairs) > MAX_PARTS:
            joined = self._count().cells()
            self.pairs.clear()
            self.add_records("pairs", [joined])

    def _count(self) -> PairCounts:
        """All pairs so far."""
        self.check_settings(self.settings)
        counts = PairCounts(self._classes, self._ignore)
        if self._lists:
            for cells, pixels in self.read_records("pairs", "ii"):
                counts.add_cells(cells, pixels)
        else:
            table = as_numpy(self.counts).reshape(-1)
            cells = np.flatnonzero(table)
            counts.add_cells(cells, table[cells])
        return counts


class MeanIoU(PairAccumulator):
    """Mean IoU over classes of all pixels together; the options are those of `hardlook.metrics.MeanIoU`.

    `torchmetrics.segmentation.MeanIoU` is another measure: the mean over images of each image's mean.
    `torchmetrics.JaccardIndex` with `average="macro"` is the same.

    >>> import torch
    >>> metric = MeanIoU(classes=3)
    >>> metric(torch.tensor([[[0, 1]]]), torch.tensor([[[0, 0]]]))
    tensor(0.2500, dtype=torch.float64)
    """

    def __init__(
        self, classes: int, *, ignore: Ignored = "auto", mean_over: MeanOver = "detectron2", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        with explain("see hardlook.metrics.MeanIoU", OptionError):
            self._metric = metrics.MeanIoU(classes, ignore=ignore, mean_over=mean_over)
        self.add_settings(classes, self._metric.ignore)
        self._add_counts(classes, self._metric.ignore)

    def build_metric(self) -> metrics.MeanIoU:
        """The metric of `hardlook.metrics` with all pixels so far."""
        metric = copy.copy(self._metric)
        metric.pairs = self._count()
        return metric

    def compute(self) -> Tensor:
        """The mean IoU so far, NaN where there is no pixel."""
        return self.make_tensor(self.build_metric().compute())


class OpenMeanIoU(PairAccumulator):
    """Open mIoU beside the vanilla scores; the options are those of `hardlook.metrics.OpenMeanIoU`.

    With `seen` there are further scores: `-seen`, `-unseen` and `-harmonic` after `open-miou` and `miou`.
    IoUs of single classes and the confusion matrix: `build_metric()`.
    """

    def __init__(
        self,
        labels: Iterable[str],
        similarity: Values | PairSimilarity,
        ignore_index: Ignored = "auto",
        *,
        mean_over: MeanOver = "detectron2",
        seen: ArrayLike | None = None,
        asymmetric: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with explain("see hardlook.metrics.OpenMeanIoU", OptionError):
            self._metric = metrics.OpenMeanIoU(
                labels, similarity, ignore_index, mean_over=mean_over, seen=seen, asymmetric=asymmetric
            )
        self.add_settings(self._metric.labels, self._metric.ignore_index)
        self._add_counts(len(self._metric.labels), self._metric.ignore_index)

    def build_metric(self) -> metrics.OpenMeanIoU:
        """The metric of `hardlook.metrics` with all pixels so far."""
        metric = copy.copy(self._metric)
        metric.pairs = self._count()
        return metric

    def compute(self) -> dict[str, Tensor]:
        """Open and vanilla mIoU, pixel accuracy, mean accuracy and fwIoU so far, NaN where undefined."""
        result = self.build_metric().compute()
        scores = _name_miou_scores("open-", result.open) | _name_miou_scores("", result.vanilla)
        if self._metric.seen is None:
            scores = {name: value for name, value in scores.items() if not name.endswith(("seen", "harmonic"))}
        return self.make_tensors(scores)


def _name_miou_scores(prefix: str, scores: MiouScores) -> dict[str, float]:
    return {
        f"{prefix}miou": scores.miou, f"{prefix}pixel-accuracy": scores.pacc, f"{prefix}mean-accuracy": scores.macc,
        f"{prefix}fw-iou": scores.fwiou, f"{prefix}miou-seen": scores.seen, f"{prefix}miou-unseen": scores.unseen,
        f"{prefix}miou-harmonic": scores.harmonic,
    }  # fmt: skip


def _take_labels(preds: Tensor, target: Tensor, classes: int) -> Tensor:
    """The predicted label ids in the shape of the target; of logits, those of the highest."""
    check_devices(preds, target)
    if preds.shape == target.shape:
        return preds
    axis = 0 if target.ndim == 2 else 1
    expected = (*target.shape[:axis], classes, *target.shape[axis:])
    if tuple(preds.shape) != expected or not preds.is_floating_point():
        raise DataError(
            f"preds: expected label ids of shape {tuple(target.shape)} or logits of shape {expected}, got "
            f"{tuple(preds.shape)} of {preds.dtype}",
            remedy="resize predictions to the size of the target; where the network has further channels than the "
            "labels, pass label ids, preds.argmax(1)",
        )
    highest, labels = preds.detach().max(dim=axis)
    if highest.isnan().any():
        raise DataError("preds: the logits hold NaN", remedy="look for the first step with a loss that is not finite")
    return labels
