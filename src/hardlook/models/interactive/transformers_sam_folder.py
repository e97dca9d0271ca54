"""SAM-like networks from a local folder in transformers' layout.

Of the processor's files nothing is read: images are prepared here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hardlook.models.transformers_network import check_folder, read_network

_GET = "download the model's whole page (config and weights) and give that folder with --model-arg path=FOLDER"


def open_network(
    path: Path, *, families: tuple[str, ...], architecture: str, device: str = "cpu"
) -> tuple[Any, tuple[Path, ...]]:
    """Transformers' class `architecture` in float32 and evaluation mode, and the files that it was read from.

    `families` are the kinds that the folder's config may say it is.
    """
    folder = Path(path).expanduser()
    files = check_folder(folder, families, remedy=_GET)
    return read_network(folder, architecture, remedy=_GET, device=device), files
