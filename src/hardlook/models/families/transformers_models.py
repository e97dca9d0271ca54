"""The family `hf`: models of transformers, from a folder, from the cache, or from the model hub.

The type of the model and its architecture, as `config.json` names them, say which roles it has (`find_kind`). Images
are prepared without torchvision (`hub_models`), weights are read without running code, and a download is announced
first (`hub_folders`).

| models | roles |
|---|---|
| DINOv2, DINOv3, ViT, ResNet, ConvNeXt and other backbones | encoder |
| CLIP, SigLIP, SigLIP 2 | image-text encoder, encoder |
| SegFormer, UPerNet, DPT and others with logits per pixel | semantic segmenter |
| MaskFormer, Mask2Former, OneFormer | semantic, instance and panoptic segmenter |
| DETR and its family; boxes are filled where the network gives no masks | instance, panoptic segmenter |
| CLIPSeg, OWL-ViT, OWLv2, Grounding DINO, asked for free words; boxes are filled | semantic or instance segmenter |
| SAM, SAM-HQ, SAM 2 (`hardlook.models.interactive`) | promptable segmenter |

Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021. Zhai et al.,
"Sigmoid loss for language image pre-training", ICCV 2023. Tschannen et al., "SigLIP 2", 2025. Zhou et al., "Extract
free dense labels from CLIP", ECCV 2022 (MaskCLIP). Lüddecke and Ecker, "Image segmentation using text and image
prompts", CVPR 2022. Minderer et al., "Scaling open-vocabulary object detection", NeurIPS 2023. Liu et al., "Grounding
DINO", ECCV 2024.

>>> find_kind({"model_type": "detr", "architectures": ["DetrForSegmentation"]}).roles
('instance-segmenter', 'panoptic-segmenter')
>>> find_kind({"model_type": "dinov2", "architectures": ["Dinov2Model"]}).roles
('encoder',)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError, OptionError
from hardlook.extras import require
from hardlook.models.families import Family
from hardlook.models.families.hub_folders import (
    check_no_code,
    find_model_folder,
    list_cached_models,
    read_model_config,
)
from hardlook.models.families.hub_models import (
    REMEDY,
    HubFolder,
    HubModel,
    encode_tokens,
    prepare_image,
    takes_option,
)
from hardlook.models.families.words import TEMPLATES, choose_things, read_templates, read_words
from hardlook.models.interactive.sam2 import Sam2
from hardlook.models.interactive.transformers_sam import Sam, SamHQ
from hardlook.models.roles import Features, Image, Instances, LabelMap, Segments, Vectors
from hardlook.models.torch_inference import exact_inference
from hardlook.models.wrapping import wrap
from hardlook.models.wrapping.class_names import BACKGROUND
from hardlook.models.wrapping.detections import fill_boxes
from hardlook.models.wrapping.outputs import sigmoid

if TYPE_CHECKING:
    from torch import Tensor

Task = Literal["semantic", "instance", "panoptic"]
Multimask = Literal["always", "first", "never"]
_TASK_LENGTH = 77
_AT_ONCE = 32  # labels decoded at a time

MASK2FORMER_SIDE = 384
"""Mask2Former's masks are enlarged to this square before they are used, as in its own post-processing."""


class HubEncoder(HubModel):
    """A backbone: its pooled vector (else the class token, else the mean), and the last layer's map."""

    def __init__(self, folder: HubFolder) -> None:
        processor, files = folder.load_processor()
        super().__init__(folder, *files)
        known = getattr(require("transformers", extra="hf"), folder.architecture)
        # Classifiers come without the pooling layer, which would be filled at random.
        lacks_pooling = takes_option(known, "add_pooling_layer") and not folder.has_tensor("pooler")
        network = folder.load_network(**({"add_pooling_layer": False} if lacks_pooling else {}))
        if network.main_input_name != "pixel_values":
            raise ModelError(f"a {folder.model_type} reads no images", file=folder.path, remedy="choose an image model")
        self._wrapped = wrap(network, "encoder", preprocess=processor, batch_size=folder.batch_size)
        self.dimension = int(self._wrapped.dimension)

    def encode(self, images: Sequence[Image]) -> Features:
        """Vectors (N, dimension) float32 and, where the network has them, one map (C, h, w) per image."""
        features: Features = self._wrapped.encode(images)
        return features


