"""DeepBDC: images as Brownian distance covariance matrices of their channels, then the nearest class mean.

Xie, Long, Lv, Wang and Li, "Joint distribution matters: deep Brownian distance covariance for few-shot
classification", CVPR 2022 (the meta-learnt variant, ProtoNet on these matrices). Entry (k, l) of an image's matrix is
sqrt(t |x_k - x_l|^2 + 1e-5) for the channels' values x_k over the h x w cells, with the row, column and total means
taken off; the upper triangle with the diagonal is the image's vector. t is learnt in the paper from 1 / (2 h w); on a
frozen encoder it stays there. As published, tasks of one shot compare by inner product, others by minus squared
Euclidean distance to the class mean.

>>> from hardlook.models.roles import Episode
>>> wave = np.array([[[0.0, 1.0, 2.0, 3.0]], [[0.0, 1.0, 2.0, 3.0]], [[3.0, 1.0, 0.0, 0.0]]], np.float32)
>>> support = np.stack([wave, wave[[0, 2, 1]]])
>>> episode = Episode(support, np.array([0, 1]), 2 * support[:1] + 1, ways=2)
>>> int(DeepBDC().classify([episode])[0].argmax())
0
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.on_device import TensorTasks, check_device_name
from hardlook.models.few_shot.published_settings import DEEPBDC_DIMENSION, DEEPBDC_FLOOR
from hardlook.models.few_shot.stacking import TaskGroup, query_blocks
from hardlook.models.few_shot.table_products import ProductLearner, Products, TaskProducts
from hardlook.randomness import generator

if TYPE_CHECKING:
    from torch import Tensor

MAX_VECTOR_BYTES = 1 << 30
"""Of tables whose vectors take no more, the products of all images are computed once: 1,300 images at 640 channels."""


class DeepBDC(ProductLearner):
    """ProtoNet on distance covariance matrices; works on maps (n, C, h, w).

    `dimension`: maps with more channels are brought down to so many. The paper trains a 1 x 1 convolution for this;
    on a frozen encoder it is a fixed random one with orthonormal rows, drawn from `seed`, that keeps lengths on
    average. Work grows with the square of `dimension`.
    """

    accepts = "maps"
    flags = ("GL", "TT")
    work = 20.0

    def __init__(self, dimension: int = DEEPBDC_DIMENSION, seed: int = 0, device: str = "") -> None:
        if dimension < 2:
            raise OptionError(f"dimension is {dimension}", remedy="two channels at least have a distance")
        self.dimension, self.seed, self.device = dimension, seed, check_device_name(device)

    def can_multiply(self, table: NDArray[np.float32]) -> bool:
        """Whether the vectors of all images fit into `MAX_VECTOR_BYTES`."""
        channels = min(table.shape[1], self.dimension)
        return super().can_multiply(table) and 2 * len(table) * channels * (channels + 1) <= MAX_VECTOR_BYTES

    def make_vectors(self, table: NDArray[np.float32]) -> NDArray[np.float32]:
        """(images, d (d + 1) / 2) upper triangles of the distance covariance matrices."""
        channels = min(table.shape[1], self.dimension)
        upper = np.flatnonzero(np.triu(np.ones((channels, channels), np.bool_)))
        # Off the diagonal `bdc_matrices` has sqrt(1/2) of the entries, since both triangles are there.
        weight = np.where(upper % (channels + 1) == 0, 1, np.sqrt(2)).astype(np.float32)
        vectors = np.empty((len(table), len(upper)), np.float32)
        for place in range(len(table)):  # one by one: a matrix fits into the processor's cache
            [matrix] = bdc_matrices(self._channels(np.asarray(table[place : place + 1])))
            np.multiply(matrix.ravel()[upper], weight, out=vectors[place])
        return vectors

    def score_products(self, tasks: TaskProducts) -> Products:
        """(T, q, ways) float32 inner products (one shot) or minus squared distances."""
        products, squares = tasks.compare_means()
        if tasks.shots.max() == 1:
            return products
        return np.asarray(2 * products - tasks.query_squares[:, :, None] - squares[:, None])

    def score_features(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32 inner products (one shot) or minus squared distances."""
        scores, single = group.empty_scores(), group.shots.max() == 1
        for task, (shown, asked) in enumerate(group):
            classes = np.split(self._channels(shown), group.starts[1:])
            means = np.stack([_mean_matrix(channels) for channels in classes])
            query = self._channels(asked)
            for block in query_blocks(group.queries, query.shape[1] ** 2):
                rows = bdc_matrices(query[block]).reshape(-1, means.shape[1])
                products = rows @ means.T
                if single:
                    scores[task, block] = products
                else:
                    lengths = np.einsum("ij,ij->i", rows, rows)[:, None] + np.einsum("ij,ij->i", means, means)
                    scores[task, block] = 2 * products - lengths
        return scores

    def score_tensors(self, tasks: TensorTasks) -> Tensor:
        """(T, q, ways) float32 inner products (one shot) or minus squared distances."""
        import torch

        support, query = (self._matrices(maps) for maps in (tasks.support, tasks.query))
        means = torch.stack([shown.mean(1) for shown in tasks.split_classes(support)], dim=1)
        products = query @ means.mT
        if max(tasks.shots) == 1:
            return products
        return 2 * products - query.square().sum(2, keepdim=True) - means.square().sum(2)[:, None]

    def _matrices(self, maps: Tensor) -> Tensor:
        """(T, n, d * d) distance covariance matrices of maps (T, n, C, h, w), as `bdc_matrices` makes them."""
        import torch

        values = maps.flatten(3)
        if values.shape[2] > self.dimension:
            mixing = random_projection(values.shape[2], self.dimension, self.seed)
            values = torch.from_numpy(mixing).to(values.device) @ values
        values = (values - values.mean(2, keepdim=True)) * (0.5 / (2 * values.shape[3])) ** 0.5
        squares = values.square().sum(3)
        apart = squares[..., :, None] + squares[..., None, :] - 2 * values @ values.mT + 0.5 * DEEPBDC_FLOOR
        matrices = apart.clamp_(min=0.5 * DEEPBDC_FLOOR).sqrt_()
        matrices.diagonal(dim1=2, dim2=3).fill_((0.5 * DEEPBDC_FLOOR) ** 0.5)
        means = matrices.mean(3)
        matrices -= means[..., :, None]
        matrices -= (means - means.mean(2, keepdim=True))[..., None, :]
        matrices.diagonal(dim1=2, dim2=3).mul_(2**0.5)
        flat: Tensor = matrices.flatten(2)
        return flat

    def _channels(self, maps: NDArray[np.float32]) -> NDArray[np.float32]:
        """(n, d, h * w) values of each channel, d at most `dimension`."""
        values = maps.reshape(*maps.shape[:2], -1)
        count = values.shape[1]
        return values if count <= self.dimension else random_projection(count, self.dimension, self.seed) @ values


