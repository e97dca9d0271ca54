"""SAM-like networks from a local folder in transformers' layout; nothing is ever fetched or unpickled.

The layout is what `save_pretrained` writes and what a model hub's page holds: `config.json` and the weights. Of the
processor's files nothing is read: images are prepared here.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from hardlook.errors import ModelError
from hardlook.extras import require
from hardlook.models.text.transformers_folder import check_folder, quiet_and_offline

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
    files = check_folder(folder, families, tokenizer=False, remedy=_GET)
    with quiet_and_offline():
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
