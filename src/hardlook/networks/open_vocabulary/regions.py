"""Regions of an image classified by CLIP, the second step of OVSeg and SimSeg.

Liang et al., Open-Vocabulary Semantic Segmentation with Mask-adapted CLIP, CVPR 2023; Xu et al., A Simple Baseline for
Open-Vocabulary Semantic Segmentation with Pre-trained Vision-Language Model, ECCV 2022. Masks and their class logits
come from a network of proposals, which is no part of this file.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.open_vocabulary.clip_vit import VIT_SIZES, CLIPViT, ViTSize

MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)
"""CLIP's mean and standard deviation of red, green and blue, for values from 0 to 1."""
SCALE = 100.0
"""The factor of cosines in logits."""


class RegionClassifier(nn.Module):
    """CLIP on regions cut out of an image, mixed with the class scores of the network that proposed them.

    OVSeg has a mask prompt: learnt tokens in place of patches without a pixel of the region, in the first `prompts`
    layers. SimSeg has none (`prompts=0`), and gives CLIP less say in classes that the proposals were trained on.
    `threshold` makes masks of probabilities, `weight` is CLIP's share, an exponent. With `smooth` regions are made
    smaller with a filter, as CLIP's training images were; the released code takes single pixels.
    """

    def __init__(
        self,
        size: str | ViTSize = "ViT-B-16",
        *,
        prompts: int = 3,
        weight: float = 0.7,
        threshold: float = 0.4,
        smooth: bool = False,
    ) -> None:
        super().__init__()
        known = VIT_SIZES[size] if isinstance(size, str) else size
        self.weight, self.threshold, self.smooth = weight, threshold, smooth
        self.clip_adapter = _ClipAdapter(known, prompts)
        self.side = known.grid * known.patch

    def classify(self, regions: Tensor, masks: Tensor, text: Tensor) -> Tensor:
        """Logits (N, C + 1), no object last, of cut regions (N, 3, s, s), masks (N, 1, s, s), unit texts (C, D)."""
        adapter = self.clip_adapter
        vectors = functional.normalize(adapter.clip_model.visual(regions, masks), dim=-1)
        other = functional.normalize(adapter.non_object_embedding, dim=-1)
        return SCALE * vectors @ torch.cat((text.to(vectors.dtype), other.to(vectors.dtype))).T

    def segment(
        self, image: Tensor, mask_logits: Tensor, class_logits: Tensor, text: Tensor, trained: Tensor | None = None
    ) -> Tensor:
        """Scores (C, H, W) of an image (3, H, W) of values 0 to 255.

        Proposals are mask logits (Q, H, W) and class logits (Q, C + 1), no object last; texts are unit vectors
        (C, D). `trained` (C,) tells which classes the proposals were trained on, for SimSeg; None: they are all new.
        """
        masks = mask_logits.sigmoid()
        scores = self.score(image, masks, class_logits.softmax(1)[:, :-1], text, trained)
        return torch.einsum("qc,qhw->chw", scores, masks)

    def score(
        self,
        image: Tensor,
        masks: Tensor,
        proposed: Tensor,
        text: Tensor,
        trained: Tensor | None = None,
        counts: Sequence[int] = (),
        batch: int = 0,
    ) -> Tensor:
        """Scores (Q, C) of masks (Q, H, W), probabilities, of an image (3, H, W) of values 0 to 255.

        `proposed` (Q, C) are the proposals' probabilities. A class has `counts` rows of the texts (N, D), side by side,
        the best of which counts; one row each by default. CLIP sees at most `batch` regions at a time, 0 for all.
        """
        inside = masks > self.threshold
        # A query without a region has only the proposal's scores.
        seen = torch.ones_like(proposed)
        places = inside.flatten(1).any(1).nonzero()[:, 0]
        step = batch or max(1, len(places))
        for start in range(0, len(places), step):
            some = places[start : start + step]
            regions, cut, _ = cut_regions(
                image, masks[some], side=self.side, threshold=self.threshold, smooth=self.smooth
            )
            logits = self.classify(regions, cut, text)[:, :-1]
            if counts:
                logits = torch.stack([names.amax(1) for names in torch.split(logits, list(counts), 1)], 1)
            seen[some] = logits.softmax(1).to(seen.dtype)
        return mix_scores(proposed, seen, self.weight, trained)


