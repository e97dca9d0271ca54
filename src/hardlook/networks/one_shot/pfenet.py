"""PFENet. Tian et al., Prior Guided Feature Enrichment Network for Few-Shot Segmentation, TPAMI 2020."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.one_shot.backbones import build_backbone, freeze, run_stages
from hardlook.networks.one_shot.network import IGNORED, Features, OneShotNetwork

WIDTH = 256
BINS = (60, 30, 15, 8)
"""Sides of the squares to which features are pooled, from fine to coarse, whatever the size of the image."""
STAGES = ("layer0", "layer1", "layer2", "layer3", "layer4")


class PFENet(OneShotNetwork):
    """Features of a frozen backbone, enriched at several scales by the support's mean and a prior of where it is.

    The prior is the greatest cosine of each position of the query with the support's, in features too deep to be
    trained on. Several supports are averaged. `bins` are the sides of the scales, or a text such as "60 30 15 8"; those
    up to 1 are shares of the features' height, as the released settings for COCO have them. `width` is the number of
    channels.

    The images must be 8 k + 1 pixels high and wide for features to lie where the released network has them. Batch
    normalisation of the frozen backbone keeps its statistics; with `released` training goes on changing them.
    """

    def __init__(
        self,
        backbone: str = "resnet50",
        *,
        bins: Sequence[float] | float | str = BINS,
        width: int = WIDTH,
        released: bool = False,
    ) -> None:
        super().__init__()
        given = [float(side) for side in (str(bins).split() if isinstance(bins, str | int | float) else bins)]
        self.bins = bins = tuple(side if side <= 1 else int(side) for side in given)
        self.released, self.frozen = released, not released
        built = build_backbone(backbone, "deep-stem", dilations=(1, 1, 2, 4))
        for name, stage in zip(STAGES, built.list_stages(), strict=True):
            self.add_module(name, stage)
        self.cls = build_classifier(width)
        inputs = sum(built.channels[-3:-1])
        self.down_query, self.down_supp = (
            nn.Sequential(nn.Conv2d(inputs, width, 1, bias=False), nn.ReLU(), nn.Dropout2d(0.5)) for _ in range(2)
        )
        self.init_merge = nn.ModuleList(build_projection(2 * width + 1, width) for _ in bins)
        self.beta_conv = nn.ModuleList(build_residual(width) for _ in bins)
        self.inner_cls = nn.ModuleList(build_classifier(width) for _ in bins)
        self.res1 = build_projection(width * len(bins), width)
        self.res2 = build_residual(width)
        self.alpha_conv = nn.ModuleList(build_projection(2 * width, width) for _ in bins[1:])
        freeze(*self.list_stages())

    def list_stages(self) -> list[nn.Module]:
        """The five stages of the backbone."""
        return [self.get_submodule(name) for name in STAGES]

    def train(self, mode: bool = True) -> Self:
        """Training mode for everything but the frozen backbone."""
        super().train(mode)
        if not self.released:
            for stage in self.list_stages():
                stage.eval()
        return self

    @torch.no_grad()
    def encode(self, images: Tensor) -> Features:
        """The backbone's second, third and fourth stage, at an eighth of the images' size."""
        return self.run_backbone(images)

    @torch.no_grad()
    def run_backbone(self, images: Tensor) -> Features:
        """The same: nothing of it is trained."""
        return run_stages(self.list_stages(), images)[2:]

    def describe(self, features: Features, masks: Tensor) -> Features:
        """The mean feature (B, width, 1, 1) of the mask, and deep features (B, C, h, w) of what it leaves."""
        second, third = features[:2]
        height, width = third.shape[-2:]
        soft = resize((masks == 1).float()[:, None], (height, width))
        # The area stays float32 for features of any type, as released: its rounding shows in float64.
        area = functional.avg_pool2d(soft, (height, width)) * height * width + 0.0005
        soft = soft.to(third.dtype)
        with torch.no_grad():
            deep = self.get_submodule("layer4")(third * soft) * soft
        reduced = self.down_supp(join(third, second))
        return (reduced * soft).sum((2, 3), keepdim=True) / area.to(reduced.dtype), deep

    def match(
        self, query: Features, supports: Features, size: tuple[int, int], query_mask: Tensor | None = None
    ) -> Tensor:
        """Logits (B, 2, H, W); what `query_mask` leaves out plays no part here."""
        return resize(self.enrich(query, supports)[0], size)

    def forward(self, query: Tensor, supports: Tensor, masks: Tensor, query_mask: Tensor | None = None) -> Tensor:
        """Logits (B, 2, H, W) for queries (B, 3, H, W) by supports (B, K, 3, H, W) with masks (B, K, H, W)."""
        main, _ = self.enrich(self.encode(query), self.describe_shots(supports, masks))
        return resize(main, (query.shape[-2], query.shape[-1]))

    def loss(self, query: Tensor, labels: Tensor, supports: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """The cross-entropy of the logits and the mean one of the four scales, added; and the logits."""
        return self._compute_loss(self.encode(query), self.describe_shots(supports, masks), labels)

    def compute_feature_loss(
        self, query: Features, labels: Tensor, supports: Features, masks: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The same of what `run_backbone` found of B queries and B * K supports."""
        described = self.describe(supports, masks.flatten(0, 1))
        shots = tuple(one.view(*masks.shape[:2], *one.shape[1:]) for one in described)
        return self._compute_loss(query, shots, labels)

    def _compute_loss(self, query: Features, supports: Features, labels: Tensor) -> tuple[Tensor, Tensor]:
        size = (labels.shape[-2], labels.shape[-1])
        outputs = self.enrich(query, supports)
        logits, scales = resize(outputs[0], size), [resize(one, size) for one in outputs[1]]
        losses = [functional.cross_entropy(one, labels.long(), ignore_index=IGNORED) for one in (logits, *scales)]
        return losses[0] + torch.stack(losses[1:]).mean(), logits

    def describe_shots(self, supports: Tensor, masks: Tensor) -> Features:
        """What `describe` finds of supports (B, K, 3, H, W), without their unmasked fourth stage."""
        with torch.no_grad():
            features = run_stages(self.list_stages()[:4], supports.flatten(0, 1))[2:]
        described = self.describe(features, masks.flatten(0, 1))
        return tuple(one.view(*masks.shape[:2], *one.shape[1:]) for one in described)

    def enrich(self, query: Features, supports: Features) -> tuple[Tensor, list[Tensor]]:
        """Logits (B, 2, h, w) at the features' size, and those of the four scales at theirs."""
        second, third, deep = query
        means, prior = supports[0].mean(1), compute_prior(deep, supports[1])
        reduced = self.down_query(join(third, second))
        place = (reduced.shape[-2], reduced.shape[-1])
        enriched: list[Tensor] = []
        logits: list[Tensor] = []
        for number, given in enumerate(self.bins):
            side = int(given) if given > 1 else max(1, int(given * place[0]))
            pooled = functional.adaptive_avg_pool2d(reduced, side)
            together = (pooled, means.expand(-1, -1, side, side), resize(prior, (side, side)))
            now = self.init_merge[number](torch.cat(together, 1))
            if number:
                finer = resize(enriched[-1], (side, side))
                now = now + self.alpha_conv[number - 1](torch.cat((now, finer), 1))
            now = now + self.beta_conv[number](now)
            logits.append(self.inner_cls[number](now))
            enriched.append(resize(now, place))
        joined = self.res1(torch.cat(enriched, 1))
        return self.cls(joined + self.res2(joined)), logits


