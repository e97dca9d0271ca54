"""CAT-Seg. Cho et al., CAT-Seg: Cost Aggregation for Open-Vocabulary Semantic Segmentation, CVPR 2024."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.open_vocabulary.clip_text import CLIP, TEXT_SIZES
from hardlook.networks.open_vocabulary.clip_vit import VIT_SIZES, BlockList, CLIPViT, normalise, pad_to_multiple

GRID, WINDOW, WIDTH, HEADS = 24, 12, 128, 4
CLASSES = 256
"""Classes that are compared with each other: fewer are filled up with a learnt one, more are cut to the likeliest."""
GUIDANCE = (256, 128)
"""Channels of the two maps of CLIP's that guide the decoder."""
CHUNK = 64
"""Class maps that the decoder works on at a time where no gradient is asked for, to bound memory."""
SQUARE, TILE, STRIDE = 640, 384, 256
"""Sides of the stretched image and of its windows, and the step from one to the next, in pixels."""
HIDDEN_SCORE, LEFT_OUT = -100.0, -100.0
"""What hides a token from attention, and the logit of a class that is cut."""


@dataclass(frozen=True)
class CATSegSize:
    """CLIP's size by name, and the blocks of its image tower that guide the decoder."""

    clip: str
    taps: tuple[int, int]


CAT_SEG_SIZES: Mapping[str, CATSegSize] = {
    "tiny": CATSegSize("tiny", (1, 2)),
    "catseg_vit_b_16": CATSegSize("ViT-B-16", (4, 8)),
    "catseg_vit_l_14_336": CATSegSize("ViT-L-14-336", (8, 16)),
}


class CATSeg(nn.Module):
    """Cosines of CLIP's vectors of patches and of texts, refined over places and over classes, then upsampled.

    `pooling` is the side of the squares whose mean is compared between classes: 2 in training, 1 in the released
    evaluation. Scores are independent sigmoids: they have no sum, and there is no background.

    An image is stretched to a square of 24 x 24 patches. `released` first pads it to multiples of 32 pixels and
    leaves the padding in the result, so that scores are shifted towards the upper left corner; and it counts pixels
    without label as examples of no class in the loss. Here the image is stretched as it is and they are left out.
    """

    def __init__(self, size: str = "catseg_vit_b_16", *, pooling: int = 1, released: bool = False) -> None:
        super().__init__()
        self.size, self.pooling, self.released = CAT_SEG_SIZES[size], pooling, released
        clip = VIT_SIZES[self.size.clip]
        self.side = GRID * clip.patch
        self.sem_seg_head = _Head(self.size.clip)
        self.upsample1 = nn.ConvTranspose2d(clip.width, GUIDANCE[0], 2, 2)
        self.upsample2 = nn.ConvTranspose2d(clip.width, GUIDANCE[1], 4, 4)

    @property
    def clip(self) -> TwoTowers:
        """Both towers of CLIP, fine-tuned: vectors of texts must come from this one."""
        return self.sem_seg_head.predictor.clip_model

    def forward(self, images: Tensor, text: Tensor) -> Tensor:
        """Logits (B, C, 96, 96) of normalised images (B, 3, H, W), whatever their size, and texts (C, D).

        Of more than 256 classes those with the largest cosine anywhere in the image take part, others have -100.
        """
        images = functional.interpolate(images, (self.side, self.side), mode="bilinear", align_corners=False)
        dense, outputs, grid = self.clip.visual.forward_dense(images)
        features = dense[:, 1:].transpose(1, 2).reshape(len(dense), -1, *grid)
        guides = [
            up(outputs[tap - 1][:, 1:].transpose(1, 2).reshape(len(dense), -1, *grid))
            for up, tap in zip((self.upsample1, self.upsample2), self.size.taps, strict=True)
        ]
        predictor = self.sem_seg_head.predictor
        return predictor.transformer(features, text.to(features.dtype), guides, self.pooling)  # type: ignore[no-any-return]

    def segment(self, images: Tensor, text: Tensor, size: tuple[int, int] | None = None) -> Tensor:
        """Scores (B, C, H, W) at `size`, that of the images if None, of images (B, 3, h, w) of values 0 to 255."""
        seen = (images.shape[-2], images.shape[-1])
        normalised = normalise(images)
        scores = self(pad_to_multiple(normalised) if self.released else normalised, text).sigmoid()
        if self.released:
            # Meant to take the padding away, but the map is smaller than the image, so that it cuts small ones.
            scores = scores[..., : seen[0], : seen[1]]
        return functional.interpolate(scores, size or seen, mode="bilinear", align_corners=False)

    def segment_windows(self, images: Tensor, text: Tensor, size: tuple[int, int] | None = None) -> Tensor:
        """Like `segment`, by the released evaluation: the mean of overlapping windows and of the whole image.

        Images are stretched to 640 x 640 pixels, whatever their shape, which four windows of 384 x 384 cover.
        """
        views = [cut_stretched(image) for image in images]
        # One image after the other, the windows of each in order.
        logits = self(torch.cat([one.pixels for one in views]), text)
        parts = logits.split([len(one.pixels) for one in views])
        wanted = size or (images.shape[-2], images.shape[-1])
        return torch.stack([one.merge(part, wanted) for one, part in zip(views, parts, strict=True)])

    def loss(self, logits: Tensor, labels: Tensor, ignored: int = 255) -> Tensor:
        """The mean binary cross-entropy of logits (B, C, h, w) at the size of labels (B, H, W).

        A pixel whose label is `ignored` is left out; if `released` it counts as one of no class.
        """
        logits = functional.interpolate(logits, labels.shape[-2:], mode="bilinear", align_corners=False)
        known = labels != ignored
        targets = functional.one_hot(labels.where(known, torch.zeros_like(labels)).long(), logits.shape[1])
        targets = (targets * known[..., None]).movedim(-1, 1).to(logits.dtype)
        losses = functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        return losses.mean() if self.released else losses.movedim(1, -1)[known].mean()


