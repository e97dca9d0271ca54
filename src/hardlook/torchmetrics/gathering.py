"""Metrics of `hardlook.metrics` that were updated in several processes, as one."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from hardlook import metrics
from hardlook.extras import require

AnyMetric = TypeVar("AnyMetric", metrics.MeanIoU, metrics.OpenMeanIoU, metrics.OpenAP, metrics.OpenPQ)


def gather_metric(metric: AnyMetric, group: Any = None) -> AnyMetric:
    """A metric of `hardlook.metrics` with what all processes of a `torch.distributed` group have added to theirs.

    Every process calls it with its own metric, which stays as it is, and gets the same. Without a process group the
    result is a copy. Images of `OpenAP` need keys (`update(..., image=key)`) that differ between processes.

    >>> metric = metrics.MeanIoU(classes=2)
    >>> metric.update([0, 1], [0, 0])
    >>> gather_metric(metric).compute() == metric.compute()
    True
    """
    distributed = require("torch.distributed", extra="torch")
    part = copy.copy(metric)
    similarity = part.__dict__.pop("similarity", None)  # large, and the same everywhere
    if distributed.is_available() and distributed.is_initialized():
        parts: list[Any] = [None] * distributed.get_world_size(group)
        distributed.all_gather_object(parts, part, group=group)
    else:
        parts = [copy.deepcopy(part)]
    gathered: AnyMetric = parts[0]
    for other in parts[1:]:
        gathered.merge(other)
    if similarity is not None:
        gathered.__dict__["similarity"] = similarity
    return gathered
