"""CovaMNet: how far a query's local descriptors lie along the directions in which a class varies.

Li, Xu, Huo, Wang, Gao and Luo, "Distribution consistency based covariance metric networks for few-shot learning",
AAAI 2019. A class is the covariance S of all descriptors of its supports, with n - 1 below for n descriptors; a
descriptor x of the query scores x' S x. The published network then weighs the cells with a trained layer; on a frozen
encoder there is none, so cells weigh alike and the score is their mean.

>>> from hardlook.models.roles import Episode
>>> flat = np.array([[[[1.0, -1.0]], [[0.0, 0.0]]], [[[0.0, 0.0]], [[1.0, -1.0]]]], np.float32)
>>> episode = Episode(flat, np.array([0, 1]), 3 * flat[:1], ways=2)
>>> CovaMNet(query="descriptors").classify([episode])[0].tolist()
[[2.0, 0.0]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.image_pairs import ImagePairs, PairLearner, Summaries
from hardlook.models.few_shot.on_device import TensorTasks, as_descriptors, check_device_name
from hardlook.models.few_shot.published_settings import COVAMNET_QUERY
from hardlook.models.few_shot.stacking import ClassLayout, TaskGroup, class_cells, descriptors, query_blocks
from hardlook.models.unit_vectors import unit_vectors

if TYPE_CHECKING:
    from torch import Tensor

QueryForm = Literal["channels", "descriptors", "centred"]


class CovaMNet(PairLearner):
    """The covariance metric; works on maps (n, C, h, w).

    `query`: what is done to a query's map first. `channels` gives each channel length 1 over the cells, as the
    authors' code does; `descriptors` gives each cell's descriptor length 1; `centred` takes the map's mean
    descriptor off, as a toolkit in wide use does.
    """

    summary_type = np.float64

    def __init__(self, query: QueryForm = COVAMNET_QUERY, device: str = "") -> None:
        self.query, self.device = query, check_device_name(device)

    def summary_width(self, cells: int) -> int:
        """The sum of all squared products, and the sum of each of the query's cells' products."""
        return 1 + cells

    def make_pairs(self, table: NDArray[np.float32]) -> ImagePairs:
        """Pairs whose summary is the sum of all squared products, and the sum of each of the query's cells'."""
        # A covariance does not change when all supports move; near zero its sums of squares lose the least.
        middle = table.mean(axis=(0, 2, 3), dtype=np.float64).astype(np.float32)

        def reduce(products: NDArray[np.float32]) -> NDArray[np.float64]:
            wide = products.astype(np.float64)
            squares = np.einsum("mij,mij->m", wide, wide)
            return np.concatenate([squares[:, None], wide.sum(axis=2)], axis=1)

        return ImagePairs(
            len(table),
            self.summary_width(int(np.prod(table.shape[2:]))),
            self.summary_type,
            prepare_query=lambda maps: self._prepared(descriptors(maps)),
            prepare_support=lambda maps: descriptors(maps) - middle,
            reduce=reduce,
        )

    def score_pairs(self, values: Summaries, layout: ClassLayout, cells: int) -> Summaries:
        """(q, ways) float64, at least 0: with mean m of n descriptors, sum (x.(y - m))^2 = sum (x.y)^2 - n (x.m)^2."""
        pooled = np.add.reduceat(values, layout.starts, axis=1)  # (q, ways, 1 + cells)
        counts = layout.shots * cells
        total = pooled[:, :, 0] - np.square(pooled[:, :, 1:]).sum(axis=2) / counts
        return np.asarray(np.maximum(total, 0) / (cells * np.maximum(counts - 1, 1)))

    def score_maps(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32, at least 0; a class of one descriptor varies nowhere and scores 0."""
        scores = group.empty_scores()
        for task, (shown, asked) in enumerate(group):
            query = self._prepared(descriptors(asked))
            cells = query.shape[1]
            support, classes = descriptors(shown).reshape(-1, query.shape[2]), class_cells(group, cells)
            spread = np.concatenate([_centre(support[pool], axis=0) for pool in classes])
            for block in query_blocks(group.queries, cells * len(spread)):
                # x' S x is |X x|^2 / (n - 1) for centred descriptors X, so the C x C covariance is never made.
                along = np.square(query[block].reshape(-1, query.shape[2]) @ spread.T)
                for way, pool in enumerate(classes):
                    total = along[:, pool].sum(axis=1).reshape(-1, cells).mean(axis=1)
                    scores[task, block, way] = total / max(pool.stop - pool.start - 1, 1)
        return scores

    def score_tensors(self, tasks: TensorTasks) -> Tensor:
        """(T, q, ways) float32, at least 0; a class of one descriptor varies nowhere and scores 0."""
        import torch

        cells, queries = tasks.query[0, 0, 0].numel(), tasks.query.shape[1]
        query = tasks.query.flatten(3)  # (T, q, C, cells)
        if self.query == "centred":
            query = query - query.mean(3, keepdim=True)
        else:
            query = torch.nn.functional.normalize(query, dim=3 if self.query == "channels" else 2, eps=1e-30)
        rows = query.mT.flatten(1, 2)
        scores = []
        for pool in tasks.split_classes(as_descriptors(tasks.support), cells):
            along = (rows @ (pool - pool.mean(1, keepdim=True)).mT).square().sum(2)
            scores.append(along.reshape(-1, queries, cells).mean(2) / max(pool.shape[1] - 1, 1))
        return torch.stack(scores, dim=2)

    def _prepared(self, cells: NDArray[np.float32]) -> NDArray[np.float32]:
        """(q, h * w, C) descriptors as the metric takes them."""
        if self.query == "centred":
            return _centre(cells, axis=1)
        return unit_vectors(cells, axis=1 if self.query == "channels" else 2)


def _centre(rows: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    return np.asarray(rows - rows.mean(axis=axis, keepdims=True, dtype=np.float64).astype(np.float32))
