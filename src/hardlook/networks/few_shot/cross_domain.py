"""Wrappers that make metric methods hold on other domains: feature-wise transformation, ATA and LRP.

Tseng et al., Cross-Domain Few-Shot Classification via Learned Feature-Wise Transformation, ICLR 2020. Wang and Deng,
Cross-Domain Few-Shot Classification via Adversarial Task Augmentation, IJCAI 2021. Sun et al., Explanation-Guided
Training for Cross-Domain Few-Shot Classification, ICPR 2020.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.gnn import Gnn
from hardlook.networks.few_shot.matchingnet import MatchingNet
from hardlook.networks.few_shot.method import Episodes, FewShotMethod, cross_entropy
from hardlook.networks.few_shot.relation import RelationNet
from hardlook.networks.few_shot.tpn import Tpn


class Wrapper(FewShotMethod):
    """A method around another one (`method`), whose backbone, scores and loss it keeps unless it says otherwise.

    The inner method scores features (`score`). A subclass for the training loop names its class (`inner`).
    """

    inner: ClassVar[type[FewShotMethod]]
    inner_prefix = "inner_"

    def __init__(self, method: FewShotMethod) -> None:
        super().__init__()
        if type(method).classify is not FewShotMethod.classify:
            raise ValueError(f"{type(method).__name__} does not score features and cannot be wrapped")
        del self.emb_func
        self.method = method

    @classmethod
    def build(cls, backbone: nn.Module, *, channels: int, classes: int, ways: int, side: int, **options: Any) -> Self:
        """The wrapper around its inner method on a backbone, as the training loop makes it.

        `options` are its own; those whose names begin with `inner_` are the inner method's.
        """
        prefix = cls.inner_prefix
        passed = {name.removeprefix(prefix): options.pop(name) for name in [*options] if name.startswith(prefix)}
        made = cls.inner.build(backbone, channels=channels, classes=classes, ways=ways, side=side, **passed)
        return cls(made, **options)

    def __getattr__(self, name: str) -> Any:
        # The backbone of the inner method, under the name that every method has.
        return self.method.emb_func if name == "emb_func" else super().__getattr__(name)

    def start_stage(self, stage: Any) -> None:
        """Passed on."""
        self.method.start_stage(stage)

    def score(self, features: Episodes) -> Tensor:
        """Those of the inner method."""
        return self.method.score(features)

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """That of the inner method."""
        return self.method.loss(episodes)

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """That of the inner method."""
        return self.method.class_loss(images, labels)


class FeatureWise(Wrapper):
    """Feature-wise transformation: in training, outputs of batch normalisation are scaled and shifted at random.

    Of a residual block those of its last normalisation and of its shortcut's, as published; without such blocks those
    of all. Per channel, the scale is drawn from N(1, `scale`) and the shift from N(0, `shift`), standard deviations
    whose defaults are the paper's fixed values. All images of a step share a draw, as images of another
    domain would: their differences stay comparable. Nothing changes at test time. No released code was compared by
    numbers.
    """

    def __init__(self, method: FewShotMethod, *, scale: float = 0.3, shift: float = 0.5) -> None:
        super().__init__(method)
        for norm in _list_last_norms(method.emb_func):
            norm.register_forward_hook(_Transformation(scale, shift))


def _list_last_norms(network: nn.Module) -> list[nn.Module]:
    """The normalisations at the ends of residual blocks and of their shortcuts; all where there are no such blocks."""
    last: dict[tuple[nn.Module, str], nn.Module] = {}
    for block in network.modules():
        if sum(isinstance(child, nn.BatchNorm2d) for child in block.children()) > 1:
            # Of bn1, bn2 and downsample.1 the second and the third.
            named = block.named_modules()
            last |= {(block, name.rstrip("0123456789")): one for name, one in named if isinstance(one, nn.BatchNorm2d)}
    return list(last.values()) or [one for one in network.modules() if isinstance(one, nn.BatchNorm2d)]


class _Transformation:
    def __init__(self, scale: float, shift: float) -> None:
        self.scale, self.shift = scale, shift

    def __call__(self, module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        if not module.training:
            return output
        drawn = torch.randn(2, 1, output.shape[1], 1, 1, dtype=output.dtype, device=output.device)
        return output * (1 + self.scale * drawn[0]) + self.shift * drawn[1]


class AdversarialTasks(Wrapper):
    """ATA: the images of an episode first climb the method's loss, `steps` steps at `rate`; then it trains on them.

    With the chance `filtered` an episode passes a random convolution before, which changes textures and keeps shapes.
    No released code was compared.
    """

    def __init__(self, method: FewShotMethod, *, steps: int = 5, rate: float = 40.0, filtered: float = 0.5) -> None:
        super().__init__(method)
        self.steps, self.rate, self.filtered = steps, rate, filtered

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """The loss of the method on the episodes that it finds hardest nearby."""
        return self.method.loss(self.augment(episodes))

    def augment(self, episodes: Episodes) -> Episodes:
        """The episodes after filter and ascent; gradients of the method's parameters are untouched."""
        support, query = episodes.support.detach(), episodes.query.detach()
        if float(torch.rand(())) < self.filtered:
            size = 2 * int(torch.randint(1, 4, ())) + 1
            kernel = nn.init.xavier_normal_(torch.empty(3, 3, size, size)).to(support)
            support, query = (_filter(images, kernel) for images in (support, query))
        with torch.enable_grad():
            for _ in range(self.steps):
                images = [part.detach().requires_grad_() for part in (support, query)]
                loss, _ = self.method.loss(replace(episodes, support=images[0], query=images[1]))
                # The loss is a mean over tasks: each climbs its own.
                moves = torch.autograd.grad(len(episodes) * loss, images)
                support, query = (part + self.rate * move for part, move in zip(images, moves, strict=True))
        return replace(episodes, support=support.detach(), query=query.detach())


