"""MTL. Sun et al., Meta-Transfer Learning for Few-Shot Learning, CVPR 2019."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hardlook.networks.backbones.resnet12 import ScaledConvolution
from hardlook.networks.few_shot.inner_loops import adapt_linear
from hardlook.networks.few_shot.method import ClassClassifier, Episodes
from hardlook.networks.precision import full_precision


class BaseLearner(nn.Module):
    """A linear layer whose start is learned; `vars` are its parameters once more, as published files have them."""

    def __init__(self, channels: int, ways: int) -> None:
        super().__init__()
        self.fc1_w = nn.Parameter(nn.init.kaiming_normal_(torch.empty(ways, channels)))
        self.fc1_b = nn.Parameter(torch.zeros(ways))
        self.vars = nn.ParameterList([self.fc1_w, self.fc1_b])


class Mtl(ClassClassifier):
    """Scales and shifts of frozen, pre-trained convolutions, and a linear learner of `steps` first-order steps.

    Stage one trains the backbone with a head of two layers (`pre_fc`) on classes; stage two freezes its convolutions
    and trains scales, shifts, batch normalisation and the start of the linear learner on episodes.
    """

    stages = ("classes", "episodes")
    class_layer = "pre_fc"
    fixed_ways = True

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        ways: int = 5,
        classes: int | None = None,
        inner_rate: float = 0.01,
        steps: int = 10,
    ) -> None:
        super().__init__(None if backbone is None else scale_convolutions(backbone))
        self.base_learner = BaseLearner(channels, ways)
        self.inner_rate, self.steps = inner_rate, steps
        if classes is not None:
            self.pre_fc = nn.Sequential(nn.Linear(channels, 1000), nn.ReLU(), nn.Linear(1000, classes))

    def start_stage(self, stage: str) -> None:
        """Before the stage on episodes the convolutions are frozen; before that on classes their scales are."""
        for module in self.modules():
            if isinstance(module, ScaledConvolution):
                for name, parameter in module.named_parameters():
                    parameter.requires_grad_(name.startswith("mtl_") == (stage == "episodes"))

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        weight, bias = adapt_linear(
            features.support.flatten(1, 2).flatten(2),
            features.support_labels(),
            self.base_learner.fc1_w,
            self.base_learner.fc1_b,
            steps=self.steps,
            rate=self.inner_rate,
            first_order=True,
        )
        return features.query.flatten(2) @ weight.mT + bias[:, None]


def scale_convolutions(network: nn.Module) -> nn.Module:
    """The network with a learned scale and shift of each convolution, in place."""
    for parent in list(network.modules()):
        for name, module in list(parent.named_children()):
            if isinstance(module, nn.Conv2d) and not isinstance(module, ScaledConvolution):
                setattr(parent, name, ScaledConvolution.like(module))
    return network
