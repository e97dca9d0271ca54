"""Images that lie inside other files, in the cells of tables or in Python objects, and the datasets made of them.

`shards` reads WebDataset shards, `hf_datasets` Hugging Face datasets, `fiftyone` folders that FiftyOne exported,
`python_objects` datasets that are objects, such as torchvision's. `sources` opens any of them by its name in `--data`;
`samples` holds what they give: label maps, annotated objects, or labels of whole images.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import decode_image, open_header, read_stated_size
from hardlook.data.label_maps import decode_label_map
from hardlook.reading import check_pixels, read_bytes, reading


class StoredFile(Protocol):
    """Bytes with the path by which errors and records name them."""

    def __hash__(self) -> int: ...

    @property
    def path(self) -> Path:
        """The path of the file around it, and its own name."""
        ...

    def read_bytes(self) -> bytes:
        """The content; a `DataError` where it cannot be read."""
        ...


@runtime_checkable
class StoredArray(Protocol):
    """Pixels or labels that need no decoding."""

    def __hash__(self) -> int: ...

    @property
    def path(self) -> Path:
        """The name in errors and records."""
        ...

    def read_array(self) -> NDArray[np.generic]:
        """An image (H, W, 3) uint8 RGB, or a label map (H, W) int32."""
        ...

    def read_size(self) -> tuple[int, int]:
        """Width and height."""
        ...

    def hash_content(self) -> str:
        """A hash of all values."""
        ...


Stored = StoredFile | StoredArray


@dataclass(frozen=True)
class FolderFile:
    """A file of its own, for readers whose other images lie inside files."""

    path: Path

    def read_bytes(self) -> bytes:
        """The content; a `DataError` where it is missing or empty."""
        return read_bytes(self.path)


def read_stored_image(file: Stored) -> NDArray[np.uint8]:
    """The image (H, W, 3) uint8 RGB."""
    if isinstance(file, StoredArray):
        return np.asarray(file.read_array(), np.uint8)
    return decode_image(file.read_bytes(), file.path)


def read_stored_map(file: Stored) -> NDArray[np.int32]:
    """The label map (H, W) int32."""
    if isinstance(file, StoredArray):
        return np.asarray(file.read_array(), np.int32)
    return decode_label_map(file.read_bytes(), file.path)


def read_stored_size(file: Stored) -> tuple[int, int]:
    """Width and height of an image, from its header."""
    if isinstance(file, StoredArray):
        return file.read_size()
    data = file.read_bytes()
    with reading(file.path, "the image is cut off or damaged", remedy="copy it again"):
        size = read_stated_size(data)
        if size is None:
            with open_header(io.BytesIO(data)) as image:
                size = image.size
        check_pixels(*size)
    return size


def hash_stored(file: Stored) -> str:
    """A hash of the content: of the bytes of a file, of the values of an array."""
    if isinstance(file, StoredArray):
        return file.hash_content()
    import xxhash

    return xxhash.xxh3_128(file.read_bytes()).hexdigest()
