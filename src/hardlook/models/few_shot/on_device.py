"""Learners on a GPU: all tasks of a call as few tensors, with the formulas that the numpy version of a learner has.

Tasks are scored in chunks of one size, which follows from their shapes alone; the last chunk is filled up with its last
task. So the layout of every product is the same whatever tasks come together, and the bits of a task's scores do not
depend on its neighbours. Where episodes are rows of one table of features, the table is brought to the GPU once.

>>> from hardlook.models.few_shot.centroids import NearestCentroid
>>> from hardlook.models.roles import Episode
>>> line = np.array([[0.0], [4.0], [1.0]], np.float32)
>>> episode = Episode(line[:2], np.array([0, 1]), line[2:], ways=2)
>>> classify_on_device(NearestCentroid(), [episode], "cpu")[0].tolist()
[[-1.0, -9.0]]
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.extras import require
from hardlook.models.few_shot.stacking import GroupedLearner, TaskGroup, classify_in_groups
from hardlook.models.roles import Episode
from hardlook.models.torch_inference import exact_inference

if TYPE_CHECKING:
    from torch import Tensor

CHUNK_BYTES = 1 << 31
MAX_CHUNK = 512

TABLE_SHARE = 0.4
"""A table that takes more of the free memory of a GPU stays in main memory, and tasks are copied chunk by chunk."""


@dataclass(frozen=True)
class TensorTasks:
    """A chunk of T tasks: `support` (T, n, ...), sorted by class, and `query` (T, q, ...) float32 on the device.

    `membership` (n, ways) float32 is 1 where the support is of the class; `shots` counts the supports of each class.
    """

    support: Tensor
    query: Tensor
    membership: Tensor
    shots: tuple[int, ...]

    def class_means(self) -> Tensor:
        """(T, ways, D) of vectors."""
        averaging: Tensor = (self.membership / self.membership.sum(0)).T
        return averaging @ self.support

    def split_classes(self, rows: Tensor, per_support: int = 1) -> Sequence[Tensor]:
        """The rows (T, n x per_support, ...) of each class."""
        ends = [int(end) * per_support for end in np.cumsum(self.shots)]
        return [rows[:, start:end] for start, end in zip([0, *ends], ends, strict=False)]


class DeviceLearner(GroupedLearner):
    """A learner with a second, torch version for GPUs; `device` "" or "cpu" means the numpy version.

    `work` is how many times the memory of a task's features a task needs on the device.
    """

    device: str = ""
    work: float = 4.0
    _resident: tuple[NDArray[np.float32], Tensor] | None = None

    @abstractmethod
    def score_tensors(self, tasks: TensorTasks) -> Tensor:
        """(T, q, ways) float32 scores, up to rounding those of `score_group`."""

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """Scores (queries, ways) float32 per episode; see `score_group` for their range."""
        if self.device in ("", "cpu"):
            return super().classify(episodes)
        return classify_on_device(self, episodes, self.device)


def compare_directions(rows: Tensor, points: Tensor) -> Tensor:
    """Cosines (T, m, n) of rows (T, m, D) and points (T, n, D); 0 for a vector of length 0."""
    lengths = [part.square().sum(2).sqrt() for part in (rows, points)]
    inverse = [length.reciprocal().nan_to_num(posinf=0.0) for length in lengths]
    return rows @ points.mT * inverse[0][:, :, None] * inverse[1][:, None, :]


def as_descriptors(maps: Tensor) -> Tensor:
    """Maps (T, n, C, h, w) as local descriptors (T, n * h * w, C), cells row by row."""
    return maps.flatten(3).mT.flatten(1, 2)


def check_device_name(device: str) -> str:
    """The name of a device that torch knows, or "" and "cpu", which need no torch; else a `ModelError`."""
    if device not in ("", "cpu"):
        torch = require("torch", extra="torch")
        try:
            torch.device(device)
        except RuntimeError as error:
            raise ModelError(f"there is no device {device!r}", remedy="cpu, cuda, cuda:1 ...") from error
    return device


def classify_on_device(learner: DeviceLearner, episodes: Sequence[Episode], device: str) -> list[NDArray[np.float32]]:
    """Scores (queries, ways) float32 of each episode by the torch version of the learner."""
    with exact_inference():
        return classify_in_groups(episodes, lambda group: _score_group(learner, group, device), form=learner.accepts)


def choose_chunk(support: NDArray[np.float32], query: NDArray[np.float32], work: float) -> int:
    """How many tasks of this shape are scored together: as many as `CHUNK_BYTES` hold, from 1 to `MAX_CHUNK`."""
    return max(1, min(MAX_CHUNK, int(CHUNK_BYTES / max(1.0, work * (support.nbytes + query.nbytes)))))


def _score_group(learner: DeviceLearner, group: TaskGroup, device: str) -> NDArray[np.float32]:
    import torch

    membership = torch.from_numpy(group.membership).to(device)
    shots = tuple(group.shots.tolist())
    size = choose_chunk(*group.read(0), learner.work)
    answers = []
    for support, query in _read_chunks(learner, group, size, device):
        answers.append(learner.score_tensors(TensorTasks(support, query, membership, shots)))
    # One copy at the end: each would wait for the GPU.
    scores: NDArray[np.float32] = torch.cat(answers)[: len(group)].cpu().numpy()
    return scores


def _read_chunks(learner: DeviceLearner, group: TaskGroup, size: int, device: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Supports and queries on the device, `size` tasks at a time."""
    import torch

    table = _bring_table(learner, group, device)
    for start in range(0, len(group), size):
        places = np.minimum(np.arange(start, start + size), len(group) - 1)
        if table is None or group.source is None:
            stack = [group.read(place) for place in range(start, min(start + size, len(group)))]
            parts = [np.stack([pair[side] for pair in stack])[places - start] for side in (0, 1)]
            yield torch.from_numpy(parts[0]).to(device), torch.from_numpy(parts[1]).to(device)
        else:
            order = np.argsort(group.source.labels, kind="stable")
            rows = group.source.support[places][:, order], group.source.query[places]
            support, query = (torch.from_numpy(np.asarray(numbers, np.int64)).to(device) for numbers in rows)
            yield table[support], table[query]


def _bring_table(learner: DeviceLearner, group: TaskGroup, device: str) -> Tensor | None:
    """The table of the group's episodes on the device, kept for the next call; None where there is none or no room."""
    import torch

    if group.source is None:
        return None
    table = group.source.table
    if learner._resident is None or learner._resident[0] is not table or table.flags.writeable:
        learner._resident = None  # frees the last one first
        if device.startswith("cuda") and table.nbytes > TABLE_SHARE * torch.cuda.mem_get_info(device)[0]:
            return None
        learner._resident = table, torch.from_numpy(np.array(table, np.float32)).to(device)
    return learner._resident[1]
