"""Tensors on disk as safetensors, with a header of words, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.errors import DataError
from hardlook.extras import require

if TYPE_CHECKING:
    from torch import Tensor


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> None:
    """Write tensors and a header; a run that is killed meanwhile leaves the earlier file.

    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensors(Path(folder) / "one.safetensors", {"a": torch.zeros(2)}, {"made": "here"})
    ...     read_header(Path(folder) / "one.safetensors")
    {'made': 'here'}
    """
    safetensors = require("safetensors.torch", extra="torch")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.part")
    copies = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    beside.write_bytes(safetensors.save(copies, dict(header)))
    beside.replace(path)


def read_header(path: Path) -> dict[str, str]:
    """The words beside the tensors; none for a torch file."""
    if path.suffix != ".safetensors":
        return {}
    safetensors = require("safetensors", extra="torch")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return dict(file.metadata() or {})
    except Exception as error:  # the format's own error class is not public
        raise DataError(
            f"not a readable safetensors file: {error}", file=path, remedy="copy or make it again"
        ) from error
