"""ViT-S/16. Dosovitskiy et al., An Image is Worth 16x16 Words, ICLR 2021; Touvron et al., DeiT, ICML 2021."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.Module):
    """Self-attention of `heads` heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (n, t, width)."""
        n, tokens, width = x.shape
        query, key, value = self.qkv(x).reshape(n, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value)
        return self.proj(attended.transpose(1, 2).reshape(n, tokens, width))  # type: ignore[no-any-return]


class Mlp(nn.Module):
    """Two linear layers with GELU between them."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (n, t, width)."""
        return self.fc2(functional.gelu(self.fc1(x)))  # type: ignore[no-any-return]


class TransformerBlock(nn.Module):
    """Attention and MLP, each pre-normalised and, in training, left out for `drop_path` of the images."""

    def __init__(self, width: int, heads: int, ratio: int, drop_path: float) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, eps=1e-6), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width, eps=1e-6), Mlp(width, ratio * width)
        self.drop_path = drop_path

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (n, t, width)."""
        x = x + self._drop(self.attn(self.norm1(x)))
        return x + self._drop(self.mlp(self.norm2(x)))

    def _drop(self, x: Tensor) -> Tensor:
        if not self.training or self.drop_path == 0:
            return x
        kept = torch.rand(len(x), 1, 1, device=x.device) >= self.drop_path
        return x * kept / (1 - self.drop_path)


class PatchEmbedding(nn.Module):
    """Patches of `patch` pixels as tokens."""

    def __init__(self, width: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, images: Tensor) -> Tensor:
        """Maps (n, width, h, w) of patches."""
        return self.proj(images)  # type: ignore[no-any-return]


class VisionTransformer(nn.Module):
    """ViT-S/16: tokens (n, 1 + patches, 384), the class token first; vectors are the class token.

    Position embeddings are those of 224 pixels, resized for other sizes. `drop_path` grows linearly over the blocks.
    """

    def __init__(
        self,
        output: str = "tokens",
        *,
        width: int = 384,
        depth: int = 12,
        heads: int = 6,
        ratio: int = 4,
        patch: int = 16,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.output, self.channels, self.patch = output, width, patch
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + (224 // patch) ** 2, width))
        self.patch_embed = PatchEmbedding(width, patch)
        rates = [drop_path * block / max(1, depth - 1) for block in range(depth)]
        self.blocks = nn.ModuleList(TransformerBlock(width, heads, ratio, rate) for rate in rates)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def positions(self, height: int, width: int) -> Tensor:
        """Position embeddings (1, 1 + h w, width) of a grid of patches."""
        side = round((self.pos_embed.shape[1] - 1) ** 0.5)
        if (height, width) == (side, side):
            return self.pos_embed
        grid = self.pos_embed[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
        # The scale is given, a little too large so that the size is never one short, as in the published code.
        factors = ((height + 0.1) / side, (width + 0.1) / side)
        resized = functional.interpolate(grid, scale_factor=factors, mode="bicubic", align_corners=False)
        return torch.cat([self.pos_embed[:, :1], resized.flatten(2).transpose(1, 2)], 1)

    def forward(self, images: Tensor) -> Tensor:
        """Tokens, vectors, or maps (n, 384, h, w) of the patches."""
        patches = self.patch_embed(images)
        height, width = patches.shape[2:]
        tokens = torch.cat([self.cls_token.expand(len(images), -1, -1), patches.flatten(2).transpose(1, 2)], 1)
        x = tokens + self.positions(height, width)
        for block in self.blocks:
            x = block(x)
        x = torch.as_tensor(self.norm(x))
        if self.output == "vectors":
            return x[:, 0]
        return x if self.output == "tokens" else x[:, 1:].transpose(1, 2).reshape(len(images), -1, height, width)
