"""Segmenters and detectors of transformers with a fixed vocabulary: that of the folder's `id2label`.

SegFormer, UPerNet, DPT and other networks for semantic segmentation; Mask2Former, MaskFormer and OneFormer, which have
three roles; DETR and its family, whose boxes are filled where the network gives no masks.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from hardlook.errors import ModelError, OptionError
from hardlook.models.families.hub_models import HubFolder, HubModel
from hardlook.models.families.words import choose_things
from hardlook.models.roles import Image, Instances, LabelMap, Segments
from hardlook.models.wrapping import wrap
from hardlook.models.wrapping.class_names import BACKGROUND

Task = Literal["semantic", "instance", "panoptic"]
_TASK_LENGTH = 77

MASK2FORMER_SIDE = 384
"""Mask2Former's masks are enlarged to this square before they are used, as in its own post-processing."""


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
