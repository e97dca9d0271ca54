"""SAN. Xu et al., Side Adapter Network for Open-Vocabulary Semantic Segmentation, CVPR 2023."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.open_vocabulary.clip_text import CLIP, TEXT_SIZES, take_best_names
from hardlook.networks.open_vocabulary.clip_vit import (
    VIT_SIZES,
    Block,
    PatchEmbedding,
    ViTSize,
    normalise,
    pad_to_multiple,
    resize_positions,
)

WIDTH, HEADS, PATCH, BLOCKS, QUERIES, HIDDEN = 240, 6, 16, 8, 100, 256
SIDE = 40
"""The side of the side network's grid of positions: images of 640 x 640 pixels."""
HIDDEN_SCORE = -100.0
"""What is added to the score of a token that is not to be attended to."""


@dataclass(frozen=True)
class SANSize:
    """CLIP's size by name, blocks that extract features, blocks whose output the side network sees, CLIP's scale."""

    clip: str
    extracting: int
    taps: tuple[int, ...]
    scale: float


SAN_SIZES: Mapping[str, SANSize] = {
    "tiny": SANSize("tiny", 3, (0, 1, 2, 3), 0.5),
    "san_vit_b_16": SANSize("ViT-B-16", 9, (0, 3, 6, 9), 0.5),
    "san_vit_l_14": SANSize("ViT-L-14-336", 18, (0, 6, 12, 18), 0.7),
}


class SAN(nn.Module):
    """A frozen CLIP whose last blocks classify the masks that a small transformer beside it proposes.

    The first blocks of CLIP's image tower, which sees the image reduced, feed the side network, which sees all of it.
    The side network gives masks, and biases by which copies of the class token attend to the masks' pixels in CLIP's
    last blocks. Pixels that pad an image to multiples of 32 are attended to like all others.

    `released` takes the table of positions of the side network as it is whenever the grid has as many cells as the
    table, be it a square or not. `classes` is how many the network was trained on; it matters to the loss alone.
    """

    def __init__(self, size: str = "san_vit_b_16", *, classes: int = 171, released: bool = False) -> None:
        super().__init__()
        self.size = SAN_SIZES[size]
        clip = VIT_SIZES[self.size.clip]
        self.criterion = _ClassWeights(classes)
        self.side_adapter_network = SideAdapter(clip, released=released)
        self.clip_visual_extractor = FeatureExtractor(clip, self.size.extracting, self.size.taps)
        self.clip_rec_head = MaskRecogniser(clip, clip.layers - self.size.extracting)
        self.ov_classifier = TextClassifier(self.size.clip)

    def forward(
        self, images: Tensor, text: Tensor, depths: Sequence[int] = (BLOCKS,), counts: Sequence[int] = ()
    ) -> list[tuple[Tensor, Tensor]]:
        """Mask logits (B, 100, h, w) and class logits (B, 100, C + 1), no object last, after each block of `depths`.

        `images` (B, 3, H, W) are normalised and padded to multiples of 32; (h, w) is a sixteenth of that. `text`
        (C, D) holds a vector for each class; with `counts`, one for each of a class's names, of which the best counts.
        Training supervises the outputs of blocks 7 and 8.
        """
        taps, class_token = self.clip_visual_extractor(self.reduce(images))
        classifier = self.ov_classifier.build_classifier(text)
        outputs = []
        for masks, biases in self.side_adapter_network(images, taps, depths):
            vectors = self.clip_rec_head(taps[-1], class_token, biases)
            logits = vectors @ classifier.T.to(vectors.dtype)
            outputs.append((masks, take_best_names(logits, [*counts, 1]) if counts else logits))
        return outputs

    def reduce(self, images: Tensor) -> Tensor:
        """Images (B, 3, H, W) at the size that CLIP sees."""
        return functional.interpolate(images, scale_factor=self.size.scale, mode="bilinear", align_corners=False)

    def segment(self, images: Tensor, text: Tensor, size: tuple[int, int] | None = None) -> Tensor:
        """Scores (B, C, H, W) at `size`, that of the images if None, of images (B, 3, h, w) of values 0 to 255.

        The released evaluation hands in images whose short side is 640 and whose long side is at most 2560. Scores
        are sums over queries and may exceed 1; the label of a pixel is the class with the largest.
        """
        masks, classes = self.predict(images, text)
        padded, seen = pad_to_multiple(images).shape[-2:], images.shape[-2:]
        return torch.einsum("bqc,bqhw->bchw", classes, resize_masks(masks, padded, seen, size or seen).sigmoid())

    def predict(self, images: Tensor, text: Tensor, counts: Sequence[int] = ()) -> tuple[Tensor, Tensor]:
        """Mask logits (B, 100, h, w) and probabilities of classes (B, 100, C), of images (B, 3, H, W) of 0 to 255.

        `counts` as for `forward`. The probabilities leave out that of no object.
        """
        ((masks, classes),) = self(pad_to_multiple(normalise(images)), text, counts=counts)
        return masks, classes.softmax(2)[..., :-1]


