"""Small torch networks with random weights and the outputs of well-known libraries, and ONNX files without onnx."""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")


class Logits(torch.nn.Module):
    """Logits (N, classes, h / 2, w / 2); dropout and batch statistics show a network that is not in evaluation mode."""

    def __init__(self, classes=3, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.norm = torch.nn.BatchNorm2d(3)
        self.layer = torch.nn.Conv2d(3, classes, 3, stride=2, padding=1)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, images):
        return self.drop(self.layer(self.norm(images)))


class Segmenter(Logits):
    """What torchvision's segmentation networks answer: `out` and `aux` at the input's size."""

    def forward(self, images):
        out = torch.nn.functional.interpolate(super().forward(images), size=images.shape[-2:], mode="bilinear")
        return OrderedDict(out=out, aux=-out)


class Detector(Logits):
    """What torchvision's Mask R-CNN answers: one dict of boxes, labels from 1, scores and soft masks per image."""

    def forward(self, images):
        logits = torch.nn.functional.interpolate(super().forward(images), size=images.shape[-2:], mode="bilinear")
        height, width = images.shape[-2:]
        box = torch.tensor([[0.1, 0.2, 0.6, 0.9], [0.3, 0.0, 1.0, 0.5], [0.0, 0.0, 1.0, 1.0]])
        return [
            {
                "boxes": box * torch.tensor([width, height, width, height]),
                "labels": torch.tensor([2, 1, 2]),
                "scores": one.mean((1, 2)).sigmoid() * torch.tensor([0.5, 0.9, 0.7]),
                "masks": one[:, None].sigmoid(),
            }
            for one in logits
        ]


class Attends(torch.nn.Module):
    """A one-shot network: cosines of the query's pixels with the mean colour under the support's mask, as 2 logits."""

    def forward(self, query, support, mask):
        weight = mask[:, None] + 1e-3
        colour = (support * weight).sum((2, 3)) / weight.sum((2, 3))
        near = torch.nn.functional.cosine_similarity(query, colour[:, :, None, None], dim=1)
        return torch.stack([torch.full_like(near, 0.9), near], 1)


class Centroids(torch.nn.Module):
    """A few-shot network: minus the distance to the class means of average colours."""

    def forward(self, support, labels, query):
        vectors, asked = support.mean((2, 3)), query.mean((2, 3))
        means = torch.stack([vectors[labels == label].mean(0) for label in labels.unique()])
        return -torch.cdist(asked, means)


class Clicked(torch.nn.Module):
    """An interactive network: pixels near positive points and far from negative ones, and some of the mask before."""

    def forward(self, image, points, labels, previous):
        rows, columns = (torch.arange(length, dtype=torch.float32) for length in image.shape[-2:])
        away = (columns[None, None, :] - points[0, :, :1, None]) ** 2 + (
            rows[None, :, None] - points[0, :, 1:, None]
        ) ** 2
        sign = (labels[0] * 2 - 1)[:, None, None]
        logits = (sign * torch.exp(-away / 200)).sum(0)[None, None] - 0.3
        return logits if previous is None else logits + 0.2 * previous


def picture(height, width, seed=0):
    """Random colours in blocks of four pixels."""
    blocks = np.random.default_rng(seed).integers(0, 256, (-(-height // 4), -(-width // 4), 3), dtype=np.uint8)
    return blocks.repeat(4, 0).repeat(4, 1)[:height, :width]


def to_input(*images):
    """Images of one size as float32 in [0, 1], (N, 3, H, W)."""
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255


def resize(values, size):
    return torch.nn.functional.interpolate(values, size=size, mode="bilinear", align_corners=False)


def write_onnx(path: Path, weight, shape=("n", 3, "h", "w"), outputs=("logits",)) -> Path:
    """A 1 x 1 convolution (C, 3) as an ONNX file; each further output is the one before, negated."""
    weight = np.ascontiguousarray(np.asarray(weight, np.float32)[:, :, None, None])
    nodes = [_node("Conv", ["images", "weight"], outputs[0])]
    nodes += [_node("Neg", [before], after) for before, after in pairwise(outputs)]
    tensor = b"".join(_number(1, length) for length in weight.shape)
    tensor += _number(2, 1) + _bytes(8, b"weight") + _bytes(9, weight.tobytes())
    answer = [shape[0], len(weight), *shape[2:]]
    graph = b"".join(_bytes(1, node) for node in nodes) + _bytes(2, b"graph") + _bytes(5, tensor)
    graph += _bytes(11, _value("images", shape)) + b"".join(_bytes(12, _value(name, answer)) for name in outputs)
    path.write_bytes(_number(1, 8) + _bytes(7, graph) + _bytes(8, _bytes(1, b"") + _number(2, 13)))
    return path


def _node(kind, inputs, output):
    return b"".join(_bytes(1, name.encode()) for name in inputs) + _bytes(2, output.encode()) + _bytes(4, kind.encode())


def _value(name, shape):
    axes = b"".join(
        _bytes(1, _number(1, axis) if isinstance(axis, int) else _bytes(2, axis.encode())) for axis in shape
    )
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _number(1, 1) + _bytes(2, axes)))


def _varint(number):
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _number(field, number):
    return _varint(field << 3) + _varint(number)


def _bytes(field, content):
    return _varint(field << 3 | 2) + _varint(len(content)) + content
