"""RENet. Kang et al., Relational Embedding for Few-Shot Classification, ICCV 2021."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.descriptors import as_descriptors
from hardlook.networks.few_shot.method import Episodes, FewShotMethod, cross_entropy
from hardlook.networks.precision import full_precision

WIDTH = 64


class Neighbourhoods(nn.Module):
    """Products of every position with the 5 x 5 around it, channel by channel."""

    def forward(self, maps: Tensor) -> Tensor:
        """(n, C, h w, 5, 5) of maps (n, C, h, w)."""
        unit = functional.normalize(functional.relu(maps), dim=1)
        around = torch.unflatten(functional.unfold(unit, 5, padding=2), 1, (-1, 25))
        return torch.unflatten((around * unit.flatten(2)[:, :, None]).mT, 3, (5, 5))


class SelfCorrelation(nn.Module):
    """One vector per position from the products of its neighbourhood."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        project = nn.Conv2d(channels, WIDTH, 1, bias=False)
        self.conv1x1_in = nn.Sequential(project, nn.BatchNorm2d(WIDTH), nn.ReLU())
        for name in ("conv1", "conv2"):
            convolution = nn.Conv3d(WIDTH, WIDTH, (1, 3, 3), bias=False)
            self.add_module(name, nn.Sequential(convolution, nn.BatchNorm3d(WIDTH), nn.ReLU()))
        self.conv1x1_out = nn.Sequential(nn.Conv2d(WIDTH, channels, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, products: Tensor) -> Tensor:
        """(n, C, h w, 1) of products (n, C, h w, 5, 5)."""
        x = self.conv1x1_in(products.flatten(3)).unflatten(3, (5, 5))
        x = self.get_submodule("conv2")(self.get_submodule("conv1")(x))
        return self.conv1x1_out(x.flatten(3))  # type: ignore[no-any-return]


class SelfCorrelationLayer(nn.Module):
    """Both steps, under the names of the published parameters."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.model = nn.Sequential(Neighbourhoods(), SelfCorrelation(channels))

    def forward(self, maps: Tensor) -> Tensor:
        """Maps with what their neighbourhoods say added."""
        return functional.relu(maps + self.model(maps).reshape(maps.shape))


class SeparableConvolution4d(nn.Module):
    """3 x 3 over the positions of one map, then of the other, then a change of the number of channels."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.proj = nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        over_second = nn.Conv3d(inputs, inputs, (1, 3, 3), padding=(0, 1, 1), bias=False)
        over_first = nn.Conv3d(inputs, inputs, (3, 3, 1), padding=(1, 1, 0), bias=False)
        self.conv1 = nn.Sequential(over_second, nn.BatchNorm3d(inputs))
        self.conv2 = nn.Sequential(over_first, nn.BatchNorm3d(inputs))

    def forward(self, x: Tensor) -> Tensor:
        """(n, outputs, h, w, h', w') of (n, inputs, h, w, h', w')."""
        first, second = x.shape[2:4], x.shape[4:]
        x = functional.relu(self.conv2(x.flatten(4)))
        x = self.conv1(torch.unflatten(x.flatten(2, 3), 3, second))
        return self.proj(x.flatten(3)).unflatten(2, first).unflatten(4, second)  # type: ignore[no-any-return]


class CorrelationFilter(nn.Module):
    """Filters a correlation of two maps, alike from both sides."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(SeparableConvolution4d(1, 16), nn.ReLU(), SeparableConvolution4d(16, 1))

    def forward(self, x: Tensor) -> Tensor:
        """(n, 1, h, w, h', w') of the same shape."""
        return self.conv(x) + self.conv(x.permute(0, 1, 4, 5, 2, 3)).permute(0, 1, 4, 5, 2, 3)  # type: ignore[no-any-return]


class CrossCorrelationLayer(nn.Module):
    """Where a support and a query map attend for each other."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.cca_module = CorrelationFilter()
        self.cca_1x1 = nn.Sequential(nn.Conv2d(channels, WIDTH, 1, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU())

    def forward(self, support: Tensor, query: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """Attentions (tasks, queries, supports, h w) over supports and over queries.

        Of maps (tasks, supports, C, h, w) and (tasks, queries, C, h, w).
        """
        reduced = [self.cca_1x1(maps.flatten(0, 1)).unflatten(0, maps.shape[:2]) for maps in (support, query)]
        left, right = (functional.normalize(as_descriptors(maps), dim=-1) for maps in reduced)
        found = torch.einsum("tsac,tqbc->tqsab", left, right)
        positions, pairs = support.shape[-2:], found.shape[:3]
        grid = found.reshape(-1, 1, *positions, *positions)
        filtered = self.cca_module(grid).flatten(4).flatten(2, 3)[:, 0].unflatten(0, pairs)
        over_support, over_query = (
            ((filtered - filtered.mean(axis, keepdim=True)) / (filtered.var(axis, keepdim=True) + 1e-5).sqrt())
            for axis in (3, 4)
        )
        return (over_support / temperature).softmax(3).sum(4), (over_query / temperature).softmax(4).sum(3)


class RENet(FewShotMethod):
    """Maps that describe their own neighbourhoods, compared where each attends for the other.

    Scores are cosines over `temperature`. Trained by `episode_weight` times their cross-entropy, by that of all
    training `classes` on the queries, and by that of the same layer on a batch of other images; where the training
    loop gives none, the supports are that batch.
    """

    inputs = "maps"

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        temperature: float = 0.2,
        attention_temperature: float = 5.0,
        episode_weight: float = 0.25,
    ) -> None:
        super().__init__(backbone)
        self.temperature, self.attention_temperature = temperature, attention_temperature
        self.episode_weight = episode_weight
        self.fc = nn.Linear(channels, classes)
        self.scr_layer = SelfCorrelationLayer(channels)
        self.cca_layer = CrossCorrelationLayer(channels)

    def embed(self, episodes: Episodes) -> Episodes:
        """Maps of the episodes with their self-correlation."""
        features = super().embed(episodes)
        maps = torch.cat([features.support.flatten(1, 2), features.query], 1)
        found = self.scr_layer(maps.flatten(0, 1)).unflatten(0, maps.shape[:2])
        supports = features.ways * features.shots
        support = found[:, :supports].unflatten(1, (features.ways, features.shots))
        return replace(features, support=support, query=found[:, supports:])

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) cosines over `temperature`."""
        support, query = features.support.flatten(1, 2), features.query
        support, query = (maps - maps.mean(2, keepdim=True) for maps in (support, query))
        over_support, over_query = self.cca_layer(support, query, self.attention_temperature)
        size, shots = support.shape[-2:].numel(), (features.ways, features.shots)
        # The mean over positions of attention times map, then that over shots.
        pooled = torch.einsum("tqsa,tsac->tqsc", over_support, as_descriptors(support))
        asked = torch.einsum("tqsb,tqbc->tqsc", over_query, as_descriptors(query))
        pooled, asked = (torch.unflatten(given / size, 2, shots).mean(3) for given in (pooled, asked))
        return functional.cosine_similarity(pooled, asked, dim=-1) / self.temperature

    def loss(self, episodes: Episodes, batch: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The three cross-entropies; `batch` images (n, 3, H, W) and training classes (n,)."""
        features, labels = self.embed(episodes), episodes.require_labels()
        classes = episodes.require_classes()
        scores = self.score(features)
        centred = features.query - features.query.mean(2, keepdim=True)
        of_queries = cross_entropy(self.fc(centred.mean((3, 4))), classes.gather(1, labels))
        if batch is None:
            known = classes[:, :, None].expand(-1, -1, features.shots)
            of_batch = cross_entropy(self.fc(features.support.mean((4, 5))), known)
        else:
            of_batch, _ = self.class_loss(*batch)
        return self.episode_weight * cross_entropy(scores, labels) + of_queries + of_batch, scores

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy of all training classes, and the scores (n, classes)."""
        scores = self.fc(self.scr_layer(self.emb_func(images)).mean((2, 3)))
        return functional.cross_entropy(scores, labels), scores
