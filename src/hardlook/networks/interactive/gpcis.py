"""GPCIS. Zhou et al., Interactive Segmentation as Gaussian Process Classification, CVPR 2023."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.interactive.click_maps import ClickMaps
from hardlook.networks.interactive.deeplab import DeepLab
from hardlook.networks.interactive.ritm import Scale, normalise

SIZES: Mapping[str, Mapping[str, Any]] = {"resnet50": {"resnet": "resnet50", "width": 256}}
"""Arguments of the published sizes."""

FEATURES = 48
WAVES = 256
NOISE, TRAINING_NOISE = 1e-7, 1e-2
"""What is added to the diagonal of the clicks' kernel matrix, at inference and in training."""


class GPCIS(nn.Module):
    """DeepLabV3+ features on which a Gaussian process carries each click's value to pixels alike.

    A pixel has 48 features of length one and its colours. Of the 256 maps that the coordinate branch makes, the first
    128 are used, as published: the stem has no more channels.
    """

    with_prev_mask = True

    def __init__(
        self,
        resnet: str = "resnet50",
        width: int = 256,
        *,
        radius: float = 5,
    ) -> None:
        super().__init__()
        self.omega = nn.Parameter(0.25 * torch.randn(WAVES, 1))
        self.omega_var = nn.Parameter(torch.tensor(0.025))
        self.logsigma2 = nn.Parameter(torch.ones(FEATURES))
        self.weights = nn.Parameter(torch.zeros(1))
        self.click_maps = ClickMaps(radius)
        self.model = DeepLab(resnet, width, FEATURES, dropout=0)
        self.maps_transform = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(16, 256, 3, 1, 1),
            Scale(),
        )
        self.theta = nn.Linear(FEATURES + 3, WAVES)
        self.u_mlp = nn.Sequential(nn.Linear(FEATURES + 3, 96), nn.ReLU(), nn.Linear(96, 1))

    @classmethod
    def build(cls, size: str, **options: Any) -> Self:
        """A published size: resnet50."""
        return cls(**SIZES[size], **options)

    @classmethod
    def from_checkpoint(cls, arguments: Mapping[str, Any], state: Mapping[str, Tensor]) -> Self:
        """The network that a checkpoint's tensors fit.

        Of its arguments nothing is used: the released network has disks of radius 5 whatever they say.
        """
        return cls(width=state["model.aspp.project.0.weight"].shape[0])

    def features(self, inputs: Tensor, points: Tensor) -> dict[str, Tensor]:
        """All maps by name: `click_maps`, `maps_transform`, those of `DeepLab`, `features`, `prior` and `instances`.

        `features` (B, 48, h, w) are at 1/4, not yet of length one; arguments as of `forward`.
        """
        size = (inputs.shape[2], inputs.shape[3])
        pictures = normalise(inputs[:, :3])
        found = {"click_maps": self.click_maps(points, size, inputs.dtype)}
        found["maps_transform"] = self.maps_transform(torch.cat([inputs[:, 3:4], found["click_maps"]], 1))
        used = found["maps_transform"][:, : self.model.backbone.stem_width]
        found |= self.model.encode(pictures, used)
        found["features"] = self.model.decode(found["aspp"], found["backbone_0"])
        # In half precision, the process would mix pixels up: kernels of close ones differ in the third digit.
        with torch.autocast(inputs.device.type, enabled=False):
            exact = torch.promote_types(inputs.dtype, torch.float32)
            unit = functional.normalize(found["features"].to(exact), dim=1)
            unit = functional.interpolate(unit, size=size, mode="bilinear", align_corners=True)
            pixels = torch.cat([unit, pictures.to(exact)], 1)
            found["prior"], found["instances"] = self._condition(pixels, points)
        return found

    def forward(self, inputs: Tensor, points: Tensor) -> dict[str, Tensor]:
        """Logits `instances` (B, 1, H, W).

        Of inputs (B, 4, H, W) in 0..1 (R, G, B, last probabilities) and points (B, 2n, 3).
        """
        return {"instances": self.features(inputs, points)["instances"]}

    def _condition(self, pixels: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, 1, H, W) before and after the clicks are known, of pixels (B, 51, H, W)."""
        size = (pixels.shape[2], pixels.shape[3])
        flat = pixels.flatten(2).mT
        prior = self._prior(flat)
        clicked, valid = take_clicked(flat, points, size)
        signs = torch.ones_like(clicked[..., :1])
        signs[:, points.shape[1] // 2 :] = -1
        values = signs * functional.softplus(self.u_mlp(clicked))
        surprise = (values - self._prior(clicked)) * valid[..., None]
        # An absent click is one that is like no pixel and surprises nobody.
        both = valid[:, :, None] & valid[:, None, :]
        own = torch.where(both, self._kernel(clicked, clicked), 0.0)
        noise = TRAINING_NOISE if self.training else NOISE
        # In float64: the noise is lost in float32, and two clicks on one pixel would have no solution.
        own = own.double() + torch.diag_embed(noise + (~valid).double())
        solved = torch.linalg.solve(own, surprise.double())
        learnt = (self._kernel(flat, clicked).double() @ solved).to(flat.dtype)
        shape = (pixels.shape[0], 1, *size)
        return prior.reshape(shape), (prior + learnt).reshape(shape)

    def _prior(self, pixels: Tensor) -> Tensor:
        """(B, n, 1) of pixels (B, n, 51)."""
        return math.sqrt(2 / WAVES) * torch.sin(self.theta(pixels)) @ self.omega

    def _kernel(self, one: Tensor, other: Tensor) -> Tensor:
        """(B, n, m) how alike pixels (B, n, 51) and (B, m, 51) are, in features plus in colours."""
        scales = (0.5 * self.logsigma2).exp()
        alike = squared_distances(one[..., :FEATURES] * scales, other[..., :FEATURES] * scales).mul(-0.5).exp()
        colours = squared_distances(one[..., FEATURES:], other[..., FEATURES:]).mul(-0.5).exp()
        return alike + functional.softplus(self.weights) * colours


def take_clicked(pixels: Tensor, points: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Features (B, 2n, C) of the clicked ones of pixels (B, H W, C), and which clicks (B, 2n) are on the picture."""
    rows, columns = (points[..., axis].trunc().long() for axis in (0, 1))
    valid = (points[..., :2] >= 0).all(-1) & (rows < size[0]) & (columns < size[1])
    places = torch.where(valid, rows * size[1] + columns, 0)
    return pixels.gather(1, places[..., None].expand(-1, -1, pixels.shape[2])), valid


def squared_distances(one: Tensor, other: Tensor) -> Tensor:
    """(B, n, m) of (B, n, C) and (B, m, C), one of the m after the other to keep memory low."""
    columns = [(one - other[:, place, None]).square().sum(-1) for place in range(other.shape[1])]
    return torch.stack(columns, -1)
