"""The pixel decoder of FC-CLIP: that of Cheng et al., Masked-attention Mask Transformer, CVPR 2022.

Pixels of three maps attend to few learnt places on all of them (Zhu et al., Deformable DETR, ICLR 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.mask_transformer import LEVELS, WIDTH, Encoder, centres, sine_positions


class _LevelTransformer(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.level_embed = nn.Parameter(torch.randn(LEVELS, WIDTH))
        self.encoder = Encoder(layers)

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        sizes = [(level.shape[2], level.shape[3]) for level in maps]
        x = torch.cat([level.flatten(2).transpose(1, 2) for level in maps], 1)
        # Sines stay float32 for features of any type, as released: their rounding shows in float64.
        positions = torch.cat(
            [
                sine_positions(size, device=x.device, dtype=torch.float32) + level
                for level, size in zip(self.level_embed, sizes, strict=True)
            ],
            1,
        )
        places = centres(sizes, device=x.device, dtype=torch.promote_types(x.dtype, torch.float32))
        for layer in self.encoder.layers:
            x = layer(x, positions, places, sizes)
        levels = torch.split(x.transpose(1, 2), [height * width for height, width in sizes], 2)
        return [level.reshape(*level.shape[:2], *size) for level, size in zip(levels, sizes, strict=True)]


class _NormedConvolution(nn.Conv2d):
    """A convolution without bias, then group normalisation, under detectron2's names."""

    def __init__(self, inputs: int, side: int) -> None:
        super().__init__(inputs, WIDTH, side, padding=side // 2, bias=False)
        self.norm = nn.GroupNorm(32, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(super().forward(x))  # type: ignore[no-any-return]


class PixelDecoder(nn.Module):
    """Maps at strides 32, 16 and 8 for the queries, and one at stride 4 of which masks are made.

    `channels` are those of res2 to res5. Pixels that pad an image are attended to like all others.
    """

    def __init__(self, channels: Sequence[int], *, layers: int = 6) -> None:
        super().__init__()
        self.input_proj = nn.ModuleList(
            nn.Sequential(nn.Conv2d(inputs, WIDTH, 1), nn.GroupNorm(32, WIDTH)) for inputs in channels[:0:-1]
        )
        self.transformer = _LevelTransformer(layers)
        self.mask_features = nn.Conv2d(WIDTH, WIDTH, 1)
        self.adapter_1 = _NormedConvolution(channels[0], 1)
        self.layer_1 = _NormedConvolution(WIDTH, 3)

    def forward(self, maps: Mapping[str, Tensor]) -> tuple[list[Tensor], Tensor]:
        """Three levels (B, 256, h, w), the coarsest first, and the map of masks (B, 256, H / 4, W / 4)."""
        coarse = (maps[name] for name in ("res5", "res4", "res3"))
        levels = self.transformer([project(one) for project, one in zip(self.input_proj, coarse, strict=True)])
        fine = self.adapter_1(maps["res2"])
        fine = fine + functional.interpolate(levels[-1], fine.shape[2:], mode="bilinear", align_corners=False)
        return levels, self.mask_features(functional.relu(self.layer_1(fine)))
