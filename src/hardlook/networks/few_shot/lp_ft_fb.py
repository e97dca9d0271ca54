"""LP-FT-FB: a linear probe, then fine-tuning with Firth's reduction of bias, on the support of each task.

Wang et al., Revisit Finetuning Strategy for Few-Shot Learning to Transfer the Embeddings, ICLR 2023; the form of the
penalty: Ghaffari et al., On the Importance of Firth Bias Reduction in Few-Shot Classification, ICLR 2022.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from hardlook.networks.few_shot.baseline import Baseline
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.support_heads import HeadTraining
from hardlook.networks.precision import full_precision

Parameters = dict[str, Tensor]
TOGETHER = 8  # tasks whose networks are tuned at a time: each has a copy of all parameters


def firth_loss(scores: Tensor, labels: Tensor, weight: float) -> Tensor:
    """Cross-entropy of scores (n, ways) plus `weight` times that of a uniform distribution over the classes.

    For a model of class frequencies alone and the weight 1 / n this is Firth's penalty, the logarithm of Jeffreys'
    prior: k of n images in one of two classes give (k + 1/2) / (n + 1) in place of k / n.
    """
    logs = functional.log_softmax(scores, -1)
    return functional.nll_loss(logs, labels) - weight * logs.mean()


class LpFtFb(Baseline):
    """Baseline's training; at test time a linear layer is trained on each support, then all parameters together.

    `head` says how the layer is trained. Then `steps` steps of SGD with `momentum` at `rate` lower the loss with the
    `firth` weight, on all supports at once, with the stored statistics of batch normalisation. No released code was
    compared.
    """

    validated_by = "score"

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        head: HeadTraining | None = None,
        steps: int = 10,
        rate: float = 1e-3,
        momentum: float = 0.9,
        firth: float = 0.1,
    ) -> None:
        super().__init__(backbone, channels=channels, classes=classes, head=head)
        if self.head.kind != "linear":
            raise ValueError(f"LP-FT-FB starts from a linear probe, not from a {self.head.kind} head")
        self.steps, self.rate, self.momentum, self.firth = steps, rate, momentum, firth

    @full_precision
    def classify(self, episodes: Episodes) -> Tensor:
        """(tasks, queries, ways) scores after the tuning."""
        with torch.no_grad():
            support = self.embed(episodes).support.flatten(1, 2).flatten(2)
        labels = episodes.support_labels()
        keys = episodes.keys or [""] * len(episodes)
        probe = self.head.fit(support, labels, episodes.ways, keys)
        start = {name: value.detach() for name, value in self.emb_func.named_parameters()}

        def score(fast: Parameters, images: Tensor) -> Tensor:
            own = {name: fast[name] for name in start}
            features: Any = functional_call(self.emb_func, own, (images,))
            return torch.as_tensor(features.flatten(1) @ fast[".weight"].mT + fast[".bias"])

        def support_loss(fast: Parameters, images: Tensor) -> Tensor:
            return firth_loss(score(fast, images), labels, self.firth)

        def tune(weight: Tensor, bias: Tensor, images: Tensor, query: Tensor) -> Tensor:
            fast = start | {".weight": weight, ".bias": bias}
            speed = {name: torch.zeros_like(value) for name, value in fast.items()}
            for _ in range(self.steps):
                gradients = grad(support_loss)(fast, images)
                speed = {name: self.momentum * speed[name] + gradients[name] for name in fast}
                fast = {name: value - self.rate * speed[name] for name, value in fast.items()}
            return score(fast, query)

        given = (probe["weight"], probe["bias"], episodes.support.flatten(1, 2), episodes.query)
        scores = vmap(tune, randomness="different", chunk_size=TOGETHER)(*given)
        return torch.as_tensor(scores)
