"""CDNet. Chen et al., Conditional Diffusion for Interactive Segmentation, ICCV 2021."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.interactive.click_maps import ClickMaps
from hardlook.networks.interactive.deeplab import DeepLab, SeparableHead
from hardlook.networks.interactive.ritm import Scale, normalise

SIZES: Mapping[str, Mapping[str, Any]] = {"resnet34": {"resnet": "resnet34", "width": 128}}
"""Arguments of the published sizes."""

SURE = 0.8
"""Pixels whose gate is over this count as clicked."""

DILATIONS = (1, 2, 4, 8)
NEIGHBOURS = tuple((row, column) for row in range(3) for column in range(3) if (row, column) != (1, 1))


class FeatureDiffusion(nn.Module):
    """Features of clicked and of sure pixels spread to those alike, for object and background each.

    An affinity is multiplied by how much its pixel counts before the softmax, as published: a pixel that does not
    count has affinity 0, which is not nothing.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate_head_pos = SeparableHead(width, width, 1, 1)
        self.t, self.p, self.g = (nn.Conv2d(width, width, 1, bias=False) for _ in range(3))
        self.z, self.bn = nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width)
        self.z2, self.bn2 = nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x: Tensor, clicks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Features (B, C, h, w) and the gates (B, 1, h, w) of object and background, of click maps (B, 2, h, w)."""
        gate = self.gate_head_pos(x).sigmoid()
        gates = (gate, 1 - gate)
        query, key, value = (layer(x).flatten(2) for layer in (self.t, self.p, self.g))
        affinity = query.mT @ key
        spread = []
        for place, one in enumerate(gates):
            counts = clicks[:, place : place + 1] + (one > SURE).to(x.dtype)
            weights = (affinity * counts.flatten(2)).softmax(2) * one.flatten(2).mT
            spread.append((value @ weights.mT).reshape(x.shape))
        return self.bn(self.z(spread[0])) + self.bn2(self.z2(spread[1])) + x, *gates


class _Extractor(DeepLab):
    def __init__(self, resnet: str, width: int) -> None:
        super().__init__(resnet, width, width, dropout=0.5)
        self.FDM = FeatureDiffusion(width)


class _Neighbours(nn.Module):
    """Values at a pixel's neighbours at several distances, by fixed kernels that are part of a checkpoint."""

    kernel: Tensor

    def __init__(self, places: Sequence[tuple[int, int]], value: float = 1, centre: float = 0) -> None:
        super().__init__()
        kernel = torch.zeros(len(places), 1, 3, 3)
        kernel[:, 0, 1, 1] = centre
        for number, (row, column) in enumerate(places):
            kernel[number, 0, row, column] = value
        self.register_buffer("kernel", kernel)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, 4 places, H, W) of (B, C, H, W)."""
        alone = x.flatten(0, 1)[:, None]
        found = [
            functional.conv2d(functional.pad(alone, (d, d, d, d), mode="replicate"), self.kernel, dilation=d)
            for d in DILATIONS
        ]
        return torch.cat(found, 1).reshape(x.shape[0], x.shape[1], -1, *x.shape[2:])


class PixelDiffusion(nn.Module):
    """Sure answers and clicks spread to neighbours of the same colour, `rounds` times."""

    def __init__(self, rounds: int = 5) -> None:
        super().__init__()
        self.rounds = rounds
        self.aff_x = _Neighbours(NEIGHBOURS, value=-1, centre=1)
        self.aff_m = _Neighbours(NEIGHBOURS)
        self.aff_std = _Neighbours([(row, column) for row in range(3) for column in range(3)])

    def forward(self, pictures: Tensor, logits: Tensor, clicks: Tensor) -> Tensor:
        """Logits (B, 1, H, W) of pictures (B, 3, H, W) in 0..1, logits and click maps (B, 2, H, W)."""
        unlike = self.aff_x(pictures).abs() / (1e-8 + 0.1 * self.aff_std(pictures).std(2, keepdim=True))
        weights = (-unlike).mean(1, keepdim=True).softmax(2)
        answer = 2 * (logits.sigmoid() - 0.5)
        spread = answer * (answer.abs() > 0.25)
        spread = spread + 10 * clicks[:, :1] - 10 * clicks[:, 1:]
        for _ in range(self.rounds):
            spread = (self.aff_m(spread) * weights).sum(2)
        return spread + answer


class CDNet(nn.Module):
    """DeepLabV3+ without a previous mask whose features, and at inference whose answer, spread from the clicks.

    `PixelDiffusion` takes no part in `forward`: a predictor calls `finish_logits` after averaging mirror images.
    """

    with_prev_mask = False

    def __init__(
        self,
        resnet: str = "resnet34",
        width: int = 128,
        *,
        radius: float = 5,
        spread_radius: float = 24,
        use_leaky_relu: bool = True,
    ) -> None:
        super().__init__()
        self.click_maps, self.spread_maps = ClickMaps(radius), ClickMaps(spread_radius)
        self.maps_transform = nn.Sequential(
            nn.Conv2d(2, 16, 1),
            nn.LeakyReLU(0.2) if use_leaky_relu else nn.ReLU(),
            nn.Conv2d(16, 64, 3, 2, 1),
            Scale(),
        )
        self.feature_extractor = _Extractor(resnet, width)
        self.head = SeparableHead(width, width // 2, 1, 2)
        self.latent_head = SeparableHead(width, width // 2, 4, 2)
        self.PDM = PixelDiffusion()

    @classmethod
    def build(cls, size: str, **options: Any) -> Self:
        """A published size: resnet34."""
        return cls(**SIZES[size], **options)

    @classmethod
    def from_checkpoint(cls, arguments: Mapping[str, Any], state: Mapping[str, Tensor]) -> Self:
        """The network that a checkpoint's tensors fit; its arguments may tell the activation.

        The released network has disks of radius 5 and 24 whatever its arguments say.
        """
        told = {name: arguments[name] for name in ("use_leaky_relu",) if isinstance(arguments.get(name), bool)}
        return cls(width=state["feature_extractor.FDM.t.weight"].shape[0], **told)

    @property
    def logit_layer(self) -> nn.Conv2d:
        """The layer whose answer is the logits."""
        found = self.head.layers[-1]
        assert isinstance(found, nn.Conv2d)
        return found

    def features(self, inputs: Tensor, points: Tensor) -> dict[str, Tensor]:
        """All maps by name: `click_map`, those of `DeepLab`, `fdm_0` to `fdm_2`, `instances`, ...

        `fdm_0` are features, `fdm_1` and `fdm_2` the gates of object and background, `fdm_instances` the first in the
        inputs' size and `latent_instances` (B, 4, H, W) the auxiliary answer. Arguments as of `forward`.
        """
        size = (inputs.shape[2], inputs.shape[3])
        found = {"click_map": self.click_maps(points, size, inputs.dtype)}
        found["maps_transform"] = self.maps_transform(found["click_map"])
        found |= self.feature_extractor.encode(normalise(inputs[:, :3]), found["maps_transform"])
        coarse = found["aspp"].shape[2:]
        spread = functional.interpolate(
            self.spread_maps(points, size, inputs.dtype), size=coarse, mode="bilinear", align_corners=True
        )
        found["fdm_0"], found["fdm_1"], found["fdm_2"] = self.feature_extractor.FDM(found["aspp"], spread)
        decoded = self.feature_extractor.decode(found["fdm_0"], found["backbone_0"])
        for name, small in (
            ("instances", self.head(decoded)),
            ("latent_instances", self.latent_head(decoded)),
            ("fdm_instances", found["fdm_1"]),
        ):
            found[name] = functional.interpolate(small, size=size, mode="bilinear", align_corners=True)
        return found

    def forward(self, inputs: Tensor, points: Tensor) -> dict[str, Tensor]:
        """Logits `instances` (B, 1, H, W), gates `fdm_instances` and auxiliary logits `latent_instances` (B, 4, H, W).

        Of inputs (B, 3, H, W) in 0..1 and points (B, 2n, 3).
        """
        found = self.features(inputs, points)
        return {name: found[name] for name in ("instances", "fdm_instances", "latent_instances")}

    def finish_logits(self, logits: Tensor, inputs: Tensor, points: Tensor) -> Tensor:
        """The answer after `PixelDiffusion`, as it goes into the sigmoid; shapes as of `forward`."""
        clicks = self.click_maps(points, (inputs.shape[2], inputs.shape[3]), inputs.dtype)
        found: Tensor = self.PDM(inputs[:, :3], logits, clicks)
        return found
