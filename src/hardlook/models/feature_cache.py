"""Each image encoded once, over all pairs, tasks, runs and processes.

A feature is kept under the image's content, the encoder's fingerprint and the size it was seen at; a renamed file
hits, a changed pixel or weight misses. Files appear whole, so processes may share the folder; the oldest unused ones
go when the folder outgrows its bound.

>>> import tempfile
>>> from hardlook.models.registry import build
>>> from hardlook.world.planted import PlantedWorld
>>> images = [scene.image for scene in PlantedWorld(count=3)]
>>> cached = CachedEncoder(build("planted-encoder", role="encoder"), "planted", Path(tempfile.mkdtemp()))
>>> first, again = cached.encode(images), cached.encode(images[:2])
>>> bool((first.vectors[:2] == again.vectors).all()), cached.encoded, cached.found
(True, 3, 2)
"""

from __future__ import annotations

import contextlib
import io
import os
import time
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hardlook import fingerprints
from hardlook.models.answer_checks import check_answers
from hardlook.models.roles import Encoder, Features, Image

CHECK_EVERY = 256
LEFT_BEHIND_SECONDS = 3600


def default_cache_folder() -> Path:
    """Where features are kept: `HARDLOOK_CACHE`, else `hardlook/features` in the user's cache folder."""
    if chosen := os.environ.get("HARDLOOK_CACHE"):
        return Path(chosen).expanduser() / "features"
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "hardlook" / "features"


class FeatureFiles:
    """Arrays by key in files below `root`, for one `identity`; a bound holds for all identities together.

    >>> import tempfile
    >>> files = FeatureFiles(Path(tempfile.mkdtemp()), "planted")
    >>> files.write("first", {"vectors": np.ones((2, 3))})
    >>> files.read("first")["vectors"].shape, files.read("second")
    ((2, 3), None)
    """

    def __init__(self, root: Path, identity: str, most_bytes: int = 20 << 30) -> None:
        self.root, self.folder, self.most_bytes = root, root / identity, most_bytes
        self._writes = 0

    def read(self, key: str) -> dict[str, np.ndarray] | None:
        """The arrays of a key; None where there are none."""
        path = self._path(key)
        try:
            with np.load(path, allow_pickle=False) as stored:
                entry = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
            # Not there, just evicted by another process, or damaged on the disk: then it is encoded again.
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # what is used stays longest
        return entry

    def write(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep the arrays of a key; the file appears whole."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        given: dict[str, Any] = dict(arrays)
        np.savez(buffer, **given)
        beside = path.with_name(f".{uuid.uuid4().hex}")
        beside.write_bytes(buffer.getvalue())
        beside.replace(path)
        # The first write checks too: many short runs together must not outgrow the bound.
        if self._writes % CHECK_EVERY == 0:
            self.shrink()
        self._writes += 1

    def shrink(self) -> None:
        """Delete the longest unused features, of any encoder, until the whole folder keeps its bound."""
        files = []
        for path in self.root.rglob("*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                if path.suffix == ".npz":
                    files.append((status.st_mtime_ns, status.st_size, path))
                elif path.name.startswith(".") and time.time() - status.st_mtime > LEFT_BEHIND_SECONDS:
                    path.unlink()  # half a file of a process that was killed
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self.most_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.npz"


class CachedEncoder:
    """An `Encoder` that calls the wrapped one only for images that are not in the cache.

    `identity` is the encoder's fingerprint (`models.identity`); `size` names the input size where the caller resizes
    images itself. `encoded` and `found` count images answered by the encoder and by the cache.
    """

    def __init__(
        self, encoder: Encoder, identity: str, folder: Path, *, size: str = "", most_bytes: int = 20 << 30
    ) -> None:
        self.encoder, self.dimension = encoder, encoder.dimension
        self.files = FeatureFiles(folder, fingerprints.hash_value([identity, size]), most_bytes)
        self.encoded = self.found = 0

    def encode(self, images: Sequence[Image]) -> Features:
        """As the wrapped encoder's: vectors (N, D) float32 and, where it has them, maps."""
        keys = [fingerprints.hash_array(image) for image in images]
        known = {key: entry for key in dict.fromkeys(keys) if (entry := self._read(key)) is not None}
        fresh = {key: image for key, image in zip(keys, images, strict=True) if key not in known}
        self.encoded += len(fresh)
        self.found += len(keys) - len(fresh)
        if fresh:
            asked = list(fresh.values())
            answers = check_answers("encoder", self.encoder, self.encoder.encode(asked), asked)
            for key, answer in zip(fresh, answers, strict=True):
                known[key] = answer
                self._write(key, *answer)
        vectors = np.stack([known[key][0] for key in keys]) if keys else np.zeros((0, self.dimension), np.float32)
        maps = [found for key in keys if (found := known[key][1]) is not None]
        return Features(vectors, maps if len(maps) == len(keys) and keys else None)

    def _read(self, key: str) -> tuple[np.ndarray, np.ndarray | None] | None:
        entry = self.files.read(key)
        return None if entry is None or "vector" not in entry else (entry["vector"], entry.get("map"))

    def _write(self, key: str, vector: np.ndarray, one: np.ndarray | None) -> None:
        self.files.write(key, {"vector": vector} if one is None else {"vector": vector, "map": one})