@functools.lru_cache(maxsize=8)
def random_projection(inputs: int, outputs: int, seed: int) -> NDArray[np.float32]:
    """(outputs, inputs) float32 with orthogonal rows that keep lengths on average."""
    directions, triangle = np.linalg.qr(generator(seed, "deepbdc", inputs, outputs).standard_normal((inputs, outputs)))
    # The signs of a QR decomposition are the library's choice; these are not.
    directions *= np.where(np.diagonal(triangle) < 0, -1.0, 1.0) * np.sqrt(inputs / outputs)
    return np.ascontiguousarray(directions.T.astype(np.float32))


def bdc_matrices(channels: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n, d, d) distance covariance matrices of (n, d, m) channel values, weighed for dot products.

    Entries off the diagonal are multiplied by sqrt(1/2): both triangles are there, and dot products of whole matrices
    then equal those of upper triangles.

    >>> first, second = bdc_matrices(np.array([[[0.0], [1.0]], [[0.0], [3.0]]], np.float32))
    >>> bool(first[0, 1] > 0 > first[0, 0]), float(np.round(second[0, 1] / first[0, 1], 1))
    (True, 3.0)
    """
    # Distances do not change when all channels move together, and rounding is less near zero.
    moved = channels - channels.mean(axis=1, keepdims=True)
    moved *= np.float32(np.sqrt(0.5 / (2 * channels.shape[2])))
    floor = np.float32(0.5 * DEEPBDC_FLOOR)
    squares = np.einsum("ndm,ndm->nd", moved, moved)[..., None]
    ones = np.ones_like(squares)
    # |a|^2 + |b|^2 - 2 a.b + floor in one product.
    left = np.concatenate([-2 * moved, squares + floor, ones], axis=2)
    right = np.concatenate([moved, ones, squares], axis=2)
    matrices: NDArray[np.float32] = left @ right.transpose(0, 2, 1)
    np.maximum(matrices, floor, out=matrices)
    np.sqrt(matrices, out=matrices)
    diagonal = np.einsum("nii->ni", matrices)
    diagonal[...] = np.sqrt(floor)
    means = matrices.mean(axis=2)
    matrices -= means[:, :, None]
    matrices -= (means - means.mean(axis=1, keepdims=True))[:, None, :]
    diagonal *= np.float32(np.sqrt(2))
    return matrices


def _mean_matrix(channels: NDArray[np.float32]) -> NDArray[np.float32]:
    """(d * d,) mean of the matrices of a class's supports (k, d, m)."""
    shots, width = channels.shape[:2]
    total = np.zeros(width * width, np.float32)
    for block in query_blocks(shots, width * width):
        total += bdc_matrices(channels[block]).reshape(-1, width * width).sum(axis=0)
    return np.divide(total, shots, dtype=np.float32)
