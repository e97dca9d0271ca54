"""MatchingNet with embeddings in context, adjusted. Yue et al., Interventional Few-Shot Learning, NeurIPS 2020.

Embeddings in context: Vinyals et al., Matching Networks for One Shot Learning, NeurIPS 2016.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn import functional

from hardlook.networks.few_shot.ifsl import Fusion, Preprocessing, Strata
from hardlook.networks.few_shot.inner_loops import batch_statistics
from hardlook.networks.few_shot.method import Episodes, FewShotMethod, Stage
from hardlook.networks.precision import full_precision
from hardlook.randomness import generator

ScoreFusion = Literal["product", "linear_sum", "sum", "harmonic"]


class AttentionLstm(nn.Module):
    """A query reads the supports as often as there are supports."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lstmcell = nn.LSTMCell(2 * channels, channels)

    def forward(self, query: Tensor, support: Tensor) -> Tensor:
        """Queries (tasks, q, d) in the context of supports (tasks, n, d)."""
        hidden, memory = query, torch.zeros_like(query)
        for _ in range(support.shape[1]):
            read = (hidden @ support.mT).softmax(-1) @ support
            inputs = (torch.cat([query, read], -1), hidden, memory)
            given, *state = (part.flatten(0, 1) for part in inputs)
            hidden, memory = (part.unflatten(0, query.shape[:2]) for part in self.lstmcell(given, tuple(state)))
            hidden = hidden + query
        return hidden


