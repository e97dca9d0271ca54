"""RITM. Sofiiuk et al., Reviving Iterative Training with Mask Guidance for Interactive Segmentation, ICIP 2022."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn

from hardlook.networks.interactive.click_maps import ClickMaps
from hardlook.networks.interactive.hrnet import Frame, HRNet, resize, through

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

SIZES: Mapping[str, Mapping[str, Any]] = {
    "hrnet18s": {"width": 18, "ocr_width": 48, "small": True},
    "hrnet18": {"width": 18, "ocr_width": 64},
    "hrnet32": {"width": 32, "ocr_width": 128},
}
"""Arguments of the published sizes."""


class Scale(nn.Module):
    """Maps times the size of one learnt number."""

    def __init__(self, start: float = 0.05) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((1,), start))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return x * self.scale.abs()


def normalise(pictures: Tensor) -> Tensor:
    """Pictures (B, 3, H, W) in 0..1, less ImageNet's mean, over its standard deviation."""
    # The published constants are float32 numbers also where the network is float64.
    constants = torch.tensor((MEAN, STD), dtype=torch.float32, device=pictures.device).to(pictures.dtype)
    return (pictures - constants[0, :, None, None]) / constants[1, :, None, None]


class RITM(nn.Module):
    """HRNet with OCR that is given the clicks, and with `with_prev_mask` the last probabilities, as maps at its stem.

    Without is the published baseline. Maps are disks of `norm_radius` pixels, or with `use_disks=False` distances.
    """

    takes_sizes = True

    def __init__(
        self,
        width: int = 18,
        ocr_width: int = 64,
        *,
        small: bool = False,
        with_prev_mask: bool = True,
        norm_radius: float = 5,
        use_disks: bool = True,
        use_leaky_relu: bool = True,
    ) -> None:
        super().__init__()
        self.with_prev_mask = with_prev_mask
        self.click_maps = ClickMaps(norm_radius, use_disks=use_disks)
        self.maps_transform = nn.Sequential(
            nn.Conv2d(3 if with_prev_mask else 2, 16, 1),
            nn.LeakyReLU(0.2) if use_leaky_relu else nn.ReLU(),
            nn.Conv2d(16, 64, 3, 2, 1),
            Scale(),
        )
        self.feature_extractor = HRNet(width, ocr_width, small=small)

    @classmethod
    def build(cls, size: str, **options: Any) -> Self:
        """A published size: hrnet18s, hrnet18 or hrnet32."""
        return cls(**SIZES[size], **options)

    @classmethod
    def from_checkpoint(cls, arguments: Mapping[str, Any], state: Mapping[str, Tensor]) -> Self:
        """The network of a checkpoint's arguments; what they leave out is read from the shapes of its state.

        The shapes decide the architecture, as they must fit; radius, disks and activation are told by arguments only.
        """
        extractor = "feature_extractor."
        told = {name: arguments[name] for name in ("norm_radius", "use_disks", "use_leaky_relu") if name in arguments}
        return cls(
            width=state[f"{extractor}stage2.0.branches.0.0.conv1.weight"].shape[0],
            ocr_width=state[f"{extractor}cls_head.weight"].shape[1] // 2,
            small=f"{extractor}layer1.2.conv1.weight" not in state,
            with_prev_mask=state["maps_transform.0.weight"].shape[1] == 3,
            **told,
        )

    @property
    def logit_layer(self) -> nn.Conv2d:
        """The layer whose answer is the logits."""
        return self.feature_extractor.cls_head

    def features(self, inputs: Tensor, points: Tensor, sizes: Tensor | None = None) -> dict[str, Tensor]:
        """All maps by name: `click_maps`, `image_normalised`, `maps_transform`, those of HRNet, `instances`, ...

        Arguments as of `forward`; logits `instances` and `instances_aux` have the size of the inputs.
        """
        size = (inputs.shape[2], inputs.shape[3])
        frame = None if sizes is None else Frame(sizes, size)
        if frame is not None and self.training:
            raise ValueError("padded batches are for inference: batch normalisation would see the padding")
        found = {
            "click_maps": self.click_maps(points, size, inputs.dtype),
            "image_normalised": normalise(inputs[:, :3]),
        }
        given = [inputs[:, 3:4]] if self.with_prev_mask else []
        found["maps_transform"] = through(self.maps_transform, torch.cat([*given, found["click_maps"]], 1), frame)
        found |= self.feature_extractor.features(found["image_normalised"], found["maps_transform"], frame)
        found["instances"] = resize(found["logits_quarter"], size, frame)
        found["instances_aux"] = resize(found["aux_quarter"], size, frame)
        return found

    def forward(self, inputs: Tensor, points: Tensor, sizes: Tensor | None = None) -> dict[str, Tensor]:
        """Logits `instances` and auxiliary logits `instances_aux`, both (B, 1, H, W).

        Of inputs (B, 4, H, W) in 0..1 (R, G, B, last probabilities; 3 channels without `with_prev_mask`) and points
        (B, 2n, 3). With `sizes` (B, 2) the inputs are padded pictures in the top left corner; logits beyond are void.
        """
        found = self.features(inputs, points, sizes)
        return {name: found[name] for name in ("instances", "instances_aux")}
