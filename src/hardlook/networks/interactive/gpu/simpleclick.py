"""SimpleClick for inference on a GPU: the same logits up to rounding, with fewer passes over memory.

Convolutions of single pixels or of blocks are matrix products of rows of channels. Pixels made by transposed
convolutions stay in the order of the blocks until the end, as norms and products do not ask where a pixel is. Enlarging
a map and mixing its channels may be exchanged, so the head mixes each level at its own size and never joins the levels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.gpu import read_upscaling
from hardlook.networks.interactive.gpu.norms import add_and_normalise, load_kernels, merge_levels, normalise_group
from hardlook.networks.interactive.plain_vit import (
    Block,
    count_windows,
    global_blocks,
    join_windows,
    split_windows,
)
from hardlook.networks.interactive.ritm import MEAN, STD
from hardlook.networks.interactive.simpleclick import SimpleClick

Rows = tuple[Tensor, Tensor]
"""Weight (outputs, inputs) and bias of a product of rows."""


class RowsSimpleClick:
    """Logits of a `SimpleClick` in evaluation mode; products run in autocast's type where that is on.

    With `kernels` norms and the head's end are Triton's where it is there. Later changes of the network's convolutions
    are not seen.
    """

    takes_sizes = False

    def __init__(self, network: SimpleClick, *, kernels: bool = True) -> None:
        found = network.logit_layer.weight
        self._kernels = load_kernels(found.device) if kernels else None
        self._with_prev_mask, self._backbone = network.with_prev_mask, network.backbone
        self._constants = torch.tensor((MEAN, STD), dtype=torch.float32, device=found.device).to(found.dtype)
        embeddings = (network.backbone.patch_embed.proj, network.patch_embed_coords.proj)
        self._embedding = (
            torch.cat([one.weight.detach().flatten(1) for one in embeddings], 1),
            _bias_of(embeddings[0]) + _bias_of(embeddings[1]),
        )
        neck = network.neck
        self._levels = [_read_level(level) for level in (neck.down_4, neck.down_8, neck.down_16, neck.down_32)]
        head = network.head
        self._convs = [_read_pointwise(conv.conv) for conv in head.convs.children()]  # type: ignore[arg-type]
        weight, bias = _read_pointwise(head.fusion_conv.conv)
        parts = weight.chunk(4, 1)
        # The bias is added once, with the finest level.
        self._fusion = [(part.contiguous(), None if place else bias) for place, part in enumerate(parts)]
        self._logits = head.conv_seg.weight.detach().reshape(-1), _bias_of(head.conv_seg)

    def __call__(self, inputs: Tensor, maps: Tensor, sizes: Tensor | None = None) -> Tensor:
        """Logits (B, 1, H, W) of inputs (B, C, H, W) as of `SimpleClick` and the clicks' maps (B, 2, H, W)."""
        assert sizes is None
        patch, size = self._backbone.patch, (inputs.shape[2], inputs.shape[3])
        grid = (size[0] // patch, size[1] // patch)
        tokens = self._run_blocks(self._embed(inputs, maps, grid), grid)
        levels = [self._mix(self._run_level(tokens, level, grid), place) for place, level in enumerate(self._levels)]
        logits = merge_levels(levels, *self._logits, kernels=self._kernels)[:, None]
        return functional.interpolate(logits, size=size, mode="bilinear", align_corners=True)

    def _embed(self, inputs: Tensor, maps: Tensor, grid: tuple[int, int]) -> Tensor:
        """Tokens of the picture plus those of clicks and last mask, of one product, and their positions."""
        patch = self._backbone.patch
        picture = (inputs[:, :3] - self._constants[0, :, None, None]) / self._constants[1, :, None, None]
        given = [inputs[:, 3:4]] if self._with_prev_mask else []
        x = torch.cat([picture, *given, maps], 1)[:, :, : grid[0] * patch, : grid[1] * patch]
        blocks = x.reshape(len(x), -1, grid[0], patch, grid[1], patch).permute(0, 2, 4, 1, 3, 5)
        rows = blocks.to(_product_type(x)).reshape(len(x), grid[0] * grid[1], -1)
        return functional.linear(rows, *self._embedding) + self._backbone.positions(grid)

    def _run_blocks(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        """The last tokens (B, h * w, C)."""
        backbone, added, dtype = self._backbone, None, _product_type(x)
        windows, everywhere = count_windows(grid, backbone.window), global_blocks(len(backbone.blocks))
        in_windows = False
        for number, block in enumerate(backbone.blocks, 1):
            assert isinstance(block, Block)
            if in_windows != (number not in everywhere):
                in_windows = not in_windows
                x, added = (x if added is None else x + added), None
                x = split_windows(x, grid, windows) if in_windows else join_windows(x, grid, windows)
            x, normed = add_and_normalise(x, added, block.norm1, dtype, kernels=self._kernels)
            x, normed = add_and_normalise(x, block.attn(normed), block.norm2, dtype, kernels=self._kernels)
            added = block.mlp(normed)
        return x if added is None else x + added

    def _run_level(self, x: Tensor, level: list[Any], grid: tuple[int, int]) -> tuple[Tensor, list[int]]:
        """Rows (B, pixels, C) of a level, and into how many rows and columns each token or pixel was cut in turn."""
        x, cuts = x.to(_product_type(x)), []
        for kind, part, gelu in level:
            if kind == "norm":
                x = normalise_group(x, part, gelu=gelu, kernels=self._kernels)
                continue
            if kind == "joined":
                rows, columns = grid[0] // 2, grid[1] // 2
                x = x.reshape(len(x), *grid, -1)[:, : 2 * rows, : 2 * columns]
                x = x.reshape(len(x), rows, 2, columns, 2, -1).transpose(2, 3).reshape(len(x), rows * columns, -1)
                grid = (rows, columns)
            x = functional.linear(x, *part)
            if kind == "cut":
                x = x.reshape(len(x), 4 * x.shape[1], -1)
                cuts.append(2)
        return x, [*grid, *cuts]

    def _mix(self, level: tuple[Tensor, list[int]], place: int) -> Tensor:
        """A level's part of the fused maps, (B, h, w, C) row by row."""
        x, (height, width, *cuts) = level
        x = functional.linear(functional.relu_(functional.linear(x, *self._convs[place])), *self._fusion[place])
        # (h, w, row, column, row, column, C): all rows first.
        split = x.reshape(len(x), height, width, *(side for cut in cuts for side in (cut, cut)), -1)
        last = split.ndim - 1
        order = [0, *range(1, last, 2), *range(2, last, 2), last]
        scale = 2 ** len(cuts)
        return split.permute(order).reshape(len(x), height * scale, width * scale, -1)


def _product_type(x: Tensor) -> torch.dtype:
    """The type in which products are computed: autocast's, or the tensor's own."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def _bias_of(layer: nn.Conv2d | nn.ConvTranspose2d) -> Tensor:
    assert layer.bias is not None
    return layer.bias.detach()


def _read_pointwise(layer: nn.Conv2d) -> Rows:
    return layer.weight.detach().flatten(1), _bias_of(layer)


def _read_level(layers: nn.Sequential) -> list[tuple[str, Any, bool]]:
    """The steps of a level: what kind, its layer, and for norms whether a GELU follows."""
    steps: list[tuple[str, Any, bool]] = []
    flat = list(layers)
    for place, layer in enumerate(flat):
        if isinstance(layer, nn.ConvTranspose2d):
            weight, bias = read_upscaling(layer)
            steps.append(("cut", (weight, weight.new_zeros(len(weight)) if bias is None else bias), False))
        elif isinstance(layer, nn.Conv2d) and layer.kernel_size == (2, 2):
            steps.append(("joined", (layer.weight.detach().permute(0, 2, 3, 1).flatten(1), _bias_of(layer)), False))
        elif isinstance(layer, nn.Conv2d):
            steps.append(("product", _read_pointwise(layer), False))
        elif isinstance(layer, nn.GroupNorm) and layer.num_groups == 1:
            gelu = place + 1 < len(flat) and isinstance(flat[place + 1], nn.GELU)
            steps.append(("norm", layer, gelu))
        elif not isinstance(layer, nn.GELU):
            raise TypeError(f"a level of the pyramid has an unknown layer {layer}")
    return steps
