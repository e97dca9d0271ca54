"""Saliency masks on disk, by the content of the image and the identity of the model.

A renamed file hits, a changed pixel, weight or argument misses. The mask is the map above .5, one bit per pixel, so
10,000 photographs take some 250 MB. Files are written whole, so processes may share the folder.

>>> import tempfile
>>> from hardlook.models.registry import build
>>> from hardlook.world.planted import PlantedWorld
>>> images = [scene.image for scene in PlantedWorld(count=2)]
>>> cache = SaliencyMaskCache(build("planted-saliency", role="saliency"), "planted", Path(tempfile.mkdtemp()))
>>> first, again = cache.masks(images), cache.masks(images)
>>> bool((first[0] == again[0]).all()), cache.computed, cache.found
(True, 2, 2)
"""

from __future__ import annotations

import io
import uuid
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook import fingerprints
from hardlook.models.answer_checks import check_answers
from hardlook.models.feature_cache import default_cache_folder
from hardlook.models.roles import Image, SaliencyModel

THRESHOLD = 0.5


def default_mask_folder() -> Path:
    """Where masks are kept: in the folder `salient` beside that of cached features."""
    return default_cache_folder().with_name("salient")


class SaliencyMaskCache:
    """Runs a saliency model of fingerprint `identity` on images without a mask in `folder`; counts both kinds."""

    def __init__(self, model: SaliencyModel, identity: str, folder: Path) -> None:
        self.model = model
        self.folder = folder / fingerprints.hash_value([identity, THRESHOLD])
        self.computed = self.found = 0

    def masks(self, images: Sequence[Image]) -> list[NDArray[np.bool_]]:
        """One (H, W) bool mask per image: where the saliency map exceeds .5."""
        keys = [fingerprints.hash_array(image) for image in images]
        known = {key: mask for key in dict.fromkeys(keys) if (mask := self._read(key)) is not None}
        fresh = {key: image for key, image in zip(keys, images, strict=True) if key not in known}
        self.computed += len(fresh)
        self.found += len(keys) - len(fresh)
        if fresh:
            asked = list(fresh.values())
            answers = check_answers("saliency", self.model, self.model.saliency(asked), asked)
            for key, one in zip(fresh, answers, strict=True):
                known[key] = np.asarray(one > THRESHOLD, dtype=np.bool_)
                self._write(key, known[key])
        return [known[key] for key in keys]

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.npz"

    def _read(self, key: str) -> NDArray[np.bool_] | None:
        try:
            with np.load(self._path(key), allow_pickle=False) as stored:
                height, width = (int(side) for side in stored["size"])
                bits = np.unpackbits(stored["bits"], count=height * width)
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
            # Missing or damaged: the model is run again.
            return None
        return bits.reshape(height, width).astype(np.bool_)

    def _write(self, key: str, mask: NDArray[np.bool_]) -> None:
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, size=np.array(mask.shape), bits=np.packbits(mask))
        beside = path.with_name(f".{uuid.uuid4().hex}")
        beside.write_bytes(buffer.getvalue())
        beside.replace(path)