@dataclass(frozen=True)
class Views:
    """Windows of an image and, last, the whole of it: `pixels` (N, 3, 384, 384), normalised.

    Windows have their upper left `corners` in a canvas of `size` (height, width), of which `inner` is the image, and
    so is `whole` of the last view.
    """

    pixels: Tensor
    corners: tuple[tuple[int, int], ...]
    size: tuple[int, int]
    inner: tuple[int, int]
    whole: tuple[int, int]

    def merge(self, logits: Tensor, size: tuple[int, int]) -> Tensor:
        """Scores (C, *size): the mean of those of the windows, averaged where they overlap, and of the whole.

        `logits` (N, C, h, w) are those of the views.
        """
        scores = functional.interpolate(logits, (TILE, TILE), mode="bilinear", align_corners=False).sigmoid()
        total, count = scores.new_zeros(logits.shape[1], *self.size), scores.new_zeros(self.size)
        for (top, left), one in zip(self.corners, scores, strict=False):
            total[..., top : top + TILE, left : left + TILE] += one
            count[top : top + TILE, left : left + TILE] += 1
        height, width = self.inner
        whole = scores[-1:, :, : self.whole[0], : self.whole[1]]
        whole = functional.interpolate(whole, self.inner, mode="bilinear", align_corners=False)
        mean = ((total / count)[None, :, :height, :width] + whole) / 2
        return functional.interpolate(mean, size, mode="bilinear", align_corners=False)[0]

    def label(self, logits: Tensor, size: tuple[int, int], most: int = 16) -> Tensor:
        """The class (*size) with the largest score; `most` classes are merged at a time, to bound memory."""
        best = torch.full(size, -torch.inf, device=logits.device)
        chosen = torch.zeros(size, dtype=torch.int64, device=logits.device)
        for start in range(0, logits.shape[1], most):
            highest, place = self.merge(logits[:, start : start + most].float(), size).max(0)
            chosen = torch.where(highest > best, place + start, chosen)
            best = torch.maximum(best, highest)
        return chosen


def cut_stretched(image: Tensor) -> Views:
    """Views of an image (3, h, w) of values 0 to 255 by the released evaluation: stretched to 640 x 640 pixels.

    Four windows cover it; the whole image is stretched to 384 x 384.
    """
    size = (SQUARE, SQUARE)
    stretched = functional.interpolate(image[None], size, mode="bilinear", align_corners=False)
    whole = functional.interpolate(image[None], (TILE, TILE), mode="bilinear", align_corners=False)
    return _make_views(normalise(stretched), normalise(whole), size, (TILE, TILE))


def cut_undistorted(image: Tensor) -> Views:
    """Views of an image (3, h, w) of values 0 to 255 whose sides keep their ratio: windows of the image as it is.

    The whole image is made so small that its longer side has 384 pixels. CLIP's mean colour fills what is no image.
    """
    height, width = image.shape[-2:]
    scale = TILE / max(height, width)
    small = (max(1, round(height * scale)), max(1, round(width * scale)))
    normalised = normalise(image[None])
    whole = functional.interpolate(normalised, small, mode="bilinear", align_corners=False, antialias=scale < 1)
    return _make_views(_fill(normalised), _fill(whole), (height, width), small)


