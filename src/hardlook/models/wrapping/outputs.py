"""What networks answer, read as vectors, maps, label maps, masks, detections and segments at the image's size.

Understood are arrays and tensors, the dictionaries of torchvision's networks, and the outputs of transformers. Tensors
are resized by torch on their device, arrays by OpenCV: both bilinearly, with `align_corners=False` in torch's words.

>>> shape = Prepared({}, (2, 2), (2, 2), (2, 2))
>>> logits = np.array([[[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]]], np.float32)
>>> [labels] = read_label_maps({"out": logits}, [shape], ClassNames.of(["cat", "dog"]), MaskReading())
>>> labels.tolist()
[[0, 1], [1, 1]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.roles import Features, LabelMap
from hardlook.models.wrapping.class_names import ClassNames
from hardlook.models.wrapping.preprocessing import Prepared, Size

_CHANNELS = 64
# Larger values are resized as these: a class that is ruled out by -inf would else become NaN beside a border.
_LARGEST = 1e30

Activation = Literal["sigmoid"]


@dataclass(frozen=True)
class MaskReading:
    """How soft masks are read: `activation` makes values probabilities, above `threshold` they are on."""

    threshold: float = 0.5
    activation: Activation | None = None

    def to_probabilities(self, values: NDArray[Any], what: str) -> NDArray[np.float32]:
        """Values as probabilities; an error where they are none."""
        if values.dtype.kind in "biu":
            values = values.astype(np.float32)
        if self.activation == "sigmoid":
            check_numbers(values, what)
            return sigmoid(values)
        if values.size and not (values.min() >= -1e-5 and values.max() <= 1 + 1e-5):
            raise ModelError(
                f"{what} has values from {values.min():.4g} to {values.max():.4g}, which are not probabilities",
                remedy='pass activation="sigmoid" for logits, or wrap a function that gives values in [0, 1]',
            )
        return np.asarray(np.clip(values, 0, 1), np.float32)


def read_features(raw: Any, prepared: Sequence[Prepared], patch: Size | None = None) -> Features:
    """Vectors (N, D), and maps (C, h, w) where the network gives maps or tokens of patches of `patch` pixels.

    Of several outputs `image_embeds` comes first, then `pooler_output`; a map is averaged to a vector, of tokens the
    one before the patches is the vector.
    """
    spatial = get_field(raw, "last_hidden_state", "feature_maps")
    pooled = get_field(raw, "image_embeds", "pooler_output")
    if spatial is None and pooled is None:
        spatial = _pick(raw, "logits", "out", "features")
    spatial = _last_map(spatial)
    pooled = spatial if pooled is None else pooled
    if not is_array(pooled) or pooled.shape[0] != len(prepared):
        raise output_error(raw, "encoder")
    vectors, maps = to_array(pooled), None
    if is_array(spatial) and spatial.ndim == 4 and spatial.shape[2:] != (1, 1):
        maps = list(to_array(spatial))
    elif is_array(spatial) and spatial.ndim == 3 and patch is not None:
        maps = _tokens_to_maps(to_array(spatial), prepared[0].input_size, patch)
    if vectors.ndim == 4:
        vectors = vectors.mean(axis=(2, 3))
    elif vectors.ndim == 3:
        vectors = _pool_tokens(vectors, maps, raw)
    if vectors.ndim != 2:
        raise output_error(raw, "encoder")
    return Features(np.ascontiguousarray(vectors, np.float32), maps)


def read_vectors(raw: Any, rows: int) -> NDArray[np.float32]:
    """Vectors (N, D) of length 1 of an encoder of images or texts."""
    found = _first(_pick(raw, "image_embeds", "text_embeds", "pooler_output"))
    if not is_array(found) or found.ndim != 2 or found.shape[0] != rows:
        raise output_error(raw, "image-text-encoder")
    vectors = to_array(found).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.float32(1e-12)), np.float32)


def read_label_maps(raw: Any, prepared: Sequence[Prepared], names: ClassNames, reading: MaskReading) -> list[LabelMap]:
    """One map (H, W) int32 of labels per image, from logits, from maps of classes, or from masks of queries."""
    if (queries := find_queries(raw)) is not None:
        return [_label_by_queries(queries, place, one, names) for place, one in enumerate(prepared)]
    values = find_dense(raw)
    if not is_array(values) or values.ndim not in (3, 4) or values.shape[0] != len(prepared):
        raise output_error(raw, "semantic-segmenter")
    if is_whole(values):
        flat = to_array(values[:, 0] if values.ndim == 4 and values.shape[1] == 1 else values)
        if flat.ndim != 3:
            raise output_error(raw, "semantic-segmenter")
        return [names.to_labels(resize_nearest(flat[place], one)) for place, one in enumerate(prepared)]
    if values.ndim == 4 and values.shape[1] == 1 and len(names.names) == 2:
        masks = read_masks(values, prepared, reading, "the network's mask")
        return [names.to_labels(mask > reading.threshold) for mask in masks]
    if values.ndim != 4:
        raise output_error(raw, "semantic-segmenter")
    names.check_count(values.shape[1], f"the network's output {_describe(values)}")
    check_numbers(values, "the network's output")
    chosen = (fit_maps(values[place : place + 1], one)[0].argmax(0) for place, one in enumerate(prepared))
    return [names.to_labels(to_array(classes)) for classes in chosen]


def read_masks(raw: Any, prepared: Sequence[Prepared], reading: MaskReading, what: str) -> list[NDArray[np.float32]]:
    """One map (H, W) float32 of probabilities per image, from one channel, or from logits of two by softmax."""
    values = find_dense(raw)
    if is_array(values) and values.ndim == 3:
        values = values[:, None]
    if not is_array(values) or values.ndim != 4 or values.shape[1] not in (1, 2) or values.shape[0] != len(prepared):
        raise output_error(raw, "mask")
    masks = []
    for place, one in enumerate(prepared):
        if values.shape[1] == 2:
            both = to_array(fit_maps(values[place : place + 1], one))[0]
            check_numbers(difference := both[1] - both[0], what)
            masks.append(sigmoid(difference))
        else:
            channel = reading.to_probabilities(to_array(values[place, 0]), what)
            masks.append(to_array(fit_maps(like(channel[None, None], values), one))[0, 0].astype(np.float32))
    return masks


def get_field(raw: Any, *names: str) -> Any:
    """The first of the names that an output has and that is not None, as a key or as an attribute."""
    for name in names:
        value = raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)
        if value is not None:
            return value
    return None


def is_array(value: Any) -> bool:
    """Whether a value is a numpy array or a torch tensor."""
    return isinstance(value, np.ndarray) or (hasattr(value, "detach") and hasattr(value, "ndim"))


def is_whole(values: Any) -> bool:
    """Whether an array or tensor holds whole numbers or truth values."""
    return not values.is_floating_point() if hasattr(values, "detach") else values.dtype.kind in "biu"


def to_array(values: Any) -> NDArray[Any]:
    """An array or a tensor on any device as a numpy array; floats as float32."""
    if hasattr(values, "detach"):
        values = values.detach()
        return np.asarray((values.float() if values.is_floating_point() else values).cpu().numpy())
    return values.astype(np.float32) if values.dtype.kind == "f" else np.asarray(values)


def check_numbers(values: Any, what: str) -> None:
    """Raise an error where an array or tensor holds NaN: comparisons with it would choose a class all the same."""
    numbers = values.detach() if hasattr(values, "detach") else values
    floats = numbers.is_floating_point() if hasattr(values, "detach") else numbers.dtype.kind == "f"
    if floats and bool((numbers != numbers).any()):
        raise ModelError(
            f"{what} holds NaN", remedy="check the weights, the preprocessing and, in half precision, for overflow"
        )


def sigmoid(values: NDArray[Any]) -> NDArray[np.float32]:
    """1 / (1 + exp(-x)) without overflow, as float32.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    small = np.exp(-np.abs(values.astype(np.float32)))
    return np.asarray(np.where(values >= 0, 1 / (1 + small), small / (1 + small)), np.float32)


