"""RFS. Tian et al., Rethinking Few-Shot Image Classification: a Good Embedding Is All You Need?, ECCV 2020."""

from __future__ import annotations

import copy
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import ClassClassifier, Stage
from hardlook.networks.precision import full_precision

TEMPERATURE = 4.0


@full_precision
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


class Generations(ClassClassifier):
    """A classifier of the training classes that a later generation may learn from; at test time `logistic`."""

    learner = "logistic"
    temperature = TEMPERATURE
    """The temperature of the distillation."""

    def learn_from_itself(self) -> None:
        """Start a generation: what has been learned so far becomes the teacher."""
        layer = copy.deepcopy(self.get_submodule(self.class_layer))
        self.distill_layer = Teacher(copy.deepcopy(self.emb_func), **{self.class_layer: layer}).eval()

    def has_teacher(self) -> bool:
        """Whether this generation learns from one before it."""
        return hasattr(self, "distill_layer")

    def distil(self, scores: Tensor, images: Tensor) -> Tensor:
        """The distillation loss of scores (n, training classes) of images."""
        return torch.as_tensor(distillation(scores, self.score_by_teacher(images), self.temperature))

    def score_by_teacher(self, images: Tensor) -> Tensor:
        """(n, training classes) scores of the teacher, as constants."""
        with torch.no_grad():
            features = self.distill_layer.emb_func(images)
            return self.distill_layer.get_submodule(self.class_layer)(features)  # type: ignore[no-any-return]


class TwoGenerations(Generations):
    """Both generations in one training, for a class beside a method: the stage on classes, then the distillation.

    The teacher is part of the weights in both stages; in the first it keeps what the training started from.
    """

    stages = ("classes", "distillation")
    fresh = False
    """Whether the second generation starts where the first one did; else it goes on from the teacher."""

    def __init__(self, backbone: nn.Module | None = None, **options: Any) -> None:
        super().__init__(backbone, **options)
        self.learn_from_itself()
        self.distilling = False

    def has_teacher(self) -> bool:
        """In the second stage."""
        return self.distilling

    def start_stage(self, stage: Stage) -> None:
        """Before the distillation the network becomes its own teacher, and starts again where it is `fresh`."""
        self.distilling = stage == "distillation"
        pairs = [(name, self.get_submodule(name)) for name in ("emb_func", self.class_layer)]
        for name, student in pairs:
            teacher = self.distill_layer.get_submodule(name)
            learned, first = (copy.deepcopy(one.state_dict()) for one in (student, teacher))
            teacher.load_state_dict(learned)
            if self.distilling and self.fresh:
                student.load_state_dict(first)


class Rfs(Generations):
    """RFS-simple: a classifier of the training classes; at test time logistic regression on unit features (`logistic`).

    RFS-distill (`distilled`): learns from a teacher by `gamma` times cross-entropy plus `alpha` times the distillation
    loss, of scores over `temperature`.
    """

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        gamma: float = 0.5,
        alpha: float = 0.5,
        temperature: float = TEMPERATURE,
        distilled: bool = False,
    ) -> None:
        super().__init__(backbone)
        self.classifier = nn.Linear(channels, classes)
        self.gamma, self.alpha, self.temperature = gamma, alpha, temperature
        if distilled:
            self.learn_from_itself()

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy, with the distillation loss where there is a teacher."""
        loss, scores = super().class_loss(images, labels)
        if not self.has_teacher():
            return loss, scores
        return self.gamma * loss + self.alpha * self.distil(scores, images), scores


class RfsDistilled(TwoGenerations, Rfs):
    """RFS-distill: RFS-simple, then a second generation from the same start that learns from the first."""

    fresh = True
