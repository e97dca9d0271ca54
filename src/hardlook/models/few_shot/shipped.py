"""A trained few-shot learner that needs nothing but numpy: ProtoNet on Conv64F, trained on Caltech101.

Its checkpoint folder lies in the package and is one like any other: `hardlook train` wrote it, and with torch
`hardlook run metacoco --model FOLDER` gives the same answers. It was trained on 63 classes of Caltech101 (Li, Andreeto,
Ranzato and Perona, CC BY 4.0) with planted contexts that are independent of the class; docs/zoo.md has the commands.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.models.few_shot.centroids import NearestCentroid
from hardlook.models.roles import Episode, Features, Image
from hardlook.reading import read_bytes, read_json, reading

FOLDER = Path(__file__).with_name("protonet_caltech101")
MEAN, DEVIATION = (120.396, 115.594, 104.540), (70.682, 68.276, 72.545)  # as in training
ENCODED = 32  # images at a time: their maps fit into a processor's cache
_DTYPES = {"F16": np.float16, "F32": np.float32, "I64": np.int64}
_REMEDY = "install hardlook again"

Maps = NDArray[np.float32]


class ShippedProtoNet:
    """Nearest class means on the vectors of a trained Conv64F, which it also offers as an encoder."""

    accepts = "features"
    transductive = False
    flags = ("LL",)
    own_encoder, own_encoder_args = "protonet-caltech101", ""

    def __init__(self) -> None:
        card = read_json(FOLDER / "checkpoint.json", what="not the description of a checkpoint", remedy=_REMEDY)
        self.size, self.stored = int(card["image_size"]), int(card["stored_size"])
        self.weights_files = (FOLDER / "model.safetensors.index.json", *sorted(FOLDER.glob("model-*.safetensors")))
        self.blocks = [_fold(read_tensors(FOLDER), f"emb_func.layer{number}") for number in range(1, 5)]
        self.dimension = self.blocks[-1][0].shape[-1] * (self.size // 16) ** 2
        self._rule = NearestCentroid()

    def encode(self, images: Sequence[Image]) -> Features:
        """Vectors (N, D) of the images' centres, after they are squashed to a square."""
        margin = (self.stored - self.size) // 2
        inside = slice(margin, margin + self.size)
        found = np.empty((len(images), self.dimension), np.float32)
        for start in range(0, len(images), ENCODED):
            cut = np.stack([self._squash(image)[inside, inside] for image in images[start : start + ENCODED]])
            maps = ((cut - np.array(MEAN)) / np.array(DEVIATION)).astype(np.float32)
            for kernel, bias in self.blocks:
                maps = pool_by_twos(np.maximum(convolve(maps, kernel) + bias, 0))
            found[start : start + len(cut)] = maps.transpose(0, 3, 1, 2).reshape(len(cut), -1)
        return Features(found)

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) scores per episode of vectors: minus squared distances to the class means."""
        return self._rule.classify(episodes)

    def _squash(self, image: Image) -> Image:
        if image.shape[:2] == (self.stored, self.stored):
            return image
        whole = PIL.Image.fromarray(np.ascontiguousarray(image))
        return np.asarray(whole.resize((self.stored, self.stored), PIL.Image.Resampling.BILINEAR))


def convolve(maps: Maps, kernel: Maps) -> Maps:
    """(n, h, w, d) 3 x 3 convolution of maps (n, h, w, c), with zeros around them, by a kernel (3, 3, c, d).

    >>> maps = np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1)
    >>> convolve(maps, np.ones((3, 3, 1, 1), np.float32))[0, :, :, 0].tolist()
    [[6.0, 6.0], [6.0, 6.0]]
    """
    count, height, width, _ = maps.shape
    padded = np.pad(maps, ((0, 0), (1, 1), (1, 1), (0, 0)))
    total = np.zeros((count, height, width, kernel.shape[-1]), np.float32)
    for y in range(3):
        for x in range(3):
            total += padded[:, y : y + height, x : x + width] @ kernel[y, x]
    return total


def pool_by_twos(maps: Maps) -> Maps:
    """(n, h // 2, w // 2, c) the largest of 2 x 2 values; an odd last row or column is left out."""
    count, height, width, channels = maps.shape
    cut = maps[:, : height // 2 * 2, : width // 2 * 2]
    return np.asarray(cut.reshape(count, height // 2, 2, width // 2, 2, channels).max((2, 4)))


def read_tensors(folder: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a checkpoint folder by name; an error that names the file where one is missing or damaged."""
    index = read_json(folder / "model.safetensors.index.json", what="not the index of a checkpoint", remedy=_REMEDY)
    tensors: dict[str, NDArray[Any]] = {}
    for name, wanted in index["sha256"].items():
        path = folder / name
        data = read_bytes(path)
        if hashlib.sha256(data).hexdigest() != wanted:
            raise DataError("the weights are damaged: their hash differs", file=path, remedy=_REMEDY)
        with reading(path, "not a readable safetensors file", remedy=_REMEDY):
            start = 8 + int.from_bytes(data[:8], "little")
            header = json.loads(data[8:start])
            header.pop("__metadata__", None)
            for key, one in header.items():
                first, last = one["data_offsets"]
                values = np.frombuffer(data[start + first : start + last], _DTYPES[one["dtype"]])
                tensors[key] = values.reshape(one["shape"])
    return tensors


def _fold(tensors: dict[str, NDArray[Any]], layer: str) -> tuple[Maps, Maps]:
    """Kernel (3, 3, c, d) and bias (d,) of a convolution together with the batch normalisation behind it."""
    weight, bias = (tensors[f"{layer}.0.{name}"].astype(np.float64) for name in ("weight", "bias"))
    scale, shift, mean, variance = (
        tensors[f"{layer}.1.{name}"].astype(np.float64) for name in ("weight", "bias", "running_mean", "running_var")
    )
    factor = scale / np.sqrt(variance + 1e-5)
    kernel = weight.transpose(2, 3, 1, 0) * factor
    return kernel.astype(np.float32), ((bias - mean) * factor + shift).astype(np.float32)
