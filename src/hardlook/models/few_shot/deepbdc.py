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

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.published_settings import DEEPBDC_DIMENSION, DEEPBDC_FLOOR
from hardlook.models.few_shot.stacking import GroupedLearner, TaskGroup, query_blocks
from hardlook.randomness import generator


class DeepBDC(GroupedLearner):
    """ProtoNet on distance covariance matrices; works on maps (n, C, h, w).

    `dimension`: maps with more channels are brought down to so many. The paper trains a 1 x 1 convolution for this;
    on a frozen encoder it is a fixed random one with orthonormal rows, drawn from `seed`, that keeps lengths on
    average. Work grows with the square of `dimension`.
    """

    accepts = "maps"
    flags = ("GL", "TT")

    def __init__(self, dimension: int = DEEPBDC_DIMENSION, seed: int = 0) -> None:
        if dimension < 2:
            raise OptionError(f"dimension is {dimension}", remedy="two channels at least have a distance")
        self.dimension, self.seed = dimension, seed

    def score_group(self, group: TaskGroup) -> NDArray[np.float32]:
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
