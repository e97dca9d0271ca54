"""PMMs and RPMMs. Yang et al., Prototype Mixture Models for Few-shot Semantic Segmentation, ECCV 2020."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.errors import OptionError
from hardlook.networks.one_shot.backbones import VGG16, ResNet, StagedVGG16, build_backbone, freeze
from hardlook.networks.one_shot.network import IGNORED, Features, OneShotNetwork
from hardlook.randomness import generator

WIDTH = 256
CONCENTRATION = 20.0
STEPS = 10
TINY = 1e-6


class Branches(nn.Module):
    """Five views of a map beside each other: its mean, its positions, and three widths of neighbourhood."""

    def __init__(self, width: int) -> None:
        super().__init__()
        for number, dilation in enumerate((0, 0, 6, 12, 18)):
            kernel = 3 if dilation else 1
            convolution = nn.Conv2d(width, width, kernel, padding=dilation, dilation=max(dilation, 1))
            self.add_module(f"layer6_{number}", nn.Sequential(convolution, nn.ReLU(), nn.Dropout2d(0.5)))

    def forward(self, x: Tensor) -> Tensor:
        """(n, 5 width, h, w) of maps (n, width, h, w)."""
        mean, *views = self.children()
        tiled = mean(x.mean((2, 3), keepdim=True)).expand(-1, -1, *x.shape[2:])
        return torch.cat([tiled, *(view(x) for view in views)], 1)


class PMM(OneShotNetwork):
    """Prototype mixtures: K mean vectors of the class and K of its background, by expectation maximisation.

    Each vector of the class is compared with the query's map, and the results are added; the share that the mixture
    gives to the class at each position joins them in the head. All supports of a query make one mixture. No gradient
    goes through the mixture, and so none to the supports.

    `starts` gives the mean vectors (1, width, K) that the EM begins with, by K; without it they are drawn with a fixed
    key, the same for every pair. Batch normalisation in the backbone keeps its statistics, and pixels marked 255 are
    left out of mixtures and loss. With `released` the start is drawn once, when the network is built, from torch's
    generator; batch statistics move in training; and pixels marked 255 are background.

    Published networks train their backbone; with `frozen` it keeps its weights, so that its features can be kept too.
    They have 256 channels behind it, or `width`. The EM takes `steps` iterations. `mixtures` are the numbers of
    vectors, one for each stage, or a text such as "1 3 6". `vgg16` is the backbone of the released code, which has a
    convolution of its own and one output.
    """

    mixtures: tuple[int, ...] = (3,)
    residual: ClassVar[bool] = False

    def __init__(
        self,
        backbone: str = "resnet50",
        *,
        released: bool = False,
        frozen: bool = False,
        width: int = WIDTH,
        starts: Mapping[int, Tensor] | None = None,
        steps: int = STEPS,
        mixtures: Sequence[int] | int | str = (),
    ) -> None:
        super().__init__()
        self.released, self.frozen, self.width, self.starts = released, frozen, width, dict(starts or {})
        self.steps = steps
        if mixtures:
            given = str(mixtures).split() if isinstance(mixtures, str | int) else mixtures
            self.mixtures = tuple(int(count) for count in given)
        if not self.residual and len(self.mixtures) > 1:
            raise OptionError(f"mixtures={mixtures}: PMM has one stage", remedy="one number of vectors, such as 3")
        body: ResNet | VGG16 | StagedVGG16
        if backbone == "vgg16":
            self.part, body = "model_backbone", StagedVGG16()
        else:
            self.part, body = "model_res", build_backbone(backbone, "caffe", dilations=(1, 1, 2, 4), stages=3)
        self.add_module(self.part, body)
        inputs = sum(body.channels[-2:])
        self.layer5 = nn.Sequential(
            nn.Conv2d(inputs, width, 3, padding=2, dilation=2), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.layer55 = self._make_layer(nn.Conv2d(2 * width, width, 3, padding=2, dilation=2))
        self.layer56 = self._make_layer(nn.Conv2d(width + 2 * self.residual, width, 3, padding=1))
        self.layer6 = Branches(width)
        self.layer7 = self._make_layer(nn.Conv2d(5 * width, width, 1))
        self.layer9 = nn.Conv2d(width, 2, 1)
        for number, inputs in enumerate((width + 2, width, width), start=1):
            first, second = nn.Conv2d(inputs, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
            self.add_module(f"residule{number}", nn.Sequential(nn.ReLU(), first, nn.ReLU(), second))
        for part in body.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.requires_grad_(False)
        if frozen:
            freeze(body)
        if released and not self.residual:
            self.starts = {count: self._draw(count) for count in self.mixtures} | self.starts

    def _make_layer(self, convolution: nn.Conv2d) -> nn.Sequential:
        if self.residual:
            return nn.Sequential(convolution, nn.ReLU(), nn.Dropout2d(0.5))
        return nn.Sequential(convolution, nn.BatchNorm2d(self.width), nn.ReLU())

    def train(self, mode: bool = True) -> Self:
        """Training mode, in which the backbone's batch normalisation keeps its statistics unless `released`.

        That of a frozen backbone keeps them in any case.
        """
        super().train(mode)
        if self.frozen or not self.released:
            for part in self.get_submodule(self.part).modules():
                if isinstance(part, nn.BatchNorm2d):
                    part.eval()
        return self

    def _draw(self, count: int) -> Tensor:
        if self.released:
            return torch.randn(1, self.width, count) * math.sqrt(2 / count)
        return torch.from_numpy(generator(0, "prototype mixture", count).standard_normal((1, self.width, count)))

    def fix_draws(self) -> None:
        """Draw the starts of all mixtures anew from a fixed seed, where they are drawn at random, as `released`."""
        if not self.released:
            return
        rng = torch.Generator().manual_seed(0)
        self.starts = {
            count: torch.randn(1, self.width, count, generator=rng) * math.sqrt(2 / count) for count in self.mixtures
        }

    def encode(self, images: Tensor) -> Features:
        """One map (B, width, h, w)."""
        return self.encode_features(self._run(images))

    @torch.no_grad()
    def run_backbone(self, images: Tensor) -> Features:
        """The outputs of the second and the third stage, of a frozen backbone."""
        return self._run(images)

    def _run(self, images: Tensor) -> Features:
        return tuple(self.get_submodule(self.part)(images)[-2:])

    def encode_features(self, features: Features) -> Features:
        """Both stages in one map (B, width, h, w)."""
        return (self.layer5(torch.cat(features, 1)),)

    def describe(self, features: Features, masks: Tensor) -> Features:
        """The supports' maps, and how much of each position is background and class, (B, 2, h, w)."""
        (maps,) = features
        shown = masks == 1
        sets = torch.stack([~shown if self.released else masks == 0, shown], 1)
        sets = sets.to(torch.promote_types(maps.dtype, torch.float32))
        return maps, functional.interpolate(sets, maps.shape[-2:], mode="bilinear", align_corners=True)

    def fit(self, supports: Features, count: int) -> tuple[Tensor, Tensor]:
        """The mixtures of background and class, (B, width, count) each, of described supports (B, K, ...)."""
        background, shown = self.iterate(supports, count)[-1].chunk(2)
        return background, shown

    @torch.no_grad()
    def iterate(self, supports: Features, count: int) -> list[Tensor]:
        """(2 B, width, count) after each iteration: first all of the backgrounds, then all of the classes."""
        maps, sets = supports
        # `sets` are float32 at least, and so are products: the soft-max multiplies differences by CONCENTRATION.
        points = maps[:, :, None] * sets[:, :, :, None]  # (B, K, 2, C, h, w)
        points = points.permute(2, 0, 3, 1, 4, 5).flatten(3).flatten(0, 1)
        start = self.starts[count] if count in self.starts else self._draw(count)
        return iterate_means(points, start.to(points), self.steps)

    def locate(self, query: Tensor, background: Tensor, shown: Tensor) -> Tensor:
        """The shares (B, 2, h, w) of background and class, summed over the vectors of each."""
        with torch.no_grad(), torch.autocast(query.device.type, enabled=False):
            means = torch.cat([background, shown], 2)
            shares = (means.mT @ query.flatten(2).to(means.dtype)).softmax(1)
            count = background.shape[2]
            joined = torch.stack([shares[:, :count].sum(1), shares[:, count:].sum(1)], 1)
            return joined.view(-1, 2, *query.shape[2:]).to(query.dtype)

    def compare(self, own: Tensor, vectors: Tensor) -> Tensor:
        """The sum over vectors (B, width, K) of `layer55` on the query's map beside the tiled vector.

        `own` is what the layer's convolution makes of the map alone (`convolve`). A tiled vector is the same
        everywhere, so that its part is one product per tap of the kernel, left out where the tap is outside.
        """
        convolution, *rest = self.layer55
        assert isinstance(convolution, nn.Conv2d)
        taps = torch.einsum("oikl,bin->bnokl", convolution.weight[:, self.width :], vectors.to(own.dtype)).flatten(3)
        size = own.shape[2:]
        inside = functional.unfold(taps.new_ones(1, 1, *size), 3, padding=2, dilation=2)
        found = torch.zeros_like(own)
        for tap in taps.unbind(1):
            x = own + (tap @ inside).view(own.shape)
            for layer in rest:
                x = layer(x)
            found = found + x
        return found

    def convolve(self, query: Tensor) -> Tensor:
        """What the convolution of `layer55` makes of a query's map (B, width, h, w), before any vector is added."""
        convolution = self.layer55[0]
        assert isinstance(convolution, nn.Conv2d)
        weight = convolution.weight[:, : self.width]
        return functional.conv2d(query, weight, convolution.bias, padding=2, dilation=2)

    def segment(self, x: Tensor, history: Tensor) -> Tensor:
        """Logits (B, 2, h, w) of the head for maps (B, width, h, w) and shares (B, 2, h, w) known before."""
        x = x + self.get_submodule("residule1")(torch.cat([x, history], 1))
        for name in ("residule2", "residule3"):
            x = x + self.get_submodule(name)(x)
        return self.layer9(self.layer7(self.layer6(x)))  # type: ignore[no-any-return]

    def list_logits(self, query: Features, supports: Features) -> list[Tensor]:
        """The logits (B, 2, h, w) of each stage."""
        (maps,) = query
        background, shown = self.fit(supports, self.mixtures[0])
        shares = self.locate(maps, background, shown)
        return [self.segment(self.layer56(self.compare(self.convolve(maps), shown)), shares)]

    def match(
        self, query: Features, supports: Features, size: tuple[int, int], query_mask: Tensor | None = None
    ) -> Tensor:
        """Logits (B, 2, H, W) of the last stage."""
        return resize(self.list_logits(query, supports)[-1], size)

    def loss(self, query: Tensor, labels: Tensor, supports: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of the stages' cross-entropies, and the logits of the last."""
        with torch.no_grad():
            shown = self.encode(supports.flatten(0, 1))
        return self._compute_loss(self.encode(query), labels, shown, masks)

    def compute_feature_loss(
        self, query: Features, labels: Tensor, supports: Features, masks: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The same of what `run_backbone` found of B queries and B * K supports."""
        with torch.no_grad():
            shown = self.encode_features(supports)
        return self._compute_loss(self.encode_features(query), labels, shown, masks)

    def _compute_loss(
        self, query: Features, labels: Tensor, supports: Features, masks: Tensor
    ) -> tuple[Tensor, Tensor]:
        batch, shots = masks.shape[:2]
        described = self.describe(supports, masks.flatten(0, 1))
        stacked = tuple(one.view(batch, shots, *one.shape[1:]) for one in described)
        size = (labels.shape[-2], labels.shape[-1])
        stages = [resize(logits, size) for logits in self.list_logits(query, stacked)]
        truth = (labels == 1).long() if self.released else labels.long()
        losses = [functional.cross_entropy(logits, truth, ignore_index=IGNORED) for logits in stages]
        return torch.stack(losses).sum(), stages[-1]

    def list_groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """Weights and biases of the backbone, once and twice the rate, then all others, 10 and 20 times."""
        groups: dict[float, list[nn.Parameter]] = {1.0: [], 2.0: [], 10.0: [], 20.0: []}
        for name, parameter in self.named_parameters():
            if parameter.requires_grad:
                factor = (1.0 if name.startswith(f"{self.part}.") else 10.0) * (2.0 if name.endswith("bias") else 1.0)
                groups[factor].append(parameter)
        return [(parameters, factor) for factor, parameters in groups.items() if parameters]


class RPMM(PMM):
    """Three mixtures of 1, 3 and 6 vectors in turn, each stage seeing the mask that the one before it found.

    As `PMM`, but for: the shares join before the head, dropout in place of batch normalisation. With `released` the
    start is drawn anew at every call, and with more than one support the result is the sum of the stages' soft-max
    maps over 5, of which a further soft-max is taken; the default takes the logits of the last stage for any number.
    """

    mixtures: tuple[int, ...] = (1, 3, 6)
    residual: ClassVar[bool] = True

    def list_logits(self, query: Features, supports: Features) -> list[Tensor]:
        """The logits (B, 2, h, w) of each stage."""
        (maps,) = query
        own, history = self.convolve(maps), maps.new_zeros(len(maps), 2, *maps.shape[2:])
        stages = []
        for count in self.mixtures:
            background, shown = self.fit(supports, count)
            joined = torch.cat([self.compare(own, shown), self.locate(maps, background, shown)], 1)
            stages.append(self.segment(self.layer56(joined), history))
            history = stages[-1].softmax(1)
        return stages

    def match(
        self, query: Features, supports: Features, size: tuple[int, int], query_mask: Tensor | None = None
    ) -> Tensor:
        """Logits (B, 2, H, W) of the last stage; with `released` and several supports a sum of soft-max maps."""
        stages = self.list_logits(query, supports)
        if self.released and supports[0].shape[1] > 1:
            # By 5 however many stages or supports there are.
            return resize(torch.stack([logits.softmax(1) for logits in stages]).sum(0) / 5, size)
        return resize(stages[-1], size)


@torch.no_grad()
def iterate_means(points: Tensor, start: Tensor, steps: int = STEPS) -> list[Tensor]:
    """Directions (B, C, K) of a mixture on points (B, C, n) after each iteration, from the start (1 or B, C, K).

    A point belongs to a direction by the soft-max of its scaled product with it. Points need not have length 1; those
    of length 0 do not turn any direction. A direction that no other point belongs to ends as 0.

    >>> points = torch.tensor([[[3.0, 3.0, 0.0], [0.0, 0.0, 2.0]]])
    >>> iterate_means(points, torch.tensor([[[1.0, 0.2], [0.2, 1.0]]]))[-1].round().tolist()
    [[[1.0, 0.0], [0.0, 1.0]]]
    """
    found = []
    with torch.autocast(points.device.type, enabled=False):
        means = start / (TINY + start.norm(dim=1, keepdim=True))
        for _ in range(steps):
            belonging = (CONCENTRATION * (points.mT @ means)).softmax(2)
            means = points @ (belonging / (TINY + belonging.sum(1, keepdim=True)))
            means = means / (TINY + means.norm(dim=1, keepdim=True))
            found.append(means)
    return found


def resize(logits: Tensor, size: tuple[int, int]) -> Tensor:
    """Bilinear, by the areas of pixels."""
    return functional.interpolate(logits, size, mode="bilinear", align_corners=False)
