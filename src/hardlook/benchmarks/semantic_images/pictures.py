"""The pictures of a unit: image, truth and prediction, the last from the PNG kept in its record."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.semantic_images.dataset import LabelledImage, read_unit
from hardlook.benchmarks.semantic_images.vocabulary import BACKGROUND
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Record
from hardlook.contract.sections import Picture
from hardlook.models.roles import LabelMap

PAPER = 238


def encode_map(prediction: LabelMap) -> bytes:
    """A label map (labels from -1 to 65,534) as a 16-bit PNG of label + 1."""
    _, encoded = cv2.imencode(".png", (prediction + 1).clip(0, 65535).astype(np.uint16))
    return bytes(encoded)


def decode_map(png: bytes) -> LabelMap:
    """Back from `encode_map`.

    >>> decode_map(encode_map(np.array([[-1, 0, 300]], np.int32)))
    array([[ -1,   0, 300]], dtype=int32)
    """
    stored = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
    return np.asarray(stored, np.int32) - 1


def pictures_of(unit: Unit, record: Record) -> Sequence[Picture]:
    """What was seen, what is true, what was said."""
    content: LabelledImage = read_unit(unit.payload, unit.id)
    assert content.truth_map is not None
    names = record["names"].split("\n")
    shown = _shown(names)
    truth = shown[content.truth_map]
    image = content.image if content.image is not None else _blank(truth)
    pictures = [
        Picture("image", image),
        Picture("truth", image, label_map=truth, label_names=names),
    ]
    if record["prediction"]:
        predicted = shown[decode_map(record["prediction"])]
        pictures.append(Picture("prediction", image, label_map=predicted, label_names=names))
    return pictures


def _shown(labels: Sequence[str]) -> LabelMap:
    """Which label each label is drawn as: the background as nothing, so that the picture is seen; -1 comes last."""
    drawn = [-1 if name == BACKGROUND else number for number, name in enumerate(labels)]
    return np.array([*drawn, -1], np.int32)


def _blank(like: LabelMap) -> NDArray[np.uint8]:
    return np.full((*like.shape, 3), PAPER, np.uint8)
