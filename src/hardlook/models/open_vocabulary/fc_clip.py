"""FC-CLIP as a segmenter of free words, from its authors' file and one of CLIP.

Yu et al., Convolutions Die Hard: Open-Vocabulary Segmentation with Single Frozen Convolutional CLIP, NeurIPS 2023.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hardlook.errors import OptionError
from hardlook.models.families.words import read_words
from hardlook.models.open_vocabulary.clip_segmenter import (
    ClipSegmenter,
    Parameters,
    Reading,
    check_options,
    group_by_size,
)
from hardlook.models.open_vocabulary.free_words import VILD_TEMPLATES, read_free_words
from hardlook.models.roles import Image, Instances, LabelMap, Segments
from hardlook.models.torch_inference import Precision, exact_inference
from hardlook.models.wrapping.detections import find_boxes

if TYPE_CHECKING:
    from torch import Tensor

    from hardlook.networks.open_vocabulary.fc_clip import FCCLIP

Answer = TypeVar("Answer")

SIDES = (800, 1333)


class FcClip(ClipSegmenter):
    """Semantic, instance and panoptic segments named by any `labels`: words, a file, or a label set.

    A label has all its synonyms (`cat, kitten` in a file): the best of them counts. `weights` is the file of FC-CLIP,
    `clip` that of open_clip with the weights of CLIP, unless the first holds them, and `tokenizer` a folder with
    CLIP's vocab.json and merges.txt. `weights=random:SEED` makes random parameters on the CLIP of `size`, for tries
    without files. `templates` are prompts (default: ViLD's fourteen), `trained` the labels of the training data, whose
    classes CLIP has less say in, `things` the countable labels, `background` words for what is none of the labels.
    An image is resized so that its shorter side is `shorter` and its longer one at most `longer`. `overlap` is the
    share of a mask that a panoptic segment must win, `limit` the largest number of instances of an image. At most
    `batch` images of one size go through the network together.
    `reading` is ours, or released: capitals count in the comparison with `trained`, an empty mask is named by CLIP all
    the same, and the limit of instances is put before uncountable labels are left out.
    """

    def __init__(
        self,
        labels: Sequence[str],
        weights: str,
        clip: Path | None = None,
        tokenizer: Path | None = None,
        size: str = "",
        templates: Sequence[str] = (),
        background: Sequence[str] = (),
        things: Sequence[str] = (),
        trained: Sequence[str] = ("coco133",),
        shorter: int = SIDES[0],
        longer: int = SIDES[1],
        overlap: float = 0.8,
        limit: int = 100,
        reading: Reading = "ours",
        device: str = "cpu",
        precision: Precision = "float32",
        batch: int = 1,
    ) -> None:
        check_options(reading, (shorter, longer), device, batch, precision, SIDES)
        if not 0 <= overlap <= 1:
            raise OptionError(f"overlap is {overlap}", remedy="a share of a mask, from 0 to 1")
        if limit < 1:
            raise OptionError(f"limit is {limit}", remedy="a number of instances, at least 1")
        from hardlook.networks.open_vocabulary.clip_text import find_seen
        from hardlook.networks.open_vocabulary.fc_clip import TextClassifier

        words, known = read_free_words(labels, templates, background, default=VILD_TEMPLATES), read_words(trained)
        self._things, self._released = tuple(things), reading == "released"
        self._overlap, self._limit = overlap, limit
        parameters = Parameters.parse(weights, clip, tokenizer, size)
        network = self._make_network(parameters)
        super().__init__(
            network,
            network.backbone.clip_model,
            words,
            parameters,
            sides=(shorter, longer),
            device=device,
            precision=precision,
            batch=batch,
        )
        self.weights_files = (*known.source_files, *self.weights_files)
        groups = [",".join(group) for group in words.groups]
        seen = find_seen(groups, [",".join(word.names) for word in known.words], released=self._released)
        self._text = TextClassifier(self.text, words.counts, seen)
        self.conduct = (
            f"FC-CLIP with {parameters.describe()}, {reading}: shorter side {shorter}, longer at most {longer}; "
            f"{words.describe()}, {sum(seen[: len(words.labels)])} of them seen in training"
        )

    def _make_network(self, parameters: Parameters) -> FCCLIP:
        from hardlook.networks.open_vocabulary.fc_clip_checkpoints import build_random, load_fc_clip

        if parameters.seed is None:
            return load_fc_clip(*parameters.files, released=self._released)
        return build_random(parameters.size or "RN50", seed=parameters.seed, released=self._released)

    @functools.cached_property
    def things(self) -> tuple[bool, ...]:
        """Which labels are countable: as given, as their file says, or as the label set says that has all of them."""
        return self._words.find_things(self._things)

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map of indices into `labels` per image, -1 where a word of the background wins."""
        from hardlook.networks.open_vocabulary.fc_clip import segment_semantic

        def finish(scores: Tensor, masks: Tensor) -> LabelMap:
            return self._words.drop_background(segment_semantic(scores, masks).argmax(0).cpu().numpy())

        return self._answer(images, finish)

    def detect(self, images: Sequence[Image]) -> list[Instances]:
        """One `Instances` per image: of the countable labels, or of all where it is not known which are countable."""
        from hardlook.networks.open_vocabulary.fc_clip import segment_instances

        try:
            things = np.flatnonzero(self.things).tolist()
        except OptionError:
            if self._things:
                raise
            things = list(range(len(self.labels)))

        def finish(scores: Tensor, masks: Tensor) -> Instances:
            found = segment_instances(scores, masks, things, limit=self._limit, released=self._released)
            drawn = found.masks.flatten(1).any(1)
            kept = found.masks[drawn].cpu().numpy()
            labels = found.classes[drawn].cpu().numpy().astype(np.int32)
            return Instances(kept, find_boxes(kept), found.scores[drawn].float().cpu().numpy(), labels)

        return self._answer(images, finish)

    def segment_panoptic(self, images: Sequence[Image]) -> list[Segments]:
        """One `Segments` per image; a stuff label has at most one segment, the background none."""
        from hardlook.networks.open_vocabulary.fc_clip import segment_panoptic

        things = set(np.flatnonzero(self.things).tolist())

        def finish(scores: Tensor, masks: Tensor) -> Segments:
            numbers, segments = segment_panoptic(scores, masks, things, least_overlap=self._overlap)
            labels = {one.number: one.label for one in segments if one.label < len(self.labels)}
            drawn = numbers.cpu().numpy()
            return Segments(np.where(np.isin(drawn, list(labels)), drawn, 0).astype(np.int32), labels)

        return self._answer(images, finish)

    def _answer(self, images: Sequence[Image], finish: Callable[[Tensor, Tensor], Answer]) -> list[Answer]:
        """What `finish` makes of log-probabilities (Q, classes + 1) and logits of masks (Q, H, W) of each image.

        Only images of one size go through the network together: padding would have an effect on the others.
        """
        from hardlook.networks.open_vocabulary.fc_clip import prepare, resize_masks

        answers: dict[int, Answer] = {}
        for places in group_by_size(images, self._batch):
            group = self._stack([images[place] for place in places])
            batch = prepare(list(group))
            with exact_inference(self._precision):
                answer = self._network(batch, self._text)
            padded, inner = ((one.shape[2], one.shape[3]) for one in (batch, group))
            for number, place in enumerate(places):
                output = (images[place].shape[0], images[place].shape[1])
                masks = resize_masks(answer.masks[number].float(), padded, inner, output)
                answers[place] = finish(answer.log_probabilities[number], masks)
        return [answers[place] for place in range(len(images))]
