"""FC-CLIP: one frozen convolutional CLIP draws masks and names them, with words it was trained on and with others.

Yu et al., Convolutions Die Hard: Open-Vocabulary Segmentation with Single Frozen Convolutional CLIP, NeurIPS 2023.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.open_vocabulary.clip_convnext import CONVNEXT_SIZES, CLIPConvNeXt
from hardlook.networks.open_vocabulary.clip_resnet import RESNET_SIZES, CLIPResNet
from hardlook.networks.open_vocabulary.clip_text import CLIP, TEXT_SIZES
from hardlook.networks.open_vocabulary.fc_clip_decoders import MaskDecoder, PixelDecoder, compare

MEAN = (122.7709383, 116.7460125, 104.09373615)
DEVIATION = (68.5005327, 66.6321579, 70.32316305)
STRIDE = 32
SEEN_WEIGHT, UNSEEN_WEIGHT = 0.4, 0.8
TRAINED_CLASSES = 133
"""Classes of COCO's panoptic training data, of which the published files keep weights of the loss."""

Visual = CLIPConvNeXt | CLIPResNet
Size = tuple[int, int]


@dataclass(frozen=True)
class TextClassifier:
    """Unit rows (names, D) of text, the names of a class side by side, `counts` of them; which classes were seen."""

    rows: Tensor
    counts: tuple[int, ...]
    seen: tuple[bool, ...]


@dataclass(frozen=True)
class Prediction:
    """What the network says of a batch: (B, Q, classes + 1) with void last, and masks (B, Q, h, w) at stride 4.

    `trained` are the logits of the trained classifier, `frozen` those of CLIP, `probabilities` the final ones, and
    `log_probabilities` the logarithms of these plus 1e-8, as released. `masks` are logits.
    """

    trained: Tensor
    frozen: Tensor
    probabilities: Tensor
    log_probabilities: Tensor
    masks: Tensor


class _Backbone(nn.Module):
    def __init__(self, clip_model: CLIP) -> None:
        super().__init__()
        self.clip_model = clip_model


class _Head(nn.Module):
    def __init__(self, visual: Visual, queries: int, encoder_layers: int, decoder_layers: int) -> None:
        super().__init__()
        self.pixel_decoder = PixelDecoder(visual.channels, layers=encoder_layers)
        self.predictor = MaskDecoder(visual.output, queries=queries, layers=decoder_layers)


class _Criterion(nn.Module):
    empty_weight: Tensor

    def __init__(self) -> None:
        super().__init__()
        weights = torch.ones(TRAINED_CLASSES + 1)
        weights[-1] = 0.1
        self.register_buffer("empty_weight", weights)


class FCCLIP(nn.Module):
    """Masks of queries, named by a trained classifier and by the frozen CLIP, whose scores are mixed geometrically.

    The mean of CLIP's features over an empty mask is no evidence, so the trained classifier alone names such a mask.
    With `released` a ConvNeXt takes the zero vector for its mean and goes on, as the published code does.
    """

    def __init__(
        self,
        clip_model: CLIP,
        *,
        queries: int = 250,
        encoder_layers: int = 6,
        decoder_layers: int = 9,
        released: bool = False,
    ) -> None:
        super().__init__()
        visual = clip_model.visual
        if not isinstance(visual, CLIPConvNeXt | CLIPResNet):
            raise TypeError("FC-CLIP needs a convolutional CLIP")
        self.backbone = _Backbone(clip_model)
        self.sem_seg_head = _Head(visual, queries, encoder_layers, decoder_layers)
        self.criterion = _Criterion()
        self.void_embedding = nn.Embedding(1, visual.output)
        self.released = released

    @classmethod
    def build(cls, clip: str = "convnext_large_d_320", *, text: bool = True, released: bool = False) -> Self:
        """The published network on the CLIP of that name, with or without its text tower."""
        visual = CLIPConvNeXt(CONVNEXT_SIZES[clip]) if clip in CONVNEXT_SIZES else CLIPResNet(RESNET_SIZES[clip])
        return cls(CLIP(visual, TEXT_SIZES[clip] if text else None), released=released)

    @property
    def visual(self) -> Visual:
        """The image side of CLIP."""
        return self.backbone.clip_model.visual  # type: ignore[return-value]

    def add_void(self, rows: Tensor) -> Tensor:
        """Rows of text (names, D) with the learnt void below them."""
        void = functional.normalize(self.void_embedding.weight, dim=-1)
        return torch.cat([rows.to(void.dtype), void])

    def forward(self, images: Tensor, text: TextClassifier) -> Prediction:
        """The prediction for images (B, 3, H, W) as `prepare` makes them."""
        maps = self.visual(images)
        levels, mask_features = self.sem_seg_head.pixel_decoder(maps)
        rows = self.add_void(text.rows)
        trained, masks = self.sem_seg_head.predictor(levels, mask_features, rows, text.counts)
        regions = find_regions(masks, maps["res5"])
        vectors = self.visual.embed_regions(maps["res5"], regions)
        frozen = compare(vectors, rows, text.counts, self.backbone.clip_model.logit_scale)
        exact = torch.promote_types(trained.dtype, torch.float32)
        probabilities = mix_scores(trained.to(exact), frozen.to(exact), text.seen, valid=self._find_valid(regions))
        return Prediction(trained, frozen, probabilities, torch.log(probabilities + 1e-8), masks)

    def _find_valid(self, regions: Tensor) -> Tensor:
        """(B, Q) bool: whether CLIP has a say in a region."""
        valid = regions.flatten(2).any(2)
        return torch.ones_like(valid) if self.released and isinstance(self.visual, CLIPConvNeXt) else valid


