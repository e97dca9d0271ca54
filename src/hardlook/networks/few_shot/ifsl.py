"""IFSL as a wrapper. Yue et al., Interventional Few-Shot Learning, NeurIPS 2020.

What a network knew before its task is a confounder. Its strata are groups of feature channels and the classes it was
trained on: a classifier of its own answers in each stratum, and the answers are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.errors import OptionError
from hardlook.networks.few_shot.baseline import Baseline
from hardlook.networks.few_shot.baseline_pp import BaselinePlusPlus, CosineLayer
from hardlook.networks.few_shot.maml import Maml
from hardlook.networks.few_shot.method import Episodes, FewShotMethod, Stage, squared_distances
from hardlook.networks.few_shot.mtl import Mtl
from hardlook.networks.few_shot.sib import Sib
from hardlook.networks.precision import full_precision

Adjustment = Literal["feature", "class", "combined"]
Fusion = Literal["concat", "+", "-"]
Preprocessing = Literal["none", "l2n", "cl2n"]


class Strata(nn.Module):
    """What a network knew before: groups of channels, a classifier of the training classes and their mean features.

    `adjust` cuts features into `splits` groups and joins each with the same group of the mean features, weighted by the
    classes' probabilities (`fusion`); the "feature" adjustment leaves those out, the "class" adjustment has one group.
    Features are centred at the mean of all classes and divided by their length (cl2n), or divided alone (l2n), `before`
    and `after` the cut. The mean features follow the images of the stage on classes: a mean of the batches first, with
    `momentum` later. `released` holds lengths constant in gradients.
    """

    features: Tensor
    count: Tensor

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        splits: int = 8,
        adjustment: Adjustment = "combined",
        fusion: Fusion = "concat",
        before: Preprocessing = "none",
        after: Preprocessing = "none",
        momentum: float = 0.01,
        released: bool = False,
    ) -> None:
        super().__init__()
        splits = 1 if adjustment == "class" else splits
        if channels % splits:
            raise OptionError(f"{channels} channels have no {splits} equal groups", remedy="splits divides channels")
        self.linear: nn.Module = nn.Linear(channels, classes)
        self.register_buffer("features", torch.zeros(classes, channels))
        self.register_buffer("count", torch.zeros(classes))
        self.splits, self.adjustment, self.fusion = splits, adjustment, fusion
        self.before, self.after, self.momentum, self.released = before, after, momentum, released

    @property
    def width(self) -> int:
        """Length of an adjusted feature of one group."""
        joined = self.adjustment != "feature" and self.fusion == "concat"
        return self.features.shape[1] // self.splits * (2 if joined else 1)

    @full_precision
    def observe(self, features: Tensor, labels: Tensor) -> None:
        """Move the stored features of classes to those of a batch (n, d) with labels (n,)."""
        with torch.no_grad():
            members = functional.one_hot(labels, len(self.features)).to(self.features.dtype)
            sizes = members.sum(0)
            means = members.mT @ features.to(self.features.dtype) / sizes.clamp(min=1)[:, None]
            self.count += sizes > 0
            rate = (sizes > 0) * torch.clamp(1 / self.count.clamp(min=1), min=self.momentum)
            self.features += rate[:, None] * (means - self.features)

    def adjust(self, features: Tensor) -> Tensor:
        """(splits, ..., width) adjusted features of features (..., d)."""
        return self.fuse(self.cut(features), self.expect(features))

    def cut(self, features: Tensor) -> Tensor:
        """(splits, ..., d / splits) groups of features (..., d), normalised."""
        centre = self.features.mean(0)
        groups = torch.unflatten(self.prepare(features, centre, self.before), -1, (self.splits, -1))
        return self.prepare(groups, centre.reshape(self.splits, -1), self.after).movedim(-2, 0)

    def expect(self, features: Tensor) -> Tensor:
        """(splits, ..., d / splits) mean features of classes, weighted by the probabilities of features (..., d)."""
        with torch.no_grad():
            shares = self.linear(features).softmax(-1)
        return torch.as_tensor((shares @ self.features).unflatten(-1, (self.splits, -1))).movedim(-2, 0)

    def fuse(self, groups: Tensor, expected: Tensor) -> Tensor:
        """Groups of features joined with what the classes would have there."""
        if self.adjustment == "feature":
            return groups
        if self.fusion == "concat":
            return torch.cat([groups, expected], -1)
        return groups + expected if self.fusion == "+" else groups - expected

    def prepare(self, features: Tensor, centre: Tensor, how: Preprocessing) -> Tensor:
        """Centred (cl2n), divided by their length (both), or as they are (none)."""
        if how == "none":
            return features
        return self.normalise(features - centre if how == "cl2n" else features)

    def normalise(self, features: Tensor) -> Tensor:
        """Features divided by their length."""
        lengths = features.norm(dim=-1, keepdim=True)
        return torch.as_tensor(features / ((lengths.detach() if self.released else lengths) + 1e-5))


class Ifsl(FewShotMethod):
    """A method on adjusted features: its probabilities are averaged over the groups of channels.

    First the backbone and the strata learn the training classes, then each group's own method learns episodes, with the
    strata fixed. Methods without learned parameters beside the backbone end with the first stage. What depends on the
    backbone, such as an inner loop of MAML, moves the classifier alone, as in the paper's code. No released code was
    compared; the worked examples are by hand. `adjustment` and what follows are those of `Strata`; other options go to
    the wrapped method.
    """

    stages: ClassVar[tuple[Stage, ...]] = ("classes", "episodes")
    folds: ClassVar[bool] = False
    """Whether one method without parameters serves all groups, as if each group of a task were a task."""

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        ways: int = 5,
        splits: int = 8,
        adjustment: Adjustment = "combined",
        fusion: Fusion = "concat",
        before: Preprocessing = "none",
        after: Preprocessing = "none",
        **options: Any,
    ) -> None:
        strata = Strata(
            channels, classes, splits=splits, adjustment=adjustment, fusion=fusion, before=before, after=after
        )
        count = 1 if self.folds else strata.splits
        heads = [
            self.wrap(None if number else backbone, channels=strata.width, ways=ways, **self.rescale(options, strata))
            for number in range(count)
        ]
        # The method may have changed the backbone, as MTL does.
        super().__init__(heads[0].emb_func)
        heads[0].emb_func = nn.Identity()
        self.utils, self.heads = strata, nn.ModuleList(heads)

    def wrap(self, backbone: nn.Module | None, *, channels: int, ways: int, **options: Any) -> FewShotMethod:
        """The wrapped method for features of `channels`."""
        raise NotImplementedError(f"{type(self).__name__} wraps no method")

    def rescale(self, options: dict[str, Any], strata: Strata) -> dict[str, Any]:
        """The options of the wrapped method for features of one group."""
        return options

    def start_stage(self, stage: Stage) -> None:
        """The strata learn in the first stage alone; the wrapped method says what the backbone does."""
        self.utils.requires_grad_(stage == "classes")
        first = self._list_heads()[0]
        first.emb_func = self.emb_func
        first.start_stage(stage)
        first.emb_func = nn.Identity()

    def _list_heads(self) -> Sequence[FewShotMethod]:
        return list(self.heads)  # type: ignore[arg-type]

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) log probabilities; maps are flattened."""
        support, query = self.utils.adjust(features.support.flatten(3)), self.utils.adjust(features.query.flatten(2))
        if self.folds:
            keys = tuple(f"{key} {group}" for group in range(len(support)) for key in features.keys)
            folded = Episodes(support.flatten(0, 1), query.flatten(0, 1), keys=keys)
            scores = torch.unflatten(self._list_heads()[0].classify(folded), 0, (len(support), -1))
        else:
            parts = zip(self._list_heads(), support, query, strict=True)
            scores = torch.stack(
                [head.classify(Episodes(shown, asked, keys=features.keys)) for head, shown, asked in parts]
            )
        return torch.as_tensor(scores.log_softmax(-1).logsumexp(0) - math.log(len(scores)))

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy over the training classes; their mean features are stored."""
        features = self.emb_func(images).flatten(1)
        if self.training:
            self.utils.observe(features, labels)
        scores = self.utils.linear(features)
        return functional.cross_entropy(scores, labels), scores


class IfslBaseline(Ifsl):
    """IFSL on Baseline: a linear layer is trained on the support of each task, per group of channels."""

    inner = Baseline
    stages = ("classes",)
    folds = True

    def wrap(self, backbone: nn.Module | None, *, channels: int, ways: int, **options: Any) -> FewShotMethod:
        """Baseline without its own classifier of the training classes."""
        method = Baseline(backbone, channels=channels, classes=1, **options)
        del method.classifier
        return method


class IfslCosine(Ifsl):
    """IFSL on Baseline++: cosines in both stages."""

    inner = BaselinePlusPlus
    stages = ("classes",)
    folds = True

    def __init__(self, backbone: nn.Module | None = None, **options: Any) -> None:
        super().__init__(backbone, **options)
        classes, channels = self.utils.features.shape
        self.utils.linear = CosineLayer(channels, classes)

    def wrap(self, backbone: nn.Module | None, *, channels: int, ways: int, **options: Any) -> FewShotMethod:
        """Baseline++ without its own classifier of the training classes."""
        method = BaselinePlusPlus(backbone, channels=channels, classes=1, **options)
        del method.classifier
        return method


class NearestVotes(FewShotMethod):
    """The `k` nearest supports vote, ties go to the nearest support: the learner `k-nn`, as log shares."""

    def __init__(self, backbone: nn.Module | None = None, *, k: int = 1) -> None:
        super().__init__(backbone)
        self.k = k

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) logarithms of votes, with less than one vote for nearness."""
        distances = squared_distances(features.query, features.support.flatten(1, 2))
        ranks = torch.unflatten(distances.argsort(stable=True).argsort(), -1, (features.ways, features.shots))
        count = features.ways * features.shots
        votes = (ranks < min(self.k, count)).sum(-1)
        return torch.log(votes + 0.5 * (1 - ranks.amin(-1).to(distances) / count))


