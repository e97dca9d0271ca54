"""DeepLabv3 on the classes of Pascal VOC: MobileNetV2, 257 px, run by LiteRT.

Chen et al., "Rethinking atrous convolution for semantic image segmentation", arXiv:1706.05587.
Trained on VOC: a closed-vocabulary predictor and a measure of difficulty, never a few-shot result on VOC.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from hardlook.errors import ModelError
from hardlook.extras import require
from hardlook.models.roles import Image, LabelMap
from hardlook.models.weights.install import locate_weights

SIDE = 257

VOC_LABELS = (
    "background",
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)


class DeepLabV3VOC:
    """A VOC label for every pixel; `labels[0]` is the background.

    Images are squashed to 257 x 257 by area: on 537 VOC train images that scores mIoU .654 (bilinear .651).
    Keeping the aspect ratio scores less: in the top-left corner .638 (bilinear .647), in the centre .613.
    `weights` is a .tflite file of the same input and output (default: the installed `deeplabv3-voc`).
    """

    def __init__(self, weights: Path | None = None) -> None:
        litert = require("ai_edge_litert.interpreter", extra="litert")
        path = Path(weights) if weights else locate_weights("deeplabv3-voc")["deeplabv3.tflite"]
        try:
            # One thread: the sum of floats, and so the answer, must not depend on the machine's cores.
            self._interpreter = litert.Interpreter(model_path=str(path), num_threads=1)
            self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"not a TFLite model: {error}", file=path, remedy="give a .tflite file") from error
        (entry,), (answer, *_) = self._interpreter.get_input_details(), self._interpreter.get_output_details()
        shapes = tuple(entry["shape"].tolist()), tuple(answer["shape"].tolist())
        wanted = (1, SIDE, SIDE, 3), (1, SIDE, SIDE, len(VOC_LABELS))
        if shapes != wanted:
            raise ModelError(f"expected input and output of {wanted}, the model has {shapes}", file=path)
        self._input, self._output = entry["index"], answer["index"]
        self.labels: Sequence[str] = VOC_LABELS
        self.weights_files: tuple[Path, ...] = (path,)

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map of indices into `labels` per image, never -1."""
        return [self._one(image) for image in images]

    def _one(self, image: Image) -> LabelMap:
        height, width = image.shape[:2]
        squashed = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        self._interpreter.set_tensor(self._input, (squashed.astype(np.float32) / 127.5 - 1)[None])
        self._interpreter.invoke()
        # Logits are resized, not labels: borders between classes stay smooth.
        logits = cv2.resize(
            self._interpreter.get_tensor(self._output)[0], (width, height), interpolation=cv2.INTER_LINEAR
        )
        return np.asarray(logits.argmax(axis=2), dtype=np.int32)
