"""Open PQ of maps of category and instance ids."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook import metrics
from hardlook.errors import DataError, OptionError
from hardlook.metrics.arrays import Values, as_numpy, is_on_device
from hardlook.metrics.confusion import Ignored, choose_ignored
from hardlook.metrics.open_pq import PanopticScores
from hardlook.metrics.panoptic import SegmentMatches, match_segments
from hardlook.torchmetrics.accumulator import Accumulator, check_devices, explain, load_torch

if TYPE_CHECKING:
    from torch import Tensor


class OpenPQ(Accumulator):
    """Open PQ beside the vanilla scores; the options are those of `hardlook.metrics.OpenPQ`.

    `update` takes maps (N, H, W, 2) of category and instance ids, as torchmetrics' PanopticQuality does. Categories are
    0..K-1; pixels of category `ignore` are void: by default 255, unless that is a class. Instances of stuff classes
    are one segment. Crowds have no mark in such maps; `hardlook.metrics.OpenPQ` takes them.

    >>> import torch
    >>> metric = OpenPQ(["cat", "sky"], [[1, 0], [0, 1]], things=[True, False])
    >>> image = torch.tensor([[[[0, 1], [0, 2], [1, 0]]]])
    >>> float(metric(image, image)["open-pq"])
    1.0
    """

    images: list[Tensor]
    _lists = ("images",)

    def __init__(
        self,
        labels: Sequence[str],
        similarity: Values,
        things: Values,
        *,
        ignore: Ignored = "auto",
        known: ArrayLike | None = None,
        asymmetric: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with explain("see hardlook.metrics.OpenPQ", OptionError):
            self._metric = metrics.OpenPQ(labels, similarity, things, known=known, asymmetric=asymmetric)
            self._ignore = choose_ignored(ignore, len(self._metric.labels))
        self.add_settings(self._metric.labels, self._metric.things.tolist(), self._ignore)
        self.add_state("images", [], dist_reduce_fx="cat")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch of maps (N, H, W, 2), or one map (H, W, 2); what is on a GPU is counted there."""
        shape = tuple(target.shape)
        if tuple(preds.shape) != shape or len(shape) not in (3, 4) or shape[-1] != 2:
            raise DataError(
                f"expected two maps of one shape (N, H, W, 2), got preds {tuple(preds.shape)} and target {shape}",
                remedy="stack category and instance ids in the last axis: torch.stack([category, instance], dim=-1)",
            )
        check_devices(preds, target)
        pairs = zip(preds, target, strict=True) if len(shape) == 4 else [(preds, target)]
        batch = []
        for number, (called, true) in enumerate(pairs):
            remedy = f"categories are 0 to {len(self._metric.labels) - 1}; pass ignore=NUMBER for void pixels"
            with explain(remedy, unit=f"image {number} of the batch"):
                maps = *self._find_segments(true, "target"), *self._find_segments(called, "preds")
                found = match_segments(*maps, classes=len(self._metric.labels))
            batch.append((found.true, found.called, found.intersection, found.union, found.excused))
        self.add_records("images", batch)

    def _find_segments(self, panoptic: Tensor, name: str) -> tuple[Tensor, metrics.Segments]:
        """The map (H, W) of segment ids from 1, 0 = void, and the table of its segments."""
        if panoptic.is_floating_point():
            raise ValueError(f"{name}: expected integers, got {panoptic.dtype}")
        category, instance = panoptic.detach().long().unbind(-1)
        classes = len(self._metric.labels)
        void = (category != category) if self._ignore is None else (category == self._ignore)
        outside = ((category < 0) | (category >= classes)) & ~void
        if outside.any():
            raise ValueError(f"{name}: expected categories 0 to {classes - 1}, got {int(category[outside][0])}")
        things = load_torch().as_tensor(self._metric.things, device=category.device)
        category = category.masked_fill(void, 0)
        instance = instance.masked_fill(void | ~things[category], 0)
        low = int(instance.min()) if instance.numel() else 0
        span = int(instance.max()) - low + 1 if instance.numel() else 1
        if span * classes >= 2**62:
            distinct, instance = load_torch().unique(instance, return_inverse=True)
            low, span = 0, len(distinct)
        codes = (category * span + instance - low + 1).masked_fill(void, 0)
        ids = _list_ids(codes, span * classes + 1)
        return codes, metrics.Segments(ids, (ids - 1) // span)

    def build_metric(self) -> metrics.OpenPQ:
        """The metric of `hardlook.metrics` with all images so far."""
        self.check_settings(self.settings)
        metric = copy.copy(self._metric)
        metric.reset()
        for true, called, intersection, union, excused in self.read_records("images", "iiiib"):
            matches = SegmentMatches(np.zeros_like(true), true, called, intersection, union, excused)
            metric.add_matches(matches)
        return metric

    def compute(self) -> dict[str, Tensor]:
        """PQ, SQ and RQ so far, open and vanilla, NaN where undefined: `open-pq`, `pq`, `pq-things`, `pq-stuff` ...

        With `known` there are also those of the `-known` and `-unknown` classes.
        """
        result = self.build_metric().compute()
        return self.make_tensors(_name_pq_scores("open-", result.open) | _name_pq_scores("", result.vanilla))


def _name_pq_scores(prefix: str, scores: PanopticScores) -> dict[str, float]:
    groups = {
        "": scores.all, "-things": scores.things, "-stuff": scores.stuff, "-known": scores.known,
        "-unknown": scores.unknown,
    }  # fmt: skip
    return {
        f"{prefix}{kind}{group}": getattr(quality, kind)
        for group, quality in groups.items()
        if quality is not None
        for kind in ("pq", "sq", "rq")
    }


def _list_ids(codes: Tensor, size: int) -> NDArray[np.int64]:
    """(n,) the ids in a map of ids from 0 to size - 1, ascending and without 0."""
    if is_on_device(codes) or size > 4 * codes.numel():
        ids = as_numpy(load_torch().unique(codes))
    else:  # faster than sorting
        ids = np.flatnonzero(np.bincount(as_numpy(codes).reshape(-1), minlength=1))
    return ids[ids > 0]
