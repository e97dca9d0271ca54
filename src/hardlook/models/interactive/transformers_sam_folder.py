"""SAM-like networks from a local folder in transformers' layout; nothing is ever fetched or unpickled.

The layout is what `save_pretrained` writes and what a model hub's page holds: `config.json` and the weights. Of the
processor's files nothing is read: images are prepared here.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from hardlook.errors import DataError, ModelError
from hardlook.extras import require
from hardlook.models.text.transformers_folder import WEIGHTS, _quiet_and_offline

_GET = "download the model's whole page (config and weights) and give that folder with --model-arg path=FOLDER"


def open_network(
    path: Path, *, families: tuple[str, ...], architecture: str, device: str = "cpu"
) -> tuple[Any, tuple[Path, ...]]:
    """Transformers' class `architecture` in float32 and evaluation mode, and the files that it was read from.

    `families` are the kinds that the folder's config may say it is. Weights that leave a part of the network without
    values are an error: transformers would fill it at random.
    """
    require("torch", extra="torch")
    folder = Path(path).expanduser()
    files = check_network_folder(folder, families)
    with _quiet_and_offline():
        transformers = require("transformers", extra="hf")
        known = getattr(transformers, architecture, None)
        if known is None:
            raise ModelError(
                f"the installed transformers {transformers.__version__} has no {architecture}",
                remedy='pip install --upgrade "hardlook[hf]"',
            )
        try:
            network, report = known.from_pretrained(str(folder), local_files_only=True, output_loading_info=True)
        except (OSError, ValueError, ImportError, RuntimeError, KeyError, pickle.UnpicklingError) as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(f"transformers cannot load this folder: {said[0]}", file=folder, remedy=_GET) from error
    lacking = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if lacking:
        shown = ", ".join(lacking[:6]) + (f" and {len(lacking) - 6} more" if len(lacking) > 6 else "")
        raise ModelError(f"the weights lack {len(lacking)} tensors: {shown}", file=folder, remedy=_GET)
    return network.float().eval().requires_grad_(False).to(device), files


def check_network_folder(folder: Path, families: tuple[str, ...]) -> tuple[Path, ...]:
    """The config and the weights; an error that names the first one missing.

    >>> check_network_folder(Path("nowhere"), ("sam",))
    Traceback (most recent call last):
    ...
    hardlook.errors.DataError: the model's folder does not exist
      file: nowhere
      remedy: download the model's whole page (config and weights) and give that folder with --model-arg path=FOLDER
    """
    if not folder.is_dir():
        raise DataError("the model's folder does not exist", file=folder, remedy=_GET)
    config = folder / "config.json"
    if not config.is_file():
        raise DataError("the folder has no config.json", file=folder, remedy=_GET)
    try:
        kind = json.loads(config.read_text(encoding="utf-8")).get("model_type")
    except (ValueError, AttributeError) as error:
        raise DataError(f"not a readable configuration: {error}", file=config, remedy=_GET) from error
    if kind not in families:
        raise ModelError(
            f"the folder holds a {kind!r} model, expected {' or '.join(map(repr, families))}",
            file=config,
            remedy="give a folder of that family, or name the model that is for this one (sam, sam-hq, sam2)",
        )
    weights = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        raise DataError(f"the folder has no weights ({' or '.join(WEIGHTS[::2])})", file=folder, remedy=_GET)
    parts = [weights]
    if weights.suffix == ".json":
        named = json.loads(weights.read_text(encoding="utf-8"))["weight_map"].values()
        parts += [folder / name for name in sorted(set(named))]
    absent = [part for part in parts if not part.is_file()]
    if absent:
        raise DataError("a part of the weights is missing", file=absent[0], remedy=_GET)
    return (config, *parts)
