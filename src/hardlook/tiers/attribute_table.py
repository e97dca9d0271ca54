"""The attributes of every mask of a source, measured with a saliency model and a supervised segmenter.

Models see each image once, at its own size; their answers are brought to 512 x 512, the size of the published table:
saliency by linear interpolation, label maps and masks by nearest neighbour. Salience is the IoU of the mask with the
map above .5. The supervised IoU leaves out the pixels that the truth leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data.class_masks import ClassMask, ClassMasks
from hardlook.data.class_tokens import numbered_token
from hardlook.errors import DataError, ModelError
from hardlook.metrics.mask_attributes import SIDE, area_ratio, blob_count, distractor_weight, mask_iou, offset_ratio
from hardlook.models.roles import Image, LabelMap, SaliencyModel, SemanticSegmenter
from hardlook.tiers.attribute_rows import AttributeRow
from hardlook.tiers.partitions import SALIENT_ABOVE

BATCH = 8
VOID = 255


@dataclass(frozen=True)
class AttributeModels:
    """The models that measure; None leaves their column empty.

    `labels` gives for a class the supervised model's label index; a class that is not in it has no supervised IoU.
    """

    saliency: SaliencyModel | None = None
    supervised: SemanticSegmenter | None = None
    labels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FailedImage:
    """An image that could not be measured, and why."""

    image: str
    error: str


@dataclass(frozen=True)
class _Read:
    name: str
    tokens: tuple[str, ...]
    image: Image
    masks: tuple[ClassMask, ...]
    classes: LabelMap | None


def measure_attributes(
    source: ClassMasks,
    tokens: Iterable[str],
    models: AttributeModels,
    *,
    keep: Callable[[Sequence[AttributeRow]], None],
    advance: Callable[[int, int], None] = lambda images, failed: None,
    batch_size: int = BATCH,
) -> list[FailedImage]:
    """Measure the tokens image by image; rows go to `keep` a batch at a time, failed images are returned.

    `advance` is told how many images are done and how many of them failed.
    """
    by_image: dict[str, list[str]] = {}
    for token in tokens:
        by_image.setdefault(source.image_of(token), []).append(token)
    failures: list[FailedImage] = []
    waiting = iter(by_image.items())
    while batch := list(islice(waiting, batch_size)):
        read: list[_Read] = []
        failed: list[FailedImage] = []
        for name, own in batch:
            try:
                read.append(_read(source, name, own))
            except (DataError, OSError) as error:
                failed.append(FailedImage(name, str(error)))
        rows, lost = _measured(source, read, models)
        keep(rows)
        failures += [*failed, *lost]
        advance(len(batch), len(failed) + len(lost))
    return failures


def salience(saliency: NDArray[np.float32], mask: NDArray[np.bool_]) -> float:
    """IoU of the mask and the saliency map above .5, at 512 x 512; both (H, W). An empty mask and map have 0.

    >>> salience(np.array([[0.9, 0.1], [0.8, 0.2]], np.float32), np.array([[True, True], [False, False]]))
    0.3333333333333333
    """
    seen = cv2.resize(saliency, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR) > SALIENT_ABOVE
    return _or_zero(mask_iou(np.asarray(seen), _squared(mask)))


def supervised_iou(predicted: NDArray[np.bool_], truth: ClassMask) -> float:
    """IoU of the model's pixels of a class with the truth's at 512 x 512, pixels left open left out.

    >>> truth = ClassMask(np.array([[True, False]]), np.array([[False, True]]))
    >>> supervised_iou(np.array([[True, True]]), truth)
    1.0
    """
    known = ~_squared(truth.void)
    return _or_zero(mask_iou(_squared(predicted) & known, _squared(truth.mask) & known))


def _read(source: ClassMasks, name: str, tokens: Sequence[str]) -> _Read:
    image = source.read_image(tokens[0])
    masks = tuple(source.read_mask(token) for token in tokens)
    try:
        classes = source.read_classes(name)
    except DataError:
        classes = None  # FSS-1000 marks one class an image and knows nothing of others
    return _Read(name, tuple(tokens), image, masks, classes)


def _measured(
    source: ClassMasks, read: Sequence[_Read], models: AttributeModels
) -> tuple[list[AttributeRow], list[FailedImage]]:
    if not read:
        return [], []
    images = [one.image for one in read]
    try:
        maps = models.saliency.saliency(images) if models.saliency else [None] * len(read)
        labelled = models.supervised.segment(images) if models.supervised else [None] * len(read)
        rows = []
        for one, salient, labels in zip(read, maps, labelled, strict=True):
            rows += _rows(source, one, models, salient, labels)
        return rows, []
    except Exception as error:  # a model may raise anything; one image must not cost the others
        if len(read) == 1:
            return [], [FailedImage(read[0].name, f"{type(error).__name__}: {error}")]
    alone = [_measured(source, [one], models) for one in read]
    return [row for rows, _ in alone for row in rows], [failure for _, lost in alone for failure in lost]


def _rows(
    source: ClassMasks,
    one: _Read,
    models: AttributeModels,
    salient: NDArray[np.float32] | None,
    labels: LabelMap | None,
) -> list[AttributeRow]:
    for what, answer in (("saliency map", salient), ("label map", labels)):
        if answer is not None and answer.shape != one.image.shape[:2]:
            raise ModelError(f"expected a {what} of {one.image.shape[:2]}, got {answer.shape}", unit=one.name)
    rows = []
    for token, truth in zip(one.tokens, one.masks, strict=True):
        name = source.class_of(token)
        index = models.labels.get(name)
        iou = supervised_iou(labels == index, truth) if labels is not None and index is not None else None
        distractors = None
        if one.classes is not None and truth.mask.any():
            # By the token's number: another class may lie in front of any one pixel of the mask.
            distractors = distractor_weight(one.classes, numbered_token(token)[0], void=VOID)
        rows.append(
            AttributeRow(
                token,
                None,
                iou,
                area_ratio(truth.mask),
                offset_ratio(truth.mask),
                None if salient is None else salience(salient, truth.mask),
                blob_count(truth.mask),
                distractors,
                name,
                one.name,
            )
        )
    return rows


def _squared(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    resized = cv2.resize(mask.astype(np.uint8), (SIDE, SIDE), interpolation=cv2.INTER_NEAREST)
    return np.asarray(resized, np.bool_)


def _or_zero(iou: float) -> float:
    return 0.0 if np.isnan(iou) else iou
