"""The family `zero-shot`: any encoder of images and texts as a segmenter of free words.

`zero-shot:hf:openai/clip-vit-base-patch16` is a semantic segmenter in MaskCLIP's way: each patch has the label whose
text is most similar to it (Zhou et al., "Extract free dense labels from CLIP", ECCV 2022). An encoder that shows no
patches is asked for windows that slide over the image instead. With `proposals` it is an instance segmenter: masks of
another model, each named by the encoder as it sees the mask's crop.

`maskclip` is the first of these under a name of its own, with the encoder as an argument.

>>> list_windows(10, 4), list_windows(3, 4)
([0, 2, 4, 6], [0])
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import HardlookError, ModelError, OptionError
from hardlook.fingerprints import hash_sources, hash_value
from hardlook.models.families import Family
from hardlook.models.families.hub_folders import list_cached_models
from hardlook.models.families.words import TEMPLATES, read_templates, read_words
from hardlook.models.identity import sources_of
from hardlook.models.named_model import NamedModel, OuterModel, build_inner
from hardlook.models.open_vocabulary.proposals import INSTANCES, PANOPTIC, PROMPTABLE, build_proposer, propose
from hardlook.models.registry import find, list_models
from hardlook.models.roles import Image, Instances, LabelMap
from hardlook.models.wrapping.detections import find_boxes
from hardlook.models.wrapping.outputs import softmax

Surrounding = Literal["grey", "image"]

GREY = (124, 116, 104)
"""The mean colour of CLIP's training images, which fills what is not of a mask."""

LOGIT_SCALE = 100.0
"""What CLIP multiplies cosines by before the softmax; for encoders that do not say theirs."""


