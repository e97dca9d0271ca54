"""Open AP of lists of detections, as torchvision's detectors return them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook import metrics
from hardlook.errors import DataError, OptionError
from hardlook.extras import require
from hardlook.metrics.arrays import Values, as_numpy, is_on_device
from hardlook.metrics.detection import IouType, count_mask_pixels, mask_overlap
from hardlook.metrics.detection_batches import ImageArrays, keep_image
from hardlook.torchmetrics.accumulator import Accumulator, Record, explain

if TYPE_CHECKING:
    from torch import Tensor

BoxFormat = Literal["xyxy", "xywh", "cxcywh"]

# Soft masks, such as those of torchvision, hold an object's pixels above this.
MASK_THRESHOLD = 0.5
# By how much a probability may be off after masks were resized.
ROUNDING = 1e-3

IMAGE_TYPES = "iiffffffibbiii"  # of the arrays of an image, as in `unpack`


class OpenAP(Accumulator):
    """Open AP beside AP-dagger and COCO's AP; the options are those of `hardlook.metrics.OpenAP`.

    `update` takes the lists of dictionaries of torchvision's detectors and torchmetrics' MeanAveragePrecision: `boxes`
    (n, 4) of the `box_format`, `labels` (n,), `scores` (n,) of predictions, `masks` (n, H, W) or (n, 1, H, W), where
    probabilities above .5 are the object; in targets also `iscrowd` (n,), `area` (n,) and `image_id`, and for LVIS
    `negative` and `not_exhaustive`. Labels are indices 0..K-1, or the `category_ids` where these are given, such as
    1..K of torchvision. `compute` gives `open-ap`, `dagger-ap`, `ap` and COCO's further figures of each;
    scores of class sets and of single classes: `build_metric()`.

    Where every target has an `image_id`, equal scores are ordered by it, so that the value does not depend on which
    process saw which image, and an image that a distributed sampler gave to two processes counts once. Without,
    the order is that of the processes and of the updates.

    >>> import torch
    >>> metric = OpenAP(["cat", "dog"], [[1, 0.5], [0.5, 1]], iou_type="bbox")
    >>> box = torch.tensor([[10.0, 10, 60, 60]])
    >>> found = {"boxes": box, "labels": torch.tensor([1]), "scores": torch.tensor([0.9])}
    >>> scores = metric([found], [{"boxes": box, "labels": torch.tensor([0])}])
    >>> round(float(scores["open-ap"]), 3), float(scores["ap"])
    (0.505, 0.0)
    """

    images: list[Tensor]
    _lists = ("images",)

    def __init__(
        self,
        labels: Sequence[str],
        similarity: Values,
        *,
        iou_type: IouType = "segm",
        box_format: BoxFormat = "xyxy",
        class_sets: Mapping[str, Sequence[int]] | None = None,
        max_detections: int = 100,
        released: bool = False,
        category_ids: Sequence[int] | None = None,
        asymmetric: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if iou_type not in ("segm", "bbox") or box_format not in ("xyxy", "xywh", "cxcywh"):
            raise OptionError(
                f"expected iou_type segm or bbox and box_format xyxy, xywh or cxcywh, got {iou_type} and {box_format}",
                remedy="for both masks and boxes use two metrics in a MetricCollection",
            )
        with explain("see hardlook.metrics.OpenAP", OptionError):
            self._metric = metrics.OpenAP(
                labels, similarity, iou_type=iou_type, class_sets=class_sets, max_detections=max_detections,
                released=released, category_ids=category_ids, asymmetric=asymmetric,
            )  # fmt: skip
        ids = range(len(self._metric.labels)) if category_ids is None else category_ids
        self._category_ids, self._box_format = np.asarray(ids, np.int64), box_format
        self.add_settings(self._metric.labels, iou_type, box_format, self._category_ids.tolist())
        self.add_state("images", [], dist_reduce_fx="cat")

    def update(self, preds: Sequence[Mapping[str, Any]], target: Sequence[Mapping[str, Any]]) -> None:
        """Add a batch of images: one dictionary of detections and one of objects for each.

        Masks that are on a GPU are compared there; only the overlaps are copied.
        """
        if isinstance(preds, Mapping) or isinstance(target, Mapping) or len(preds) != len(target):
            counts = [1 if isinstance(given, Mapping) else len(given) for given in (preds, target)]
            raise DataError(
                f"expected as many dictionaries of predictions as of targets in two lists, got {counts[0]} and "
                f"{counts[1]}",
                remedy="pass one dictionary per image in each list, with empty tensors where nothing was found",
            )
        batch = []
        for number, (found, truth) in enumerate(zip(preds, target, strict=True)):
            key = _read_image_id(truth.get("image_id"), f"image {number} of the batch")
            unit = f"image {number} of the batch" if key is None else f"image_id {key}"
            batch.append(_write_image(self._keep_image(found, truth, unit), key))
        self.add_records("images", batch)

    def _keep_image(self, found: Mapping[str, Any], truth: Mapping[str, Any], unit: str) -> ImageArrays:
        by_masks = self._metric.iou_type == "segm"
        region = "masks" if by_masks else "boxes"
        for name, given, keys in (("preds", found, ("labels", "scores")), ("target", truth, ("labels",))):
            absent = [key for key in (*keys, region) if given.get(key) is None]
            if absent:
                raise DataError(
                    f"{name}: expected {', '.join((*keys, region))}, got no {' and no '.join(absent)}",
                    unit=unit,
                    remedy=f"add it; regions are masks for iou_type segm and boxes for bbox, here {region}",
                )
        remedy = f"labels are indices of the {len(self._metric.labels)} labels or category_ids; boxes are in box_format"
        with explain(remedy, unit=unit):
            classes = self._find_classes(found["labels"], "preds"), self._find_classes(truth["labels"], "target")
            crowd, area = truth.get("iscrowd"), truth.get("area")
            further: dict[str, Any] = {name: truth.get(name) for name in ("ignore", "ids")}
            for name in ("negative", "not_exhaustive"):
                ids = truth.get(name)
                further[name] = None if ids is None else self._find_classes(ids, name)
            if not by_masks:
                corners = [_convert_boxes(given["boxes"], self._box_format) for given in (found, truth)]
                objects = metrics.Objects(classes[1], boxes=corners[1], area=area, crowd=crowd, **further)
                return keep_image(objects, metrics.Detections(classes[0], found["scores"], boxes=corners[0]), "bbox")
            masks = [_convert_masks(given["masks"], len(classes[i])) for i, given in enumerate((found, truth))]
            if not is_on_device(*masks):
                masks = [as_numpy(given) for given in masks]
            pixels = count_mask_pixels(masks[1]) if area is None else area
            objects = metrics.Objects(classes[1], area=pixels, crowd=crowd, **further)
            detections = metrics.Detections(classes[0], found["scores"], area=count_mask_pixels(masks[0]))
            return keep_image(objects, detections, "segm", mask_overlap(masks[0], masks[1], objects.crowd))

    def _find_classes(self, labels: Values, name: str) -> NDArray[np.int64]:
        """(n,) indices of the labels, given by category ids."""
        ids = as_numpy(labels)
        if ids.size and ids.dtype.kind not in "iu":
            raise ValueError(f"{name}, labels: expected integers, got {ids.dtype}")
        ids = ids.astype(np.int64).reshape(-1)
        index = np.searchsorted(self._category_ids, ids).clip(max=len(self._category_ids) - 1)
        wrong = self._category_ids[index] != ids
        if wrong.any():
            low, high = self._category_ids.min(), self._category_ids.max()
            raise ValueError(f"{name}, labels: {ids[wrong][0]} is none of the category ids {low} to {high}")
        return np.asarray(index, np.int64)

    def build_metric(self) -> metrics.OpenAP:
        """The metric of `hardlook.metrics` with all images so far."""
        self.check_settings(self.settings)
        images = [_read_image(record) for record in self.read_records("images", IMAGE_TYPES)]
        metric = copy.copy(self._metric)
        metric.reset()
        metric.add_images(_choose_keys(images))
        return metric

    def compute(self) -> dict[str, Tensor]:
        """COCO's figures of the three kinds so far, NaN where undefined: `open-ap`, `dagger-ap`, `ap`, `ap50` ..."""
        kinds = self.build_metric().compute().summary()
        scores: dict[str, float] = {}
        for kind, prefix in (("open", "open-"), ("dagger", "dagger-"), ("vanilla", "")):
            scores |= {f"{prefix}{name.lower()}": value for name, value in kinds[kind].items()}
        return self.make_tensors(scores)


