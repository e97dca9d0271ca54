"""FGFL. Cheng et al., Frequency Guidance Matters in Few-Shot Learning, ICCV 2023."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.block_dct import to_coefficients, to_images
from hardlook.networks.few_shot.feat import SetAttention
from hardlook.networks.few_shot.method import Episodes, FewShotMethod, cross_entropy, squared_distances

# What images of 0..1 are normalised with before they come here.
MEAN = (120.39586422 / 255, 115.59361427 / 255, 104.54012653 / 255)
SPREAD = (70.68188272 / 255, 68.27635443 / 255, 72.54505529 / 255)
FREQUENCY_TEMPERATURE = 12.5
STEEPNESS, THRESHOLD = 100.0, 0.1


class PublishedAttention(SetAttention):
    """FEAT's attention with a number beside it that published checkpoints hold and nothing reads."""

    def __init__(self, channels: int, attention_dropout: float, dropout: float) -> None:
        super().__init__(channels, attention_dropout, dropout)
        self.attention = nn.Module()
        self.attention.register_buffer("ba", torch.tensor(0.5))


@contextmanager
def frozen_normalisation(network: nn.Module) -> Iterator[None]:
    """Batch normalisation with its running statistics, itself not trained by what passes meanwhile."""
    layers = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm2d) and layer.training]
    for layer in layers:
        layer.eval().requires_grad_(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.train().requires_grad_(True)


class FGFL(FewShotMethod):
    """FEAT's attention over all images of a task, soft k-means with the queries; frequencies guide the training.

    In training a second backbone sees the cosine transform of the images. The gradients of its scores say which
    coefficients matter; images with those alone ("good") and without them ("bad") enter further losses. Scores of
    test images need the first backbone alone; queries help each other.
    """

    inputs = "maps"
    transductive = True

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 640,
        temperature: float = 64.0,
        temperature2: float = 32.0,
        balance: float = 0.01,
        attention_dropout: float = 0.1,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        del self._modules["emb_func"]  # published checkpoints name the backbone `encoder`
        self.encoder = backbone if backbone is not None else nn.Identity()
        self.encoder_f = copy.deepcopy(self.encoder)
        self.slf_attn2 = PublishedAttention(channels, attention_dropout, dropout)
        self.temperature, self.temperature2, self.balance = temperature, temperature2, balance

    @property
    def emb_func(self) -> nn.Module:  # type: ignore[override]
        """The backbone of images."""
        return self.encoder

    def embed(self, episodes: Episodes) -> Episodes:
        """Means of the maps."""
        found = super().embed(episodes)
        return replace(found, support=found.support.mean((-1, -2)), query=found.query.mean((-1, -2)))

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) minus squared distances over `temperature`."""
        support, query = self.adapt(features.support, features.query)
        return self.distances(query, self.centres(support, query))

    def adapt(self, *sets: Tensor) -> list[Tensor]:
        """Sets (tasks, ..., D) after attention among all their vectors."""
        rows = [given.flatten(1, -2) for given in sets]
        found = self.slf_attn2(torch.cat(rows, 1)).split([given.shape[1] for given in rows], 1)
        return [part.reshape(given.shape) for part, given in zip(found, sets, strict=True)]

    def distances(self, query: Tensor, centres: Tensor) -> Tensor:
        """(tasks, queries, ways) scores."""
        return -squared_distances(query, centres) / self.temperature

    def centres(self, support: Tensor, pool: Tensor) -> Tensor:
        """(tasks, ways, D) class means of supports (tasks, ways, shots, D) and, by their likely class, of the pool."""
        shares = self.distances(pool, support.mean(2)).softmax(-1)
        total = support.sum(2) + shares.mT @ pool
        return total / (support.shape[2] + shares.sum(1))[..., None]

    def regulariser(self, features: Episodes, labels: Tensor) -> Tensor:
        """(tasks, images, ways) scores of adapted images at the means of their classes after a second attention."""
        images = torch.cat([part.flatten(1, -2) for part in self.adapt(features.support, features.query)], 1)
        again = self.slf_attn2(images, labels[:, :, None] == labels[:, None, :])
        members = functional.one_hot(labels, features.ways).to(images)
        centres = members.mT @ again / members.sum(1)[:, :, None]
        return -squared_distances(images, centres) / self.temperature2

    def score_enhanced(self, features: Episodes, good: Episodes) -> Tensor:
        """(tasks, 2 queries, ways) scores of queries and good queries; good supports join the pool."""
        sets = self.adapt(features.support, good.support, features.query, good.query)
        asked = torch.cat(sets[2:], 1)
        pool = torch.cat([sets[1].flatten(1, 2), asked], 1)
        return self.distances(asked, self.centres(sets[0], pool))

    def score_bad(self, features: Episodes, bad: Episodes) -> tuple[Tensor, Tensor]:
        """(tasks, queries, ways) scores of queries at bad centres, and of bad queries at the centres."""
        support, query = self.adapt(features.support, features.query)
        bad_support, bad_query = self.adapt(bad.support, bad.query)
        first = self.distances(query, self.centres(bad_support, bad_query))
        return first, self.distances(bad_query, self.centres(support, query))

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """The cross-entropies of all scores and the triplet loss of the images, their good and bad versions."""
        labels = episodes.require_labels()
        everyone = torch.cat([episodes.support_labels().expand(len(labels), -1), labels], 1)
        images = torch.cat([episodes.support.flatten(1, 2), episodes.query], 1).flatten(0, 1)
        vectors = self.encoder(images).mean((2, 3))
        features = split_images(vectors, episodes)
        scores = self.score(features)

        mean, spread = (torch.tensor(given).to(images)[:, None, None] for given in (MEAN, SPREAD))
        coefficients = to_coefficients((images * spread + mean).clamp(0, 1))
        maps = self.encoder_f(coefficients)
        frequencies = split_images(maps.mean((2, 3)), episodes)
        frequency_scores = score_frequencies(frequencies, frequencies)
        mask = self.find_mask(maps, frequency_scores, everyone, images.shape[-2:])

        altered = [(coefficients * kept).clamp(-128, 127) for kept in (mask, 1 - mask)]
        good_images, bad_images = ((to_images(given).clamp(0, 1) - mean) / spread for given in altered)
        with frozen_normalisation(self.encoder):
            good, bad = (self.encoder(given).mean((2, 3)) for given in (good_images, bad_images))
        with frozen_normalisation(self.encoder_f), torch.no_grad():
            masked = split_images(self.encoder_f(coefficients * (1 - mask)).mean((2, 3)), episodes)

        enhanced = self.score_enhanced(features, split_images(good, episodes))
        of_bad = self.score_bad(features, split_images(bad.detach(), episodes))
        of_masked = score_frequencies(frequencies, masked), score_frequencies(masked, frequencies)
        total = cross_entropy(scores, labels) + cross_entropy(frequency_scores, everyone)
        total = total + 0.01 * cross_entropy(enhanced, labels.repeat(1, 2))
        total = total + 0.01 * functional.triplet_margin_loss(vectors, good, bad, margin=0.1)
        total = total + 0.1 * sum(cross_entropy(given, labels) for given in of_bad)
        total = total + 0.1 * sum(cross_entropy(given, everyone) for given in of_masked)
        return total + self.balance * cross_entropy(self.regulariser(features, everyone), everyone), scores

    def find_mask(self, maps: Tensor, scores: Tensor, labels: Tensor, size: torch.Size) -> Tensor:
        """(n, 1, H, W) soft mask of the coefficients that speak for the true class: Grad-CAM on maps (n, C, h, w)."""
        true = FREQUENCY_TEMPERATURE * scores.gather(2, labels[..., None]).sum()
        (slopes,) = torch.autograd.grad(true, maps, retain_graph=True)
        found = functional.relu((maps * slopes.mean((2, 3), keepdim=True)).sum(1, keepdim=True))
        found = functional.interpolate(found, size=size, mode="bilinear", align_corners=True)
        tasks = found.reshape(len(labels), -1)
        low, high = tasks.min(1, keepdim=True).values, tasks.max(1, keepdim=True).values
        scaled = (tasks - low) / (high - low + 1e-8)
        return torch.sigmoid(STEEPNESS * (scaled - THRESHOLD)).reshape(found.shape)


def split_images(vectors: Tensor, episodes: Episodes) -> Episodes:
    """The episodes with vectors (tasks x images, D), supports before queries, in place of images."""
    rows, supports = vectors.reshape(len(episodes), -1, vectors.shape[-1]), episodes.ways * episodes.shots
    support = rows[:, :supports].reshape(len(rows), episodes.ways, episodes.shots, -1)
    return replace(episodes, support=support, query=rows[:, supports:])


def score_frequencies(features: Episodes, centres: Episodes) -> Tensor:
    """(tasks, images, ways) products of all images with the directions of the class means of `centres`."""
    images = torch.cat([features.support.flatten(1, 2), features.query], 1)
    return images @ functional.normalize(centres.support.mean(2), dim=-1).mT / FREQUENCY_TEMPERATURE
