"""MatchingNet's attention: supports vote by the softmax of their cosines to the query.

Vinyals, Blundell, Lillicrap, Kavukcuoglu and Wierstra, "Matching networks for one shot learning", NeurIPS 2016; its
rule without the embedding in context, which has weights of its own.

>>> from hardlook.models.roles import Episode
>>> plane = np.array([[1, 0], [0, 1], [3, 4]], np.float32)
>>> Matching().classify([Episode(plane[:2], np.array([0, 1]), plane[2:], ways=2)])[0].astype(float).round(3).tolist()
[[0.45, 0.55]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.on_device import TensorTasks, check_device_name, compare_directions
from hardlook.models.few_shot.published_settings import MATCHING_SCALE
from hardlook.models.few_shot.stacking import ClassLayout, TaskGroup, divide_lengths, multiply_rows, squared_lengths
from hardlook.models.few_shot.table_products import ProductLearner, Products, TaskProducts

if TYPE_CHECKING:
    from torch import Tensor


class Matching(ProductLearner):
    """A class's score is the attention that its supports get together; cosines are multiplied by `scale` before."""

    def __init__(self, scale: float = MATCHING_SCALE, device: str = "") -> None:
        self.scale, self.device = scale, check_device_name(device)

    def score_products(self, tasks: TaskProducts) -> Products:
        """(T, q, ways) float32: probabilities, each row sums to 1."""
        squares = np.einsum("tii->ti", tasks.within)
        return self._attend(divide_lengths(tasks.crosswise, tasks.query_squares, squares), tasks)

    def score_features(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32: probabilities, each row sums to 1."""
        count, supports = len(group), group.labels.shape[1]
        products = np.empty((count, group.queries, supports), np.float32)
        squares = np.empty((count, group.queries), np.float32), np.empty((count, supports), np.float32)
        for place, (support, query) in enumerate(group):
            multiply_rows(query, support, products[place])
            squares[0][place], squares[1][place] = squared_lengths(query), squared_lengths(support)
        return self._attend(divide_lengths(products, *squares), group)

    def _attend(self, cosines: Products, layout: ClassLayout) -> NDArray[np.float32]:
        """(T, q, ways) shares of the classes in the softmax of the cosines (T, q, n), which are overwritten."""
        cosines *= np.float32(self.scale)
        cosines -= cosines.max(axis=2, keepdims=True)
        attention = np.exp(cosines, out=cosines) @ layout.membership
        return np.asarray(attention / attention.sum(axis=2, keepdims=True))

    def score_tensors(self, tasks: TensorTasks) -> Tensor:
        """(T, q, ways) float32: probabilities, each row sums to 1."""
        return (self.scale * compare_directions(tasks.query, tasks.support)).softmax(2) @ tasks.membership
