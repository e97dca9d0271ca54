"""U2-Net(p): salient objects by nested U-blocks, 1.1 M parameters, run by onnxruntime.

Qin et al., "U2-Net: Going deeper with nested U-structure for salient object detection", Pattern Recognition 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.extras import require
from hardlook.models.roles import Image
from hardlook.models.weights.install import where

SIDE = 320
MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


class U2NetP:
    """Saliency of whole images at 320 px, stretched to fill [0, 1] in each image as its authors do.

    `weights` is an ONNX file of U2-Net or U2-Net(p) (default: the installed `u2netp`); `threads` is how many
    cores one image may use.
    """

    def __init__(self, weights: Path | None = None, threads: int = 1) -> None:
        onnxruntime = require("onnxruntime", extra="onnx")
        path = Path(weights) if weights else where("u2netp")["u2netp.onnx"]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime raises classes of its own that share no public parent
            raise ModelError(f"not an ONNX model: {error}", file=path, remedy="give a U2-Net .onnx file") from error
        shape = self._session.get_inputs()[0].shape
        if len(shape) != 4 or list(shape[1:]) != [3, SIDE, SIDE]:
            raise ModelError(f"expected an input of (1, 3, {SIDE}, {SIDE}), the model has {shape}", file=path)
        self.weights_files: tuple[Path, ...] = (path,)

    def saliency(self, images: Sequence[Image]) -> list[NDArray[np.float32]]:
        """One (H, W) float32 map in [0, 1] per image; an image without any contrast in its answer is all 0."""
        return [self._one(image) for image in images]

    def _one(self, image: Image) -> NDArray[np.float32]:
        height, width = image.shape[:2]
        # The first output fuses the six others; they are only there for the loss.
        first = self._session.get_outputs()[0].name
        (answer,) = self._session.run([first], {self._session.get_inputs()[0].name: prepare_image(image)})
        small = np.asarray(answer, dtype=np.float32)[0, 0]
        low, high = float(small.min()), float(small.max())
        stretched = (small - low) / (high - low) if high > low else np.zeros_like(small)
        resized = cv2.resize(stretched, (width, height), interpolation=cv2.INTER_LINEAR)
        return np.asarray(np.clip(resized, 0, 1), dtype=np.float32)


def prepare_image(image: Image) -> NDArray[np.float32]:
    """The network's input (1, 3, 320, 320): divided by the brightest value, then ImageNet's mean and deviation.

    >>> [round(float(value), 2) for value in prepare_image(np.full((4, 6, 3), 200, np.uint8))[0, :, 0, 0]]
    [2.25, 2.43, 2.64]
    """
    resized = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    scaled = resized / max(float(resized.max()), 1e-6)
    return np.ascontiguousarray(((scaled - MEAN) / STD).transpose(2, 0, 1)[None])