class ZeroShotSegmenter(OuterModel):
    """A segmenter whose `labels` are any words; `encoder` names and shows the image-text encoder."""

    def __init__(
        self,
        encoder: NamedModel,
        labels: Sequence[str],
        templates: Sequence[str] = TEMPLATES,
        proposals: NamedModel | None = None,
        threshold: float = 0.0,
        size: int = 0,
        window: float = 0.5,
        points: int = 16,
        surrounding: Surrounding = "grey",
    ) -> None:
        super().__init__(encoder)
        words = read_words(labels)
        self.labels = words.labels
        self.templates, template_files = read_templates(templates)
        self._encoder, self._proposals = encoder.model, proposals
        self._threshold, self._size, self._window = threshold, size, window
        self._points, self._surrounding = points, surrounding
        self._scale = float(getattr(self._encoder, "logit_scale", LOGIT_SCALE))
        self._texts = self._encode_labels(words.make_prompts(self.templates))
        found = [] if proposals is None else list(getattr(proposals.model, "weights_files", ()))
        self.weights_files = (*self.weights_files, *words.source_files, *template_files, *found)
        inner = [self._encoder, *([] if proposals is None else [proposals.model])]
        self.libraries = tuple(sorted({name for model in inner for name in getattr(model, "libraries", ())}))
        way = "patches" if hasattr(self._encoder, "encode_patches") else f"windows of {window:g} of the shorter side"
        self.conduct = f"{way}, prompts {' | '.join(self.templates)}"

    def fingerprint(self) -> str:
        """A hash of this model's code and of the names, arguments and code of the models it uses."""
        inner = [self._inner.fingerprint(), *([self._proposals.fingerprint()] if self._proposals else [])]
        return hash_value([hash_sources(sources_of(type(self))), *inner])

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map per image: indices into `labels`, -1 where no label reaches the threshold."""
        if hasattr(self._encoder, "encode_patches"):
            maps = [np.tensordot(self._texts, cells, 1) for cells in self._encoder.encode_patches(images, self._size)]
        else:
            maps = [self._compare_windows(image) for image in images]
        return [self._choose_labels(one, image) for one, image in zip(maps, images, strict=True)]

    def detect(self, images: Sequence[Image]) -> list[Instances]:
        """One `Instances` per image: the masks of `proposals`, each with its likeliest label."""
        if self._proposals is None:
            raise ModelError(
                "the zero-shot model has no masks to name",
                remedy="--model-arg proposals=MODEL: a promptable segmenter, such as hf:facebook/sam-vit-base, or an "
                "instance or panoptic segmenter",
            )
        answers = []
        for image in images:
            [found] = propose(self._proposals, [image], self._points)
            answers.append(self._name_masks(image, found.masks, found.scores))
        return answers

    def _encode_labels(self, prompts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """(labels, D) float32 of unit length: the mean over each label's prompts."""
        vectors = np.asarray(self._encoder.encode_text([text for texts in prompts for text in texts]), np.float32)
        means = vectors.reshape(len(prompts), -1, vectors.shape[1]).mean(axis=1)
        return np.asarray(means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), np.float32(1e-12)))

    def _choose_labels(self, cosines: NDArray[np.float32], image: Image) -> LabelMap:
        """The label of each pixel from cosines (labels, h, w), which are enlarged bilinearly."""
        height, width = image.shape[:2]
        best, chosen = np.full((height, width), -np.inf, np.float32), np.full((height, width), -1, np.int32)
        total = np.zeros((height, width), np.float64)
        for label, small in enumerate(np.asarray(cosines, np.float32)):
            large = cv2.resize(np.ascontiguousarray(small), (width, height), interpolation=cv2.INTER_LINEAR)
            better = large > best
            best[better], chosen[better] = large[better], label
            if self._threshold > 0:
                total += np.exp(self._scale * large.astype(np.float64))
        if self._threshold > 0:
            chosen[np.exp(self._scale * best.astype(np.float64)) / total < self._threshold] = -1
        return chosen

    def _compare_windows(self, image: Image) -> NDArray[np.float32]:
        """Cosines (labels, H, W): for each pixel the mean over the windows that it is in."""
        height, width = image.shape[:2]
        side = max(1, round(min(height, width) * self._window))
        places = [(top, left) for top in list_windows(height, side) for left in list_windows(width, side)]
        sums, counts = np.zeros((len(self.labels), height, width), np.float32), np.zeros((height, width), np.float32)
        crops = [np.ascontiguousarray(image[top : top + side, left : left + side]) for top, left in places]
        for (top, left), vector in zip(places, self._encoder.encode_images(crops), strict=True):
            sums[:, top : top + side, left : left + side] += (self._texts @ vector)[:, None, None]
            counts[top : top + side, left : left + side] += 1
        return np.asarray(sums / counts, np.float32)

    def _name_masks(self, image: Image, masks: NDArray[np.bool_], scores: NDArray[np.float32]) -> Instances:
        boxes = find_boxes(masks)
        if not len(masks):
            return Instances(masks, boxes, scores, np.zeros(0, np.int32))
        crops = [self._crop(image, mask, box) for mask, box in zip(masks, boxes.astype(int), strict=True)]
        chances = softmax(self._scale * (self._encoder.encode_images(crops) @ self._texts.T))
        labels, sure = chances.argmax(axis=1).astype(np.int32), chances.max(axis=1) * scores
        order = np.argsort(-sure, kind="stable")
        order = order[sure[order] >= self._threshold]
        return Instances(masks[order], boxes[order], sure[order].astype(np.float32), labels[order])

    def _crop(self, image: Image, mask: NDArray[np.bool_], box: NDArray[np.int_]) -> Image:
        left, top, right, bottom = box.tolist()
        crop = np.array(image[top:bottom, left:right])
        if self._surrounding == "grey":
            crop[~mask[top:bottom, left:right]] = GREY
        return crop


