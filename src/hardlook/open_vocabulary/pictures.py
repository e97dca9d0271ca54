"""Pictures of label maps in records and reports: stored as PNG, drawn over the image or a blank one."""

from __future__ import annotations

import cv2
import numpy as np

from hardlook.models.roles import Image, LabelMap

_LIGHT_GREY = 238


def encode_label_map(label_map: LabelMap) -> bytes:
    """A label map (labels from -1 to 65,534) as a 16-bit PNG of label + 1."""
    _, encoded = cv2.imencode(".png", (label_map + 1).clip(0, 65535).astype(np.uint16))
    return bytes(encoded)


def decode_label_map(png: bytes) -> LabelMap:
    """Back from `encode_label_map`.

    >>> decode_label_map(encode_label_map(np.array([[-1, 0, 300]], np.int32)))
    array([[ -1,   0, 300]], dtype=int32)
    """
    stored = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
    return np.asarray(stored, np.int32) - 1


def blank_image(height: int, width: int) -> Image:
    """A light grey image to draw on, for data without images."""
    return np.full((height, width, 3), _LIGHT_GREY, np.uint8)