def softmax(values: NDArray[Any]) -> NDArray[np.float32]:
    """Probabilities over the last axis, as float32."""
    powers = np.exp(values.astype(np.float32) - values.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True), np.float32)


def fit_maps(values: Any, one: Prepared) -> Any:
    """Maps (N, C, h, w) of a network's input at the size of the image, (N, C, H, W) float32; padding is cut off."""
    if one.content_size != one.input_size:
        rows, columns = one.content_size
        values = resize_maps(values, one.input_size)[:, :, :rows, :columns]
    return resize_maps(values, one.image_size)


def resize_maps(values: Any, size: Size) -> Any:
    """Maps (N, C, h, w) as float32 at another size (height, width), bilinearly: tensors by torch, arrays by OpenCV."""
    if hasattr(values, "detach"):
        import torch

        if tuple(values.shape[2:]) == size or not values.numel():
            return values.float() if values.numel() else values.new_zeros((*values.shape[:2], *size)).float()
        limited = values.float().clamp(-_LARGEST, _LARGEST)
        return torch.nn.functional.interpolate(limited, size=size, mode="bilinear", align_corners=False)
    if values.shape[2:] == size or not values.size:
        return values.astype(np.float32) if values.size else np.zeros((*values.shape[:2], *size), np.float32)
    flat = np.clip(values.astype(np.float32), -_LARGEST, _LARGEST).reshape(-1, *values.shape[2:])
    parts = []
    for start in range(0, len(flat), _CHANNELS):
        block = np.ascontiguousarray(flat[start : start + _CHANNELS].transpose(1, 2, 0))
        resized = cv2.resize(block, (size[1], size[0]), interpolation=cv2.INTER_LINEAR)
        parts.append(resized.reshape(*size, -1).transpose(2, 0, 1))
    return np.concatenate(parts).reshape(*values.shape[:2], *size)