def list_windows(length: int, side: int) -> list[int]:
    """Where windows of `side` begin so that they cover a length, each half over the last."""
    if length <= side:
        return [0]
    count = -(-(length - side) // max(1, side // 2)) + 1
    return [int(start) for start in np.linspace(0, length - side, count).round()]


def build_zero_shot(
    name: str,
    labels: tuple[str, ...] = (),
    templates: tuple[str, ...] = TEMPLATES,
    proposals: str = "",
    encoder_args: str = "",
    proposal_args: str = "",
    threshold: float = 0.0,
    size: int = 0,
    window: float = 0.5,
    points: int = 16,
    surrounding: Surrounding = "grey",
    device: str = "cpu",
) -> ZeroShotSegmenter:
    """The encoder `name` as a segmenter of free words.

    `labels` are words, a file or a label set; `templates` prompts with `{label}`, or a file of them: a label's vector
    is the mean over all. `proposals` is a promptable segmenter, clicked at `points` x `points` places, or an instance
    or panoptic segmenter, whose masks are named; around a mask its crop is `surrounding`: grey, or the image.
    `threshold` is the probability below which no label is predicted. `size` is the side of the encoder's square input
    in pixels, by default that of its training; `window` the side of sliding windows, as a share of the image's shorter
    side, for encoders without patch features. `encoder_args` and `proposal_args` are key=value with commas between.
    """
    _check_options(labels, templates, threshold, size, window, points)
    encoder = build_inner(name, "image-text-encoder", encoder_args, device=device)
    found = None
    if proposals:
        found = build_proposer(proposals, proposal_args, roles=(INSTANCES, PROMPTABLE, PANOPTIC), device=device)
    return ZeroShotSegmenter(encoder, labels, templates, found, threshold, size, window, points, surrounding)


def _check_options(
    labels: Sequence[str], templates: Sequence[str], threshold: float, size: int, window: float, points: int = 1
) -> None:
    """An error for what no encoder can do with, before weights are loaded."""
    if not 0 <= threshold < 1:
        raise OptionError(f"threshold {threshold} is not a probability", remedy="from 0 to below 1")
    if not 0 < window <= 1:
        raise OptionError(f"window is {window}", remedy="a share of the image's shorter side, above 0 and up to 1")
    if points < 1 or size < 0:
        raise OptionError(f"points is {points} and size {size}", remedy="points is at least 1, size at least 0")
    read_words(labels)
    read_templates(templates)


class MaskClip(ZeroShotSegmenter):
    """Any encoder of images and texts as a semantic segmenter of free words: `zero-shot:ENCODER` without proposals.

    `encoder` is a name of the registry, such as hf:FOLDER-OR-ID of a CLIP, and `encoder_args` are its arguments; the
    others are those of `build_zero_shot`.
    """

    def __init__(
        self,
        encoder: str,
        labels: tuple[str, ...],
        templates: tuple[str, ...] = TEMPLATES,
        encoder_args: str = "",
        threshold: float = 0.0,
        size: int = 0,
        window: float = 0.5,
        device: str = "cpu",
    ) -> None:
        _check_options(labels, templates, threshold, size, window)
        find_roles(encoder)
        inner = build_inner(encoder, "image-text-encoder", encoder_args, device=device)
        super().__init__(inner, labels, templates, threshold=threshold, size=size, window=window)


def find_roles(name: str) -> tuple[str, ...]:
    """The roles of a segmenter made of the encoder `name`, which must be one of images and texts."""
    roles = find(name).card.roles
    if roles and "image-text-encoder" not in roles:
        raise ModelError(
            f"zero-shot:{name} needs an image-text-encoder, and {name!r} is a {' and '.join(roles)}",
            remedy="`hardlook models --role image-text-encoder` lists those that fit; CLIP or SigLIP is hf:OWNER/NAME",
        )
    return ("semantic-segmenter", "instance-segmenter")


def list_encoders(pattern: str = "*") -> list[str]:
    """Names of encoders of images and texts: built-in ones, and those of the family hf in the cache."""
    names = [card.name for card in list_models(role="image-text-encoder") if not card.problem]
    for name in list_cached_models():
        try:
            fits = "image-text-encoder" in find(f"hf:{name}").card.roles
        except HardlookError:  # a damaged download; to ask for it by name says what is wrong
            continue
        names += [f"hf:{name}"] if fits else []
    return sorted(name for name in names if fnmatchcase(name, pattern))


FAMILY = Family(
    prefix="zero-shot",
    summary="an encoder of images and texts as a segmenter of free words",
    extra="hf",
    roles=("semantic-segmenter", "instance-segmenter"),
    list_names=list_encoders,
    find_roles=find_roles,
    build=build_zero_shot,
)
