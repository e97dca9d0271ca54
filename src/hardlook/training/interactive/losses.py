"""Losses of interactive networks: RITM's normalised focal loss, and binary cross entropy for auxiliary logits.

Sofiiuk, Barinova, Konushin: AdaptIS (ICCV 2019), which normalises the focal loss of Lin et al. (ICCV 2017).

>>> logits = torch.tensor([[[[0.0, 4.0]]]])
>>> target, valid = torch.tensor([[[True, True]]]), torch.ones(1, 1, 2, dtype=torch.bool)
>>> round(float(normalised_focal_loss(logits, target, valid)), 4)  # the sure pixel hardly counts
0.3461
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

ALPHA, EPSILON = 0.5, 1e-9
AUXILIARY_WEIGHT = 0.4


def normalised_focal_loss(logits: Tensor, target: Tensor, valid: Tensor) -> Tensor:
    """The mean over a batch of logits (B, 1, H, W), with target and valid (B, H, W) bool.

    A pixel weighs (1 - p) ** 2, p the probability of its label; the weights of an object are scaled to sum to its
    number of valid pixels, by a factor that is not differentiated. Invalid pixels do not count.
    """
    scores = logits[:, 0].float()
    signed = torch.where(target, scores, -scores)
    counted = valid.to(scores.dtype)
    weights = torch.sigmoid(-signed).square() * counted
    pixels = counted.sum((1, 2))
    factor = (pixels / (weights.sum((1, 2)) + EPSILON)).detach()
    losses = (-ALPHA * weights * functional.logsigmoid(signed)).sum((1, 2)) * factor
    return (losses / (pixels + EPSILON)).mean()


def masked_cross_entropy(logits: Tensor, target: Tensor, valid: Tensor) -> Tensor:
    """Binary cross entropy over valid pixels, the mean over objects; shapes as of `normalised_focal_loss`."""
    counted = valid.to(torch.float32)
    losses = functional.binary_cross_entropy_with_logits(logits[:, 0].float(), target.float(), reduction="none")
    return ((losses * counted).sum((1, 2)) / (counted.sum((1, 2)) + EPSILON)).mean()


def compute_interactive_loss(answer: dict[str, Tensor], target: Tensor, valid: Tensor) -> Tensor:
    """RITM's loss of a network's `instances` and, where it has them, `instances_aux`."""
    loss = normalised_focal_loss(answer["instances"], target, valid)
    if "instances_aux" in answer:
        loss = loss + AUXILIARY_WEIGHT * masked_cross_entropy(answer["instances_aux"], target, valid)
    return loss
