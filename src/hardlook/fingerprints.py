"""Fingerprints: short hashes of values, arrays, files and data folders.

>>> hash_value({"b": 1, "a": [1, 2]}) == hash_value({"a": [1, 2], "b": 1})
True
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hardlook.file_hashes import hash_file, hash_files

__all__ = ["hash_array", "hash_data", "hash_file", "hash_lists", "hash_sources", "hash_value"]


def hash_value(value: Any) -> str:
    """Hash of any JSON-like value; the order of keys does not count."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def hash_lists(lists: Iterable[list[str]]) -> str:
    """The `hash_value` of one list that holds the texts of all these, read one after the other.

    >>> hash_lists([["a"], [], ["b", "c"]]) == hash_value(["a", "b", "c"])
    True
    """
    digest, separator = hashlib.blake2b(b"[", digest_size=12), b""
    for some in lists:
        if some:
            digest.update(separator + json.dumps(some, separators=(",", ":"))[1:-1].encode())
            separator = b","
    digest.update(b"]")
    return digest.hexdigest()


def hash_array(array: Any) -> str:
    """Hash of an array's shape, type and bytes; the key of an image in the feature cache."""
    import numpy as np

    contiguous = np.ascontiguousarray(array)
    digest = hashlib.blake2b(f"{contiguous.shape}{contiguous.dtype.str}".encode(), digest_size=16)
    digest.update(contiguous.data)
    return digest.hexdigest()


def hash_data(root: Path, *, use_cache: bool = True, without: Path | None = None) -> str:
    """Hash of a data folder or file: every relative path and all bytes of every file.

    Files that have not changed since they were last hashed are not read again (`hardlook.file_hashes`), unless
    `use_cache` is False. Links are followed; hidden files and the folder `without` (a run folder inside its data) are
    left out, and so is the name of a single file.
    """
    if not root.exists():
        raise FileNotFoundError(root)
    files = [root] if root.is_file() else sorted(_list_files(root, without))
    regular = [path for path in files if path.is_file()]
    hashes = dict(
        zip(regular, hash_files(regular, algorithm="xxh3", use_cache=use_cache, allow_empty=True), strict=True)
    )
    names = ("" if root.is_file() else path.relative_to(root).as_posix() for path in files)
    # Dangling links, pipes and devices cannot be hashed: their names count.
    return "xxh3:" + hash_value([[name, hashes.get(path, "no file")] for name, path in zip(names, files, strict=True)])


def hash_sources(paths: Iterable[Path]) -> str:
    """Hash of the names and contents of source files."""
    return hash_value([[path.name, hash_file(path)] for path in sorted(paths)])


def _list_files(root: Path, without: Path | None) -> Iterator[Path]:
    left_out = without.resolve() if without else None
    seen: set[str] = set()
    for folder, inner, names in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen or Path(real) == left_out:  # a link to a parent, or the run itself
            inner.clear()
            continue
        seen.add(real)
        inner[:] = [name for name in inner if not name.startswith(".")]
        yield from (Path(folder) / name for name in names if not name.startswith("."))
