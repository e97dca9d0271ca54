"""The clickability network: an image and two masks in, the chance of a click at each place out.

>>> import torch
>>> tiny = Architecture(dims=(8, 8, 16, 16), depths=(1, 1, 1, 1), mlp_ratios=(2, 2, 2, 2), head=32)
>>> network = build_network(tiny).eval()
>>> chance = network(torch.zeros(2, 3, 64, 64), torch.eye(64).expand(2, 2, 64, 64)).detach()
>>> tuple(chance.shape), float(chance.min()), float(chance.max()) > 0.99
((2, 64, 64), 0.0, True)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hardlook.models.click_models.clickability.architecture import SEGNEXT_B, Architecture
from hardlook.models.click_models.clickability.light_ham import build_light_ham
from hardlook.models.click_models.clickability.mscan import build_mscan
from hardlook.randomness import generator

if TYPE_CHECKING:
    from torch import Tensor, nn

MASK_CHANNELS = 16
FIRST_SCALE = 0.05
EPSILON = 1e-9


def build_network(architecture: Architecture = SEGNEXT_B, seed: int = 0) -> nn.Module:
    """The network with random weights, equal for equal seeds; torch's own random state stays as it was.

    Its call takes images (N, 3, S, S) normalised as ImageNet's and masks (N, 2, S, S) in [0, 1], the object's and
    the error's, and gives maps (N, S, S) float32, each scaled to [0, 1].
    """
    import torch
    import torch.nn.functional as functional
    from torch import nn

    class Scale(nn.Module):
        """A learnt factor, at least 0: the masks start as a whisper, since the backbone knows images only."""

        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.full((1,), FIRST_SCALE))

        def forward(self, x: Tensor) -> Tensor:
            """The same shape."""
            return x * self.scale.abs()

    class ClickabilityNetwork(nn.Module):
        """Masks through three convolutions, added after the backbone's stem; decoder; scaling."""

        def __init__(self) -> None:
            super().__init__()
            self.maps_transform = nn.Sequential(
                nn.Conv2d(2, MASK_CHANNELS, 1),
                nn.ReLU(),
                nn.Conv2d(MASK_CHANNELS, MASK_CHANNELS, 3, 2, 1),
                nn.ReLU(),
                nn.Conv2d(MASK_CHANNELS, architecture.dims[0], 3, 2, 1),
                Scale(),
            )
            self.backbone = build_mscan(architecture)
            self.decode_head = build_light_ham(architecture, seed)

        def forward(self, image: Tensor, masks: Tensor) -> Tensor:
            """(N, S, S) in [0, 1] from (N, 3, S, S) and (N, 2, S, S)."""
            coarse = self.decode_head(self.backbone(image, self.maps_transform(masks))).float()
            fine = functional.interpolate(coarse, size=image.shape[2:], mode="bilinear", align_corners=True)
            return scaled(fine[:, 0])

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(generator(seed, "clickability", "weights").integers(2**62)))
        network = ClickabilityNetwork()
        _start(network)
    return network


def scaled(maps: Tensor) -> Tensor:
    """Maps (N, H, W) shifted and stretched to [0, 1] each; a constant map becomes 0.

    >>> import torch
    >>> scaled(torch.tensor([[[1.0, 3.0], [2.0, 5.0]]])).tolist()
    [[[0.0, 0.5], [0.25, 1.0]]]
    """
    low, high = maps.amin((1, 2), keepdim=True), maps.amax((1, 2), keepdim=True)
    return (maps - low) / (high - low + EPSILON)


def parameters_of(network: nn.Module) -> int:
    """How many numbers are learnt."""
    return sum(parameter.numel() for parameter in network.parameters())


def _start(network: nn.Module) -> None:
    from torch import nn

    for part in ("backbone", "decode_head"):
        for layer in network.get_submodule(part).modules():
            if isinstance(layer, nn.Conv2d):
                outputs = layer.kernel_size[0] * layer.kernel_size[1] * layer.out_channels // layer.groups
                nn.init.normal_(layer.weight, std=math.sqrt(2 / outputs))
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
    nn.init.normal_(network.get_parameter("decode_head.conv_seg.weight"), std=0.01)
