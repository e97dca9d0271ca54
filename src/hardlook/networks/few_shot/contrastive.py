"""Contrast in both stages. Yang, Wang and Zhu, Few-Shot Classification with Contrastive Learning, ECCV 2022."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.descriptors import as_descriptors, cosines
from hardlook.networks.few_shot.feat import SetAttention
from hardlook.networks.few_shot.method import Episodes, FewShotMethod, cross_entropy
from hardlook.networks.precision import full_precision


@full_precision
def contrast(similarities: Tensor, positives: Tensor, allowed: Tensor) -> Tensor:
    """Mean over anchors of minus the log softmax of their positives, averaged over the positives of an anchor.

    `similarities` (..., anchors, others), divided by the temperature; `positives` and `allowed` say which of the others
    belong to an anchor and which it is compared with. Anchors without positives do not count.
    """
    logs = functional.log_softmax(similarities.masked_fill(~allowed, -math.inf), -1)
    count = positives.sum(-1)
    losses = -torch.where(positives, logs, 0.0).sum(-1) / count.clamp(min=1)
    return losses.sum() / (count > 0).sum().clamp(min=1)


@full_precision
def compare_maps(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """(n, n) similarities of n maps as (n, positions, d) projections: row b has map b beside every map a.

    Each position of b attends to the positions of a; the mean cosine of its value with what it reads there.
    """
    attention = (torch.einsum("bjd,aid->baji", query, key) / math.sqrt(query.shape[-1])).softmax(-1)
    products = torch.einsum("bjd,aid->baji", value, value)
    # Lengths of what is read, from inner products: the values read themselves would not fit into memory.
    lengths = ((attention @ (value @ value.mT)) * attention).sum(-1).clamp(min=1e-12).sqrt()
    own = value.norm(dim=-1).clamp(min=1e-6)
    return torch.as_tensor(((attention * products).sum(-1) / (lengths * own[:, None])).mean(-1))


class Contrastive(FewShotMethod):
    """Cross-entropy and contrast of two views on classes; then nearest centroids across two views of an episode.

    Stage one, each with its weight in `weights`: contrast of whole images (views of one image agree), of parts (a
    projected vector with the positions of the other view, and positions with positions), and of classes (images of one
    class agree). Stage two: class means see each other through attention; queries of both views are classified by the
    means of both views, `scale` times cosines (learned); `balance` times a contrast of queries with supports and means
    of both views, where a cosine is multiplied by 2 minus itself, so that what is far away counts more. The second view
    of an episode is mirrored and shifted here. No released code was compared.
    """

    inputs = "maps"
    stages = ("classes", "episodes")
    views: ClassVar[int] = 2

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        width: int = 128,
        temperature: float = 0.1,
        weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
        balance: float = 0.1,
        scale: float = 10.0,
    ) -> None:
        super().__init__(backbone)
        self.classifier = nn.Linear(channels, classes)
        self.projection = nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, width))
        self.map_projections = nn.ModuleList(nn.Linear(channels, width) for _ in range(4))
        self.slf_attn = SetAttention(channels)
        self.scale = nn.Parameter(torch.tensor(float(scale)))
        self.temperature, self.weights, self.balance = temperature, weights, balance

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The four losses of stage one; `images` are the first views of n images and then their second ones."""
        positions = as_descriptors(self.emb_func(images))
        vectors = positions.mean(1)
        scores = self.classifier(vectors)
        both = labels.repeat(2)
        others = ~torch.eye(len(both), dtype=torch.bool, device=both.device)
        partners = others.roll(len(labels), 0).logical_not()
        projected = self.projection(vectors)
        query, key, value, part = (layer(positions) for layer in self.map_projections)
        vector_map = torch.einsum("ad,bjd->abj", *(functional.normalize(x, dim=-1) for x in (projected, part))).mean(-1)
        whole = cosines(projected, projected)
        whole_loss, vector_loss, map_loss = (
            contrast(found / self.temperature, partners, others)
            for found in (whole, vector_map, compare_maps(query, key, value))
        )
        class_contrast = contrast(whole / self.temperature, (both[:, None] == both) & others, others)
        parts = (whole_loss, vector_loss + map_loss, class_contrast)
        loss = functional.cross_entropy(scores, both)
        return loss + sum(weight * part for weight, part in zip(self.weights, parts, strict=True)), scores

    def centroids(self, features: Episodes) -> Tensor:
        """(tasks, ways, C) class means after attention."""
        return self.slf_attn(features.support.mean((-2, -1)).mean(2))  # type: ignore[no-any-return]

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        return torch.as_tensor(self.scale * cosines(features.query.mean((-2, -1)), self.centroids(features)))

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Cross-entropy of each view's queries by each view's class means, and the contrast of both views."""
        truth = episodes.require_labels()
        second = replace(episodes, support=draw_view(episodes.support), query=draw_view(episodes.query))
        pair = [self.embed(episodes), self.embed(second)]
        means = [self.centroids(features) for features in pair]
        queries = [features.query.mean((-2, -1)) for features in pair]
        scores = [self.scale * cosines(query, centres) for query in queries for centres in means]
        loss = torch.stack([cross_entropy(found, truth) for found in scores]).mean()
        supports = [features.support.mean((-2, -1)).flatten(1, 2) for features in pair]
        known = episodes.support_labels().repeat(2)
        owners = torch.cat([known, torch.arange(episodes.ways, device=known.device).repeat(2)])
        found = cosines(self.projection(torch.cat(queries, 1)), self.projection(torch.cat([*supports, *means], 1)))
        positives = torch.cat([truth, truth], 1)[..., None] == owners
        scaled = (2 - found.detach()) * found / self.temperature
        return loss + self.balance * contrast(scaled, positives, torch.ones_like(positives)), scores[0]


def draw_view(images: Tensor) -> Tensor:
    """Images (..., C, H, W), each mirrored with chance 1/2 and shifted by up to an eighth, drawn by torch."""
    flat = images.flatten(0, -4)
    mirrored = torch.rand(len(flat), 1, 1, 1, device=flat.device) < 0.5
    flat = torch.where(mirrored, flat.flip(-1), flat)
    places = []
    for size in flat.shape[-2:]:
        shift = (torch.rand(len(flat), 1, device=flat.device) * 2 - 1) * size / 8
        # Beyond the border the border itself is repeated.
        places.append((torch.arange(size, device=flat.device) + shift.round().long()).clamp(0, size - 1))
    rows = torch.arange(len(flat), device=flat.device)[:, None, None]
    shifted = flat.movedim(1, -1)[rows, places[0][:, :, None], places[1][:, None, :]]
    return shifted.movedim(-1, 1).reshape(images.shape)
