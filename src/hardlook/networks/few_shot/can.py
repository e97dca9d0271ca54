"""CAN. Hou et al., Cross Attention Network for Few-shot Classification, NeurIPS 2019."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.descriptors import as_descriptors, cosines
from hardlook.networks.few_shot.method import Episodes, FewShotMethod, cross_entropy
from hardlook.networks.precision import full_precision

TEMPERATURE = 0.025


class ConvolutionBlock(nn.Module):
    """A 1 x 1 convolution, batch normalisation and ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(inputs, outputs, 1), nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(n, outputs, h, w) of (n, inputs, h, w)."""
        return functional.relu(self.bn(self.conv(x)))


class CrossAttention(nn.Module):
    """Which positions of a map matter beside another map, from the cosines of their positions."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = ConvolutionBlock(side * side, side), nn.Conv2d(side, side * side, 1)

    @full_precision
    def forward(self, found: Tensor) -> Tensor:
        """(tasks, a, b, own) weights around 1 of cosines (tasks, a, b, own, other)."""
        means = found.mean(3).permute(0, 3, 1, 2)
        kernel = self.conv2(self.conv1(means)).permute(0, 2, 3, 1)
        return torch.softmax((found * kernel[..., None, :]).mean(-1) / TEMPERATURE, -1) + 1


class CrossAttentionLayer(nn.Module):
    """The attention, used for both sides, and the classifier of all training classes."""

    def __init__(self, channels: int, classes: int, side: int) -> None:
        super().__init__()
        self.cam = CrossAttention(side)
        self.classifier = nn.Conv2d(channels, classes, 1)

    def forward(self, classes: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Descriptors (tasks, queries, ways, h w, C) of classes and of queries, weighted for each other.

        Of descriptors (tasks, ways, h w, C) and (tasks, queries, h w, C).
        """
        found = cosines(query[:, :, None], classes[:, None])
        for_classes, for_queries = self.cam(found.mT), self.cam(found)
        return classes[:, None] * for_classes[..., None], query[:, :, None] * for_queries[..., None]


class CAN(FewShotMethod):
    """Maps of class and query are weighted by their attention for each other; `scale` times the cosine of their means.

    Trained by the cross-entropy of the training `classes` at every position of the query as its own class sees it, and
    half that of the cosines of every position.
    """

    inputs = "maps"

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        side: int = 5,
        scale: float = 7.0,
    ) -> None:
        super().__init__(backbone)
        self.scale = scale
        self.cam_layer = CrossAttentionLayer(channels, classes, side)

    def attend(self, features: Episodes) -> tuple[Tensor, Tensor]:
        """Descriptors (tasks, queries, ways, h w, C) of classes and of queries, weighted for each other."""
        classes, query = as_descriptors(features.support.mean(2)), as_descriptors(features.query)
        return self.cam_layer(classes, query)  # type: ignore[no-any-return]

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores, within +- `scale`."""
        classes, query = self.attend(features)
        return self.scale * functional.cosine_similarity(classes.mean(3), query.mean(3), dim=-1)

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Both cross-entropies; the scores are means over the positions of a query."""
        labels = episodes.require_labels()
        classes, query = self.attend(self.embed(episodes))
        found = self.scale * functional.cosine_similarity(classes.mean(3, keepdim=True), query, dim=-1)
        local = cross_entropy(found.mT, labels[..., None].expand(-1, -1, found.shape[-1]))
        task, place = (torch.arange(count, device=labels.device) for count in labels.shape)
        own = query[task[:, None], place, labels]
        everywhere = episodes.require_classes().gather(1, labels)[..., None].expand(own.shape[:-1])
        return cross_entropy(self.class_scores(own), everywhere) + 0.5 * local, found.mean(-1)

    def class_scores(self, descriptors: Tensor) -> Tensor:
        """(..., classes) scores of descriptors (..., C)."""
        layer = self.cam_layer.classifier
        return functional.linear(descriptors, layer.weight[:, :, 0, 0], layer.bias)
