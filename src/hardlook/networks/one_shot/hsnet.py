"""HSNet. Min, Kang and Cho, Hypercorrelation Squeeze for Few-Shot Segmentation, ICCV 2021."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.errors import ModelError
from hardlook.networks.one_shot.backbones import ResNet, build_backbone, freeze
from hardlook.networks.one_shot.evaluation import vote
from hardlook.networks.one_shot.network import Features, OneShotNetwork

WIDTHS = (16, 64, 128)
SQUEEZES = {"layer4": ((3, 3, 3), (2, 2, 2)), "layer3": ((5, 3, 3), (4, 2, 2)), "layer2": ((5, 5, 3), (4, 4, 2))}
"""Kernels and strides over the support's plane of the three convolutions that squeeze each level."""
CHUNK = 1 << 25
"""Correlations held at a time: 128 MB in float32, where all of eight pairs at 400 pixels are 800 MB."""


class CentrePivotConv4d(nn.Module):
    """A convolution over query and support positions whose kernel is zero off the two planes through its centre.

    `conv1` runs over the query's plane, at every `stride`-th position of the support; `conv2` over the support's with
    that stride, at every position of the query.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.conv1 = nn.Conv2d(inputs, outputs, kernel, 1, kernel // 2)
        self.conv2 = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2)

    def forward(self, x: Tensor) -> Tensor:
        """(B, outputs, hq, wq, hs', ws') of (B, inputs, hq, wq, hs, ws)."""
        kept = x[..., :: self.stride, :: self.stride].permute(0, 4, 5, 1, 2, 3)
        of_query = self.conv1(kept.flatten(0, 2))
        of_support = self.conv2(x.permute(0, 2, 3, 1, 4, 5).flatten(0, 2))
        return self._add(of_query, of_support, len(x))

    def correlate(self, query: Tensor, support: Tensor) -> Tensor:
        """The same of the correlations of unit features (B, layers, C, h, w), which are never held all at once."""
        batch, layers, _, *plane = query.shape
        kept = correlate(query, support[..., :: self.stride, :: self.stride])
        of_query = self.conv1(kept.permute(0, 4, 5, 1, 2, 3).flatten(0, 2))
        positions = query.flatten(3)
        size = max(1, CHUNK // (batch * layers * support.shape[-2:].numel()))
        found = []
        for part in torch.split(positions, size, 3):
            some = correlate(part[..., None], support)[:, :, :, 0]
            found.append(self.conv2(some.transpose(1, 2).flatten(0, 1)).view(batch, part.shape[3], -1))
        of_support = torch.cat(found, 1).view(batch * math.prod(plane), -1, *kept.shape[-2:])
        return self._add(of_query, of_support, batch)

    @staticmethod
    def _add(of_query: Tensor, of_support: Tensor, batch: int) -> Tensor:
        channels, (query, support) = of_query.shape[1], (of_query.shape[2:], of_support.shape[2:])
        left = of_query.view(batch, *support, channels, *query).permute(0, 3, 4, 5, 1, 2)
        return left + of_support.view(batch, *query, channels, *support).permute(0, 3, 1, 2, 4, 5)


def correlate(query: Tensor, support: Tensor) -> Tensor:
    """(B, layers, hq, wq, hs, ws): cosines of unit features (B, layers, C, h, w), negative ones as 0."""
    products = query.flatten(3).mT @ support.flatten(3)
    return products.relu_().view(*query.shape[:2], *query.shape[3:], *support.shape[3:])


def build_block(inputs: int, widths: Sequence[int], kernels: Sequence[int], strides: Sequence[int]) -> nn.Sequential:
    """Centre-pivot convolutions, each with group normalisation and ReLU."""
    layers: list[nn.Module] = []
    for width, kernel, stride in zip(widths, kernels, strides, strict=True):
        layers += [CentrePivotConv4d(inputs, width, kernel, stride), nn.GroupNorm(4, width), nn.ReLU(inplace=True)]
        inputs = width
    return nn.Sequential(*layers)


class HypercorrelationLearner(nn.Module):
    """From unit features of three levels to logits at twice the size of the finest."""

    def __init__(self, layers: Sequence[int]) -> None:
        super().__init__()
        for (name, (kernels, strides)), inputs in zip(SQUEEZES.items(), reversed(layers), strict=True):
            self.add_module(f"encoder_{name}", build_block(inputs, WIDTHS, kernels, strides))
        width = WIDTHS[-1]
        self.encoder_layer4to3, self.encoder_layer3to2 = (
            build_block(width, (width,) * 3, (3, 3, 3), (1, 1, 1)) for _ in range(2)
        )
        first, second = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, 64, 3, padding=1)
        self.decoder1 = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.decoder2 = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 2, 3, padding=1))

    def forward(self, query: Features, support: Features) -> Tensor:
        """Logits (B, 2, 2 h, 2 w) of features (B, layers, C, h, w), the finest level first."""
        second, third, fourth = (
            self._squeeze(name, query[number], support[number])
            for number, name in enumerate(("layer2", "layer3", "layer4"))
        )
        planes = {tuple(one.shape[-2:]) for one in (second, third, fourth)}
        if len(planes) > 1:
            raise ModelError(
                f"HSNet: the three levels of the support are squeezed to {sorted(planes)}, which do not add up",
                remedy="give supports of another size, such as 400 x 400 pixels",
            )
        mixed = self.encoder_layer4to3(resize_query(fourth, third.shape[2:4]) + third)
        mixed = self.encoder_layer3to2(resize_query(mixed, second.shape[2:4]) + second)
        x = self.decoder1(mixed.mean((4, 5)))
        return self.decoder2(resize(x, (2 * x.shape[-2], 2 * x.shape[-1])))  # type: ignore[no-any-return]

    def _squeeze(self, name: str, query: Tensor, support: Tensor) -> Tensor:
        first, *rest = self.get_submodule(f"encoder_{name}").children()
        assert isinstance(first, CentrePivotConv4d)
        x = first.correlate(query, support)
        for layer in rest:
            x = layer(x)
        return x


class HSNet(OneShotNetwork):
    """Correlations of all positions of query and support in many layers of a frozen backbone, squeezed to logits.

    One support at a time; the logits of several are the logarithm of their mean probabilities. With `released` they
    vote as `evaluation.vote` says: the logits are 1 for what wins and 0 for the other. The loss leaves out ignored
    pixels; with `released` they are background.

    Supports are 400 x 400 pixels, or of another size whose three levels are squeezed to one.
    """

    frozen = True

    def __init__(self, backbone: str = "resnet50", *, released: bool = False) -> None:
        super().__init__()
        self.released = released
        self.backbone = build_backbone(backbone, "plain", classes=1000)
        layers = self.backbone.blocks[-3:] if isinstance(self.backbone, ResNet) else (3, 3, 1)
        self.hpn_learner = HypercorrelationLearner(layers)
        freeze(self.backbone)

    def train(self, mode: bool = True) -> Self:
        """Training mode for everything but the frozen backbone."""
        super().train(mode)
        self.backbone.eval()
        return self

    @torch.no_grad()
    def encode(self, images: Tensor) -> Features:
        """Three levels (B, layers, C, h, w) of features before the activation, at 1/8, 1/16 and 1/32 of the size."""
        return self.run_backbone(images)

    @torch.no_grad()
    def run_backbone(self, images: Tensor) -> Features:
        """The same: nothing of it is trained."""
        if isinstance(self.backbone, ResNet):
            found = self.backbone.list_sums(images)
        else:
            found = self.backbone.list_convolutions(images)
        return tuple(torch.stack(level, 1) for level in found[-3:])

    @torch.no_grad()
    def describe(self, features: Features, masks: Tensor) -> Features:
        """The levels where the mask is, as unit vectors."""
        given, found = (masks == 1).float()[:, None], []
        for level in features:
            soft = resize(given, (level.shape[-2], level.shape[-1]))
            found.append(normalise(level * soft.to(level.dtype)[:, None]))
        return tuple(found)

    def match(
        self, query: Features, supports: Features, size: tuple[int, int], query_mask: Tensor | None = None
    ) -> Tensor:
        """Logits (B, 2, H, W); what `query_mask` leaves out plays no part here."""
        logits = self.match_shots(query, supports, size)
        if logits.shape[1] == 1:
            return logits[:, 0]
        if self.released:
            won = vote(logits.argmax(2), released=True)
            return torch.stack((~won, won), 1).to(logits.dtype)
        return logits.log_softmax(2).logsumexp(1) - math.log(logits.shape[1])

    def match_shots(self, query: Features, supports: Features, size: tuple[int, int]) -> Tensor:
        """Logits (B, K, 2, H, W), one for each support."""
        units = tuple(normalise(level) for level in query)
        shots = zip(*(level.unbind(1) for level in supports), strict=True)
        return torch.stack([resize(self.hpn_learner(units, shot), size) for shot in shots], 1)

    def compute_feature_loss(
        self, query: Features, labels: Tensor, supports: Features, masks: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Cross-entropy with the queries' labels (B, H, W), and the logits."""
        truth = (labels == 1).to(labels.dtype) if self.released else labels
        return super().compute_feature_loss(query, truth, supports, masks)


def normalise(features: Tensor) -> Tensor:
    """Features (B, layers, C, h, w) over their length, with 1e-5 added to it."""
    length: Tensor = torch.linalg.vector_norm(features, dim=2, keepdim=True)
    return features / (length + 1e-5)


def resize_query(x: Tensor, size: Sequence[int]) -> Tensor:
    """The query's plane of (B, C, hq, wq, hs, ws), resized to `size`."""
    batch, channels, *query, height, width = x.shape
    planes = resize(x.permute(0, 4, 5, 1, 2, 3).reshape(-1, channels, *query), (size[0], size[1]))
    return planes.view(batch, height, width, channels, *size).permute(0, 3, 4, 5, 1, 2)


def resize(maps: Tensor, size: tuple[int, int]) -> Tensor:
    """Bilinear, with the corners aligned."""
    return functional.interpolate(maps, size, mode="bilinear", align_corners=True)