def output_error(raw: Any, role: str) -> ModelError:
    """The error for an output that is not understood: what was returned, and what is understood in this role."""
    return ModelError(f"the network gives {_describe(raw)}, which is not understood", remedy=_UNDERSTOOD[role])


_UNDERSTOOD = {
    "encoder": "an encoder gives vectors (N, D), maps (N, C, h, w), or an output of transformers with image_embeds, "
    "pooler_output or last_hidden_state; wrap a function that picks one of them",
    "image-text-encoder": "an encoder of images and texts gives vectors (N, D), or an output of transformers with "
    "image_embeds, text_embeds or pooler_output; wrap functions that pick them",
    "semantic-segmenter": "a semantic segmenter gives logits (N, C, h, w), classes (N, h, w) as whole numbers, a dict "
    "with `out`, or an output of transformers with `logits` or with masks of queries; wrap a function that picks them",
    "mask": "a mask is (N, 1, h, w) or (N, h, w), or logits (N, 2, h, w) of background and object; wrap a function "
    "that picks it",
    "instance-segmenter": "an instance segmenter gives a list of {boxes (n, 4), labels (n,) as whole numbers, scores "
    "(n,), masks}, one per image, or an output of transformers with class_queries_logits and masks_queries_logits, or "
    "with logits and pred_boxes; wrap a function that makes the list",
    "panoptic-segmenter": "a panoptic segmenter gives an output of transformers with class_queries_logits and "
    "masks_queries_logits or with logits and pred_masks, or a list of {segmentation, segments_info}, one per image",
}


def _describe(raw: Any) -> str:
    if is_array(raw):
        return f"{type(raw).__module__.partition('.')[0]} {type(raw).__name__} {tuple(raw.shape)} of {raw.dtype}"
    name = type(raw).__name__
    if isinstance(raw, Mapping):
        entries = ", ".join(f"{key!r}: {_describe_short(value)}" for key, value in raw.items())
        return f"a {name} of {entries or 'nothing'}"
    if isinstance(raw, list | tuple):
        shown = ", ".join(_describe_short(value) for value in raw[:4]) + (", ..." if len(raw) > 4 else "")
        return f"a {name} of {len(raw)}: {shown}"
    return f"a {type(raw).__module__}.{name}"


def _describe_short(value: Any) -> str:
    return _describe(value) if is_array(value) else type(value).__name__


def _first(raw: Any) -> Any:
    """The first of several outputs, of a list or tuple of arrays."""
    return raw[0] if isinstance(raw, list | tuple) and raw and is_array(raw[0]) else raw


def _last_map(raw: Any) -> Any:
    """Of a list of maps, as networks of features give them, the deepest; else the first of several outputs."""
    if isinstance(raw, list | tuple) and len(raw) > 1 and all(is_array(one) and one.ndim == 4 for one in raw):
        return raw[-1]
    return _first(raw)


def _pick(raw: Any, *names: str) -> Any:
    """The output of that name, or the only one of a dictionary, or the output itself."""
    if (found := get_field(raw, *names)) is not None:
        return found
    return next(iter(raw.values())) if isinstance(raw, Mapping) and len(raw) == 1 else raw


