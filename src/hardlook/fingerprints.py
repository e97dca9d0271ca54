"""Fingerprints: short hashes of values, arrays, files and data folders.

>>> hash_value({"b": 1, "a": [1, 2]}) == hash_value({"a": [1, 2], "b": 1})
True
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SAMPLED_BYTES = 1 << 15


def hash_value(value: Any) -> str:
    """Hash of any JSON-like value; the order of keys does not count."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def hash_file(path: Path) -> str:
    """Hash of a file's whole content (sha256, as package registries print it)."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_array(array: Any) -> str:
    """Hash of an array's shape, type and bytes; the key of an image in the feature cache."""
    import numpy as np

    contiguous = np.ascontiguousarray(array)
    digest = hashlib.blake2b(f"{contiguous.shape}{contiguous.dtype.str}".encode(), digest_size=16)
    digest.update(contiguous.data)
    return digest.hexdigest()


def hash_data(root: Path, *, full: bool = False, without: Path | None = None) -> str:
    """Hash of a data folder or file: every relative path, size, and the first and last 32 KiB of content.

    Hashing terabytes at every start would be slow, and a file that was replaced, cut or re-encoded changes its
    size, head or tail. `full=True` reads everything. Links are followed; hidden files and the folder `without` (a run
    folder inside its data) are left out, and so is the name of a single file.
    """
    if not root.exists():
        raise FileNotFoundError(root)
    files = [root] if root.is_file() else sorted(_list_files(root, without))
    with ThreadPoolExecutor(8) as pool:
        hashes = pool.map(lambda path: hash_file(path) if full else _hash_ends(path), files)
        names = ("" if root.is_file() else path.relative_to(root).as_posix() for path in files)
        return hash_value([list(row) for row in zip(names, hashes, strict=True)])


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


def _hash_ends(path: Path) -> str:
    size = path.stat().st_size
    digest = hashlib.blake2b(str(size).encode(), digest_size=12)
    with path.open("rb") as stream:
        digest.update(stream.read(SAMPLED_BYTES))
        if size > SAMPLED_BYTES:
            stream.seek(max(SAMPLED_BYTES, size - SAMPLED_BYTES))
            digest.update(stream.read())
    return digest.hexdigest()
