"""SKD. Rajasegaran et al., Self-supervised Knowledge Distillation for Few-shot Learning, BMVC 2021."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.rfs import TEMPERATURE, Generations, TwoGenerations


def rotate(images: Tensor, quarters: int) -> Tensor:
    """Images (n, C, h, w) turned counterclockwise by a number of quarters."""
    return torch.rot90(images, quarters, (2, 3))


class Skd(Generations):
    """Generation 0 also predicts the rotation of its images, from the class scores; generation 1 learns from it.

    Generation 0: cross-entropy over four rotations plus `alpha` times the binary cross-entropy of the rotation.
    Generation 1 (`distilled`): distillation of the upright scores over `temperature` plus `distance_weight` times the
    mean distance between the scores of images and of the same turned upside down, over 3. At test time as RFS
    (`logistic`).
    """

    class_layer = "cls_classifier"

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        alpha: float = 2.0,
        distance_weight: float = 0.1,
        temperature: float = TEMPERATURE,
        distilled: bool = False,
    ) -> None:
        super().__init__(backbone)
        self.cls_classifier = nn.Linear(channels, classes)
        self.rot_classifier = nn.Linear(classes, 4)
        self.alpha, self.distance_weight, self.temperature = alpha, distance_weight, temperature
        if distilled:
            self.learn_from_itself()

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of generation 0, or of generation 1 where there is a teacher."""
        if self.has_teacher():
            return self._distilled_loss(images)
        turned = torch.cat([rotate(images, quarters) for quarters in range(4)])
        scores = self.cls_classifier(self.emb_func(turned))
        rotations = torch.arange(4, device=images.device).repeat_interleave(len(images))
        targets = functional.one_hot(rotations, 4).to(scores.dtype)
        rotation_loss = functional.binary_cross_entropy_with_logits(self.rot_classifier(scores), targets)
        return functional.cross_entropy(scores, labels.repeat(4)) + self.alpha * rotation_loss, scores

    def _distilled_loss(self, images: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.cls_classifier(self.emb_func(torch.cat([images, rotate(images, 2)])))
        upright, turned = scores.chunk(2)
        distances = (turned - upright).norm(dim=1).mean() / 3
        return self.distil(upright, images) + self.distance_weight * distances, scores


class SkdGeneration1(TwoGenerations, Skd):
    """SKD: generation 0, then generation 1, which goes on from its teacher's weights as in the released code."""
