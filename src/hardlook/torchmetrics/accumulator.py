"""What the four metrics share: settings that belong to the state, records in tensors, synchronisation, errors."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hardlook import metrics
from hardlook.errors import DataError, HardlookError, OptionError
from hardlook.extras import is_installed, require
from hardlook.metrics.arrays import as_numpy

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torchmetrics import Metric
else:

    class _MissingMetric:
        """In place of `torchmetrics.Metric` where it is not installed: the error for this comes with the first use."""

        def __init__(self, **_):
            require("torchmetrics", extra="torchmetrics")

    # A base class must be there when its subclasses are defined. Nothing imports this module but its users.
    Metric = require("torchmetrics", extra="torchmetrics").Metric if is_installed("torchmetrics") else _MissingMetric

Record = Sequence["NDArray[Any] | None"]
AnyMetric = TypeVar("AnyMetric", metrics.MeanIoU, metrics.OpenMeanIoU, metrics.OpenAP, metrics.OpenPQ)


class Accumulator(Metric):
    """What the four metrics share: settings that belong to the state, synchronisation, and scores as tensors."""

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    settings: Tensor
    _lists: tuple[str, ...] = ()  # the states that are lists

    def add_settings(self, *settings: object) -> None:
        """Add what the state depends on as a state of its own.

        A MetricCollection lets metrics share a state that is equal after the first batch. Metrics with other settings
        can be equal by chance, for example where that batch has no ignored pixel.
        """
        digest = hashlib.sha256(repr((type(self).__name__, *settings)).encode()).digest()
        self.add_state("settings", load_torch().tensor(list(digest[:8])), dist_reduce_fx="max", persistent=False)

    def check_settings(self, settings: Tensor) -> None:
        """Raise an error where a state was not made with the settings of this metric."""
        default = self._defaults["settings"]
        if not isinstance(default, list) and settings.tolist() != default.tolist():
            raise OptionError(
                f"{type(self).__name__}: expected the state of a metric with the same labels and options",
                remedy="construct the metrics of all processes, those to merge and those to restore in the same way",
            )

    def add_records(self, name: str, records: Iterable[Record]) -> None:
        """Append records to a list state, all of them as one tensor."""
        words = [pack(record) for record in records]
        if words:
            getattr(self, name).append(load_torch().from_numpy(np.concatenate(words)).to(self.device))

    def read_records(self, name: str, types: str) -> Iterator[list[Any]]:
        """The records of a list state, which is one tensor after synchronisation."""
        state = getattr(self, name)
        for part in state if isinstance(state, list) else [state]:
            yield from unpack(as_numpy(part), types)

    def make_tensor(self, value: float) -> Tensor:
        """The value as a tensor () on the metric's device."""
        torch = load_torch()
        exact = torch.float32 if self.device.type == "mps" else torch.float64  # which has no 64-bit floats
        tensor: Tensor = torch.tensor(value, dtype=exact, device=self.device)
        return tensor

    def make_tensors(self, scores: Mapping[str, float]) -> dict[str, Tensor]:
        """The scores as tensors () on the metric's device."""
        return {name: self.make_tensor(value) for name, value in scores.items()}

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Add the state of another metric of the same settings."""
        state: dict[str, Any] = incoming_state if isinstance(incoming_state, dict) else incoming_state.metric_state
        if "settings" in state:
            self.check_settings(state["settings"])
        super().merge_state(incoming_state)
        # torchmetrics would return the value computed before, or warn that there was no update.
        self._computed = None
        self._update_count += 1

    def sync(self, *args: Any, **kwargs: Any) -> None:
        """Gather the states of all processes; a process without data takes part with an empty state."""
        torch = load_torch()
        for name in self._lists:
            if not self._is_synced and not getattr(self, name):
                # torchmetrics would send 32-bit floats for an empty list, and the others 64-bit integers.
                getattr(self, name).append(torch.zeros(0, dtype=torch.int64, device=self.device))
        super().sync(*args, **kwargs)

    def set_dtype(self, dst_type: str | torch.dtype) -> Metric:
        """The metric itself, unchanged: its state is integers."""
        return self


def pack(arrays: Record) -> NDArray[np.int64]:
    """Arrays, any of which may be None, as one array of 64-bit words: their lengths (-1 for None), then their values.

    The bits of floats are kept, so a record is exact in a tensor on any device.

    >>> pack([np.array([True, False]), None, np.array([0.0])]).tolist()
    [2, -1, 1, 1, 0, 0]
    """
    lengths, rows = [], []
    for array in arrays:
        lengths.append(-1 if array is None else array.size)
        if array is not None:
            row = np.ascontiguousarray(array).reshape(-1)
            rows.append(row.view(np.int64) if row.dtype == np.float64 else row.astype(np.int64))
    return np.concatenate([np.array(lengths, np.int64), *rows])


def unpack(words: NDArray[np.int64], types: str) -> Iterator[list[Any]]:
    """The arrays of one record after the other; `types` has a letter for each: i for int64, f for float64, b for bool.

    >>> list(unpack(pack([np.array([1.5]), None]), "ff"))
    [[array([1.5]), None]]
    """
    position = 0
    while position < len(words):
        lengths = words[position : position + len(types)].tolist()
        position += len(types)
        if position + sum(max(length, 0) for length in lengths) > len(words):
            raise DataError(
                "the state of a metric is cut off", remedy="reset the metric, or restore it from a whole file"
            )
        record: list[Any] = []
        for kind, length in zip(types, lengths, strict=True):
            row = words[position : position + max(length, 0)]
            position += len(row)
            values = row.view(np.float64) if kind == "f" else row.astype(np.bool_) if kind == "b" else row
            record.append(None if length < 0 else values)
        yield record


@contextmanager
def explain(remedy: str, kind: type[HardlookError] = DataError, unit: str | None = None) -> Iterator[None]:
    """Turn an error about arrays into one that names the image and the remedy."""
    try:
        yield
    except ValueError as error:
        raise kind(str(error), unit=unit, remedy=remedy) from None


def check_devices(preds: Tensor, target: Tensor) -> None:
    """Raise an error where predictions and targets are on two devices."""
    if preds.device != target.device:
        raise DataError(
            f"preds are on {preds.device}, target on {target.device}",
            remedy="move both to one device; the metric itself may be on any",
        )


def load_torch() -> Any:
    """The module torch."""
    return require("torch", extra="torchmetrics")


def gather_metric(metric: AnyMetric, group: Any = None) -> AnyMetric:
    """A metric of `hardlook.metrics` with what all processes of a `torch.distributed` group have added to theirs.

    Every process calls it with its own metric, which is not changed, and all get the same result. Without a process
    group the result is a copy. Images of `OpenAP` need keys (`update(..., image=key)`) that differ between processes.

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
