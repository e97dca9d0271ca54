"""RePRI. Boudiaf et al., Few-Shot Segmentation Without Meta-Learning, CVPR 2021.

The base network is the PSPNet of Zhao et al., Pyramid Scene Parsing Network, CVPR 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.one_shot.backbones import build_backbone, freeze, run_stages
from hardlook.networks.one_shot.network import IGNORED, Features, OneShotNetwork

WIDTH = 512
BINS = (1, 2, 3, 6)
TEMPERATURE = 20.0
RATE = 0.025
SMOOTHING = 0.1
TINY = 1e-10
RECORDED = ("cross_entropy", "divergence", "entropy", "marginal", "proportions", "weight", "bias")


class PyramidPooling(nn.Module):
    """A map beside its means over 1, 4, 9 and 36 parts."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        width = inputs // len(BINS)
        self.features = nn.ModuleList(
            nn.Sequential(
                nn.AdaptiveAvgPool2d(parts),
                nn.Conv2d(inputs, width, 1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
            )
            for parts in BINS
        )

    def forward(self, x: Tensor) -> Tensor:
        """(n, 2 C, h, w) of maps (n, C, h, w)."""
        size = x.shape[-2:]
        pooled = (functional.interpolate(part(x), size, mode="bilinear", align_corners=True) for part in self.features)
        return torch.cat([x, *pooled], 1)


@dataclass(frozen=True)
class Adapted:
    """The classifiers of B pairs: a position is of the class by the sigmoid of 20 cos(weight, feature) - bias.

    `history` has, on request, the values of each step: before it the three losses (steps, B) `cross_entropy`,
    `divergence` and `entropy`, and `marginal` and `proportions` (steps, B, 2) of background and class; after it
    `weight` (steps, B, C) and `bias` (steps, B). Its entries `first_weight` and `first_bias` are the start.
    """

    weight: Tensor
    bias: Tensor
    history: dict[str, Tensor] | None = None


class RePRI(OneShotNetwork):
    """A network for the training classes, and per pair a linear classifier of its features, fitted to both images.

    The classifier begins with the mean feature of the class in the supports and takes `steps` gradient steps on the
    supports' cross-entropy, the entropy of the query's prediction, and its divergence from an expected share of
    foreground. That share is the classifier's own, of the start and, from step `update` on, of that step.

    50 steps with the update after 10, as published; the start of the bias leaves out what `query_mask` marks. `update`
    may be several steps, or a text such as "10 30"; each adds 1 to the weight of the divergence. With `released` 49
    steps with the update after 9, and a start that sees all positions; its evaluation gives the query's label as
    `query_mask`, which also leaves out the borders of the objects sought: see docs/readings.md.

    The published network trains its backbone; with `frozen` it keeps its weights, so that its features can be kept too.
    It has 512 channels behind it, or `width`.
    """

    stages: ClassVar[tuple[str, ...]] = ("classes",)

    def __init__(
        self,
        backbone: str = "resnet50",
        *,
        classes: int = 16,
        released: bool = False,
        frozen: bool = False,
        width: int = WIDTH,
        steps: int | None = None,
        update: int | Sequence[int] | str | None = None,
    ) -> None:
        super().__init__()
        self.released, self.frozen = released, frozen
        self.steps = (49 if released else 50) if steps is None else steps
        chosen = (9 if released else 10) if update is None else update
        several = chosen.split() if isinstance(chosen, str) else chosen
        self.update = several if isinstance(several, int) else tuple(int(one) for one in several)
        body = build_backbone(backbone, "deep-stem", dilations=(1, 1, 2, 4))
        self.parts = [f"layer{number}" for number in range(len(body.list_stages()))]
        for name, stage in zip(self.parts, body.list_stages(), strict=True):
            self.add_module(name, stage)
        channels = body.channels[-1]
        self.ppm = PyramidPooling(channels)
        self.bottleneck = nn.Sequential(
            nn.Conv2d(2 * channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Dropout2d(0.1),
        )
        self.classifier = nn.Conv2d(width, classes, 1)
        if frozen:
            freeze(*self.list_stages())

    def list_stages(self) -> list[nn.Module]:
        """The stages of the backbone."""
        return [self.get_submodule(name) for name in self.parts]

    def train(self, mode: bool = True) -> Self:
        """Training mode for everything but a frozen backbone."""
        super().train(mode)
        if self.frozen:
            for stage in self.list_stages():
                stage.eval()
        return self

    def extract(self, images: Tensor) -> Tensor:
        """The last map (B, width, h, w) before the classifier."""
        return self._pool(run_stages(self.list_stages(), images)[-1])

    def _pool(self, deep: Tensor) -> Tensor:
        """The same of the backbone's last map."""
        return self.bottleneck(self.ppm(deep))  # type: ignore[no-any-return]

    def classify(self, images: Tensor) -> Tensor:
        """Logits (B, classes, H, W) of the training classes."""
        return self._enlarge(self.classifier(self.extract(images)), (images.shape[-2], images.shape[-1]))

    @staticmethod
    def _enlarge(logits: Tensor, size: tuple[int, int]) -> Tensor:
        return functional.interpolate(logits, size, mode="bilinear", align_corners=True)

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy with smoothed labels over the pixels that are not 255, and the logits."""
        logits = self.classify(images)
        return smoothed_cross_entropy(logits, labels), logits

    def compute_feature_class_loss(self, features: Features, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The same of what `run_backbone` found of the images."""
        logits = self._enlarge(self.classifier(self._pool(features[0])), (labels.shape[-2], labels.shape[-1]))
        return smoothed_cross_entropy(logits, labels), logits

    def encode(self, images: Tensor) -> Features:
        """One map (B, width, h, w) of unit vectors."""
        return (functional.normalize(self.extract(images), dim=1),)

    @torch.no_grad()
    def run_backbone(self, images: Tensor) -> Features:
        """The last map of a frozen backbone."""
        return run_stages(self.list_stages(), images)[-1:]

    def encode_features(self, features: Features) -> Features:
        """One map (B, width, h, w) of unit vectors."""
        return (functional.normalize(self._pool(features[0]), dim=1),)

    def describe(self, features: Features, masks: Tensor) -> Features:
        """The supports' maps, and their labels (B, h, w) at that size."""
        (maps,) = features
        return maps, resize_labels(masks, (maps.shape[-2], maps.shape[-1]))

    def adapt(
        self,
        query: Features,
        supports: Features,
        query_mask: Tensor | None = None,
        *,
        proportions: Tensor | None = None,
        record: bool = False,
    ) -> Adapted:
        """The classifiers of all pairs of a batch; `record` keeps the history of every step.

        `proportions` (B, 2) are the shares of background and class where they are known, as to an oracle.
        """
        (maps,), (shown, labels) = query, supports
        size = (maps.shape[-2], maps.shape[-1])
        if query_mask is None:
            valid = torch.ones((len(maps), *size), dtype=torch.bool, device=maps.device)
        else:
            valid = resize_labels(query_mask, size) != IGNORED
        return adapt_classifiers(
            maps.flatten(2),
            valid.flatten(1),
            shown.transpose(1, 2).flatten(2),
            labels.flatten(1),
            shots=labels.shape[1],
            steps=self.steps,
            update=self.update,
            centre_on_all=self.released,
            proportions=proportions,
            record=record,
        )

    def match(
        self, query: Features, supports: Features, size: tuple[int, int], query_mask: Tensor | None = None
    ) -> Tensor:
        """Logits (B, 2, H, W): 0 for the background, 20 cos - bias for the class."""
        adapted = self.adapt(query, supports, query_mask)
        scores = score_positions(query[0].flatten(2), adapted.weight).view(-1, *query[0].shape[-2:])
        scores = self._enlarge(scores[:, None], size)
        shown = scores - adapted.bias[:, None, None, None]
        return torch.cat([torch.zeros_like(shown), shown], 1)


def smoothed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float = SMOOTHING) -> Tensor:
    """Mean cross-entropy of labels (B, H, W) that share `smoothing` evenly among the other classes; 255 is left out.

    >>> logits = torch.tensor([[2.0, 0.0, 0.0]]).log_softmax(1)[:, :, None, None]
    >>> round(float(smoothed_cross_entropy(logits, torch.tensor([[[0]]]))), 6)
    0.439545
    """
    rates = logits.log_softmax(1)
    valid = labels != IGNORED
    own = rates.gather(1, torch.where(valid, labels, 0).long()[:, None])[:, 0]
    others = (rates.sum(1) - own) * (smoothing / (logits.shape[1] - 1))
    loss = -((1 - smoothing) * own + others)
    return (loss * valid).sum() / valid.sum().clamp_min(1)


def measure_proportions(labels: Tensor, size: tuple[int, int], noise: float = 0.0) -> Tensor:
    """(B, 2): the shares of background and class in labels (B, H, W) at another size, without pixels marked 255.

    That of the class is changed by `noise` times itself, within 0 and 1.

    >>> measure_proportions(torch.tensor([[[1, 0], [0, 255]]]), (2, 2), noise=0.5).tolist()
    [[0.5, 0.5]]
    """
    small = resize_labels(labels, size).flatten(1)
    share = (small == 1).sum(1) / (small != IGNORED).sum(1).clamp_min(1)
    shown = (share * (1 + noise)).clamp(0, 1)
    return torch.stack([1 - shown, shown], 1)


def resize_labels(labels: Tensor, size: tuple[int, int]) -> Tensor:
    """Labels (B, H, W) at another size, each that of the nearest pixel."""
    return functional.interpolate(labels[:, None].float(), size, mode="nearest")[:, 0].to(labels.dtype)


def score_positions(features: Tensor, weight: Tensor) -> Tensor:
    """20 cos (B, n) of features (B, C, n) and vectors (B, C)."""
    kind = torch.promote_types(features.dtype, torch.float32)
    with torch.autocast(features.device.type, enabled=False):
        return Positions(features.to(kind)).score(weight.to(kind))


class Positions:
    """Features (B, C, n) with their norms, which every step needs.

    Vectors are multiplied as rows: as columns, batches of them take four times as long on a processor.
    """

    def __init__(self, features: Tensor) -> None:
        self.features = features
        self.norms: Tensor = features.norm(dim=1)

    def score(self, weight: Tensor) -> Tensor:
        """20 cos (B, n) with vectors (B, C)."""
        scale: Tensor = weight.norm(dim=1, keepdim=True) * self.norms + TINY
        return TEMPERATURE * torch.bmm(weight[:, None], self.features)[:, 0] / scale

    def sum(self, factors: Tensor) -> Tensor:
        """(B, C): the sum of the features, each times its factor of (B, n)."""
        return torch.bmm(factors[:, None], self.features.mT)[:, 0]

    def slope(self, weight: Tensor, scores: Tensor, change: Tensor) -> Tensor:
        """(B, C): the gradient by the vectors of a loss that changes with the scores by `change` (B, n)."""
        length: Tensor = weight.norm(dim=1, keepdim=True)
        scale = length * self.norms + TINY
        along = self.sum(TEMPERATURE * change / scale)
        # The norm of a vector of 0 has no direction.
        unit = weight / torch.where(length > 0, length, torch.ones_like(length))
        return along - unit * (change * scores * self.norms / scale).sum(1, keepdim=True)


@torch.no_grad()
def adapt_classifiers(
    query: Tensor,
    valid: Tensor,
    support: Tensor,
    labels: Tensor,
    *,
    shots: int,
    steps: int = 50,
    update: int | Sequence[int] = 10,
    centre_on_all: bool = False,
    proportions: Tensor | None = None,
    record: bool = False,
) -> Adapted:
    """Fit the classifiers of B pairs at once, in float32 or better.

    `query` (B, C, n) features and which of them are `valid` (B, n); `support` (B, C, m) those of all shots, with
    `labels` (B, m) of 0, 1 and 255. `centre_on_all` starts the bias at the mean over all of the query. `proportions`
    (B, 2), where given, are the shares of background and class, which are then never measured. Gradients are written
    out, so that this works in inference mode and takes one pass over the features each way per step.
    """
    updates = set() if proportions is not None else {update} if isinstance(update, int) else set(update)
    kind = torch.promote_types(query.dtype, torch.float32)
    history: dict[str, list[Tensor]] = {}
    with torch.autocast(query.device.type, enabled=False):
        asked, known = Positions(query.to(kind)), Positions(support.to(kind))
        shown, share, known_share = labels == 1, make_shares(valid, kind), make_shares(labels != IGNORED, kind)
        weight = first_weight = known.sum(shown.to(kind)) / (shown.to(kind).sum(1, keepdim=True) + TINY)
        start = asked.score(weight)
        bias = first_bias = start.mean(1) if centre_on_all else (start * share).sum(1)
        if proportions is None:
            proportions = sum_shares(torch.sigmoid(start - bias[:, None]), share)
        else:
            proportions = proportions.to(start)
        pull = 1 / shots
        for step in range(steps):
            scores, known_scores = asked.score(weight), known.score(weight)
            likely, known_likely = (torch.sigmoid(given - bias[:, None]) for given in (scores, known_scores))
            marginal = sum_shares(likely, share)
            if step in updates:
                proportions, pull = marginal, pull + 1
            cross_entropy, known_change = measure_support(known_likely, known_share, shown)
            entropy, of_entropy = measure_entropy(likely, share)
            divergence, of_divergence = measure_divergence(marginal, proportions)
            moving = share * likely * (1 - likely)
            change = of_entropy / shots + pull * moving * of_divergence[:, None]
            slope = asked.slope(weight, scores, change) + known.slope(weight, known_scores, known_change)
            weight = weight - RATE * slope
            bias = bias + RATE * (change.sum(1) + known_change.sum(1))
            if record:
                values = (cross_entropy, divergence, entropy, marginal, proportions, weight, bias)
                for name, value in zip(RECORDED, values, strict=True):
                    history.setdefault(name, []).append(value)
    if not record:
        return Adapted(weight, bias)
    stacked = {name: torch.stack(values) for name, values in history.items()}
    return Adapted(weight, bias, {**stacked, "first_weight": first_weight, "first_bias": first_bias})


def make_shares(chosen: Tensor, kind: torch.dtype) -> Tensor:
    """(B, n): 1 over the number of chosen positions at these, 0 elsewhere."""
    return chosen.to(kind) / chosen.sum(1, keepdim=True).clamp_min(1)


def sum_shares(likely: Tensor, share: Tensor) -> Tensor:
    """(B, 2): the mean probability of background and class over the positions that share."""
    return torch.stack([((1 - likely) * share).sum(1), (likely * share).sum(1)], 1)


def measure_support(likely: Tensor, share: Tensor, shown: Tensor) -> tuple[Tensor, Tensor]:
    """The cross-entropy (B,) of probabilities (B, m), and its change with the scores (B, m)."""
    right = torch.where(shown, likely, 1 - likely) + TINY
    change = share * likely * (1 - likely) / right
    return -(share * right.log()).sum(1), torch.where(shown, -change, change)


def measure_entropy(likely: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """The mean entropy (B,) of probabilities (B, n), and its change with the scores (B, n)."""
    unlikely = 1 - likely
    log, other = (likely + TINY).log(), (unlikely + TINY).log()
    slope = other + unlikely / (unlikely + TINY) - log - likely / (likely + TINY)
    return -(share * (likely * log + unlikely * other)).sum(1), share * likely * unlikely * slope


def measure_divergence(marginal: Tensor, proportions: Tensor) -> tuple[Tensor, Tensor]:
    """The divergence (B,) of marginals (B, 2) from proportions, and its change with the share of the class (B,)."""
    # An underflow to 0 would make 0 log 0.
    ratio = (marginal.clamp_min(torch.finfo(marginal.dtype).tiny) / (proportions + TINY)).log()
    return (marginal * ratio).sum(1), ratio[:, 1] - ratio[:, 0]
