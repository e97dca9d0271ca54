"""U2-Net(p), a network for salient object detection with 1.1 M parameters, run by onnxruntime.

Qin et al., "U2-Net: Going deeper with nested U-structure for salient object detection", Pattern Recognition 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.roles import Image
from hardlook.models.weights.install import locate_weights
from hardlook.networks.loading import open_onnx

SIDE = 320
MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


class U2NetP:
    """The saliency model: whole images at 320 px; each map is min-max normalised to [0, 1], as by its authors.

    `weights` is an ONNX file of U2-Net or U2-Net(p) (default: the installed `u2netp`); `threads` is how many
    cores one image may use.
    """

    def __init__(self, weights: Path | None = None, threads: int = 1) -> None:
        path = Path(weights) if weights else locate_weights("u2netp")["u2netp.onnx"]
        self._session = open_onnx(path, threads, remedy="give a U2-Net .onnx file")
        shape = self._session.get_inputs()[0].shape
        if len(shape) != 4 or list(shape[1:]) != [3, SIDE, SIDE]:
            raise ModelError(f"expected an input of (1, 3, {SIDE}, {SIDE}), the model has {shape}", file=path)
        self.weights_files: tuple[Path, ...] = (path,)

    def saliency(self, images: Sequence[Image]) -> list[NDArray[np.float32]]:
        """One (H, W) float32 map in [0, 1] per image; a map is all 0 where the network's output is constant."""
        return [self._predict(image) for image in images]

    def _predict(self, image: Image) -> NDArray[np.float32]:
        height, width = image.shape[:2]
        # The first output fuses the six others, which are only used in the training loss.
        first = self._session.get_outputs()[0].name
        (answer,) = self._session.run([first], {self._session.get_inputs()[0].name: prepare_image(image)})
        small = np.asarray(answer, dtype=np.float32)[0, 0]
        low, high = float(small.min()), float(small.max())
        normalised = (small - low) / (high - low) if high > low else np.zeros_like(small)
        resized = cv2.resize(normalised, (width, height), interpolation=cv2.INTER_LINEAR)
        return np.asarray(np.clip(resized, 0, 1), dtype=np.float32)


def prepare_image(image: Image) -> NDArray[np.float32]:
    """The network's input (1, 3, 320, 320): divided by its largest value, then normalised by ImageNet's mean and std.

    >>> [round(float(value), 2) for value in prepare_image(np.full((4, 6, 3), 200, np.uint8))[0, :, 0, 0]]
    [2.25, 2.43, 2.64]
    """
    resized = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    scaled = resized / max(float(resized.max()), 1e-6)
    return np.ascontiguousarray(((scaled - MEAN) / STD).transpose(2, 0, 1)[None])