def _convert_boxes(boxes: Values, box_format: BoxFormat) -> NDArray[np.float64]:
    """(n, 4) boxes as x, y, width, height."""
    given = np.asarray(as_numpy(boxes), np.float64).reshape(-1, 4)
    first, second = given[:, :2], given[:, 2:]
    if box_format == "xyxy":
        return np.hstack([first, second - first])
    return np.hstack([first - second / 2, second]) if box_format == "cxcywh" else given


def _convert_masks(masks: Any, count: int) -> Any:
    """(n, H, W) bool masks, an array or a tensor on its device."""
    given = masks.detach() if hasattr(masks, "detach") else np.asarray(masks)
    if given.ndim == 4 and given.shape[1] == 1:
        given = given[:, 0]
    if count == 0 and 0 in given.shape:
        return np.zeros((0, 1, 1), bool)
    if given.ndim != 3 or len(given) != count:
        raise ValueError(f"masks: expected shape ({count}, H, W), got {tuple(given.shape)}")
    if "float" not in str(given.dtype):
        return given != 0
    # A comparison with NaN is false, so these are the values that are not between 0 and 1.
    if not bool(((given >= -ROUNDING) & (given <= 1 + ROUNDING)).all()):
        raise ValueError("masks: expected probabilities, got values that are NaN or not between 0 and 1")
    return given > MASK_THRESHOLD