class HubImageTextEncoder(HubModel):
    """CLIP, SigLIP or SigLIP 2: images, texts and patches as vectors of one space."""

    def __init__(self, folder: HubFolder) -> None:
        self._processor, images = folder.load_processor()
        self._tokenizer, texts = folder.load_tokenizer()
        super().__init__(folder, *images, *texts)
        self._network = folder.load_network()
        self._batch = folder.batch_size
        self._is_clip = folder.model_type == "clip"
        text, vision = self._network.config.text_config, self._network.config.vision_config
        self._longest = int(text.max_position_embeddings)
        self._patch = int(vision.patch_size)
        self._side = int(getattr(vision, "image_size", 0) or 0)
        if not self._is_clip and getattr(self._network.vision_model, "head", None) is None:
            raise ModelError("the network has no pooling head (vision_use_head)", file=folder.path, remedy=REMEDY)
        self.dimension = int(self._network.config.projection_dim if self._is_clip else vision.hidden_size)
        self.logit_scale = float(self._network.logit_scale.exp())

    def encode(self, images: Sequence[Image]) -> Features:
        """Vectors (N, dimension) float32 of unit length, and the last layer's patches as a map (C, h, w) per image."""
        if not len(images):
            return Features(np.zeros((0, self.dimension), np.float32))
        vectors, maps = zip(*self._run(images, self._read_features), strict=True)
        return Features(np.stack(vectors), list(maps))

    def encode_images(self, images: Sequence[Image]) -> Vectors:
        """(N, dimension) float32 of unit length."""
        vectors = [vector for vector, _ in self._run(images, self._read_features)]
        return np.stack(vectors) if vectors else np.zeros((0, self.dimension), np.float32)

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, dimension) float32 of unit length; texts are taken as they are."""
        import torch

        parts = [np.zeros((0, self.dimension), np.float32)]
        for start in range(0, len(texts), self._batch):
            some = texts[start : start + self._batch]
            # SigLIP was trained on texts filled to one length, without a mask.
            tokens = encode_tokens(self._tokenizer, some, self._longest, self.device, masked=self._is_clip)
            with exact_inference():
                pooled = _get_pooled(self._network.get_text_features(**tokens))
                parts.append(torch.nn.functional.normalize(pooled, dim=1).cpu().numpy())
        return np.concatenate(parts)

    def encode_patches(self, images: Sequence[Image], size: int = 0) -> list[NDArray[np.float32]]:
        """One map (dimension, h, w) float32 per image: a unit vector for each patch, of the space of the texts.

        MaskCLIP's way: in the last attention each patch sees itself alone, that is its value; for SigLIP that is the
        attention of the pooling head. The whole image is stretched to a square of `size` pixels, by default that of
        training; SigLIP 2 keeps the image's proportions and has no `size`.
        """
        return self._run(images, self._read_patches, whole=True, size=size)

    def _run(
        self, images: Sequence[Image], read: Callable[[dict[str, Any]], list[Any]], whole: bool = False, size: int = 0
    ) -> list[Any]:
        """What `read` makes of the inputs, one answer per image."""
        import torch

        prepared = [self._prepare(image, whole, size) for image in images]
        answers: list[Any] = []
        for start in range(0, len(images), self._batch):
            some = prepared[start : start + self._batch]
            inputs = {
                name: torch.from_numpy(np.concatenate([one[name] for one in some])).to(self.device) for name in some[0]
            }
            with exact_inference():
                answers += read(inputs)
        return answers

    def _prepare(self, image: Image, whole: bool, size: int) -> dict[str, NDArray[Any]]:
        options: dict[str, Any] = {}
        if whole and self._side:
            side = max(self._patch, (size or self._side) // self._patch * self._patch)
            options = {"size": {"height": side, "width": side}, "do_resize": True}
            if hasattr(self._processor, "do_center_crop"):
                options["do_center_crop"] = False
        made = prepare_image(self._processor, image, **options)
        return made

    def _read_features(self, inputs: dict[str, Any]) -> list[Any]:
        import torch

        pooled, hidden = self._look(inputs)
        vectors = torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()
        return list(zip(vectors, self._to_maps(hidden, inputs), strict=True))

    def _look(self, inputs: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Pooled vectors (N, D), not yet of unit length, and the last layer's patches (N, P, C)."""
        seen = self._network.vision_model(**_rename_mask(self._network.vision_model, inputs))
        if self._is_clip:
            return self._network.visual_projection(seen.pooler_output), seen.last_hidden_state[:, 1:]
        return seen.pooler_output, seen.last_hidden_state

    def _read_patches(self, inputs: dict[str, Any]) -> list[Any]:
        import torch

        vision = self._network.vision_model
        if self._is_clip:
            last = vision.encoder.layers[-1]
            # The states before the last layer.
            hidden = vision(**inputs, interpolate_pos_encoding=True, output_hidden_states=True).hidden_states[-2]
            values = last.self_attn.out_proj(last.self_attn.v_proj(last.layer_norm1(hidden)))
            hidden = hidden + values
            hidden = hidden + last.mlp(last.layer_norm2(hidden))
            patches = self._network.visual_projection(vision.post_layernorm(hidden[:, 1:]))
        else:
            options = {"interpolate_pos_encoding": True} if self._side else {}
            hidden = vision(**_rename_mask(vision, inputs), **options).last_hidden_state
            count, length, width = hidden.shape
            patches = vision.head(hidden.reshape(count * length, 1, width)).reshape(count, length, -1)
        return self._to_maps(torch.nn.functional.normalize(patches, dim=2), inputs)

    def _to_maps(self, tokens: Tensor, inputs: dict[str, Any]) -> list[NDArray[np.float32]]:
        """Tokens (N, P, C) of patches as one map (C, h, w) per image."""
        shapes = inputs.get("spatial_shapes")
        maps = []
        for place, cells in enumerate(tokens.cpu().numpy()):
            if shapes is not None:
                height, width = (int(length) for length in shapes[place])
            else:
                height, width = (length // self._patch for length in inputs["pixel_values"].shape[2:])
            kept = cells[: height * width].reshape(height, width, -1)
            maps.append(np.ascontiguousarray(kept.transpose(2, 0, 1)))
        return maps


def _rename_mask(vision: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs under the names of the vision network: SigLIP 2 has called its mask by two."""
    if "pixel_attention_mask" in inspect.signature(vision.forward).parameters:
        return inputs
    return {("attention_mask" if name == "pixel_attention_mask" else name): inputs[name] for name in inputs}


def _get_pooled(answer: Any) -> Tensor:
    """Vectors (N, D): transformers 5.0 and later return an object that holds them, earlier versions the tensor."""
    pooled: Tensor = getattr(answer, "pooler_output", answer)
    return pooled


class HubSemanticSegmenter(HubModel):
    """A network with logits for each pixel."""

    def __init__(self, folder: HubFolder) -> None:
        processor, files = folder.load_processor()
        super().__init__(folder, *files)
        network = folder.load_network()
        names = read_class_names(network, folder.path)
        self._wrapped = wrap(
            network, "semantic-segmenter", preprocess=processor, classes=names, batch_size=folder.batch_size
        )
        self.labels: tuple[str, ...] = self._wrapped.labels

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map per image: indices into `labels`."""
        maps: list[LabelMap] = self._wrapped.segment(images)
        return maps


class HubUniversalSegmenter(HubModel):
    """Mask2Former, MaskFormer or OneFormer: queries with a class and a mask, read as each role needs them.

    OneFormer gets the task of the role as its input. `things` are the countable labels; detections are of these alone.
    """

    def __init__(self, folder: HubFolder, things: Sequence[str] = (), threshold: float = 0.5) -> None:
        processor, files = folder.load_processor()
        tokenizer, tokens = folder.load_tokenizer() if folder.model_type == "oneformer" else (None, ())
        super().__init__(folder, *files, *tokens)
        self._network = folder.load_network()
        self._tokenizer, self._processor = tokenizer, processor
        self._names = read_class_names(self._network, folder.path)
        self.labels: tuple[str, ...] = tuple(dict.fromkeys(name for name in self._names if name != "N/A"))
        self._things, self._threshold, self._batch = tuple(things), threshold, folder.batch_size
        if things:
            choose_things(self.labels, things)  # an unknown label is an error now

    @functools.cached_property
    def things(self) -> tuple[bool, ...]:
        """Which labels are countable: as given, or as the label set says that has all of them."""
        return choose_things(self.labels, self._things)

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map per image: indices into `labels`."""
        maps: list[LabelMap] = self._semantic.segment(images)
        return maps

    def detect(self, images: Sequence[Image]) -> list[Instances]:
        """One `Instances` per image; stuff is left out where it is known which labels are stuff."""
        found: list[Instances] = self._instance.detect(images)
        return found

    def segment_panoptic(self, images: Sequence[Image]) -> list[Segments]:
        """One `Segments` per image; a stuff label has at most one segment."""
        segments: list[Segments] = self._panoptic.segment_panoptic(images)
        return segments

    @functools.cached_property
    def _semantic(self) -> Any:
        return self._wrap("semantic-segmenter", "semantic")

    @functools.cached_property
    def _instance(self) -> Any:
        try:
            countable = self._list_things(self.things)
        except OptionError:  # a vocabulary that no label set has: every label may be detected
            return self._wrap("instance-segmenter", "instance")
        return self._wrap("instance-segmenter", "instance", things=countable)

    @functools.cached_property
    def _panoptic(self) -> Any:
        return self._wrap("panoptic-segmenter", "panoptic", things=self._list_things(self.things))

    def _list_things(self, things: Sequence[bool]) -> list[str]:
        return [label for label, flag in zip(self.labels, things, strict=True) if flag]

    def _wrap(self, role: str, task: Task, **options: Any) -> Any:
        network: Any = self._network
        if self._tokenizer is not None:
            made = self._tokenizer(
                [f"the task is {task}"],
                padding="max_length",
                truncation=True,
                max_length=_TASK_LENGTH,
                return_tensors="pt",
            )
            network = functools.partial(_call_with_task, network, made["input_ids"].to(self.device))
        elif network.config.model_type == "mask2former":
            network = functools.partial(_call_mask2former, network)
        return wrap(
            network,
            role,
            preprocess=self._processor,
            classes=self._names,
            batch_size=self._batch,
            threshold=self._threshold,
            **options,
        )


class HubDetector(HubModel):
    """A network of DETR's family: boxes, and masks where it has them; without masks boxes are filled."""

    def __init__(self, folder: HubFolder) -> None:
        processor, files = folder.load_processor()
        super().__init__(folder, *files)
        network = folder.load_network()
        self._options: dict[str, Any] = {
            "preprocess": processor,
            "classes": read_class_names(network, folder.path),
            "batch_size": folder.batch_size,
        }
        self._network = network
        self._wrapped = wrap(network, "instance-segmenter", **self._options)
        self.labels: tuple[str, ...] = self._wrapped.labels

    def detect(self, images: Sequence[Image]) -> list[Instances]:
        """One `Instances` per image, scores descending."""
        found: list[Instances] = self._wrapped.detect(images)
        return found


class HubPanopticDetector(HubDetector):
    """DETR with its head for masks, for detections and panoptic segments."""

    def __init__(self, folder: HubFolder, things: Sequence[str] = (), threshold: float = 0.5) -> None:
        super().__init__(folder)
        self._things, self._threshold = tuple(things), threshold

    @functools.cached_property
    def things(self) -> tuple[bool, ...]:
        """Which labels are countable: as given, or as the label set says that has all of them."""
        return choose_things(self.labels, self._things)

    @functools.cached_property
    def _panoptic(self) -> Any:
        countable = [label for label, flag in zip(self.labels, self.things, strict=True) if flag]
        options = self._options | {"things": countable, "threshold": self._threshold}
        return wrap(self._network, "panoptic-segmenter", **options)

    def segment_panoptic(self, images: Sequence[Image]) -> list[Segments]:
        """One `Segments` per image; a stuff label has at most one segment."""
        segments: list[Segments] = self._panoptic.segment_panoptic(images)
        return segments


def read_class_names(network: Any, folder: Path) -> list[str]:
    """The names of `id2label` in order, `N/A` in its gaps; placeholders (LABEL_0) are an error."""
    named = {int(number): str(name) for number, name in (network.config.id2label or {}).items()}
    if not named or all(name == f"LABEL_{number}" for number, name in named.items()):
        raise ModelError(
            "the configuration does not name the classes (id2label)",
            file=folder / "config.json",
            remedy='write their names into config.json: "id2label": {"0": "wall", ...}',
        )
    names = [named.get(number, "N/A") for number in range(max(named) + 1)]
    return ["background" if name == BACKGROUND else name for name in names]


def _call_with_task(network: Any, tokens: Any, pixel_values: Any, pixel_mask: Any = None) -> Any:
    """OneFormer's answer for a task, given as tokens (1, T)."""
    return network(pixel_values=pixel_values, pixel_mask=pixel_mask, task_inputs=tokens.expand(len(pixel_values), -1))


def _call_mask2former(network: Any, pixel_values: Any, pixel_mask: Any = None) -> dict[str, Any]:
    """Mask2Former's classes and enlarged masks of its queries."""
    import torch

    answer = network(pixel_values=pixel_values, pixel_mask=pixel_mask)
    masks = torch.nn.functional.interpolate(
        answer.masks_queries_logits, size=(MASK2FORMER_SIDE,) * 2, mode="bilinear", align_corners=False
    )
    return {"class_queries_logits": answer.class_queries_logits, "masks_queries_logits": masks}


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


@dataclass(frozen=True)
class Kind:
    """A kind of model: its roles, what makes it of a folder, and the class to load, by default the config's own."""

    roles: tuple[str, ...]
    build: Callable[..., Any]
    architecture: str = ""


IMAGE_TEXT = Kind(("image-text-encoder", "encoder"), HubImageTextEncoder)
UNIVERSAL = Kind(("semantic-segmenter", "instance-segmenter", "panoptic-segmenter"), HubUniversalSegmenter)
FREE_DETECTOR = ("instance-segmenter",)


def _open_sam(kind: Any) -> Callable[..., Any]:
    def build(folder: HubFolder, multimask: Multimask | None = None, previous: bool = True) -> Any:
        given = {} if multimask is None else {"multimask": multimask}
        sizes = {} if folder.batch is None else {"batch": folder.batch}
        model = kind(folder.path, previous=previous, device=folder.device, **given, **sizes)
        model.libraries = ("torch", "transformers")
        return model

    return build


_PROMPTABLE = ("promptable-segmenter",)

BY_TYPE: Mapping[str, Kind] = {
    "clip": Kind(IMAGE_TEXT.roles, IMAGE_TEXT.build, "CLIPModel"),
    "siglip": Kind(IMAGE_TEXT.roles, IMAGE_TEXT.build, "SiglipModel"),
    "siglip2": Kind(IMAGE_TEXT.roles, IMAGE_TEXT.build, "Siglip2Model"),
    "maskformer": Kind(UNIVERSAL.roles, UNIVERSAL.build, "MaskFormerForInstanceSegmentation"),
    "mask2former": Kind(UNIVERSAL.roles, UNIVERSAL.build, "Mask2FormerForUniversalSegmentation"),
    "oneformer": Kind(UNIVERSAL.roles, UNIVERSAL.build, "OneFormerForUniversalSegmentation"),
    "clipseg": Kind(("semantic-segmenter",), HubClipSeg, "CLIPSegForImageSegmentation"),
    "owlvit": Kind(FREE_DETECTOR, HubOwl, "OwlViTForObjectDetection"),
    "owlv2": Kind(FREE_DETECTOR, HubOwl, "Owlv2ForObjectDetection"),
    "grounding-dino": Kind(FREE_DETECTOR, HubGroundingDino, "GroundingDinoForObjectDetection"),
    "mm-grounding-dino": Kind(FREE_DETECTOR, HubGroundingDino, "MMGroundingDinoForObjectDetection"),
    "sam": Kind(_PROMPTABLE, _open_sam(Sam), "SamModel"),
    "sam_hq": Kind(_PROMPTABLE, _open_sam(SamHQ), "SamHQModel"),
    "sam2": Kind(_PROMPTABLE, _open_sam(Sam2), "Sam2Model"),
    "sam2_video": Kind(_PROMPTABLE, _open_sam(Sam2), "Sam2Model"),
}
"""Types of models that are one kind, whatever their configuration says of architectures."""

BY_ARCHITECTURE: Mapping[str, Kind] = {
    "ForSemanticSegmentation": Kind(("semantic-segmenter",), HubSemanticSegmenter),
    "ForObjectDetection": Kind(("instance-segmenter",), HubDetector),
    "DetrForSegmentation": Kind(("instance-segmenter", "panoptic-segmenter"), HubPanopticDetector),
}
"""Ends of the names of architectures; any other network of images is an encoder."""


def find_kind(config: Mapping[str, Any]) -> Kind:
    """What kind of model a configuration describes."""
    architecture = _read_architecture(config)
    if (known := BY_TYPE.get(str(config["model_type"]))) is not None:
        return known
    ends = (kind for end, kind in BY_ARCHITECTURE.items() if architecture.endswith(end))
    return next(ends, Kind(("encoder",), HubEncoder))


def find_roles(name: str) -> tuple[str, ...]:
    """The roles of a model, from its configuration alone."""
    return find_kind(read_model_config(name)).roles


def build_model(
    name: str,
    labels: tuple[str, ...] = (),
    templates: tuple[str, ...] = (),
    things: tuple[str, ...] = (),
    threshold: float | None = None,
    detections: int | None = None,
    multimask: Multimask | None = None,
    previous: bool | None = None,
    device: str = "cpu",
    batch: int | None = None,
) -> Any:
    """The model of a folder or of a repository of the model hub.

    `labels` are the words of a model with an open vocabulary: a list, a file or a label set; `templates` its prompts,
    with `{label}`. `things` are the countable labels of a panoptic model. `threshold` is the probability below which a
    model says nothing (free words: 0; masks: .5), `detections` the most boxes of an image (100). `multimask` and
    `previous` are SAM's. `batch` are the images, or for SAM the prompts, in one forward pass.
    """
    config = read_model_config(name)
    model_type = str(config["model_type"])
    kind = find_kind(config)
    given = {
        "labels": labels or None,
        "templates": templates or None,
        "things": things or None,
        "threshold": threshold,
        "detections": detections,
        "multimask": multimask,
        "previous": previous,
    }
    options = {option: value for option, value in given.items() if value is not None}
    known = list(inspect.signature(kind.build).parameters)[1:]
    if unknown := [option for option in options if option not in known]:
        takes = ", ".join([*known, "device", "batch"])
        raise OptionError(f"a {model_type} model has no {unknown[0]}", remedy=f"it takes {takes}")
    if "labels" in known and not labels:
        options["labels"] = ()  # the error of words says what to give
    if threshold is not None and not 0 <= threshold < 1:
        raise OptionError(f"threshold {threshold} is not a probability", remedy="from 0 to below 1")
    if detections is not None and detections < 1:
        raise OptionError(f"detections is {detections}", remedy="a whole number of at least 1")
    architecture = kind.architecture or _choose_architecture(config, kind, name)
    folder = HubFolder(find_model_folder(name), model_type, architecture, device, batch)
    return kind.build(folder, **options)


def _choose_architecture(config: Mapping[str, Any], kind: Kind, name: str) -> str:
    """The class of transformers to load: the config's own, for an encoder that of the bare network."""
    auto = require("transformers.models.auto.modeling_auto", extra="hf")
    model_type = str(config["model_type"])
    bare = auto.MODEL_MAPPING_NAMES.get(model_type)
    check_no_code(config, bare is not None, name)
    if kind.build is not HubEncoder:
        return _read_architecture(config)
    if bare is None:
        remedy = 'pip install --upgrade "hardlook[hf]", or check model_type in config.json'
        raise ModelError(f"the installed transformers knows no {model_type!r} model", file=name, remedy=remedy)
    return str(bare if isinstance(bare, str) else bare[0])


def _read_architecture(config: Mapping[str, Any]) -> str:
    named = config.get("architectures")
    return str(named[0]) if isinstance(named, list) and named else ""


FAMILY = Family(
    prefix="hf",
    summary="models of transformers: a folder, or OWNER/NAME of the Hugging Face hub",
    extra="hf",
    roles=tuple(
        dict.fromkeys(
            role
            for kind in (*BY_TYPE.values(), *BY_ARCHITECTURE.values(), Kind(("encoder",), HubEncoder))
            for role in kind.roles
        )
    ),
    list_names=list_cached_models,
    find_roles=find_roles,
    build=build_model,
)
