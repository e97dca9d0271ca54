"""The family `hf`: models of transformers, from a folder, from the cache, or from the model hub.

The type of the model and its architecture, as `config.json` names them, say which roles it has. Images are prepared
without torchvision, weights are read without running code, and a download is announced first (`hub_folders`).

>>> find_kind({"model_type": "detr", "architectures": ["DetrForSegmentation"]}).roles
('instance-segmenter', 'panoptic-segmenter')
>>> find_kind({"model_type": "dinov2", "architectures": ["Dinov2Model"]}).roles
('encoder',)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hardlook.errors import ModelError, OptionError
from hardlook.extras import require
from hardlook.models.families import Family
from hardlook.models.families.hub_folders import (
    check_no_code,
    find_model_folder,
    list_cached_models,
    read_model_config,
)
from hardlook.models.families.hub_models import HubFolder
from hardlook.models.families.transformers_encoders import HubEncoder, HubImageTextEncoder
from hardlook.models.families.transformers_free_words import HubClipSeg, HubGroundingDino, HubOwl
from hardlook.models.families.transformers_segmenters import (
    HubDetector,
    HubPanopticDetector,
    HubSemanticSegmenter,
    HubUniversalSegmenter,
)
from hardlook.models.interactive.sam2 import Sam2
from hardlook.models.interactive.transformers_sam import Sam, SamHQ

Multimask = Literal["always", "first", "never"]


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
