"""Models of transformers that are asked for free words: CLIPSeg, OWL-ViT and OWLv2, Grounding DINO.

Lüddecke and Ecker, "Image segmentation using text and image prompts", CVPR 2022. Minderer et al., "Scaling
open-vocabulary object detection", NeurIPS 2023. Liu et al., "Grounding DINO", ECCV 2024. The detectors give boxes:
their masks are the boxes, filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError, OptionError
from hardlook.models.families.hub_models import HubFolder, HubModel, encode_tokens
from hardlook.models.families.image_preparation import prepare_image
from hardlook.models.families.words import TEMPLATES, read_templates, read_words
from hardlook.models.roles import Image, Instances, LabelMap
from hardlook.models.torch_inference import exact_inference
from hardlook.models.wrapping.detections import fill_boxes
from hardlook.models.wrapping.outputs import sigmoid

if TYPE_CHECKING:
    from torch import Tensor

_AT_ONCE = 32  # labels decoded at a time


class FreeWordModel(HubModel):
    """What these models share: the words they are asked for, in their templates."""

    templates: tuple[str, ...] = TEMPLATES
    """The prompts where none are given."""

    def __init__(self, folder: HubFolder, labels: Sequence[str], templates: Sequence[str] = ()) -> None:
        words = read_words(labels)
        self.templates, template_files = read_templates(templates or self.templates)
        self.processor, images = folder.load_processor()
        self.tokenizer, texts = folder.load_tokenizer()
        super().__init__(folder, *images, *texts, *words.source_files, *template_files)
        self.network = folder.load_network()
        self.labels = words.labels
        self.prompts = words.make_prompts(self.templates)

    def prepare(self, image: Image) -> dict[str, Tensor]:
        """The network's inputs of an image."""
        import torch

        made = prepare_image(self.processor, image)
        return {name: torch.from_numpy(value).to(self.device) for name, value in made.items()}

    def average_texts(self, encode: Any, longest: int) -> Tensor:
        """Vectors (labels, D): for each label the mean over its prompts of what `encode` makes of their tokens."""
        import torch

        rows = []
        with exact_inference():
            for prompts in self.prompts:
                answer = encode(**encode_tokens(self.tokenizer, prompts, longest, self.device))
                rows.append(getattr(answer, "pooler_output", answer).mean(dim=0))
        return torch.stack(rows)