def resize_masks(masks: Tensor, padded: Sequence[int], seen: Sequence[int], size: Sequence[int]) -> Tensor:
    """Mask logits (B, Q, h, w) at the `padded` size, cut to what was `seen` of the image, then at `size`."""
    masks = functional.interpolate(masks, tuple(padded), mode="bilinear", align_corners=False)
    masks = masks[..., : seen[0], : seen[1]]
    if tuple(size) == tuple(seen):
        return masks
    return functional.interpolate(masks, tuple(size), mode="bilinear", align_corners=False)


def label_pixels(classes: Tensor, masks: Tensor, most: int = 32) -> Tensor:
    """The class (H, W) with the largest sum over masks (Q, H, W) of probabilities times its share (Q, C) in each.

    `most` classes are summed at a time: the scores of a thousand at the size of a photograph take gigabytes.

    >>> label_pixels(torch.eye(2), torch.tensor([[[0.2, 0.7]], [[0.3, 0.1]]]), most=1)
    tensor([[1, 0]])
    """
    best = torch.full_like(masks[0], -torch.inf)
    chosen = torch.zeros_like(best, dtype=torch.int64)
    for start in range(0, classes.shape[1], most):
        scores = torch.einsum("qc,qhw->chw", classes[:, start : start + most], masks)
        highest, place = scores.max(0)
        chosen = torch.where(highest > best, place + start, chosen)
        best = torch.maximum(best, highest)
    return chosen


class _ClassWeights(nn.Module):
    """The weights of classes in the training loss, which checkpoints hold."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("empty_weight", torch.cat((torch.ones(classes), torch.tensor([0.1]))))


class FeatureExtractor(PatchEmbedding):
    """The first blocks of CLIP's image tower."""

    def __init__(self, size: ViTSize, layers: int, taps: Sequence[int]) -> None:
        super().__init__(size)
        self.taps = tuple(taps)
        self.resblocks = nn.ModuleList(Block(size.width) for _ in range(layers))

    def forward(self, images: Tensor) -> tuple[list[Tensor], Tensor]:
        """Maps (B, width, h, w) of the patches after the blocks `taps`, and the last class token (B, 1, width)."""
        x, grid = self.embed(images)
        outputs = [x]
        for block in self.resblocks:
            x = block(x)
            outputs.append(x)
        maps = [outputs[tap][:, 1:].transpose(1, 2).reshape(len(x), -1, *grid) for tap in self.taps]
        return maps, x[:, :1]


