"""What every one-shot segmentation network has: an image is encoded once, then matched with as many as one likes.

The backbone's forward pass is by far the most of the work and depends on the image alone. `encode` is that pass,
`describe` what a network makes of a support's features and its mask, `match` everything that needs query and support
together; `forward` does all three for whole batches, as the released programs do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.errors import ModelError

Features = tuple[Tensor, ...]
"""Tensors of B images, batch first."""

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
IGNORED = 255
BACKBONE_PARTS = frozenset(
    ("backbone", "encoder", "model_res", "model_backbone", "layer0", "layer1", "layer2", "layer3", "layer4")
)
CLASSIFIERS = frozenset(("fc", "classifier", "cls"))
"""Names of modules: those that hold a backbone or its stages, and the last layers, which differ between networks."""


class OneShotNetwork(nn.Module, ABC):
    """A network that finds in a query what the masks of its supports show.

    Images are (B, 3, H, W) float, in RGB, normalised with `mean` and `std` of values from 0 to 1. Masks are uint8: 0
    background, 1 the class, 255 ignored. `stages` names what is trained in turn: "classes" on labelled images,
    "episodes" on pairs.

    Where the backbone is `frozen`, `run_backbone` is its pass and `encode_features` what is trained of `encode`:
    whoever keeps the features of an image can train without running the backbone again.
    """

    frozen: bool = False
    mean: ClassVar[tuple[float, float, float]] = IMAGENET_MEAN
    std: ClassVar[tuple[float, float, float]] = IMAGENET_STD
    stages: ClassVar[tuple[str, ...]] = ("episodes",)

    @classmethod
    def build(cls, backbone: str = "resnet50", **options: Any) -> Self:
        """The network on a backbone of that name, with random weights."""
        return cls(backbone=backbone, **options)

    @abstractmethod
    def encode(self, images: Tensor) -> Features:
        """What the backbone makes of images (B, 3, H, W), whatever they are matched with."""

    @abstractmethod
    def describe(self, features: Features, masks: Tensor) -> Features:
        """What matching needs of B supports: their `encode`d features under their masks (B, H, W)."""

    @abstractmethod
    def match(
        self, query: Features, supports: Features, size: tuple[int, int], query_mask: Tensor | None = None
    ) -> Tensor:
        """Logits (B, 2, H, W) of background and class at `size`; `supports` have (B, K, ...) from `describe`.

        `query_mask` (B, H, W) marks with 255 what the query's padding or label leaves out; None where nothing is.
        """

    def forward(self, query: Tensor, supports: Tensor, masks: Tensor, query_mask: Tensor | None = None) -> Tensor:
        """Logits (B, 2, H, W) for queries (B, 3, H, W) by supports (B, K, 3, H, W) with masks (B, K, H, W)."""
        batch, shots = masks.shape[:2]
        described = self.describe(self.encode(supports.flatten(0, 1)), masks.flatten(0, 1))
        stacked = tuple(one.view(batch, shots, *one.shape[1:]) for one in described)
        return self.match(self.encode(query), stacked, (query.shape[-2], query.shape[-1]), query_mask)

    def loss(self, query: Tensor, labels: Tensor, supports: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """The training loss of pairs with the queries' labels (B, H, W), and their logits."""
        if self.frozen:
            shown = self.run_backbone(supports.flatten(0, 1))
            return self.compute_feature_loss(self.run_backbone(query), labels, shown, masks)
        logits = self(query, supports, masks)
        return functional.cross_entropy(logits, labels.long(), ignore_index=IGNORED), logits

    def fix_draws(self) -> None:
        """Draw what the network would begin with at random once, from a fixed seed: its answers are then the same."""

    def run_backbone(self, images: Tensor) -> Features:
        """What a frozen backbone makes of images (B, 3, H, W), without gradients."""
        raise NotImplementedError(f"{type(self).__name__} trains its backbone")

    def encode_features(self, features: Features) -> Features:
        """`encode` of what `run_backbone` found; the same where nothing of it is trained."""
        return features

    def match_features(self, query: Features, supports: Features, masks: Tensor, size: tuple[int, int]) -> Tensor:
        """Logits (B, 2, H, W) at `size` of what `run_backbone` found of B queries and B * K supports."""
        batch, shots = masks.shape[:2]
        described = self.describe(self.encode_features(supports), masks.flatten(0, 1))
        stacked = tuple(one.view(batch, shots, *one.shape[1:]) for one in described)
        return self.match(self.encode_features(query), stacked, size)

    def compute_feature_loss(
        self, query: Features, labels: Tensor, supports: Features, masks: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`loss` of what `run_backbone` found of B queries and B * K supports."""
        logits = self.match_features(query, supports, masks, (labels.shape[-2], labels.shape[-1]))
        return functional.cross_entropy(logits, labels.long(), ignore_index=IGNORED), logits

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of labelled images, where "classes" is a stage: labels (B, H, W) among the training classes."""
        raise NotImplementedError(f"{type(self).__name__} is not trained on labelled images")

    def compute_feature_class_loss(self, features: Features, labels: Tensor) -> tuple[Tensor, Tensor]:
        """`class_loss` of what `run_backbone` found of the images."""
        raise NotImplementedError(f"{type(self).__name__} is not trained on labelled images")

    def load_backbone(self, state: Mapping[str, Tensor]) -> None:
        """Copy the weights of a backbone of the same kind into this network's, layer by layer in their order.

        Networks have the names of their own checkpoints for the same layers; a deeper backbone's last stages and its
        classifier are left over.
        """
        own, given = (
            {
                name: value
                for name, value in each.items()
                if not set(name.split(".")) & CLASSIFIERS and not name.endswith("num_batches_tracked")
            }
            for each in (self.state_dict(), state)
        )
        own = {name: value for name, value in own.items() if name.partition(".")[0] in BACKBONE_PARTS}
        pairs = list(zip(own.items(), given.items(), strict=False))
        wrong = [f"{theirs} for {ours}" for (ours, mine), (theirs, value) in pairs if mine.shape != value.shape]
        if wrong or len(pairs) < len(own):
            what = (
                f"the weights are of another backbone: {wrong[0] if wrong else f'{len(own) - len(pairs)} are missing'}"
            )
            raise ModelError(what, remedy="give weights of the backbone that the network is built on")
        with torch.no_grad():
            for (_, mine), (_, value) in pairs:
                mine.copy_(value)

    def list_groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """The parameters that are trained, in groups, each with its factor of the learning rate."""
        return [([one for one in self.parameters() if one.requires_grad], 1.0)]


def average_masked(features: Tensor, masks: Tensor) -> Tensor:
    """(B, C, 1, 1): the mean of features (B, C, h, w) weighted by masks (B, 1, h, w); 0 where a mask is empty.

    >>> average_masked(torch.tensor([[[[1.0, 5.0]]]]), torch.tensor([[[[1.0, 0.0]]]])).item()
    1.0
    """
    total = masks.sum((2, 3), keepdim=True)
    summed = (features * masks).sum((2, 3), keepdim=True)
    return summed / torch.where(total > 0, total, torch.ones_like(total))