@torch.no_grad()
def compute_prior(query: Tensor, supports: Tensor) -> Tensor:
    """(B, 1, h, w) in [0, 1]: how much the query (B, C, h, w) has what one of K supports (B, K, C, h', w') has.

    Masked positions of a support are zero, so that no position has less than cosine 0. The mean over the supports.
    """
    return torch.stack([compare(query, one) for one in supports.unbind(1)]).mean(0)


def compare(query: Tensor, support: Tensor) -> Tensor:
    """(B, 1, h, w): the greatest cosine of each position with the support's, from 0 to 1 within each image."""
    left, right = query.flatten(2), support.flatten(2)
    products = right.mT @ left
    # In place: products of 60 x 60 positions with as many are 52 MB for a pair.
    products /= right.norm(dim=1)[:, :, None] * left.norm(dim=1)[:, None] + 1e-7
    best = products.amax(1)
    low, high = best.amin(1, keepdim=True), best.amax(1, keepdim=True)
    return ((best - low) / (high - low + 1e-7)).view(-1, 1, *query.shape[2:])


def build_projection(inputs: int, width: int) -> nn.Sequential:
    """A 1 x 1 convolution without bias, then ReLU."""
    return nn.Sequential(nn.Conv2d(inputs, width, 1, bias=False), nn.ReLU())


def build_residual(width: int) -> nn.Sequential:
    """Two 3 x 3 convolutions without bias, each with ReLU."""
    first, second = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU())


def build_classifier(width: int) -> nn.Sequential:
    """A 3 x 3 convolution with ReLU and dropout, then logits of background and class."""
    hidden = nn.Conv2d(width, width, 3, padding=1, bias=False)
    return nn.Sequential(hidden, nn.ReLU(), nn.Dropout2d(0.1), nn.Conv2d(width, 2, 1))


def join(third: Tensor, second: Tensor) -> Tensor:
    """The third stage, then the second at the third's size (they differ in VGG16 only)."""
    return torch.cat((third, resize(second, (third.shape[-2], third.shape[-1]))), 1)


def resize(maps: Tensor, size: tuple[int, int]) -> Tensor:
    """Bilinear, with the corners aligned."""
    if maps.shape[2:] == size:
        return maps
    return functional.interpolate(maps, size, mode="bilinear", align_corners=True)