class MaskRecogniser(nn.Module):
    """The last blocks of CLIP's image tower, with a copy of the class token for each mask."""

    def __init__(self, size: ViTSize, layers: int) -> None:
        super().__init__()
        self.proj = nn.Parameter(size.width**-0.5 * torch.randn(size.width, size.output))
        self.resblocks = nn.ModuleList(Block(size.width) for _ in range(layers))
        self.ln_post = nn.LayerNorm(size.width)

    def forward(self, features: Tensor, class_token: Tensor, biases: Tensor) -> Tensor:
        """Unit vectors (B, Q, output) of masks whose attention has biases (B, heads, Q, h, w)."""
        queries = biases.shape[2]
        pooled = functional.adaptive_max_pool2d(biases.flatten(1, 2), features.shape[-2:])
        mask = build_attention_mask(pooled.reshape(*biases.shape[:3], -1))
        x = torch.cat((class_token.expand(-1, queries, -1), class_token, features.flatten(2).transpose(1, 2)), 1)
        for block in self.resblocks:
            x = block(x, mask)
        x = self.ln_post(x[:, :queries])
        return functional.normalize(x @ self.proj.to(x.dtype), dim=-1)


def build_attention_mask(biases: Tensor) -> Tensor:
    """What is added to scores (B, heads, Q + 1 + L, Q + 1 + L) for biases (B, heads, Q, L) of queries and patches.

    A query sees itself and patches, the class token and patches see each other.

    >>> build_attention_mask(torch.tensor([[[[7.0], [9.0]]]]))[0, 0].int().tolist()
    [[0, -100, -100, 7], [-100, 0, -100, 9], [-100, -100, 0, 0], [-100, -100, 0, 0]]
    """
    queries, patches = biases.shape[2:]
    mask = biases.new_zeros((*biases.shape[:2], queries + 1 + patches, queries + 1 + patches))
    mask[..., :queries] = HIDDEN_SCORE
    mask[..., :queries, queries] = HIDDEN_SCORE
    mask[..., :queries, queries + 1 :] = biases
    mask.diagonal(dim1=2, dim2=3)[..., :queries] = 0
    return mask


class TextClassifier(CLIP):
    """CLIP's text tower, its scale of logits, and a learnt vector for what is no object."""

    def __init__(self, clip: str) -> None:
        size = TEXT_SIZES[clip]
        super().__init__(None, size)
        self.bg_embed = nn.Parameter(size.output**-0.5 * torch.randn(1, size.output))
        # Checkpoints hold it; the tower makes its own.
        self.register_buffer("attn_mask", torch.full((size.context, size.context), -torch.inf).triu(1))

    def build_classifier(self, text: Tensor) -> Tensor:
        """Rows (C + 1, D), no object last, whose product with a unit vector is a logit, for vectors (C, D)."""
        rows = torch.cat((text.to(self.bg_embed.dtype), self.bg_embed))
        return self.logit_scale.exp() * functional.normalize(rows, dim=-1)


class _SideAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).reshape(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value)
        return self.proj(seen.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class _SideMLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(WIDTH, 4 * WIDTH)
        self.fc2 = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(functional.gelu(self.fc1(x)))  # type: ignore[no-any-return]


class _SideBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.attn = _SideAttention()
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.mlp = _SideMLP()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class _PatchProjection(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, WIDTH, PATCH, PATCH)

    def forward(self, images: Tensor) -> Tensor:
        return self.proj(images).flatten(2).transpose(1, 2)  # type: ignore[no-any-return]


class _SideTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, SIDE**2, WIDTH))
        self.patch_embed = _PatchProjection()
        self.blocks = nn.ModuleList(_SideBlock() for _ in range(BLOCKS))


class _ChannelNorm(nn.LayerNorm):
    """Layer normalisation over the channels of a map (B, C, h, w)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Fusion(nn.Module):
    """Adds a map of CLIP's to the patches of the side network."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.input_proj = nn.Sequential(_ChannelNorm(width, eps=1e-6), nn.Conv2d(width, WIDTH, 1))

    def forward(self, patches: Tensor, features: Tensor, grid: tuple[int, int]) -> Tensor:
        """Patches (B, h w, 240) of the grid (h, w) with features (B, width, h', w') of CLIP's own grid added."""
        added = functional.interpolate(self.input_proj(features), grid, mode="bilinear", align_corners=False)
        return patches + added.flatten(2).transpose(1, 2)