class IfslNearest(Ifsl):
    """IFSL on k-NN: the nearest supports vote, per group of channels."""

    inner = NearestVotes
    stages = ("classes",)
    folds = True

    def wrap(self, backbone: nn.Module | None, *, channels: int, ways: int, **options: Any) -> FewShotMethod:
        """Nearest supports."""
        return NearestVotes(backbone, **options)


class InnerLoops(Ifsl):
    """IFSL on a method whose inner loop moves a linear classifier.

    A step moves scores by its rate times the squared length of the features, of which a group has its share alone:
    `inner_rate` is multiplied by the number of groups.
    """

    adapts = True
    fixed_ways = True

    def rescale(self, options: dict[str, Any], strata: Strata) -> dict[str, Any]:
        """With the rate of the inner loop for a group."""
        return {**options, "inner_rate": strata.splits * options.get("inner_rate", 0.01)}


class IfslMaml(InnerLoops):
    """IFSL on MAML: the inner loop moves a linear classifier per group of channels."""

    inner = Maml

    def wrap(self, backbone: nn.Module | None, *, channels: int, ways: int, **options: Any) -> FewShotMethod:
        """MAML on features."""
        return Maml(backbone, channels=channels, ways=ways, **options)


class IfslMtl(InnerLoops):
    """IFSL on MTL: scaled convolutions and a linear learner per group of channels."""

    inner = Mtl

    def wrap(self, backbone: nn.Module | None, *, channels: int, ways: int, **options: Any) -> FewShotMethod:
        """MTL without its own classifier of the training classes."""
        return Mtl(backbone, channels=channels, ways=ways, **options)


class IfslSib(Ifsl):
    """IFSL on SIB: synthetic gradients per group of channels; transductive."""

    inner = Sib
    transductive = True
    adapts = True
    fixed_ways = True

    def wrap(self, backbone: nn.Module | None, *, channels: int, ways: int, **options: Any) -> FewShotMethod:
        """SIB without its own classifier of the training classes."""
        return Sib(backbone, channels=channels, ways=ways, **options)