def find_dense(raw: Any) -> Any:
    """The maps of an output: `out`, `logits` or masks, of several the first; the output itself if it has none."""
    return _first(_pick(raw, "out", "logits", "masks", "pred_masks"))


def _tokens_to_maps(tokens: NDArray[Any], input_size: Size, patch: Size) -> list[NDArray[np.float32]] | None:
    rows, columns = (length // side for length, side in zip(input_size, patch, strict=True))
    if not 0 < rows * columns <= tokens.shape[1]:
        return None
    cells = tokens[:, tokens.shape[1] - rows * columns :].reshape(len(tokens), rows, columns, -1)
    return list(np.ascontiguousarray(cells.transpose(0, 3, 1, 2)))


def _pool_tokens(tokens: NDArray[Any], maps: list[NDArray[np.float32]] | None, raw: Any) -> NDArray[Any]:
    if maps is None:
        raise output_error(raw, "encoder")
    alone = tokens.shape[1] == maps[0].shape[1] * maps[0].shape[2]
    return np.asarray(tokens.mean(axis=1) if alone else tokens[:, 0])


def like(array: NDArray[Any], values: Any) -> Any:
    """The array, as a float tensor on their device where `values` are a tensor."""
    return values.new_tensor(array).float() if hasattr(values, "detach") else array


def resize_nearest(values: NDArray[Any], one: Prepared) -> NDArray[Any]:
    """A map (h, w) of numbers at the image's size, each pixel the nearest one's, as torch's `nearest`."""
    rows, columns = one.content_size
    # The content's share of a map that may be smaller than the input.
    height, width = (
        max(1, round(length * content / whole))
        for length, content, whole in zip(values.shape, (rows, columns), one.input_size, strict=True)
    )
    chosen_rows = np.arange(one.image_size[0]) * height // one.image_size[0]
    chosen_columns = np.arange(one.image_size[1]) * width // one.image_size[1]
    return np.asarray(values[chosen_rows[:, None], chosen_columns])


@dataclass(frozen=True)
class Queries:
    """Answers of queries: `classes` (N, Q, K or K + 1) logits, `masks` (N, Q, h, w) logits, `boxes` (N, Q, 4)."""

    classes: NDArray[np.float32]
    masks: Any = None
    boxes: NDArray[np.float32] | None = None

    def score_classes(self, place: int, names: ClassNames) -> tuple[NDArray[np.float32], bool]:
        """Scores (Q, K) of an image, and whether each query has one class: softmax with a last class for none.

        Without that class each class has a sigmoid of its own.
        """
        logits = self.classes[place]
        check_numbers(logits, "the network's output of classes")
        if logits.shape[1] == len(names.names) + 1:
            return softmax(logits)[:, :-1], True
        names.check_count(logits.shape[1], f"the network's queries {tuple(self.classes.shape)}")
        return sigmoid(logits), False


def find_queries(raw: Any) -> Queries | None:
    """The queries of an output of transformers; None where it has none."""
    if isinstance(raw, np.ndarray) or hasattr(raw, "detach"):
        return None
    classes, masks = get_field(raw, "class_queries_logits"), get_field(raw, "masks_queries_logits")
    if classes is not None and masks is not None:
        return Queries(to_array(classes), masks)
    classes, masks, boxes = (get_field(raw, name) for name in ("logits", "pred_masks", "pred_boxes"))
    if is_array(classes) and classes.ndim == 3 and (boxes is not None or masks is not None):
        return Queries(to_array(classes), masks, None if boxes is None else to_array(boxes))
    return None


def _label_by_queries(queries: Queries, place: int, one: Prepared, names: ClassNames) -> LabelMap:
    """Each pixel's class has the largest sum of class probability x mask probability, as in MaskFormer."""
    if queries.masks is None:
        raise ModelError("the network gives boxes and no masks", remedy=_UNDERSTOOD["semantic-segmenter"])
    scores, _ = queries.score_classes(place, names)
    check_numbers(queries.masks[place], "the network's output of masks")
    masks = sigmoid(to_array(queries.masks[place]))
    sums = np.einsum("qc,qhw->chw", scores, masks, optimize=True)[None]
    classes = to_array(fit_maps(like(sums, queries.masks), one)[0].argmax(0))
    return names.to_labels(classes)
