"""DN4: every local descriptor of a query looks for its nearest ones in each class.

Li, Wang, Xu, Huo, Gao and Luo, "Revisiting local descriptor based image-to-class measure for few-shot learning",
CVPR 2019. A class is the pool of all descriptors of its supports. The score of a class is the sum, over the query's
descriptors, of the cosines with the k nearest in the pool, k = 3. Nothing is learnt beside the encoder.

>>> from hardlook.models.roles import Episode
>>> cat, dog = np.zeros((2, 2, 1, 1), np.float32)
>>> cat[0], dog[1] = 2.0, 1.0
>>> episode = Episode(np.stack([cat, dog]), np.array([0, 1]), np.stack([3 * dog]), ways=2)
>>> DN4(neighbours=1).classify([episode])[0].tolist()
[[0.0, 1.0]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.image_pairs import ImagePairs, PairLearner, Summaries
from hardlook.models.few_shot.on_device import TensorTasks, as_descriptors, check_device_name
from hardlook.models.few_shot.published_settings import DN4_NEIGHBOURS
from hardlook.models.few_shot.stacking import ClassLayout, TaskGroup, class_cells, descriptors, query_blocks
from hardlook.models.unit_vectors import unit_vectors

if TYPE_CHECKING:
    from torch import Tensor


class DN4(PairLearner):
    """Image-to-class cosines of local descriptors; works on maps (n, C, h, w).

    `neighbours`: how many of the pool a descriptor is compared with. A class whose pool is smaller counts the mean
    of what it has `neighbours` times, so that classes with few cells are not at a disadvantage.
    """

    def __init__(self, neighbours: int = DN4_NEIGHBOURS, device: str = "") -> None:
        if neighbours < 1:
            raise OptionError(f"neighbours is {neighbours}", remedy="at least one neighbour is compared")
        self.neighbours, self.device = neighbours, check_device_name(device)

    def summary_width(self, cells: int) -> int:
        """The cosines of each of the query's cells with its nearest cells of the support."""
        return cells * min(self.neighbours, cells)

    def make_pairs(self, table: NDArray[np.float32]) -> ImagePairs:
        """Pairs whose summary is the largest cosines of each of the query's cells, in no fixed order."""
        cells = int(np.prod(table.shape[2:]))
        kept = min(self.neighbours, cells)

        def reduce(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
            return np.partition(cosines, cells - kept, axis=2)[:, :, cells - kept :].reshape(len(cosines), -1)

        width = self.summary_width(cells)
        return ImagePairs(
            len(table), width, np.float32, prepare_query=_directions, prepare_support=_directions, reduce=reduce
        )

    def score_pairs(self, values: Summaries, layout: ClassLayout, cells: int) -> NDArray[np.float32]:
        """(q, ways) float32: the largest of a class are among the largest of each of its supports."""
        queries, supports = values.shape[:2]
        largest = values.reshape(queries, supports, cells, -1).transpose(0, 2, 1, 3)  # (q, cells, n, kept)
        scores = np.empty((queries, layout.ways), np.float32)
        for way, (start, shots) in enumerate(zip(layout.starts, layout.shots, strict=True)):
            pool = largest[:, :, start : start + shots].reshape(queries * cells, -1)
            scores[:, way] = self._nearest(pool).reshape(queries, cells).sum(axis=1)
        return scores

    def score_maps(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32 sums of cosines, within +- neighbours x h x w."""
        scores = group.empty_scores()
        # Task by task: one product is large enough to keep the processor busy, and its bits have no neighbours.
        for task, (shown, asked) in enumerate(group):
            query = _directions(asked)
            cells = query.shape[1]
            support = _directions(shown).reshape(-1, query.shape[2])
            classes = class_cells(group, cells)
            for block in query_blocks(group.queries, cells * len(support)):
                cosines = query[block].reshape(-1, query.shape[2]) @ support.T
                for way, pool in enumerate(classes):
                    scores[task, block, way] = self._nearest(cosines[:, pool]).reshape(-1, cells).sum(axis=1)
        return scores

    def score_tensors(self, tasks: TensorTasks) -> Tensor:
        """(T, q, ways) float32 sums of cosines, within +- neighbours x h x w."""
        import torch

        cells, queries = tasks.query[0, 0, 0].numel(), tasks.query.shape[1]
        support, query = (
            torch.nn.functional.normalize(as_descriptors(maps), dim=2, eps=1e-30)
            for maps in (tasks.support, tasks.query)
        )
        scores = []
        for cosines in (query @ pool.mT for pool in tasks.split_classes(support, cells)):
            kept = min(self.neighbours, cosines.shape[2])
            largest = cosines.topk(kept, dim=2).values.sum(2) * (self.neighbours / kept)
            scores.append(largest.reshape(-1, queries, cells).sum(2))
        return torch.stack(scores, dim=2)

    def _nearest(self, cosines: Summaries) -> NDArray[np.float32]:
        """(rows,) sums over the `neighbours` largest of each row."""
        pool = cosines.shape[1]
        kept = min(self.neighbours, pool)
        largest = np.partition(cosines, pool - kept, axis=1)[:, pool - kept :]
        # A partition leaves the largest in no fixed order; sums of sorted ones do not depend on the pool's order.
        return np.asarray(np.sort(largest, axis=1).sum(axis=1) * np.float32(self.neighbours / kept))


def _directions(maps: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n, cells, C) descriptors of length 1 of maps (n, C, h, w)."""
    return unit_vectors(descriptors(maps))