def _fill(images: Tensor) -> Tensor:
    """Images (1, 3, h, w) with zeros below and to the right, where they are smaller than a window."""
    height, width = images.shape[-2:]
    return functional.pad(images, (0, max(0, TILE - width), 0, max(0, TILE - height)))


def _make_views(canvas: Tensor, whole: Tensor, inner: tuple[int, int], part: tuple[int, int]) -> Views:
    height, width = canvas.shape[-2:]
    corners = tuple((top, left) for top in list_starts(height) for left in list_starts(width))
    windows = [canvas[..., top : top + TILE, left : left + TILE] for top, left in corners]
    return Views(torch.cat([*windows, whole]), corners, (height, width), inner, part)


def list_starts(length: int) -> list[int]:
    """Where windows start along a side of that many pixels, at least 384; the last ends where the side does.

    >>> list_starts(384), list_starts(640), list_starts(853)
    ([0], [0, 256], [0, 256, 469])
    """
    starts = list(range(0, length - TILE + 1, STRIDE))
    return starts if starts[-1] + TILE == length else [*starts, length - TILE]


class _Head(nn.Module):
    def __init__(self, clip: str) -> None:
        super().__init__()
        self.predictor = _Predictor(clip)


class _Predictor(nn.Module):
    def __init__(self, clip: str) -> None:
        super().__init__()
        self.clip_model = TwoTowers(clip)
        self.transformer = Aggregator(VIT_SIZES[clip].output)


class TwoTowers(CLIP):
    """Both towers of CLIP with the weights of queries, keys and values apart."""

    visual: CLIPViT

    def __init__(self, clip: str) -> None:
        text = TEXT_SIZES[clip]
        super().__init__(CLIPViT(VIT_SIZES[clip], apart=True), text)
        self.add_module("transformer", BlockList(text.width, text.layers, apart=True, openai=True))


class Aggregator(nn.Module):
    """Refines a map of cosines for each class and upsamples it four times."""

    def __init__(self, features: int, layers: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_AggregationLayer() for _ in range(layers))
        self.conv1 = nn.Conv2d(1, WIDTH, 7, padding=3)
        self.guidance_projection = nn.Sequential(nn.Conv2d(features, WIDTH, 3, padding=1), nn.ReLU())
        self.text_guidance_projection = nn.Sequential(nn.Linear(features, WIDTH), nn.ReLU())
        self.decoder_guidance_projection = nn.ModuleList(
            nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU())
            for inputs, outputs in zip(GUIDANCE, (32, 16), strict=True)
        )
        self.decoder1 = _Upsampling(WIDTH, 64, 32)
        self.decoder2 = _Upsampling(64, 32, 16)
        self.head = nn.Conv2d(32, 1, 3, padding=1)

    def forward(self, features: Tensor, text: Tensor, guides: Sequence[Tensor], pooling: int) -> Tensor:
        """Logits (B, C, 4 h, 4 w) of features (B, D, h, w), texts (C, D) and guides at 2 and 4 times (h, w)."""
        batch, classes = len(features), len(text)
        texts = functional.normalize(text, dim=-1).expand(batch, -1, -1)
        cost = torch.einsum("bdhw,btd->bthw", functional.normalize(features, dim=1), texts)
        kept = None
        if classes > CLASSES:
            kept = choose_classes(cost)
            rows = torch.arange(batch, device=kept.device)[:, None]
            cost, texts = cost[rows, kept], texts[rows, kept]
        x = self.conv1(cost.flatten(0, 1)[:, None])
        x = x.reshape(batch, -1, *x.shape[1:]).transpose(1, 2)
        place = self.guidance_projection(features)
        word = self.text_guidance_projection(texts)
        for layer in self.layers:
            x = layer(x, place, word, pooling)
        guides = [project(one) for project, one in zip(self.decoder_guidance_projection, guides, strict=True)]
        logits = self.decode(x, guides)
        if kept is None:
            return logits
        full = logits.new_full((batch, classes, *logits.shape[2:]), LEFT_OUT)
        return full.scatter(1, kept[:, :, None, None].expand_as(logits), logits)

    def decode(self, x: Tensor, guides: Sequence[Tensor]) -> Tensor:
        """Logits (B, C, 4 h, 4 w) of class maps (B, 128, C, h, w)."""
        batch, _, classes = x.shape[:3]
        maps = x.transpose(1, 2).flatten(0, 1)
        images = torch.arange(batch, device=x.device).repeat_interleave(classes)
        chunk = len(maps) if torch.is_grad_enabled() else CHUNK
        logits = []
        for start in range(0, len(maps), chunk):
            part, which = maps[start : start + chunk], images[start : start + chunk]
            finer = self.decoder2(self.decoder1(part, guides[0][which]), guides[1][which])
            logits.append(self.head(finer)[:, 0])
        together = torch.cat(logits)
        return together.reshape(batch, classes, *together.shape[1:])


