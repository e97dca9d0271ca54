"""RFS. Tian et al., Rethinking Few-Shot Image Classification: a Good Embedding Is All You Need?, ECCV 2020."""

from __future__ import annotations

import copy
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import FewShotMethod

TEMPERATURE = 4.0


def distillation(scores: Tensor, teacher: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """KL divergence of softened scores (n, classes) from a teacher's, times the temperature squared."""
    logs = functional.log_softmax(scores / temperature, 1)
    divergence = functional.kl_div(logs, (teacher / temperature).softmax(1), reduction="sum")
    return divergence * temperature**2 / len(scores)


class Teacher(nn.Module):
    """An earlier generation of a network, frozen, in evaluation mode."""

    def __init__(self, emb_func: nn.Module, **classifiers: nn.Module) -> None:
        super().__init__()
        self.emb_func = emb_func
        for name, classifier in classifiers.items():
            self.add_module(name, classifier)
        self.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """Stays in evaluation mode."""
        return super().train(False)


class Rfs(FewShotMethod):
    """RFS-simple: a classifier of the training classes; at test time logistic regression on unit features (`logistic`).

    RFS-distill: with `generations` more than 1 each later generation learns from the one before it, by `gamma` times
    cross-entropy plus `alpha` times the distillation loss.
    """

    stages = ("classes",)
    learner = "logistic"

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        gamma: float = 0.5,
        alpha: float = 0.5,
        distilled: bool = False,
    ) -> None:
        super().__init__(backbone)
        self.classifier = nn.Linear(channels, classes)
        self.gamma, self.alpha = gamma, alpha
        if distilled:
            self.learn_from_itself()

    @classmethod
    def build(cls, backbone: nn.Module, *, channels: int, classes: int, ways: int, side: int, **options: Any) -> Self:
        """The method on a backbone, as the training loop makes it."""
        return cls(backbone, channels=channels, classes=classes, **options)

    def learn_from_itself(self) -> None:
        """Start a generation: what has been learned so far becomes the teacher."""
        self.distill_layer = Teacher(copy.deepcopy(self.emb_func), classifier=copy.deepcopy(self.classifier))
        self.distill_layer.eval()

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy, with the distillation loss where there is a teacher."""
        scores = self.classifier(self.emb_func(images))
        loss = functional.cross_entropy(scores, labels)
        if not hasattr(self, "distill_layer"):
            return loss, scores
        with torch.no_grad():
            teacher = self.distill_layer.get_submodule("classifier")(self.distill_layer.emb_func(images))
        return self.gamma * loss + self.alpha * distillation(scores, teacher), scores