def _filter(images: Tensor, kernel: Tensor) -> Tensor:
    flat = images.flatten(0, -4)
    return functional.conv2d(flat, kernel, padding="same").reshape(images.shape)


class ExplanationGuided(Wrapper):
    """LRP: features that explain a score weigh more in a second loss.

    The relevance of a feature is feature times gradient of the query's best score (layer-wise relevance propagation by
    its basic rule in a network of ReLUs); query features are multiplied by 1 + relevance over its largest size. The
    loss is `plain` times that of the features as they are plus `guided` times that of the weighted ones. No released
    code was compared.
    """

    def __init__(self, method: FewShotMethod, *, plain: float = 1.0, guided: float = 0.5) -> None:
        super().__init__(method)
        self.plain, self.guided = plain, guided

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """The plain loss plus the guided one."""
        features = self.method.embed(episodes)
        scores = self.method.score(features)
        weighted = replace(features, query=features.query * self.weigh(features))
        labels = episodes.require_labels()
        loss = self.plain * cross_entropy(scores, labels)
        return loss + self.guided * cross_entropy(self.method.score(weighted), labels), scores

    def weigh(self, features: Episodes) -> Tensor:
        """Weights like the query's features, in [0, 2], as constants."""
        with torch.enable_grad():
            query = features.query.detach().requires_grad_()
            scores = self.method.score(replace(features, support=features.support.detach(), query=query))
            (gradient,) = torch.autograd.grad(scores.amax(-1).sum(), query)
        relevance = (query * gradient).detach()
        largest = relevance.flatten(2).abs().amax(-1).clamp(min=1e-12)
        return 1 + relevance / largest.reshape(*largest.shape, *[1] * (relevance.ndim - 2))


class FeatureWiseMatchingNet(FeatureWise):
    """Feature-wise transformation around MatchingNet."""

    inner = MatchingNet


class FeatureWiseRelationNet(FeatureWise):
    """Feature-wise transformation around RelationNet."""

    inner = RelationNet
    inputs = "maps"


class FeatureWiseGnn(FeatureWise):
    """Feature-wise transformation around GNN."""

    inner = Gnn
    fixed_ways = True


class AtaRelationNet(AdversarialTasks):
    """ATA around RelationNet."""

    inner = RelationNet
    inputs = "maps"


class AtaGnn(AdversarialTasks):
    """ATA around GNN."""

    inner = Gnn
    fixed_ways = True


class AtaTpn(AdversarialTasks):
    """ATA around TPN."""

    inner = Tpn
    transductive = True


class LrpRelationNet(ExplanationGuided):
    """LRP around RelationNet."""

    inner = RelationNet
    inputs = "maps"


class LrpGnn(ExplanationGuided):
    """LRP around GNN."""

    inner = Gnn
    fixed_ways = True