def choose_classes(cost: Tensor, number: int = CLASSES) -> Tensor:
    """Indices (B, number) of the classes whose cosines (B, C, h, w) have the largest maxima, in no order."""
    return cost.flatten(2).amax(2).topk(number, 1, sorted=False)[1]


class _AggregationLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.swin_block = SpatialAggregation()
        self.attention = ClassAggregation()

    def forward(self, x: Tensor, place: Tensor, word: Tensor, pooling: int) -> Tensor:
        return self.attention(self.swin_block(x, place), word, pooling)  # type: ignore[no-any-return]


class SpatialAggregation(nn.Module):
    """Two blocks of attention within windows of each class map; the second has its windows shifted by half."""

    def __init__(self) -> None:
        super().__init__()
        self.block_1 = WindowBlock(0)
        self.block_2 = WindowBlock(WINDOW // 2)
        self.guidance_norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, place: Tensor) -> Tensor:
        """Class maps (B, 128, C, h, w), guided by what is where in the image (B, 128, h, w)."""
        batch, _, classes, height, width = x.shape
        guide = self.guidance_norm(place.permute(0, 2, 3, 1)).repeat_interleave(classes, 0)
        tokens = x.permute(0, 2, 3, 4, 1).reshape(batch * classes, height * width, WIDTH)
        for block in (self.block_1, self.block_2):
            tokens = block(tokens, guide)
        return tokens.reshape(batch, classes, height, width, WIDTH).permute(0, 4, 1, 2, 3)