class ContextEmbedding(nn.Module):
    """Supports in the context of each other, in their order, and queries in that of the supports."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.FCE = AttentionLstm(channels)
        self.G_encoder = nn.LSTM(channels, channels, batch_first=True, bidirectional=True)

    def forward(self, support: Tensor, *queries: Tensor) -> tuple[Tensor, ...]:
        """Supports (tasks, n, d) and each of the queries (tasks, q, d)."""
        there, back = self.G_encoder(support)[0].chunk(2, -1)
        support = support + there + back
        return support, *(self.FCE(query, support) for query in queries)


class IfslMatchingNet(FewShotMethod):
    """Supports vote by the softmax of `scale` times their positive cosines to the query, averaged over the strata.

    `single`: one matching network per group of channels on the joined features; else one on the groups and one on the
    classes' expected features, whose scores are joined by `score_fusion`, or the first one alone with `features_only`
    (MatchingNet with embeddings in context). `counterfactual` subtracts what a query would score without its own group:
    with the supports' mean or zeros in its place, and with ones for its scores where there are two networks.

    `released`: the stage on episodes starts with a random classifier of the training classes in place of the trained
    one, batch normalisation uses the statistics of the supports and of the queries of each task also at test, and
    lengths are constants for gradients. Its weights files lack the mean features (`utils.features`, `utils.count`).
    """

    stages = ("classes", "episodes")

    def __new__(cls, *_: Any, released: bool = False, **__: Any) -> Self:
        """`released` embeds images in another way, which its class has to show to whoever stores features."""
        made: Any = super().__new__(_ReleasedIfslMatchingNet if released and cls is IfslMatchingNet else cls)
        return made  # type: ignore[no-any-return]

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        splits: int = 8,
        scale: float = 5.0,
        fusion: Fusion = "concat",
        score_fusion: ScoreFusion = "product",
        before: Preprocessing = "none",
        after: Preprocessing = "none",
        single: bool = True,
        features_only: bool = False,
        counterfactual: Literal["mean", "zero"] | None = None,
        released: bool = False,
    ) -> None:
        super().__init__(backbone)
        self.utils = Strata(
            channels, classes, splits=splits, fusion=fusion, before=before, after=after, released=released
        )
        self.single = single and not features_only
        if self.single:
            self.blocks = nn.ModuleList(ContextEmbedding(self.utils.width) for _ in range(splits))
        else:
            self.x_blocks = nn.ModuleList(ContextEmbedding(channels // splits) for _ in range(splits))
            self.d_blocks = nn.ModuleList(ContextEmbedding(channels // splits) for _ in range(splits))
        self.scale, self.score_fusion, self.counterfactual = scale, score_fusion, counterfactual
        self.features_only, self.released = features_only, released

    def start_stage(self, stage: Stage) -> None:
        """The strata learn in the first stage alone."""
        self.utils.requires_grad_(stage == "classes")
        if stage == "episodes" and self.released:
            rng, bound = generator(0, "ifsl", "released classifier"), 1 / math.sqrt(self.utils.features.shape[1])
            for value in self.utils.linear.parameters():
                value.data.copy_(torch.from_numpy(rng.uniform(-bound, bound, value.shape)))

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) log probabilities; maps are flattened."""
        support, query = features.support.flatten(3).flatten(1, 2), features.query.flatten(2)
        parts = (part for given in (support, query) for part in (self.utils.cut(given), self.utils.expect(given)))
        scores = self.scale * (self._score_joined(*parts) if self.single else self._score_apart(*parts))
        votes = torch.unflatten(scores.softmax(-1).mean(0), -1, (features.ways, features.shots)).sum(-1)
        return torch.as_tensor((votes + 1e-6).log())

    def _score_joined(self, support: Tensor, support_classes: Tensor, query: Tensor, query_classes: Tensor) -> Tensor:
        """(splits, tasks, queries, supports) by one network per group."""
        queries = [self.utils.fuse(query, query_classes)]
        if self.counterfactual is not None:
            mean = support.mean(2, keepdim=True) if self.counterfactual == "mean" else torch.zeros_like(query)
            queries.append(self.utils.fuse(mean.expand_as(query), query_classes))
        found = self._match(self.blocks, self.utils.fuse(support, support_classes), *queries)
        return found[0] - found[1] if self.counterfactual is not None else found[0]

    def _score_apart(self, support: Tensor, support_classes: Tensor, query: Tensor, query_classes: Tensor) -> Tensor:
        """(splits, tasks, queries, supports) by two networks per group."""
        own = self._match(self.x_blocks, support, query)[0]
        if self.features_only:
            return own - 1 if self.counterfactual is not None else own
        of_classes = self._match(self.d_blocks, support_classes, query_classes)[0]
        joined = self._join(own, of_classes)
        return joined - self._join(torch.ones_like(own), of_classes) if self.counterfactual is not None else joined

    def _match(self, blocks: nn.ModuleList, support: Tensor, *queries: Tensor) -> list[Tensor]:
        """Positive cosines (splits, tasks, q, n) of each of the queries to the supports, in context."""
        unit = self.utils.normalise
        found = [block(*parts) for block, *parts in zip(blocks, support, *queries, strict=True)]
        return [
            torch.stack([functional.relu(unit(one[number]) @ unit(one[0]).mT) for one in found])
            for number in range(1, len(queries) + 1)
        ]

    def _join(self, own: Tensor, of_classes: Tensor) -> Tensor:
        if self.score_fusion == "linear_sum":
            return own + of_classes
        if self.score_fusion == "sum":
            return functional.logsigmoid(own + of_classes)
        product = functional.logsigmoid(own) + functional.logsigmoid(of_classes)
        return product if self.score_fusion == "product" else product - torch.log1p(product.exp())

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Minus the mean log probability of the labels."""
        scores = self.classify(episodes)
        return -scores.gather(-1, episodes.require_labels()[..., None]).mean(), scores

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy over the training classes; their mean features are stored."""
        features = self.emb_func(images).flatten(1)
        if self.training:
            self.utils.observe(features, labels)
        scores = self.utils.linear(features)
        return functional.cross_entropy(scores, labels), scores


class _ReleasedIfslMatchingNet(IfslMatchingNet):
    """Supports and queries of each task are a batch of their own to batch normalisation: transductive."""

    transductive = True

    def embed(self, episodes: Episodes) -> Episodes:
        """The episodes with features in place of images."""
        with batch_statistics(self.emb_func):
            support, query = (
                vmap(self.emb_func, randomness="different")(images)
                for images in (episodes.support.flatten(1, 2), episodes.query)
            )
        return replace(episodes, support=support.unflatten(1, episodes.support.shape[1:3]), query=query)