class _ClipAdapter(nn.Module):
    def __init__(self, size: ViTSize, prompts: int) -> None:
        super().__init__()
        self.non_object_embedding = nn.Parameter(size.output**-0.5 * torch.randn(1, size.output))
        self.clip_model = _ImageTower(size, prompts)


class _ImageTower(nn.Module):
    def __init__(self, size: ViTSize, prompts: int) -> None:
        super().__init__()
        self.visual = PromptedViT(size, prompts)


class PromptedViT(CLIPViT):
    """CLIP's image tower with learnt tokens in place of patches outside a mask, in the first `prompts` layers."""

    def __init__(self, size: ViTSize, prompts: int = 3) -> None:
        super().__init__(size)
        self.prompts, self.patch = prompts, size.patch
        if prompts:
            self.mask_embedding = nn.Parameter(size.width**-0.5 * torch.randn(prompts, size.grid**2, size.width))

    def forward(self, images: Tensor, masks: Tensor | None = None) -> Tensor:
        """CLIP's vectors (B, output), not of unit length, of normalised images (B, 3, s, s), masks (B, 1, s, s)."""
        if masks is None or not self.prompts:
            return super().forward(images)
        # A patch counts as inside if any of its pixels is.
        inside = functional.max_pool2d((masks > 0).to(images.dtype), self.patch).flatten(2).transpose(1, 2)

        def prompt(patches: Tensor, depth: int) -> Tensor:
            weight = inside.to(patches.dtype)
            return patches * weight + self.mask_embedding[depth].to(patches.dtype) * (1 - weight)

        x, _ = self.embed(images, lambda patches: prompt(patches, 0))
        for depth, block in enumerate(self.transformer.resblocks, 1):
            x = block(x)
            if depth < self.prompts:
                x = torch.cat((x[:, :1], prompt(x[:, 1:], depth)), 1)
        return self.project(x[:, 0])


def cut_regions(
    image: Tensor, masks: Tensor, *, side: int, threshold: float, smooth: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalised regions (N, 3, side, side), their masks (N, 1, side, side), and which queries (Q,) bool have one.

    `image` (3, H, W) has values 0 to 255, `masks` (Q, H, W) are probabilities. A region is the tight box of the
    pixels above the threshold, others in it have CLIP's mean colour; it is stretched to a square, large ones through
    a filter if `smooth`.
    """
    inside = masks > threshold
    kept = inside.flatten(1).any(1)
    # As released: the colour is exact, mean and standard deviation are float32. In float64 the difference shows.
    colour = torch.tensor([255 * one for one in MEAN], dtype=image.dtype, device=image.device)[:, None, None]
    mean, std = ((255 * torch.tensor(one, device=image.device))[:, None, None].to(image.dtype) for one in (MEAN, STD))
    regions, cut = [], []
    for one in inside[kept]:
        rows, columns = one.any(1).nonzero()[:, 0], one.any(0).nonzero()[:, 0]
        box = (slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1))
        region, part = (torch.where(one[box], image[:, *box], colour) - mean) / std, one[box].to(image.dtype)
        size = (side, side)
        stretched = functional.interpolate(region[None], size, mode="bicubic", align_corners=False, antialias=smooth)
        regions.append(stretched)
        cut.append(functional.interpolate(part[None, None], size, mode="nearest"))
    if not regions:
        return image.new_zeros(0, 3, side, side), image.new_zeros(0, 1, side, side), kept
    return torch.cat(regions), torch.cat(cut), kept


def mix_scores(proposed: Tensor, seen: Tensor, weight: float, trained: Tensor | None = None) -> Tensor:
    """Geometric means (Q, C) of the proposals' probabilities and CLIP's, in which CLIP's have the share `weight`.

    In classes that are `trained` (C,) the shares are exchanged.

    >>> proposed, seen = torch.tensor([[0.25, 0.25]]), torch.ones(1, 2)
    >>> mix_scores(proposed, seen, 0.5)
    tensor([[0.5000, 0.5000]])
    >>> mix_scores(proposed, seen, 1.0, torch.tensor([False, True]))
    tensor([[1.0000, 0.2500]])
    """
    share = proposed.new_full((proposed.shape[1],), weight)
    if trained is not None:
        share = torch.where(trained.bool(), 1 - share, share)
    return proposed ** (1 - share) * seen**share
