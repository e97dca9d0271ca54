"""What all models of the family `hf` share: the opened folder, its files, its tokenizer, its image processor.

Image processors need no torchvision: most kinds have a version on Pillow and numpy, and that one is used, whatever the
folder names. The few that have none are read by their settings: resizing, cutting, scaling and normalising, in that
order, by Pillow.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.extras import require
from hardlook.models.roles import Image
from hardlook.models.transformers_folder import (
    TOKENIZERS,
    check_folder,
    loading_errors,
    quiet_and_offline,
    read_network,
)
from hardlook.reading import read_json, reading

REMEDY = "download the model's whole page (config, weights, settings) and give that folder as hf:FOLDER"
GPU_BATCH = 8
PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")

# Settings that a processor on Pillow understands in every family.
_PROCESSOR_SETTINGS = (
    "do_resize", "size", "resample", "do_center_crop", "crop_size", "do_rescale", "rescale_factor", "do_normalize",
    "image_mean", "image_std", "do_convert_rgb",
)  # fmt: skip

_PROCESSOR_REMEDY = "download the model's whole page (config, weights, preprocessor_config.json) and give that folder"


@dataclass(frozen=True)
class HubFolder:
    """A folder in transformers' layout, the type of its model, the class to load, and where to run it.

    `batch` are the images in one forward pass; by default 1 on the CPU, where answers then do not depend on the
    others in the batch, and 8 on a GPU.
    """

    path: Path
    model_type: str
    architecture: str
    device: str = "cpu"
    batch: int | None = None

    def __post_init__(self) -> None:
        if self.batch is not None and self.batch < 1:
            raise OptionError(f"batch is {self.batch}", remedy="a whole number of at least 1")

    @property
    def batch_size(self) -> int:
        """Images in one forward pass."""
        return self.batch or (1 if self.device == "cpu" else GPU_BATCH)

    def list_files(self) -> tuple[Path, ...]:
        """Configuration and weights; an error names what is missing."""
        return check_folder(self.path, (self.model_type,), remedy=REMEDY)

    def load_network(self, **options: Any) -> Any:
        """The network in float32 and evaluation mode, on the device."""
        return read_network(self.path, self.architecture, remedy=REMEDY, device=self.device, **options)

    def load_processor(self) -> tuple[Any, tuple[Path, ...]]:
        """The image processor, which needs no torchvision, and its file."""
        return load_image_processor(self.path)

    def load_tokenizer(self) -> tuple[Any, tuple[Path, ...]]:
        """The tokenizer and its files."""
        names = next((names for names in TOKENIZERS if all((self.path / name).is_file() for name in names)), None)
        if names is None:
            known = " or ".join(" + ".join(names) for names in TOKENIZERS)
            raise DataError(f"the folder has no tokenizer ({known})", file=self.path, remedy=REMEDY)
        transformers = require("transformers", extra="hf")
        with quiet_and_offline(), loading_errors(self.path, REMEDY):
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(self.path), local_files_only=True)
        further = [self.path / name for name in ("tokenizer_config.json",) if (self.path / name).is_file()]
        return tokenizer, (*(self.path / name for name in names), *further)

    def has_tensor(self, part: str) -> bool:
        """Whether a tensor's name has `part` in it; True where the names cannot be listed without loading all."""
        single, index = self.path / "model.safetensors", self.path / "model.safetensors.index.json"
        with reading(single if single.is_file() else index, "not readable as weights", remedy=REMEDY):
            if single.is_file():
                with require("safetensors", extra="hf").safe_open(single, framework="np") as weights:
                    return any(part in name for name in weights.keys())
            if index.is_file():
                return any(part in name for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"])
        return True


class HubModel:
    """A model read from a folder: its files, its device, and the libraries its answers depend on."""

    libraries: tuple[str, ...] = ("pillow", "torch", "transformers")

    def __init__(self, folder: HubFolder, *further_files: Path) -> None:
        self.device = folder.device
        self.weights_files = (*folder.list_files(), *further_files)


def encode_tokens(
    tokenizer: Any, texts: Sequence[str], longest: int, device: str, *, masked: bool = True
) -> dict[str, Any]:
    """Token numbers (N, `longest`) of texts, filled to one length, and with `masked` which of them are real."""
    import torch

    made = tokenizer(list(texts), padding="max_length", truncation=True, max_length=longest, return_tensors="np")
    names = ("input_ids", "attention_mask") if masked else ("input_ids",)
    return {name: torch.from_numpy(np.asarray(made[name])).to(device) for name in names}


def takes_option(kind: Any, option: str) -> bool:
    """Whether the constructor of a network's class has this option."""
    return option in inspect.signature(kind.__init__).parameters


def load_image_processor(folder: Path) -> tuple[Any, tuple[Path, ...]]:
    """The folder's image processor on Pillow, and the file it was read from."""
    path, settings = _read_settings(folder)
    kind = str(settings.get("image_processor_type") or settings.get("feature_extractor_type") or "")
    if not kind:
        kind = _find_default_kind(folder)
    if "auto_map" in settings and not kind:
        raise ModelError(
            "the image processor is code of the repository, which is never run (trust_remote_code stays off)",
            file=path,
            remedy="prepare images in your own code and use hl.wrap",
        )
    with quiet_and_offline(), loading_errors(folder, _PROCESSOR_REMEDY):
        return _make_processor(kind, settings), (path,)


def prepare_image(processor: Any, image: Image, **options: Any) -> dict[str, NDArray[Any]]:
    """What the processor makes of an image, each (1, ...), as arrays by name; `options` replace its settings."""
    # The axis of the colours is given explicitly: otherwise the library misreads an image of one or three rows.
    made = processor(images=np.array(image), input_data_format="channels_last", return_tensors="np", **options)
    return {name: np.asarray(made[name]) for name in made}


def _read_settings(folder: Path) -> tuple[Path, dict[str, Any]]:
    path = next((folder / name for name in PROCESSOR_FILES if (folder / name).is_file()), None)
    if path is None:
        raise DataError(
            "the folder does not say how images are prepared",
            file=folder / PROCESSOR_FILES[0],
            remedy=_PROCESSOR_REMEDY,
        )
    settings = read_json(path, what="not readable as settings of an image processor", remedy=_PROCESSOR_REMEDY)
    if isinstance(settings, dict):
        settings = settings.get("image_processor", settings)
    if not isinstance(settings, dict):
        raise DataError("the settings are no JSON object", file=path, remedy=_PROCESSOR_REMEDY)
    return path, settings


def _find_default_kind(folder: Path) -> str:
    """The image processor that transformers has for this type of model; empty if none."""
    transformers = require("transformers", extra="hf")
    config = read_json(folder / "config.json", what="not a readable configuration", remedy=_PROCESSOR_REMEDY)
    auto = require("transformers.models.auto.image_processing_auto", extra="hf")
    named = auto.IMAGE_PROCESSOR_MAPPING_NAMES.get(config.get("model_type"), {})
    kinds = list(named.values()) if isinstance(named, Mapping) else [one for one in named if one]
    return next((kind for kind in kinds if kind and hasattr(transformers, kind)), "")


def _make_processor(kind: str, settings: Mapping[str, Any]) -> Any:
    transformers = require("transformers", extra="hf")
    stem = kind.removesuffix("Fast").removesuffix("Pil").replace("FeatureExtractor", "ImageProcessor")
    # Since 5.0 the class on Pillow is called ...Pil; before, the plain name was that class.
    modern = hasattr(transformers, "ViTImageProcessorPil")
    known = getattr(transformers, f"{stem}Pil" if modern else stem, None)
    values = {name: value for name, value in settings.items() if name not in ("auto_map", "processor_class")}
    if stem.startswith("OneFormer"):
        # Its own class fetches a list of classes from the hub; images are prepared as MaskFormer does.
        known = transformers.MaskFormerImageProcessorPil if modern else transformers.MaskFormerImageProcessor
        values = {
            name: values[name] for name in (*_PROCESSOR_SETTINGS, "ignore_index", "size_divisor") if name in values
        }
    if known is None or getattr(known, "is_dummy", False):
        if not stem.endswith("ImageProcessor"):
            raise ValueError(f"there is no image processor {kind!r}")
        if lacking := [name for name in ("size", "image_mean", "image_std") if name not in values]:
            raise ValueError(f"the settings of {kind} lack {lacking[0]}, and its class needs torchvision")
        known = transformers.BitImageProcessorPil if modern else transformers.BitImageProcessor
        values = {"do_center_crop": False} | {name: values[name] for name in _PROCESSOR_SETTINGS if name in values}
    return known.from_dict(values) if hasattr(known, "from_dict") else known(**values)