class _WindowAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(2 * WIDTH, WIDTH)
        self.k = nn.Linear(2 * WIDTH, WIDTH)
        self.v = nn.Linear(WIDTH, WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Tokens (B, windows, N, 256), guidance in the last half of the channels; `mask` (windows, N, N) is added."""
        split = (*x.shape[:3], HEADS, -1)
        query, key, value = (
            project(given).reshape(split).transpose(2, 3)
            for project, given in ((self.q, x), (self.k, x), (self.v, x[..., :WIDTH]))
        )
        added = None if mask is None else mask[:, None].to(query.dtype)
        seen = functional.scaled_dot_product_attention(query, key, value, added)
        return self.proj(seen.transpose(2, 3).flatten(3))  # type: ignore[no-any-return]


class _MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(WIDTH, 4 * WIDTH)
        self.fc2 = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(functional.gelu(self.fc1(x)))  # type: ignore[no-any-return]


class WindowBlock(nn.Module):
    """Attention within windows of 12 x 12 places, then a perceptron."""

    attn_mask: Tensor | None

    def __init__(self, shift: int) -> None:
        super().__init__()
        self.shift = shift
        # Checkpoints hold it.
        self.register_buffer("attn_mask", build_window_mask(GRID, shift) if shift else None)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attn = _WindowAttention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = _MLP()

    def forward(self, x: Tensor, guide: Tensor) -> Tensor:
        """Tokens (B, 24 * 24, 128) with guidance (B, 24, 24, 128)."""
        joined = torch.cat((self.norm1(x).reshape(guide.shape), guide.to(x.dtype)), 3)
        shifted = joined.roll((-self.shift, -self.shift), (1, 2))
        seen = merge_windows(self.attn(split_windows(shifted), self.attn_mask))
        x = x + seen.roll((self.shift, self.shift), (1, 2)).reshape(x.shape)
        return x + self.mlp(self.norm2(x))  # type: ignore[no-any-return]


def split_windows(x: Tensor) -> Tensor:
    """Windows (B, windows, 144, C) of maps (B, 24, 24, C), in row order, as are the places of each."""
    batch, _, _, channels = x.shape
    tiles = x.reshape(batch, GRID // WINDOW, WINDOW, GRID // WINDOW, WINDOW, channels).transpose(2, 3)
    return tiles.reshape(batch, -1, WINDOW * WINDOW, channels)


def merge_windows(x: Tensor) -> Tensor:
    """Maps (B, 24, 24, C) of windows (B, windows, 144, C)."""
    batch, channels = len(x), x.shape[-1]
    tiles = x.reshape(batch, GRID // WINDOW, GRID // WINDOW, WINDOW, WINDOW, channels).transpose(2, 3)
    return tiles.reshape(batch, GRID, GRID, channels)


def build_window_mask(side: int, shift: int) -> Tensor:
    """0 or -100 (windows, 144, 144): -100 between places that only lie in one window because the map was rolled."""
    places = torch.arange(side)
    part = (places >= side - WINDOW).int() + (places >= side - shift).int()
    parts = split_windows((3 * part[:, None] + part)[None, ..., None])[0, :, :, 0]
    return (parts[:, None] != parts[:, :, None]).float() * HIDDEN_SCORE


class _LinearAttention(nn.Module):
    """Attention whose cost grows with the number of tokens, not with its square."""

    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(2 * WIDTH, WIDTH)
        self.k = nn.Linear(2 * WIDTH, WIDTH)
        self.v = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, word: Tensor, filler: tuple[Tensor, Tensor], missing: int) -> Tensor:
        """Tokens (N, C, 128), one for each class, with guidance (N, C, 128).

        They also attend to `missing` copies of a filler, a token with guidance, each (1, 1, 128). All copies have the
        same key and value, which are therefore computed once.
        """
        query, (key, value) = self._split(self.q(torch.cat((x, word), 2))), self._read(x, word)
        query = functional.elu(query) + 1
        products, total = torch.einsum("nshd,nshv->nhdv", key, value), key.sum(1)
        if missing:
            key, value = (one[0, 0] for one in self._read(*filler))
            products, total = products + missing * torch.einsum("hd,hv->hdv", key, value), total + missing * key
        found = torch.einsum("nthd,nhdv->nthv", query, products)
        return (found / (torch.einsum("nthd,nhd->nth", query, total)[..., None] + 1e-6)).flatten(2)

    def _read(self, x: Tensor, word: Tensor) -> tuple[Tensor, Tensor]:
        return functional.elu(self._split(self.k(torch.cat((x, word), 2)))) + 1, self._split(self.v(x))

    def _split(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], HEADS, -1)


class ClassAggregation(nn.Module):
    """Attention between the classes at each place, filled up to 256 with a learnt one."""

    def __init__(self) -> None:
        super().__init__()
        self.padding_tokens = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.padding_guidance = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.attention = _LinearAttention()
        self.MLP = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
        self.norm1 = nn.LayerNorm(WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, word: Tensor, pooling: int) -> Tensor:
        """Class maps (B, 128, C, h, w), guided by texts (B, C, 128), compared at squares of side `pooling`.

        What is found, which has its input added, is added to the input.
        """
        batch, _, classes, height, width = x.shape
        pooled = functional.avg_pool2d(x.flatten(0, 1), pooling) if pooling > 1 else x.flatten(0, 1)
        grid = (pooled.shape[2], pooled.shape[3])
        cells = grid[0] * grid[1]
        tokens = pooled.reshape(batch, WIDTH, classes, cells).permute(0, 3, 2, 1).flatten(0, 1)
        guide = word.repeat_interleave(cells, 0)
        filler = (self.norm1(self.padding_tokens), self.padding_guidance.to(guide.dtype))
        tokens = tokens + self.attention(self.norm1(tokens), guide, filler, max(0, CLASSES - classes))
        tokens = tokens + self.MLP(self.norm2(tokens))
        found = tokens.reshape(batch, cells, classes, WIDTH).permute(0, 3, 2, 1).reshape(batch, -1, *grid)
        if grid != (height, width):
            found = functional.interpolate(found, (height, width), mode="bilinear", align_corners=True)
        return x + found.reshape(x.shape)  # type: ignore[no-any-return]


class _Convolutions(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for channels in (inputs, outputs):
            layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.GroupNorm(outputs // 16, outputs)]
            layers.append(nn.ReLU())
        self.double_conv = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.double_conv(x)  # type: ignore[no-any-return]


class _Upsampling(nn.Module):
    def __init__(self, inputs: int, outputs: int, guidance: int) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, inputs - guidance, 2, 2)
        self.conv = _Convolutions(inputs, outputs)

    def forward(self, x: Tensor, guide: Tensor) -> Tensor:
        """Class maps (N, channels, 2 h, 2 w) of (N, inputs, h, w), with guidance (N, guidance, 2 h, 2 w) joined."""
        return self.conv(torch.cat((self.up(x), guide), 1))  # type: ignore[no-any-return]
