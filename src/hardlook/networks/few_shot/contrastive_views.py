"""SimCLR and MoCo: backbones trained without labels, by telling two views of an image from those of others.

Chen et al., A Simple Framework for Contrastive Learning of Visual Representations, ICML 2020. He et al., Momentum
Contrast for Unsupervised Visual Representation Learning, CVPR 2020.
"""

from __future__ import annotations

import copy
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import FewShotMethod
from hardlook.networks.precision import full_precision


@full_precision
def nt_xent(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """SimCLR's loss of two views (n, d) each: cross-entropy of a view's partner among the 2 n - 1 others."""
    views = functional.normalize(torch.cat([first, second]), dim=1)
    scores = views @ views.mT / temperature
    scores = scores.masked_fill(torch.eye(len(views), dtype=torch.bool, device=views.device), float("-inf"))
    partners = torch.arange(len(views), device=views.device).roll(len(first))
    return functional.cross_entropy(scores, partners)


@full_precision
def score_partners(asked: Tensor, shown: Tensor, queue: Tensor) -> Tensor:
    """(n, 1 + m) products of unit vectors (n, d) with their partners (n, d), then with a queue (m, d)."""
    return torch.cat([(asked * shown).sum(1, keepdim=True), asked @ queue.mT], 1)


class SimClr(FewShotMethod):
    """Two views of each image agree and differ from all others; at test time logistic regression on the features.

    `class_loss` takes the first views of n images and then their second ones (`views`). No released code was compared.
    """

    stages = ("classes",)
    learner = "logistic"
    views = 2

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        width: int = 128,
        temperature: float = 0.5,
    ) -> None:
        super().__init__(backbone)
        self.projection = nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, width))
        self.temperature = temperature

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """SimCLR's loss; the labels are not used."""
        first, second = self.projection(self.emb_func(images)).chunk(2)
        scores = functional.normalize(first, dim=1) @ functional.normalize(second, dim=1).mT
        return nt_xent(first, second, self.temperature), scores


class MoCo(FewShotMethod):
    """A view agrees with the other one as a slowly moving copy of the network sees it, among a queue of earlier images.

    The slow network normalises by statistics that follow those of the fast one (Cai et al., Exponential Moving Average
    Normalization, CVPR 2021): with statistics of its batch a view would find its partner by what the images of a batch
    share. The paper prevents that by shuffling images between GPUs. At test time logistic regression on the features.
    No released code was compared.
    """

    stages = ("classes",)
    learner = "logistic"
    views = 2

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        width: int = 128,
        queue: int = 4096,
        momentum: float = 0.99,
        temperature: float = 0.07,
    ) -> None:
        super().__init__(backbone)
        self.projection = nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, width))
        self.slow_backbone, self.slow_projection = copy.deepcopy(self.emb_func), copy.deepcopy(self.projection)
        for part in (self.slow_backbone, self.slow_projection):
            part.requires_grad_(False).eval()
        self.register_buffer("queue", functional.normalize(torch.randn(queue, width), dim=1))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))
        self.momentum, self.temperature = momentum, temperature

    def train(self, mode: bool = True) -> Self:
        """The slow network stays in evaluation mode."""
        super().train(mode)
        for part in (self.slow_backbone, self.slow_projection):
            part.eval()
        return self

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy of the other view among the queue; moves the slow network and the queue in training."""
        first, second = images.chunk(2)
        asked = functional.normalize(self.projection(self.emb_func(first)), dim=1)
        with torch.no_grad():
            if self.training:
                self._follow()
            shown = functional.normalize(self.slow_projection(self.slow_backbone(second)), dim=1)
        # A copy: the queue moves before the gradient is taken.
        scores = score_partners(asked, shown, self.get_buffer("queue").clone()) / self.temperature
        if self.training:
            self._store(shown)
        return functional.cross_entropy(
            scores, torch.zeros(len(scores), dtype=torch.int64, device=scores.device)
        ), scores

    def _follow(self) -> None:
        pairs = ((self.slow_backbone, self.emb_func), (self.slow_projection, self.projection))
        for slow, fast in pairs:
            for kept, value in zip(slow.parameters(), fast.parameters(), strict=True):
                kept.mul_(self.momentum).add_(value, alpha=1 - self.momentum)
            for statistic, own in zip(slow.buffers(), fast.buffers(), strict=True):
                statistic.copy_(own)

    def _store(self, codes: Tensor) -> None:
        queue, place = self.get_buffer("queue"), self.get_buffer("place")
        places = (int(place) + torch.arange(len(codes), device=codes.device)) % len(queue)
        queue[places] = codes.to(queue.dtype)
        place.copy_((place + len(codes)) % len(queue))
