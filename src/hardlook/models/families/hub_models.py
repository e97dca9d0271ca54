"""What all models of the family `hf` share: the opened folder, its files, its tokenizer, its libraries."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hardlook.errors import DataError, OptionError
from hardlook.extras import require
from hardlook.models.families.image_preparation import load_image_processor
from hardlook.models.transformers_folder import (
    TOKENIZERS,
    check_folder,
    loading_errors,
    quiet_and_offline,
    read_network,
)
from hardlook.reading import reading

REMEDY = "download the model's whole page (config, weights, settings) and give that folder as hf:FOLDER"
GPU_BATCH = 8


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
