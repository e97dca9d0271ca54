"""CAT-Seg as a segmenter of free words, from its authors' file and, where that lacks some, CLIP's.

Cho et al., CAT-Seg: Cost Aggregation for Open-Vocabulary Semantic Segmentation, CVPR 2024.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hardlook.models.open_vocabulary.clip_segmenter import (
    ClipSegmenter,
    Parameters,
    Reading,
    check_options,
    group_by_size,
)
from hardlook.models.open_vocabulary.free_words import Synonyms, read_free_words
from hardlook.models.roles import Image, LabelMap
from hardlook.models.torch_inference import Precision, exact_inference

if TYPE_CHECKING:
    from torch import Tensor

    from hardlook.networks.open_vocabulary.cat_seg import CATSeg

SIDES = (640, 2560)
TEMPLATE = "A photo of a {label} in the scene"


class CatSeg(ClipSegmenter):
    """Label maps of any `labels`: words, a file, or a label set.

    `weights` is the file of CAT-Seg, which holds both towers of CLIP as it trained them; `clip` is a file with the
    weights of OpenAI's CLIP, for what the first lacks, and `tokenizer` a folder with CLIP's vocab.json and merges.txt.
    `weights=random:SEED` makes random parameters of a `size`, for tries without files. `templates` are prompts
    (default: A photo of a {label} in the scene), `background` words for what is none of the labels. An image is
    resized so that its shorter side is `shorter` and its longer one at most `longer`. With `windows`, as in the
    published evaluation, scores are the mean of those of windows of 384 x 384 pixels and of the whole image; without,
    the whole image alone is stretched to a square. At most `batch` images go through the network together.
    `reading` is ours: each synonym of a label (`cat, kitten` in a file) is a name, of which the best counts, and
    windows keep the ratio of the image's sides; or released: only the first name counts, images are stretched to 640 x
    640 pixels before windows are cut, and without windows the padding to multiples of 32 stays in the result.
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
        shorter: int = SIDES[0],
        longer: int = SIDES[1],
        windows: bool = True,
        reading: Reading = "ours",
        device: str = "cpu",
        precision: Precision = "float32",
        batch: int = 1,
    ) -> None:
        check_options(reading, (shorter, longer), device, batch, precision, SIDES)
        self._windows, self._released = windows, reading == "released"
        synonyms: Synonyms = "first" if self._released else "all"
        words = read_free_words(labels, templates, background, default=TEMPLATE, synonyms=synonyms)
        parameters = Parameters.parse(weights, clip, tokenizer, size)
        network = _make_network(parameters, released=self._released)
        super().__init__(
            network,
            network.clip,
            words,
            parameters,
            sides=(shorter, longer),
            device=device,
            precision=precision,
            batch=batch,
        )
        # The best name of a pixel tells its class: a score of one name has no effect on another's.
        self._owners = np.repeat(np.arange(len(words.counts)), words.counts)
        way = "windows of 384 pixels and the whole image" if windows else "the whole image"
        self.conduct = (
            f"CAT-Seg with {parameters.describe()}, {reading}: shorter side {shorter}, longer at most {longer}, {way}; "
            f"{words.describe()}"
        )

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map of indices into `labels` per image, -1 where a word of the background wins."""
        answers: dict[int, LabelMap] = {}
        if self._windows:
            for start in range(0, len(images), self._batch):
                chosen = self._label_windows(images[start : start + self._batch])
                answers.update(enumerate(map(self._name, chosen), start))
        else:
            for places in group_by_size(images, self._batch):
                group = self._stack([images[place] for place in places]).float()
                with exact_inference(self._precision):
                    chosen = self._network.segment(group, self.text, images[places[0]].shape[:2]).float().argmax(1)
                answers.update(zip(places, map(self._name, chosen), strict=True))
        return [answers[place] for place in range(len(images))]

    def _label_windows(self, images: Sequence[Image]) -> list[Tensor]:
        """The best name (H, W) of each image; the views of all go through the network together."""
        import torch

        from hardlook.networks.open_vocabulary.cat_seg import cut_stretched, cut_undistorted

        cut = cut_stretched if self._released else cut_undistorted
        views = [cut(self._stack([image])[0].float()) for image in images]
        with exact_inference(self._precision):
            logits = self._network(torch.cat([one.pixels for one in views]), self.text)
        parts = logits.split([len(one.pixels) for one in views])
        sizes = [(image.shape[0], image.shape[1]) for image in images]
        return [one.label(part, size) for one, part, size in zip(views, parts, sizes, strict=True)]

    def _name(self, chosen: Tensor) -> LabelMap:
        return self._words.drop_background(self._owners[chosen.cpu().numpy()])


def _make_network(parameters: Parameters, *, released: bool) -> CATSeg:
    from hardlook.networks.open_vocabulary.cat_seg_checkpoints import build_random_cat_seg, load_cat_seg

    if parameters.seed is None:
        return load_cat_seg(*parameters.files, released=released)
    return build_random_cat_seg(parameters.size or "catseg_vit_b_16", seed=parameters.seed, released=released)