def _read_image_id(value: Any, unit: str) -> int | None:
    if value is None:
        return None
    ids = as_numpy(value).reshape(-1)
    if ids.size != 1 or ids.dtype.kind not in "iu":
        raise DataError(
            f"image_id: expected one whole number, got {value!r}", unit=unit, remedy="number the images of the dataset"
        )
    return int(ids[0])


def _write_image(image: ImageArrays, key: int | None) -> Record:
    distributed = require("torch.distributed", extra="torchmetrics")
    rank = distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0
    truth = image.truth
    return (
        np.array([rank] if key is None else [rank, key]), image.labels, image.scores, image.area, image.boxes,
        image.object_boxes, image.overlap, truth.area, truth.classes, truth.crowd, truth.ignore, truth.ids,
        truth.negative, truth.not_exhaustive,
    )  # fmt: skip


def _read_image(record: list[Any]) -> tuple[list[int], ImageArrays]:
    """The process of an image and, where there is one, its id; and its arrays."""
    (
        origin, labels, scores, area, boxes, object_boxes, overlap, object_area, classes, crowd, ignore, ids, negative,
        not_exhaustive,
    ) = record  # fmt: skip
    truth = metrics.Objects(
        classes, area=object_area, crowd=crowd, ignore=ignore, ids=ids, negative=negative,
        not_exhaustive=not_exhaustive,
    )  # fmt: skip
    shared = None if overlap is None else overlap.reshape(len(labels), len(classes))
    image = ImageArrays(labels, scores, area, boxes.reshape(-1, 4), object_boxes.reshape(-1, 4), shared, truth)
    return origin.tolist(), image


def _choose_keys(images: Sequence[tuple[list[int], ImageArrays]]) -> dict[int | str, ImageArrays]:
    """The images by their ids, or by their order where none has an id."""
    if all(len(origin) == 1 for origin, _ in images):
        return {number: image for number, (_, image) in enumerate(images)}
    chosen: dict[int | str, ImageArrays] = {}
    processes: dict[int, int] = {}
    repeated = 0
    for origin, image in images:
        if len(origin) == 1:
            raise DataError("some images have an image_id and others none", remedy="give it to all targets, or to none")
        process, key = origin
        if processes.setdefault(key, process) != process:
            repeated += 1
        elif key in chosen:
            raise DataError(
                "an image was added twice", unit=f"image_id {key}", remedy="reset the metric after each epoch"
            )
        else:
            chosen[key] = image
    if repeated:
        text = f"{repeated} images came from two processes, as samplers do to give each as many; each is counted once"
        warnings.warn(text, stacklevel=2)
    return chosen