class HubClipSeg(FreeWordModel):
    """CLIPSeg: each pixel has the label whose map is highest there, or none below `threshold`."""

    def __init__(
        self, folder: HubFolder, labels: Sequence[str], templates: Sequence[str] = (), threshold: float = 0.0
    ) -> None:
        super().__init__(folder, labels, templates)
        self._threshold = threshold
        longest = int(self.network.config.text_config.max_position_embeddings)
        self._conditions = self.average_texts(self.network.clip.get_text_features, longest)

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map per image: indices into `labels`, -1 where no label reaches the threshold."""
        return [self._segment(image) for image in images]

    def _segment(self, image: Image) -> LabelMap:
        import torch

        network, size = self.network, image.shape[:2]
        best, chosen = torch.full(size, -torch.inf), torch.full(size, -1, dtype=torch.int32)
        with exact_inference():
            states = network.clip.vision_model(
                self.prepare(image)["pixel_values"], output_hidden_states=True, interpolate_pos_encoding=True
            ).hidden_states
            layers = [states[layer + 1] for layer in network.extract_layers]
            for start in range(0, len(self.labels), _AT_ONCE):
                some = self._conditions[start : start + _AT_ONCE]
                answer = network.decoder([layer.expand(len(some), -1, -1) for layer in layers], some)
                logits = answer.logits if hasattr(answer, "logits") else answer[0]
                maps = logits.reshape(len(some), 1, *logits.shape[-2:]).float()
                maps = torch.nn.functional.interpolate(maps, size=size, mode="bilinear", align_corners=False)[:, 0]
                highest, label = (one.cpu() for one in maps.max(dim=0))
                better = highest > best
                best = torch.where(better, highest, best)
                chosen = torch.where(better, (label + start).to(torch.int32), chosen)
        answered = chosen.numpy()
        if self._threshold > 0:
            answered[sigmoid(best.numpy()) < self._threshold] = -1
        return answered


class HubOwl(FreeWordModel):
    """OWL-ViT and OWLv2: a box for every patch, with the best label of each."""

    def __init__(
        self,
        folder: HubFolder,
        labels: Sequence[str],
        templates: Sequence[str] = (),
        threshold: float = 0.0,
        detections: int = 100,
    ) -> None:
        super().__init__(folder, labels, templates)
        self._threshold, self._detections = threshold, detections
        # OWLv2 pads images to a square below and to the right, and its boxes are shares of that square.
        self._square = folder.model_type == "owlv2"
        trunk = getattr(self.network, folder.model_type)
        longest = int(self.network.config.text_config.max_position_embeddings)
        self._queries = self.average_texts(trunk.get_text_features, longest)

    def detect(self, images: Sequence[Image]) -> list[Instances]:
        """One `Instances` per image, scores descending; masks are the filled boxes."""
        return [self._detect(image) for image in images]

    def _detect(self, image: Image) -> Instances:
        with exact_inference():
            cells, _ = self.network.image_embedder(pixel_values=self.prepare(image)["pixel_values"])
            patches = cells.reshape(1, -1, cells.shape[-1])
            logits, _ = self.network.class_predictor(patches, self._queries[None])
            boxes = self.network.box_predictor(patches, cells)
            scores = sigmoid(logits[0].float().cpu().numpy())
            shares = boxes[0].float().cpu().numpy()
        height, width = image.shape[:2]
        frame = (max(height, width),) * 2 if self._square else (height, width)
        return make_box_instances(
            scores.max(axis=1), scores.argmax(axis=1), shares, frame, (height, width), self._threshold, self._detections
        )


class HubGroundingDino(FreeWordModel):
    """Grounding DINO, asked for all labels at once ("cat. dog."), or for as many as its text can hold.

    The score of a label is the mean over its tokens, as in the authors' evaluation on COCO; the best pairs of box and
    label are the detections.
    """

    templates = ("{label}",)

    def __init__(
        self,
        folder: HubFolder,
        labels: Sequence[str],
        templates: Sequence[str] = (),
        threshold: float = 0.0,
        detections: int = 100,
    ) -> None:
        super().__init__(folder, labels, templates)
        if len(self.templates) > 1:
            raise OptionError("Grounding DINO reads one text and has one template", remedy="give one template")
        self._threshold, self._detections = threshold, detections
        self._texts = self._split_texts(int(getattr(self.network.config, "max_text_len", 256)))

    def detect(self, images: Sequence[Image]) -> list[Instances]:
        """One `Instances` per image, scores descending; masks are the filled boxes."""
        return [self._detect(image) for image in images]

    def _split_texts(self, longest: int) -> list[tuple[list[int], list[tuple[int, int, int]]]]:
        """Texts as token numbers, each with (label, first token, token after the last) of its labels."""
        tokenize = self.tokenizer
        start, end = tokenize.cls_token_id, tokenize.sep_token_id
        (stop,) = tokenize(".", add_special_tokens=False)["input_ids"]
        texts: list[tuple[list[int], list[tuple[int, int, int]]]] = []
        tokens, spans = [start], list[tuple[int, int, int]]()
        for label, (prompt,) in enumerate(self.prompts):
            own = list(tokenize(prompt.lower().strip(" ."), add_special_tokens=False)["input_ids"])
            if not own or len(own) + 3 > longest:
                raise ModelError(f"the label {prompt!r} has {len(own)} tokens, and a text at most {longest - 3}")
            if len(tokens) + len(own) + 2 > longest:
                texts.append(([*tokens, end], spans))
                tokens, spans = [start], []
            spans.append((label, len(tokens), len(tokens) + len(own)))
            tokens += [*own, stop]
        return [*texts, ([*tokens, end], spans)]

    def _detect(self, image: Image) -> Instances:
        import torch

        inputs, found = self.prepare(image), []
        with exact_inference():
            for tokens, spans in self._texts:
                numbers = torch.tensor([tokens], device=self.device)
                answer = self.network(**inputs, input_ids=numbers, attention_mask=torch.ones_like(numbers))
                by_token = sigmoid(answer.logits[0].float().cpu().numpy())
                boxes = answer.pred_boxes[0].float().cpu().numpy()
                for label, first, after in spans:
                    scores = by_token[:, first:after].mean(axis=1)
                    found.append((scores, np.full(len(scores), label), boxes))
        scores, labels, shares = (np.concatenate(parts) for parts in zip(*found, strict=True))
        size = (image.shape[0], image.shape[1])
        return make_box_instances(scores, labels, shares, size, size, self._threshold, self._detections)


def make_box_instances(
    scores: NDArray[np.float32],
    labels: NDArray[np.integer[Any]],
    shares: NDArray[np.float32],
    frame: tuple[int, int],
    size: tuple[int, int],
    threshold: float,
    most: int,
) -> Instances:
    """The best `most` boxes over the threshold as detections on an image of `size`; boxes outside it are left out.

    `shares` (n, 4) are centre, width and height as shares of a `frame` of (height, width) pixels.

    >>> boxes = np.array([[0.5, 0.5, 0.5, 1.0]], np.float32)
    >>> make_box_instances(np.array([0.9]), np.array([0]), boxes, (4, 4), (2, 4), 0.0, 9).boxes.tolist()
    [[1.0, 0.0, 3.0, 2.0]]
    """
    best = np.argsort(-scores, kind="stable")
    best = best[scores[best] >= threshold]
    half = shares[best, 2:] / 2
    corners = np.concatenate([shares[best, :2] - half, shares[best, :2] + half], axis=1)
    boxes = corners * np.array([frame[1], frame[0]] * 2, np.float32)
    boxes = np.clip(boxes, 0, np.array([size[1], size[0]] * 2, np.float32)).astype(np.float32)
    seen = np.flatnonzero((boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1]))[:most]
    return Instances(
        fill_boxes(boxes[seen], size),
        boxes[seen],
        scores[best[seen]].astype(np.float32),
        labels[best[seen]].astype(np.int32),
    )
