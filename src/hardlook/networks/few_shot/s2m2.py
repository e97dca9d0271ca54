"""S2M2. Mangla et al., Charting the Right Manifold: Manifold Mixup for Few-shot Learning, WACV 2020."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.backbones.resnet import ResNet18
from hardlook.networks.few_shot.baseline import Baseline
from hardlook.networks.few_shot.skd import rotate
from hardlook.networks.few_shot.support_heads import HeadTraining, WeightNormLinear

SCALE = 2.0


class CosineClassifier(nn.Module):
    """Twice the unit features times learned directions and lengths, under the names of published files."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.L = WeightNormLinear(channels, classes)

    def forward(self, features: Tensor) -> Tensor:
        """(n, classes) scores."""
        return SCALE * self.L(features)  # type: ignore[no-any-return]


Mixing = Callable[[int, Tensor], tuple[int, float, Tensor]]
"""From the number of levels and the labels: the level that is mixed, the weight, and a permutation."""


def draw_mixing(levels: int, labels: Tensor) -> tuple[int, float, Tensor]:
    """A level from 0 (pixels), a weight from Beta(2, 2), a permutation, all from torch's generator."""
    level = int(torch.randint(levels, ()).item())
    weight = float(torch.distributions.Beta(2.0, 2.0).sample())
    return level, weight, torch.randperm(len(labels)).to(labels.device)


class S2m2(Baseline):
    """Manifold mixup and rotations in one loss; at test time Baseline++'s head, 300 epochs per support.

    Images are mixed in pairs at a random level of the network, and a quarter of the batch is turned by four angles,
    which a second classifier predicts. The paper trains with rotations first and with mixup then; the released code,
    and this, add both. Mixing inside the network needs `resnet18`; other backbones are mixed at pixels and features.
    """

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 512,
        classes: int = 64,
        head: HeadTraining | None = None,
        mixing: Mixing = draw_mixing,
        rotated: Callable[[int], Tensor] = torch.randperm,
    ) -> None:
        head = head or HeadTraining("weight-norm", scale=SCALE, epochs=300)
        super().__init__(backbone, channels=channels, classes=classes, head=head)
        self.classifier_rot = nn.Linear(channels, 4)
        self.disclass = CosineClassifier(channels, classes)
        self.mixing, self.rotated = mixing, rotated

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The mixup loss plus half of the class and half of the rotation loss of turned images."""
        stages = self._stages()
        level, weight, permutation = self.mixing(len(stages), labels)
        x = images
        for number, stage in enumerate(stages):
            x = weight * x + (1 - weight) * x[permutation] if number == level else x
            x = stage(x)
        scores = self.disclass(x)
        mixed = weight * functional.cross_entropy(scores, labels)
        mixed = mixed + (1 - weight) * functional.cross_entropy(scores, labels[permutation])
        chosen = self.rotated(len(images))[: max(1, len(images) // 4)]
        # Image after image, each turned four times.
        turned = torch.stack([rotate(images[chosen], quarters) for quarters in range(4)], 1).flatten(0, 1)
        features = self.emb_func(turned)
        class_loss = functional.cross_entropy(self.disclass(features), labels[chosen].repeat_interleave(4))
        rotations = torch.arange(4, device=images.device).repeat(len(chosen))
        rotation_loss = functional.cross_entropy(self.classifier_rot(features), rotations)
        return mixed + 0.5 * class_loss + 0.5 * rotation_loss, scores

    def _stages(self) -> list[Callable[[Tensor], Tensor]]:
        """Parts of the backbone one after the other; the input of each is a level that can be mixed."""
        backbone = self.emb_func
        if not isinstance(backbone, ResNet18):
            return [backbone, nn.Identity()]

        def stem(x: Tensor) -> Tensor:
            return backbone.get_submodule("layer1")(functional.relu(backbone.bn1(backbone.conv1(x))))  # type: ignore[no-any-return]

        layers = [backbone.get_submodule(f"layer{number}") for number in (2, 3, 4)]
        return [stem, *layers, lambda x: x.mean((2, 3))]
