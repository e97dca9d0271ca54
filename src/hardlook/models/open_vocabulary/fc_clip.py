"""FC-CLIP as a segmenter of free words, from its authors' file and one of CLIP.

Yu et al., Convolutions Die Hard: Open-Vocabulary Segmentation with Single Frozen Convolutional CLIP, NeurIPS 2023.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import PIL.Image

from hardlook.errors import OptionError
from hardlook.extras import require
from hardlook.fingerprints import hash_sources
from hardlook.models.families.words import choose_things, read_templates, read_words
from hardlook.models.identity import sources_of
from hardlook.models.interactive.sam_session import check_device_and_batch
from hardlook.models.open_vocabulary.clip_tokens import ClipTokenizer, spell
from hardlook.models.roles import Image, Instances, LabelMap, Segments
from hardlook.models.torch_inference import Precision, exact_inference
from hardlook.models.transformers_folder import pad_tokens
from hardlook.models.wrapping.detections import find_boxes

if TYPE_CHECKING:
    from torch import Tensor

    from hardlook.networks.open_vocabulary.fc_clip import FCCLIP, TextClassifier

RANDOM = "random:"
TEXT_BATCH = 128


class FcClip:
    """Semantic, instance and panoptic segments named by any `labels`: words, a file, or a label set.

    A label has all its synonyms (`cat, kitten` in a file): the best of them counts. `weights` is the file of FC-CLIP,
    `clip` that of open_clip with the weights of CLIP, unless the first holds them, and `tokenizer` a folder with
    CLIP's vocab.json and merges.txt. `weights=random:SEED` makes random parameters on the CLIP of `size`, for tries
    without files. `templates` are prompts (default: ViLD's fourteen), `trained` the labels of the training data, whose
    classes CLIP has less say in, `things` the countable labels.
    An image is resized so that its shorter side is `shorter` and its longer one at most `longer`. `overlap` is the
    share of a mask that a panoptic segment must win, `limit` the largest number of instances of an image.
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
        things: Sequence[str] = (),
        trained: Sequence[str] = ("coco133",),
        shorter: int = 800,
        longer: int = 1333,
        overlap: float = 0.8,
        limit: int = 100,
        reading: Literal["ours", "released"] = "ours",
        device: str = "cpu",
        precision: Precision = "float32",
        batch: int = 1,
    ) -> None:
        require("torch", extra="torch")
        from hardlook.networks.open_vocabulary.fc_clip import TEMPLATES

        check_device_and_batch(device, batch, precision)
        if reading not in ("ours", "released"):
            raise OptionError(f"reading is {reading!r}", remedy="ours or released")
        if not 1 <= shorter <= longer:
            raise OptionError(f"no image has sides of {shorter} and {longer}", remedy="shorter=800 longer=1333")
        words, known = read_words(labels), read_words(trained)
        self.labels: Sequence[str] = words.labels
        self._names = [word.names for word in words.words]
        self._trained = [word.names for word in known.words]
        given, template_files = read_templates(templates or [one.replace("{}", "{label}") for one in TEMPLATES])
        self.templates = given
        self._things, self._released = tuple(things), reading == "released"
        self._shorter, self._longer, self._overlap, self._limit = shorter, longer, overlap, limit
        self.device, self._precision, self._batch = device, precision, batch
        self.weights_files: tuple[Path, ...] = (*words.source_files, *known.source_files, *template_files)
        self._network, source = self._make_network(str(weights), clip, size)
        self._tokenize = self._make_tokenizer(str(weights), tokenizer)
        self._network.to(device)
        self._text = self._encode_names()
        self.conduct = (
            f"FC-CLIP with {source}, {reading}: shorter side {shorter}, longer at most {longer}; "
            f"{len(given)} prompts for {sum(map(len, self._names))} names of {len(self.labels)} labels, "
            f"{sum(self._text.seen)} of them seen in training"
        )

    def _make_network(self, weights: str, clip: Path | None, size: str) -> tuple[FCCLIP, str]:
        from hardlook.networks.open_vocabulary.fc_clip_checkpoints import build_random, load_fc_clip

        if weights.startswith(RANDOM):
            seed = weights.removeprefix(RANDOM)
            if not seed.isdecimal():
                raise OptionError(f"weights={weights} has no seed", remedy=f"write weights={RANDOM}1")
            network = build_random(size or "RN50", seed=int(seed), released=self._released)
            return network, f"random parameters of seed {int(seed)}"
        if size:
            raise OptionError("a file tells its size", remedy=f"leave size out, or give weights={RANDOM}1")
        paths = [Path(one).expanduser() for one in (weights, clip) if one is not None]
        network = load_fc_clip(*paths, released=self._released)
        self.weights_files = (*self.weights_files, *paths)
        return network, " and ".join(path.name for path in paths)

    def _make_tokenizer(self, weights: str, folder: Path | None) -> Any:
        if folder is not None:
            tokenizer = ClipTokenizer(Path(folder).expanduser())
            self.weights_files = (*self.weights_files, *tokenizer.files)
            return tokenizer
        if weights.startswith(RANDOM):
            return lambda texts: [spell(text) for text in texts]
        raise OptionError(
            "words cannot be read without the tokenizer of CLIP",
            remedy="--model-arg tokenizer=FOLDER with vocab.json and merges.txt of a CLIP",
        )

    def _encode_names(self) -> TextClassifier:
        """The classifier of the labels' names, computed once."""
        import torch

        from hardlook.networks.open_vocabulary.clip_text import average_prompts, find_seen
        from hardlook.networks.open_vocabulary.fc_clip import TextClassifier

        names = [name for group in self._names for name in group]
        texts = [template.replace("{label}", name) for name in names for template in self.templates]
        rows = []
        with exact_inference(self._precision):
            for start in range(0, len(texts), TEXT_BATCH):
                tokens, _ = pad_tokens(self._tokenize(texts[start : start + TEXT_BATCH]), self.device)
                rows.append(self._network.backbone.clip_model.encode_tokens(tokens).float())
            vectors = average_prompts(torch.cat(rows), len(self.templates))
        joined, known = ([",".join(group) for group in groups] for groups in (self._names, self._trained))
        seen = find_seen(joined, known, released=self._released)
        return TextClassifier(vectors, tuple(map(len, self._names)), seen)

    @functools.cached_property
    def things(self) -> tuple[bool, ...]:
        """Which labels are countable: as given, or as the label set says that has all of them."""
        return choose_things(self.labels, self._things)

    def fingerprint(self) -> str:
        """A hash of this code and the network's."""
        return hash_sources(sorted({*sources_of(type(self)), *sources_of(type(self._network))}))

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map of indices into `labels` per image."""
        from hardlook.networks.open_vocabulary.fc_clip import segment_semantic

        return [
            segment_semantic(scores, masks).argmax(0).to("cpu").numpy().astype(np.int32)
            for scores, masks in self._predict(images)
        ]

    def detect(self, images: Sequence[Image]) -> list[Instances]:
        """One `Instances` per image: of the countable labels, or of all where it is not known which are countable."""
        from hardlook.networks.open_vocabulary.fc_clip import segment_instances

        try:
            things = np.flatnonzero(self.things).tolist()
        except OptionError:
            if self._things:
                raise
            things = None
        answers = []
        for scores, masks in self._predict(images):
            found = segment_instances(scores, masks, things, limit=self._limit, released=self._released)
            drawn = found.masks.flatten(1).any(1)
            kept = found.masks[drawn].cpu().numpy()
            labels = found.classes[drawn].cpu().numpy().astype(np.int32)
            answers.append(Instances(kept, find_boxes(kept), found.scores[drawn].float().cpu().numpy(), labels))
        return answers

    def segment_panoptic(self, images: Sequence[Image]) -> list[Segments]:
        """One `Segments` per image; a stuff label has at most one segment."""
        from hardlook.networks.open_vocabulary.fc_clip import segment_panoptic

        things = set(np.flatnonzero(self.things).tolist())
        answers = []
        for scores, masks in self._predict(images):
            numbers, segments = segment_panoptic(scores, masks, things, least_overlap=self._overlap)
            answers.append(Segments(numbers.cpu().numpy(), {one.number: one.label for one in segments}))
        return answers

    def _predict(self, images: Sequence[Image]) -> Iterator[tuple[Tensor, Tensor]]:
        """Log-probabilities (Q, labels + 1) and logits of masks (Q, H, W) of each image, in order.

        Only images of one size go through the network together: padding would have an effect on the others.
        """
        import torch

        from hardlook.networks.open_vocabulary.fc_clip import prepare, resize_masks

        start = 0
        while start < len(images):
            stop = start + 1
            while stop < min(len(images), start + self._batch) and images[stop].shape == images[start].shape:
                stop += 1
            group = [torch.from_numpy(self._resize(image)).movedim(2, 0) for image in images[start:stop]]
            height, width = group[0].shape[1:]
            batch = prepare([one.to(self.device) for one in group])
            with exact_inference(self._precision):
                answer = self._network(batch, self._text)
            padded = (batch.shape[2], batch.shape[3])
            for place, image in enumerate(images[start:stop]):
                output = (image.shape[0], image.shape[1])
                masks = resize_masks(answer.masks[place].float(), padded, (height, width), output)
                yield answer.log_probabilities[place], masks
            start = stop

    def _resize(self, image: Image) -> Image:
        height, width = image.shape[:2]
        scale = self._shorter / min(height, width)
        scale = min(scale, self._longer / max(height, width))
        size = (max(1, int(width * scale + 0.5)), max(1, int(height * scale + 0.5)))
        return np.array(PIL.Image.fromarray(image).resize(size, PIL.Image.Resampling.BILINEAR))
