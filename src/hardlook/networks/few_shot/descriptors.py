"""Local descriptors: the positions of a feature map, one vector each."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from hardlook.networks.precision import full_precision


def as_descriptors(maps: Tensor) -> Tensor:
    """(..., h w, C) descriptors of maps (..., C, h, w)."""
    return maps.flatten(-2).transpose(-1, -2)


def class_descriptors(support: Tensor) -> Tensor:
    """(tasks, ways, shots h w, C) descriptors of all supports (tasks, ways, shots, C, h, w) of a class."""
    return as_descriptors(support).flatten(2, 3)


@full_precision
def cosines(left: Tensor, right: Tensor) -> Tensor:
    """(..., m, n) cosines of (..., m, C) and (..., n, C)."""
    return functional.normalize(left, dim=-1) @ functional.normalize(right, dim=-1).transpose(-1, -2)


@full_precision
def image_to_class(support: Tensor, query: Tensor, neighbours: int) -> Tensor:
    """(tasks, queries, ways) sums over the descriptors of a query of the cosines with its nearest ones in a class.

    Maps of supports (tasks, ways, shots, C, h, w) and queries (tasks, queries, C, h, w).
    """
    queries = as_descriptors(query)
    found = cosines(queries.flatten(1, 2)[:, None], class_descriptors(support))
    nearest = found.topk(min(neighbours, found.shape[-1]), -1).values.sum(-1)
    return torch.unflatten(nearest, -1, queries.shape[1:3]).sum(-1).transpose(1, 2)
