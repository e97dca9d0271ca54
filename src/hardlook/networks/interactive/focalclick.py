"""FocalClick. Chen et al., FocalClick: Towards Practical Interactive Image Segmentation, CVPR 2022."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.interactive import segformer
from hardlook.networks.interactive.click_maps import ClickMaps, disk_maps
from hardlook.networks.interactive.hrnet import HRNet
from hardlook.networks.interactive.ritm import SIZES as HRNETS
from hardlook.networks.interactive.ritm import Scale, normalise

SIZES: Mapping[str, Mapping[str, Any]] = {
    "hrnet18s": {"coarse": "hrnet18s"},
    "hrnet18s-s1": {"coarse": "hrnet18s", "halved": True},
    "hrnet32": {"coarse": "hrnet32"},
    "segformerb0": {"coarse": "segformerb0"},
    "segformerb0-s1": {"coarse": "segformerb0", "halved": True},
    "segformerb3": {"coarse": "segformerb3"},
}
"""Arguments of the published sizes; those without `-s1` are called S2."""

REFINER_WIDTH, RADIUS = 32, 5
HALVED_RADIUS = {True: 2, False: 3}
"""Radius of the disks that S1's coarse network sees, by whether it is an HRNet."""


class _Convolution(nn.Module):
    """A convolution, batch normalisation and ReLU."""

    def __init__(self, inputs: int, side: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, REFINER_WIDTH, side, stride, side // 2)
        self.norm = nn.BatchNorm2d(REFINER_WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """(B, 32, h / stride, w / stride)."""
        return functional.relu(self.norm(self.conv(x)))


class _Separable(nn.Module):
    """A 3 x 3 convolution of each channel, a 1 x 1 convolution, batch normalisation and ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.conv3x3 = nn.Conv2d(REFINER_WIDTH, REFINER_WIDTH, 3, 1, 1, groups=REFINER_WIDTH)
        self.conv1x1 = nn.Conv2d(REFINER_WIDTH, REFINER_WIDTH, 1)
        self.norm = nn.BatchNorm2d(REFINER_WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return functional.relu(self.norm(self.conv1x1(self.conv3x3(x))))


class Refiner(nn.Module):
    """Corrects the coarse logits of a region near its edges, which it finds itself.

    `with_gate` adds `feature_gate`, which is in the files of SegFormer's networks but takes no part.
    """

    def __init__(self, feature_width: int, *, with_gate: bool = False) -> None:
        super().__init__()
        self.image_conv1 = _Convolution(6, 3, 2)
        self.image_conv2, self.image_conv3 = _Separable(), _Separable()
        self.refine_fusion = _Convolution(feature_width, 1, 1)
        self.refine_fusion2, self.refine_fusion3 = _Separable(), _Separable()
        if with_gate:
            self.feature_gate = nn.Sequential(nn.Conv2d(REFINER_WIDTH, 1, 1))
        self.refine_pred = nn.Conv2d(REFINER_WIDTH, 1, 3, 1, 1)
        self.refine_trimap = nn.Conv2d(REFINER_WIDTH, 1, 3, 1, 1)
        # Before it has learnt anything it leaves the coarse answer nearly as it is.
        assert self.refine_trimap.bias is not None
        nn.init.constant_(self.refine_trimap.bias, -3)

    def forward(self, crops: Tensor, clicks: Tensor, coarse: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Refined logits and logits of being near an edge, both (B, 1, H, W).

        Of crops (B, 3, H, W) in 0..1, click maps (B, 2, H, W), coarse logits (B, 1, H, W), features (B, C, h, w).
        """
        x = self.image_conv3(self.image_conv2(self.image_conv1(torch.cat([crops, clicks, coarse.sigmoid()], 1))))
        x = x + _resize(self.refine_fusion(features), x)
        x = self.refine_fusion3(self.refine_fusion2(x))
        detail, trimap = _resize(self.refine_pred(x), crops), _resize(self.refine_trimap(x), crops)
        share = trimap.sigmoid()
        return detail * share + coarse * (1 - share), trimap


def _resize(x: Tensor, like: Tensor) -> Tensor:
    return functional.interpolate(x, size=like.shape[2:], mode="bilinear", align_corners=True)


def crop_boxes(maps: Tensor, boxes: Tensor, size: tuple[int, int], scale: tuple[float, float] = (1, 1)) -> Tensor:
    """RoIAlign: (B, C, *size) of maps (B, C, h, w), each cell the mean of points on a grid inside its part of the box.

    Boxes (B, 4) are (x1, y1, x2, y2), pixel i of the maps from i to i + 1 once a box is multiplied by `scale` (down,
    across). A cell has as many points a side as it covers pixels, rounded up.
    """
    exact = torch.promote_types(maps.dtype, torch.float32)
    ends = boxes.to(exact)
    with torch.autocast(maps.device.type, enabled=False):
        down = _cell_weights(ends[:, 1] * scale[0], ends[:, 3] * scale[0], maps.shape[2], size[0])
        across = _cell_weights(ends[:, 0] * scale[1], ends[:, 2] * scale[1], maps.shape[3], size[1])
        return (down[:, None] @ maps.to(exact) @ across[:, None].mT).to(maps.dtype)


def _cell_weights(first: Tensor, last: Tensor, length: int, cells: int) -> Tensor:
    """(B, cells, length): how much each of `length` pixels counts in each cell between `first` and `last` (B)."""
    first, last = first - 0.5, last - 0.5
    step = (last - first) / cells
    counts = step.ceil().clamp(min=1)
    numbers = torch.arange(int(counts.max()), device=first.device, dtype=first.dtype)
    inside = numbers < counts[:, None]
    parts = (numbers + 0.5) / counts[:, None]
    cell = torch.arange(cells, device=first.device)[:, None] + parts[:, None]
    places = first[:, None, None] + cell * step[:, None, None]
    on_map = (places >= -1) & (places <= length) & inside[:, None]
    at = places.clamp(0, length - 1)
    weights = (1 - (at[..., None] - torch.arange(length, device=first.device)).abs()).clamp(min=0)
    return (weights * on_map[..., None]).sum(2) / counts[:, None, None]


class FocalClick(nn.Module):
    """A coarse network for the whole picture and a refiner for the region that a click changes.

    `coarse` is hrnet18s, hrnet32, segformerb0 or segformerb3. With `halved` (S1) the coarse network sees everything at
    half the size. SegFormer's `maps_transform` is in the published files but takes no part.

    `reading`: where sides are no multiples of 4, the features of a region are cut out as if height and width had the
    same scale, that of the width (`released`), or each with its own (`ours`). On square pictures both are one.
    """

    with_prev_mask = True

    def __init__(
        self,
        coarse: str = "hrnet18s",
        *,
        halved: bool = False,
        use_leaky_relu: bool = True,
        reading: Literal["released", "ours"] = "released",
    ) -> None:
        super().__init__()
        self.halved, self.is_hrnet = halved, coarse.startswith("hrnet")
        self.reading = reading
        self.click_maps = ClickMaps(HALVED_RADIUS[self.is_hrnet] if halved else RADIUS)
        active = nn.LeakyReLU(0.2) if use_leaky_relu else nn.ReLU()
        if self.is_hrnet:
            first, second = nn.Conv2d(3, 16, 1), nn.Conv2d(16, 64, 3, 2, 1)
            extractor: HRNet | segformer.SegFormer = HRNet(**HRNETS[coarse])
            width = 2 * HRNETS[coarse]["ocr_width"]
        else:
            first, second = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 32, 3, 2, 1)
            sizes = segformer.SIZES[coarse.removeprefix("segformer")]
            extractor, width = segformer.SegFormer(**sizes), sizes["head_width"]
        self.maps_transform = nn.Sequential(first, active, second, Scale())
        self.feature_extractor = extractor
        self.refiner = Refiner(width, with_gate=not self.is_hrnet)

    @classmethod
    def build(cls, size: str, **options: Any) -> Self:
        """A published size: hrnet18s, hrnet32, segformerb0 or segformerb3, the first and third also with -s1."""
        return cls(**{**SIZES[size], **options})

    @classmethod
    def from_checkpoint(cls, arguments: Mapping[str, Any], state: Mapping[str, Tensor]) -> Self:
        """The network that a checkpoint's tensors fit.

        S1 and S2 have the same tensors: the argument `pipeline_version` tells which, and with it the radius of disks.
        """
        told = {name: arguments[name] for name in ("use_leaky_relu",) if isinstance(arguments.get(name), bool)}
        halved = arguments.get("pipeline_version") == "s1"
        if "feature_extractor.cls_head.weight" in state:
            small = state["feature_extractor.stage2.0.branches.0.0.conv1.weight"].shape[0] == 18
            coarse = "hrnet18s" if small else "hrnet32"
        else:
            small = state["feature_extractor.backbone.patch_embed1.proj.weight"].shape[0] == 32
            coarse = "segformerb0" if small else "segformerb3"
        return cls(coarse, halved=halved, **told)

    @property
    def logit_layer(self) -> nn.Conv2d:
        """The layer whose answer is the coarse logits."""
        extractor = self.feature_extractor
        return extractor.cls_head if isinstance(extractor, HRNet) else extractor.decode_head.linear_pred

    def features(self, inputs: Tensor, points: Tensor) -> dict[str, Tensor]:
        """All maps of the coarse network by name: `click_map`, `feature`, `instances`, `instances_aux`, ...

        Arguments as of `forward`.
        """
        size = (inputs.shape[2], inputs.shape[3])
        clicks = self.click_maps(points, size, inputs.dtype)
        pictures, maps = normalise(inputs[:, :3]), torch.cat([inputs[:, 3:4], clicks], 1)
        if self.halved:
            half = (size[0] // 2, size[1] // 2)
            pictures, maps = (
                functional.interpolate(x, size=half, mode="bilinear", align_corners=True) for x in (pictures, maps)
            )
        found = {"click_map": clicks}
        if isinstance(self.feature_extractor, HRNet):
            found["maps_transform"] = self.maps_transform(maps)
            found |= self.feature_extractor.features(pictures, found["maps_transform"])
            found["feature"] = found["ocr_out"]
        else:
            found |= self.feature_extractor.features(pictures, maps)
            found["aux_quarter"] = found["logits_quarter"]
        found["instances"] = _resize(found["logits_quarter"], inputs)
        found["instances_aux"] = _resize(found["aux_quarter"], inputs)
        return found

    def forward(self, inputs: Tensor, points: Tensor) -> dict[str, Tensor]:
        """Coarse logits `instances` and `instances_aux` (B, 1, H, W) and their `feature` (B, C, h, w).

        Of inputs (B, 4, H, W) in 0..1 (R, G, B, last probabilities) and points (B, 2n, 3).
        """
        found = self.features(inputs, points)
        return {name: found[name] for name in ("instances", "instances_aux", "feature")}

    def refine(
        self, crops: Tensor, points: Tensor, features: Tensor, logits: Tensor, boxes: Tensor
    ) -> dict[str, Tensor]:
        """Logits `refined`, `coarse` and `trimap` (B, 1, h, w) of regions.

        Of their crops (B, 3, h, w) in 0..1, not normalised, points (B, 2n, 3) in pixels of the crops, all `features`
        and coarse `logits` (B, 1, H, W), and boxes (B, 4) as (x1, y1, x2, y2) in pixels of the logits.
        """
        clicks = disk_maps(points, (crops.shape[2], crops.shape[3]), radius=RADIUS, dtype=crops.dtype)
        grid = (features.shape[2], features.shape[3])
        scale = (grid[0] / logits.shape[2], grid[1] / logits.shape[3])
        if self.reading == "released":
            scale = (grid[1] / crops.shape[3],) * 2
        inside = crop_boxes(features, boxes, grid, scale)
        coarse = crop_boxes(logits, boxes, (crops.shape[2], crops.shape[3]))
        refined, trimap = self.refiner(crops, clicks, coarse, inside)
        return {"refined": refined, "coarse": coarse, "trimap": trimap}
