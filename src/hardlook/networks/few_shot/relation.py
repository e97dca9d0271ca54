"""RelationNet. Sung et al., Learning to Compare: Relation Network for Few-Shot Learning, CVPR 2018."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.errors import OptionError
from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.networks.precision import full_precision


class RelationLayer(nn.Module):
    """The relation of two maps: two blocks of convolution and pooling on their joined channels, two linear layers."""

    def __init__(self, channels: int, side: int, padding: int, momentum: float, hidden: int = 8) -> None:
        super().__init__()
        blocks: list[nn.Module] = []
        for inputs in (2 * channels, channels):
            convolution = nn.Conv2d(inputs, channels, 3, padding=padding)
            side += 2 * padding - 2
            if side < 1:
                raise OptionError(
                    "the backbone's maps are too small for the two blocks of RelationNet",
                    remedy="pass --set option.padding=1, or take a larger --image-size",
                )
            pool = min(2, side)  # a single position is left as it is
            blocks += [convolution, nn.BatchNorm2d(channels, momentum=momentum), nn.ReLU(), nn.MaxPool2d(pool)]
            side //= pool
        self.padding, self.layers = padding, nn.Sequential(*blocks)
        self.fc = nn.Sequential(nn.Linear(channels * side * side, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, query: Tensor, classes: Tensor) -> Tensor:
        """(tasks, queries, ways) relations of maps (tasks, queries, C, h, w) and (tasks, ways, C, h, w)."""
        # The first convolution of joined maps is the sum of one of each: 80 convolutions where pairs would need 375.
        weight, channels = self.layers.get_parameter("0.weight"), query.shape[2]
        bias = self.layers.get_parameter("0.bias")
        queries = functional.conv2d(query.flatten(0, 1), weight[:, :channels], bias, padding=self.padding)
        others = functional.conv2d(classes.flatten(0, 1), weight[:, channels:], padding=self.padding)
        pairs = queries.reshape(*query.shape[:2], 1, *queries.shape[1:]) + others.reshape(
            len(classes), 1, -1, *others.shape[1:]
        )
        return self.fc(self.layers[1:](pairs.flatten(0, 2)).flatten(1)).reshape(pairs.shape[:3])  # type: ignore[no-any-return]


class RelationNet(FewShotMethod):
    """A small network compares the map of a query with the sum of the maps of a class.

    Trained by the squared error of the sigmoid of a relation, as published. With `released` by cross-entropy over the
    relations, and batch normalisation keeps the statistics of the last batch alone (momentum 1). `padding` 1 is for
    maps below 10 x 10.
    """

    inputs = "maps"

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        side: int = 21,
        padding: int = 0,
        released: bool = False,
    ) -> None:
        super().__init__(backbone)
        self.released = released
        self.relation_layer = RelationLayer(channels, side, padding, 1.0 if released else 0.1)

    @classmethod
    def build(cls, backbone: nn.Module, *, channels: int, classes: int, ways: int, side: int, **options: Any) -> Self:
        """The method for maps of `side` x `side`, padded where they are small."""
        return cls(backbone, channels=channels, side=side, **{"padding": int(side < 10), **options})

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) relations before the sigmoid."""
        return self.relation_layer(features.query, features.support.sum(2))  # type: ignore[no-any-return]

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """The squared error, or with `released` the cross-entropy, and the relations."""
        if self.released:
            return super().loss(episodes)
        scores = self.classify(episodes)
        return squared_error(scores, episodes.require_labels()), scores


@full_precision
def squared_error(scores: Tensor, labels: Tensor) -> Tensor:
    """Mean squared error of the sigmoids of scores (tasks, queries, ways) at labels (tasks, queries)."""
    targets = functional.one_hot(labels, scores.shape[-1]).to(scores)
    return (torch.sigmoid(scores) - targets).square().mean()
