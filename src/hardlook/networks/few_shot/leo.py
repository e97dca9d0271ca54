"""LEO. Rusu et al., Meta-Learning with Latent Embedding Optimization, ICLR 2019."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import ClassClassifier, Episodes, Noise, cross_entropy, open_noise
from hardlook.networks.precision import full_precision

TINY = 1e-20  # keeps the logarithm of a spread of 0 finite


class Encoder(nn.Module):
    """Mean and spread (tasks, ways, latent) of each class, from relations between all pairs of supports."""

    def __init__(self, channels: int, latent: int) -> None:
        super().__init__()
        self.encoder_func = nn.Linear(channels, latent)
        layers: list[nn.Module] = []
        for _ in range(3):
            layers += [nn.Linear(2 * latent, 2 * latent, bias=False), nn.ReLU()]
        self.relation_net = nn.Sequential(*layers)

    def forward(self, support: Tensor) -> tuple[Tensor, Tensor]:
        """Of supports (tasks, ways, shots, channels)."""
        tasks, ways, shots = support.shape[:3]
        codes = self.encoder_func(support.flatten(1, 2))
        count = ways * shots
        pairs = torch.cat([codes[:, :, None].expand(-1, -1, count, -1), codes[:, None].expand(-1, count, -1, -1)], -1)
        relations = self.relation_net(pairs).reshape(tasks, ways, shots * count, -1).mean(2)
        mean, spread = relations.chunk(2, -1)
        return mean, spread


class Decoder(nn.Module):
    """Mean and spread (tasks, ways, channels) of the weights of a linear classifier, from latent codes."""

    def __init__(self, channels: int, latent: int) -> None:
        super().__init__()
        self.decoder_func = nn.Linear(latent, 2 * channels)

    def forward(self, latents: Tensor) -> tuple[Tensor, Tensor]:
        """Of codes (tasks, ways, latent)."""
        mean, spread = self.decoder_func(latents).chunk(2, -1)
        return mean, spread


@dataclass(frozen=True)
class Adapted:
    """What the inner loop ends with: scores, and what the regularisers need."""

    scores: Tensor
    latents: Tensor
    moved: Tensor
    mean: Tensor
    spread: Tensor
    inner: Tensor
    """Sum of the losses of all steps, of which gradients are kept where they are asked for."""


class Leo(ClassClassifier):
    """Gradient steps in a latent space from which the weights of a linear classifier are decoded, then on the weights.

    The backbone is frozen. `noise` draws the numbers of a batch: once for the codes, once for the weights in each
    latent step and at the end; without it they follow from the tasks' keys. With `released` the gradients of supports
    hold those of the losses of the inner steps, too, which are not cleared there. The training does not see that, since
    the backbone is frozen.
    """

    stages = ("classes", "episodes")

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 640,
        classes: int | None = None,
        latent: int = 64,
        latent_steps: int = 5,
        latent_rate: float = 0.01,
        steps: int = 5,
        inner_rate: float = 0.01,
        kl_weight: float = 1e-3,
        move_weight: float = 1e-9,
        orthogonality_weight: float = 1e-3,
        noise: Noise | None = None,
        released: bool = False,
    ) -> None:
        super().__init__(backbone)
        self.released = released
        self.encoder, self.decoder = Encoder(channels, latent), Decoder(channels, latent)
        self.latent_steps, self.latent_rate = latent_steps, latent_rate
        self.steps, self.inner_rate = steps, inner_rate
        self.kl_weight, self.move_weight, self.orthogonality_weight = kl_weight, move_weight, orthogonality_weight
        self.noise = noise
        if classes is not None:
            self.classifier = nn.Linear(channels, classes)

    def start_stage(self, stage: str) -> None:
        """The backbone is trained on classes and then frozen."""
        self.emb_func.requires_grad_(stage == "classes")

    @full_precision
    def adapt(self, features: Episodes, *, follow: bool = False) -> Adapted:
        """The inner loop; its gradients are constants for the outer loss. `follow` keeps those of the steps' losses."""
        support, labels = features.support.flatten(1, 2), features.support_labels().expand(len(features), -1)
        mean, spread = self.encoder(features.support)
        noise = open_noise(self.noise, features, "leo")

        def draw(mean: Tensor, spread: Tensor) -> Tensor:
            """One sample of a Gaussian."""
            return mean + spread * noise(mean.shape, dtype=mean.dtype, device=mean.device)

        latents = draw(mean, spread)
        moved, inner = latents, mean.new_zeros(())
        for _ in range(self.latent_steps):
            loss, gradient = _step(lambda codes: draw(*self.decoder(codes)), moved, support, labels, follow)
            moved, inner = moved - self.latent_rate * gradient, inner + loss
        weights = draw(*self.decoder(moved))
        for _ in range(self.steps):
            loss, gradient = _step(lambda values: values, weights, support, labels, follow)
            weights, inner = weights - self.inner_rate * gradient, inner + loss
        return Adapted(features.query @ weights.mT, latents, moved, mean, spread, inner)

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        return self.adapt(features).scores

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Cross-entropy and three regularisers: KL of the codes, how far they moved, orthogonality of the decoder."""
        features = self.embed(episodes)
        follow = self.released and features.support.requires_grad
        adapted = self.adapt(features, follow=follow)
        loss = cross_entropy(adapted.scores, episodes.require_labels())
        loss = loss + self.kl_weight * self.divergence(adapted)
        loss = loss + self.move_weight * (adapted.moved.detach() - adapted.latents).square().mean()
        if adapted.inner.requires_grad:
            (slopes,) = torch.autograd.grad(adapted.inner, features.support, retain_graph=True)
            # Nothing is added but its gradient.
            extra = (slopes * features.support).sum()
            loss = loss + (extra - extra.detach())
        return loss + self.orthogonality_weight * self.orthogonality(), adapted.scores

    @full_precision
    def divergence(self, adapted: Adapted) -> Tensor:
        """KL of the codes' Gaussian from the standard normal, estimated from the one sample."""
        spread = adapted.spread + TINY
        inside = -((adapted.latents - adapted.mean) / spread).square() / 2 - spread.log()
        return (inside + adapted.latents.square() / 2).mean()

    @full_precision
    def orthogonality(self) -> Tensor:
        """Mean squared correlation between different rows of the decoder."""
        rows = functional.normalize(self.decoder.decoder_func.weight, dim=1)
        correlation = rows @ rows.mT
        return (correlation - torch.eye(len(rows), dtype=rows.dtype, device=rows.device)).square().mean()


def _step(
    decode: Callable[[Tensor], Tensor], values: Tensor, support: Tensor, labels: Tensor, follow: bool
) -> tuple[Tensor, Tensor]:
    """The sum of the tasks' cross-entropies on their supports, and its gradient at `values` as a constant.

    The loss is a constant too, but with `follow`.
    """
    with torch.enable_grad():
        start = values if follow else values.detach().requires_grad_()
        scores = (support if follow else support.detach()) @ decode(start).mT
        loss = functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="sum") / labels.shape[1]
        (gradient,) = torch.autograd.grad(loss, start, retain_graph=follow)
    return loss if follow else loss.detach(), gradient
