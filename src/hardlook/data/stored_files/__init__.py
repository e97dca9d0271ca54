"""Files that lie inside other files: in WebDataset shards (`shards`), or in cells of tables (`hf_datasets`)."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class StoredFile(Protocol):
    """Bytes with the path by which errors and records name them."""

    @property
    def path(self) -> Path:
        """The path of the file around it, and its own name."""
        ...

    def read_bytes(self) -> bytes:
        """The content; a `DataError` where it cannot be read."""
        ...
