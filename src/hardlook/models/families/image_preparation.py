"""Image processors of transformers that need no torchvision.

Most kinds of image processor have a version on Pillow and numpy, and that one is used, whatever the folder names. The
few that have none are read by their settings: resizing, cutting, scaling and normalising, in that order, by Pillow.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, ModelError
from hardlook.extras import require
from hardlook.models.roles import Image
from hardlook.models.transformers_folder import loading_errors, quiet_and_offline
from hardlook.reading import read_json

FILES = ("preprocessor_config.json", "processor_config.json")

# Settings that a processor on Pillow understands in every family.
_SETTINGS = (
    "do_resize", "size", "resample", "do_center_crop", "crop_size", "do_rescale", "rescale_factor", "do_normalize",
    "image_mean", "image_std", "do_convert_rgb",
)  # fmt: skip

_REMEDY = "download the model's whole page (config, weights, preprocessor_config.json) and give that folder"


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
    with quiet_and_offline(), loading_errors(folder, _REMEDY):
        return _make_processor(kind, settings), (path,)


def prepare_image(processor: Any, image: Image, **options: Any) -> dict[str, NDArray[Any]]:
    """What the processor makes of an image, each (1, ...), as arrays by name; `options` replace its settings."""
    # The axis of the colours is given explicitly: otherwise the library misreads an image of one or three rows.
    made = processor(images=np.array(image), input_data_format="channels_last", return_tensors="np", **options)
    return {name: np.asarray(made[name]) for name in made}


def _read_settings(folder: Path) -> tuple[Path, dict[str, Any]]:
    path = next((folder / name for name in FILES if (folder / name).is_file()), None)
    if path is None:
        raise DataError("the folder does not say how images are prepared", file=folder / FILES[0], remedy=_REMEDY)
    settings = read_json(path, what="not readable as settings of an image processor", remedy=_REMEDY)
    if isinstance(settings, dict):
        settings = settings.get("image_processor", settings)
    if not isinstance(settings, dict):
        raise DataError("the settings are no JSON object", file=path, remedy=_REMEDY)
    return path, settings


def _find_default_kind(folder: Path) -> str:
    """The image processor that transformers has for this type of model; empty if none."""
    transformers = require("transformers", extra="hf")
    config = read_json(folder / "config.json", what="not a readable configuration", remedy=_REMEDY)
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
        values = {name: values[name] for name in (*_SETTINGS, "ignore_index", "size_divisor") if name in values}
    if known is None or getattr(known, "is_dummy", False):
        if not stem.endswith("ImageProcessor"):
            raise ValueError(f"there is no image processor {kind!r}")
        if lacking := [name for name in ("size", "image_mean", "image_std") if name not in values]:
            raise ValueError(f"the settings of {kind} lack {lacking[0]}, and its class needs torchvision")
        known = transformers.BitImageProcessorPil if modern else transformers.BitImageProcessor
        values = {"do_center_crop": False} | {name: values[name] for name in _SETTINGS if name in values}
    return known.from_dict(values) if hasattr(known, "from_dict") else known(**values)