def prepare(images: Sequence[Tensor], dtype: torch.dtype = torch.float32) -> Tensor:
    """RGB images (3, H, W) of 0 to 255, normalised, then padded with zeros below and to the right: (B, 3, H', W').

    H' and W' are the largest height and width, rounded up to a multiple of 32. The padding has an effect on what is
    seen at the edge, so images of one batch should round up to the same size.
    """
    height, width = (-(-max(image.shape[axis] for image in images) // STRIDE) * STRIDE for axis in (1, 2))
    device = images[0].device
    # Constants are float32 in any precision, as released: their rounding shows in float64.
    mean, deviation = (torch.tensor(one, device=device)[:, None, None].to(dtype) for one in (MEAN, DEVIATION))
    padded = torch.zeros(len(images), 3, height, width, dtype=dtype, device=device)
    for target, image in zip(padded, images, strict=True):
        target[:, : image.shape[1], : image.shape[2]] = (image.to(dtype) - mean) / deviation
    return padded


def find_regions(masks: Tensor, features: Tensor) -> Tensor:
    """(B, Q, h, w) bool: masks (B, Q, H, W), logits, at the size of CLIP's last map (B, C, h, w)."""
    return functional.interpolate(masks, features.shape[2:], mode="bilinear", align_corners=False) > 0


def mix_scores(
    trained: Tensor,
    frozen: Tensor,
    seen: Sequence[bool],
    *,
    valid: Tensor | None = None,
    weights: tuple[float, float] = (SEEN_WEIGHT, UNSEEN_WEIGHT),
) -> Tensor:
    """Probabilities (B, Q, classes + 1) from logits of both classifiers, all with void last.

    CLIP has the first of `weights` for classes that were seen in training, the second for others, and none where not
    `valid` (B, Q). The weighted geometric means sum to what the trained classifier leaves of void. Logarithms are
    added, so that a probability too small for a number leads to no NaN.

    >>> logits = torch.log(torch.tensor([[[0.5, 0.25, 0.25]]]))
    >>> mix_scores(logits, torch.zeros(1, 1, 3), [True, False], weights=(1.0, 1.0))
    tensor([[[0.3750, 0.3750, 0.2500]]])
    """
    share = trained.new_tensor([weights[0] if one else weights[1] for one in seen])
    if valid is not None:
        share = share * valid[:, :, None]
    known, asked = trained[..., :-1].log_softmax(-1), frozen[..., :-1].log_softmax(-1)
    mixed = ((1 - share) * known + share * asked).softmax(-1)
    void = trained.softmax(-1)[..., -1:]
    return torch.cat([mixed * (1 - void), void], -1)


def resize_masks(masks: Tensor, padded: Size, inner: Size, output: Size) -> Tensor:
    """Masks (Q, h, w) at the size of the padded input, without its padding, at the size of the output."""
    large = functional.interpolate(masks[None], padded, mode="bilinear", align_corners=False)
    return fit_output(large[0], inner, output)


def fit_output(maps: Tensor, inner: Size, output: Size) -> Tensor:
    """Maps (N, H, W) of a padded input without its padding, (N, *output)."""
    cropped = maps[None, :, : inner[0], : inner[1]]
    return functional.interpolate(cropped, output, mode="bilinear", align_corners=False)[0]


def segment_semantic(log_probabilities: Tensor, masks: Tensor) -> Tensor:
    """Scores (classes, H, W) from log-probabilities (Q, classes + 1), void last, and logits of masks (Q, H, W)."""
    return torch.einsum("qc,qhw->chw", log_probabilities.softmax(-1)[:, :-1], masks.sigmoid())


@dataclass(frozen=True)
class FoundInstances:
    """Scores, queries, classes (N,) and masks (N, H, W) bool, the highest score first."""

    scores: Tensor
    queries: Tensor
    classes: Tensor
    masks: Tensor


def segment_instances(
    log_probabilities: Tensor,
    masks: Tensor,
    things: Collection[int] | None = None,
    *,
    limit: int = 100,
    released: bool = False,
) -> FoundInstances:
    """The `limit` likeliest pairs of a query and a class, with scores times the mean of the mask's probabilities.

    Only of `things`, or of all classes if None. With `released` the limit is put before other classes are left out, so
    that there may be fewer.
    """
    probabilities = log_probabilities.softmax(-1)[:, :-1]
    count = probabilities.shape[1]
    wanted = torch.ones(count, dtype=torch.bool, device=masks.device)
    if things is not None:
        wanted = torch.zeros_like(wanted)
        wanted[list(things)] = True
    if not released:
        probabilities = probabilities.masked_fill(~wanted, -1.0)
    found, places = probabilities.flatten().topk(min(limit, probabilities.numel()))
    kept = wanted[places % count]
    found, places = found[kept], places[kept]
    queries, classes = places // count, places % count
    shown = masks > 0
    inside = (masks.sigmoid() * shown).sum((1, 2)) / (shown.sum((1, 2)) + 1e-6)
    scores, order = (found * inside[queries]).sort(descending=True, stable=True)
    return FoundInstances(scores, queries[order], classes[order], shown[queries[order]])


@dataclass(frozen=True)
class Segment:
    """A segment of a panoptic map: its number in the map, its class, whether it is a thing."""

    number: int
    label: int
    thing: bool


def segment_panoptic(
    log_probabilities: Tensor,
    masks: Tensor,
    things: Collection[int],
    *,
    least_score: float = 0.0,
    least_overlap: float = 0.8,
) -> tuple[Tensor, list[Segment]]:
    """A map (H, W) int32 of segments' numbers, 0 for none, and the segments, in the order of queries.

    A pixel goes to the query of the highest score times mask. A query is kept if it won `least_overlap` of the pixels
    of its mask; it then has those of them that it won. Stuff of one class is one segment.
    """
    scores, labels = log_probabilities.softmax(-1).max(-1)
    kept = (labels != log_probabilities.shape[1] - 1) & (scores > least_score)
    numbers = torch.zeros(masks.shape[1:], dtype=torch.int32, device=masks.device)
    segments: list[Segment] = []
    if not kept.any():
        return numbers, segments
    scores, labels, soft = scores[kept], labels[kept], masks[kept].sigmoid()
    winners = (scores[:, None, None] * soft).argmax(0)
    won = torch.bincount(winners.flatten(), minlength=len(scores)).tolist()
    areas = (soft >= 0.5).sum((1, 2)).tolist()
    stuff: dict[int, int] = {}
    for query, label in enumerate(labels.tolist()):
        if not won[query] or not areas[query] or won[query] / areas[query] < least_overlap:
            continue
        pixels = (winners == query) & (soft[query] >= 0.5)
        if not pixels.any():
            continue
        thing = label in things
        if not thing and label in stuff:
            numbers[pixels] = stuff[label]
            continue
        segments.append(Segment(len(segments) + 1, label, thing))
        numbers[pixels] = len(segments)
        if not thing:
            stuff[label] = len(segments)
    return numbers, segments
