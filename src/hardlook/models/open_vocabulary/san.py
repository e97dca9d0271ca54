"""SAN as a segmenter of free words, from its authors' file and, where that holds none, one of CLIP.

Xu et al., Side Adapter Network for Open-Vocabulary Semantic Segmentation, CVPR 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.models.open_vocabulary.clip_segmenter import (
    ClipSegmenter,
    Parameters,
    Reading,
    check_options,
    group_by_size,
)
from hardlook.models.open_vocabulary.free_words import VILD_TEMPLATES, Synonyms, read_free_words
from hardlook.models.roles import Image, LabelMap
from hardlook.models.torch_inference import Precision, exact_inference

if TYPE_CHECKING:
    from hardlook.networks.open_vocabulary.san import SAN

SIDES = (640, 2560)


class San(ClipSegmenter):
    """Label maps of any `labels`: words, a file, or a label set.

    `weights` is the file of SAN, `clip` one with the weights of OpenAI's CLIP, where the first lacks them, and
    `tokenizer` a folder with CLIP's vocab.json and merges.txt. `weights=random:SEED` makes random parameters of a
    `size`, for tries without files. `templates` are prompts (default: ViLD's fourteen), `background` words for what is
    none of the labels. An image is resized so that its shorter side is `shorter` and its longer one at most `longer`.
    At most `batch` images of one size go through the network together.
    `reading` is ours: each synonym of a label (`cat, kitten` in a file) is a name, and the best of them counts; or
    released: label and synonyms are one text, and a grid of 1,600 cells takes the square table of positions as it is.
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
        reading: Reading = "ours",
        device: str = "cpu",
        precision: Precision = "float32",
        batch: int = 1,
    ) -> None:
        check_options(reading, (shorter, longer), device, batch, precision, SIDES)
        released = reading == "released"
        synonyms: Synonyms = "joined" if released else "all"
        words = read_free_words(labels, templates, background, default=VILD_TEMPLATES, synonyms=synonyms)
        parameters = Parameters.parse(weights, clip, tokenizer, size)
        network = _make_network(parameters, released=released)
        super().__init__(
            network,
            network.ov_classifier,
            words,
            parameters,
            sides=(shorter, longer),
            device=device,
            precision=precision,
            batch=batch,
        )
        self.conduct = (
            f"SAN with {parameters.describe()}, {reading}: shorter side {shorter}, longer at most {longer}; "
            f"{words.describe()}"
        )

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map of indices into `labels` per image, -1 where a word of the background wins."""
        from hardlook.networks.open_vocabulary.clip_vit import pad_to_multiple
        from hardlook.networks.open_vocabulary.san import label_pixels, resize_masks

        answers: dict[int, LabelMap] = {}
        for places in group_by_size(images, self._batch):
            group = self._stack([images[place] for place in places]).float()
            with exact_inference(self._precision):
                masks, classes = self._network.predict(group, self.text, self._words.counts)
            padded, seen = pad_to_multiple(group).shape[-2:], group.shape[-2:]
            for number, place in enumerate(places):
                size = images[place].shape[:2]
                drawn = resize_masks(masks[number : number + 1].float(), padded, seen, size)[0].sigmoid()
                chosen = label_pixels(classes[number].float(), drawn)
                answers[place] = self._words.drop_background(chosen.cpu().numpy())
        return [answers[place] for place in range(len(images))]


def _make_network(parameters: Parameters, *, released: bool) -> SAN:
    from hardlook.networks.open_vocabulary.san_checkpoints import build_random_san, load_san

    if parameters.seed is None:
        return load_san(*parameters.files, released=released)
    return build_random_san(parameters.size or "san_vit_b_16", seed=parameters.seed, released=released)
