"""The nearest class mean, by Euclidean distance (ProtoNet's rule) or by cosine (Meta-Baseline's).

Snell, Swersky and Zemel, "Prototypical networks for few-shot learning", NeurIPS 2017. Chen, Liu, Xu, Darrell and Wang,
"Meta-Baseline: exploring simple meta-learning for few-shot learning", ICCV 2021.

>>> from hardlook.models.roles import Episode
>>> line = np.array([[0.0], [4.0], [1.0]], np.float32)
>>> NearestCentroid().classify([Episode(line[:2], np.array([0, 1]), line[2:], ways=2)])[0].tolist()
[[-1.0, -9.0]]
>>> plane = np.array([[2, 0], [0, 1], [3, 4]], np.float32)
>>> [cosines] = CosineCentroid().classify([Episode(plane[:2], np.array([0, 1]), plane[2:], ways=2)])
>>> cosines.astype(float).round(3).tolist()
[[0.6, 0.8]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.on_device import TensorTasks, check_device_name, compare_directions
from hardlook.models.few_shot.stacking import TaskGroup, divide_lengths, squared_lengths
from hardlook.models.few_shot.table_products import ProductLearner, Products, TaskProducts

if TYPE_CHECKING:
    from torch import Tensor


class NearestCentroid(ProductLearner):
    """Scores are minus the squared Euclidean distances to the class means; their softmax is ProtoNet's probability."""

    centred = True

    def __init__(self, device: str = "") -> None:
        self.device = check_device_name(device)

    def score_products(self, tasks: TaskProducts) -> Products:
        """(T, q, ways) float32, at most 0."""
        products, squares = tasks.compare_means()
        return np.asarray(np.minimum(2 * products - tasks.query_squares[:, :, None] - squares[:, None], 0))

    def score_features(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32, at most 0."""
        scores, averaging = group.empty_scores(), group.averaging
        squares = np.empty(scores.shape[:2], np.float32), np.empty((len(group), group.ways), np.float32)
        buffer: NDArray[np.float32] | None = None
        for place, (support, query) in enumerate(group):
            means = averaging @ support
            # Distances are small differences of large squares; moved to the means' middle, the squares are small too.
            middle = means.mean(axis=0)
            means -= middle
            buffer = np.subtract(query, middle, out=buffer)
            np.matmul(buffer, 2 * means.T, out=scores[place])
            squares[0][place], squares[1][place] = squared_lengths(buffer), squared_lengths(means)
        scores -= squares[0][:, :, None] + squares[1][:, None]
        return np.minimum(scores, 0, out=scores)

    def score_tensors(self, tasks: TensorTasks) -> Tensor:
        """(T, q, ways) float32, at most 0."""
        means = tasks.class_means()
        middle = means.mean(1, keepdim=True)
        means, query = means - middle, tasks.query - middle
        squares = query.square().sum(2, keepdim=True) + means.square().sum(2)[:, None]
        return (2 * query @ means.mT - squares).clamp(max=0)


class CosineCentroid(ProductLearner):
    """Scores are cosines to the class means, which are taken before any vector's length is changed."""

    def __init__(self, device: str = "") -> None:
        self.device = check_device_name(device)

    def score_products(self, tasks: TaskProducts) -> Products:
        """(T, q, ways) float32, in [-1, 1]; 0 for a vector of length 0."""
        products, squares = tasks.compare_means()
        return divide_lengths(products, tasks.query_squares, np.maximum(squares, 0))

    def score_features(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32, in [-1, 1]; 0 for a vector of length 0."""
        products, averaging = group.empty_scores(), group.averaging
        squares = np.empty(products.shape[:2], np.float32), np.empty((len(group), group.ways), np.float32)
        for place, (support, query) in enumerate(group):
            means = averaging @ support
            np.matmul(query, means.T, out=products[place])
            squares[0][place], squares[1][place] = squared_lengths(query), squared_lengths(means)
        return divide_lengths(products, *squares)

    def score_tensors(self, tasks: TensorTasks) -> Tensor:
        """(T, q, ways) float32, in [-1, 1]; 0 for a vector of length 0."""
        return compare_directions(tasks.query, tasks.class_means())