class SideAdapter(nn.Module):
    """A small transformer of queries and patches, fed with CLIP's maps before and after its first blocks."""

    def __init__(self, clip: ViTSize, *, released: bool = False) -> None:
        super().__init__()
        self.released = released
        self.query_embed = nn.Parameter(0.02 * torch.randn(1, QUERIES, WIDTH))
        self.query_pos_embed = nn.Parameter(0.02 * torch.randn(1, QUERIES, WIDTH))
        self.vit_model = _SideTransformer()
        self.fusion_layers = nn.ModuleDict({f"layer_{number}": Fusion(clip.width) for number in range(4)})
        self.mask_decoder = MaskDecoder(clip.width // 64)

    def forward(self, images: Tensor, taps: Sequence[Tensor], depths: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        """Mask logits (B, 100, h, w) and biases (B, heads, 100, h, w) after each block of `depths`."""
        x = self.vit_model.patch_embed(images)
        grid = (images.shape[2] // PATCH, images.shape[3] // PATCH)
        table: Tensor = self.vit_model.pos_embed
        if not (self.released and x.shape[1] == table.shape[1]):
            table = resize_positions(table[0], grid)[None]
        positions = torch.cat((self.query_pos_embed, table), 1).to(x.dtype)
        x = torch.cat((self.query_embed.to(x.dtype).expand(len(x), -1, -1), x), 1) + positions
        x = self._fuse(0, x, taps, grid)
        outputs = []
        for number, block in enumerate(self.vit_model.blocks, 1):
            x = self._fuse(number, block(x), taps, grid)
            if number in depths:
                patches = x[:, QUERIES:].transpose(1, 2).reshape(len(x), WIDTH, *grid)
                outputs.append(self.mask_decoder(x[:, :QUERIES], patches))
            if number < BLOCKS:
                x = x + positions
        return outputs

    def _fuse(self, number: int, x: Tensor, taps: Sequence[Tensor], grid: tuple[int, int]) -> Tensor:
        if number >= len(taps):
            return x
        patches = self.fusion_layers[f"layer_{number}"](x[:, QUERIES:], taps[number], grid)
        return torch.cat((x[:, :QUERIES], patches), 1)


class _Perceptron(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = functional.relu(layer(x))
        return self.layers[-1](x)  # type: ignore[no-any-return]


class MaskDecoder(nn.Module):
    """Masks and attention biases as inner products of vectors of queries and pixels."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads
        sizes = (WIDTH, HIDDEN, HIDDEN)
        self.query_mlp = _Perceptron(*(nn.Linear(inputs, HIDDEN) for inputs in sizes))
        self.pix_mlp = _Perceptron(*(nn.Conv2d(inputs, HIDDEN, 1) for inputs in sizes))
        outputs = (HIDDEN, HIDDEN, heads * HIDDEN)
        self.attn_mlp = _Perceptron(*(nn.Conv2d(*pair, 1) for pair in zip(sizes, outputs, strict=True)))
        self.bias_scaling = nn.Linear(1, 1)

    def forward(self, queries: Tensor, patches: Tensor) -> tuple[Tensor, Tensor]:
        """Mask logits (B, Q, h, w) and biases (B, heads, Q, h, w) of queries (B, Q, 240), patches (B, 240, h, w)."""
        query = self.query_mlp(queries)
        masks = torch.einsum("bqc,bchw->bqhw", query, self.pix_mlp(patches))
        attended = self.attn_mlp(patches).reshape(len(patches), self.heads, HIDDEN, *patches.shape[2:])
        biases = torch.einsum("bqc,bnchw->bnqhw", query, attended)
        return masks, self.bias_scaling(biases[..., None])[..., 0]
