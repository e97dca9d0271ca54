"""The loss: Kullback-Leibler divergence of the network's map from the map of people's clicks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

EPSILON = 1e-9


def kl_divergence(target: Tensor, predicted: Tensor) -> Tensor:
    """(N,) KL(p || q) in nats of maps (N, H, W), each divided by its sum; 1e-9 keeps zeros finite.

    >>> import torch
    >>> p, q = torch.tensor([[[0.5, 0.5, 0.0, 0.0]]]), torch.ones(1, 1, 4)
    >>> round(float(kl_divergence(p, q)), 6)
    0.693147
    """
    import torch

    p = target / (target.sum((1, 2), keepdim=True) + EPSILON)
    q = predicted / (predicted.sum((1, 2), keepdim=True) + EPSILON)
    return (p * torch.log(EPSILON + p / (q + EPSILON))).sum((1, 2))
