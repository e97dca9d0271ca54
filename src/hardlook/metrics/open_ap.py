"""Open AP beside AP-dagger and COCO's AP: how much of a low AP is due to wrong labels, and how wrong they are.

Zhou et al., "Rethinking Evaluation Metrics of Open-Vocabulary Segmentation", 2023. AP-dagger pools the classes of an
image in matching and keeps hard labels; Open AP scores labels by similarity on top of that.

>>> metric = OpenAP(["cat", "dog"], [[1, 0.5], [0.5, 1]], iou_type="bbox")
>>> metric.update(Objects([0], boxes=[[0, 0, 9, 9]]), Detections([1], [0.9], boxes=[[0, 0, 9, 9]]))
>>> result = metric.compute()
>>> {kind: round(figures["AP"], 4) for kind, figures in result.summary().items()}
{'vanilla': 0.0, 'dagger': 0.0, 'open': 0.505}

A bootstrap or a permutation test weighs the same images a thousand times. `WeightedPrecision` computes every AP under
many weights, each equal to the last bit to one computed alone: it finds once, for each area range and threshold, the
detections that can change a score. Ignored detections never do, nor does a detection that found nothing after the last
hit of its class. That leaves a sixth to a half of the table.

>>> good = match_image(Objects([0], area=[9]), Detections([0], [0.9], area=[9]), overlap=[[1.0]])
>>> bad = match_image(Objects([0], area=[9]), Detections([1], [0.8], area=[9]), overlap=[[1.0]])
>>> precision = WeightedPrecision(build_match_table([good, bad], classes=2), [[1, 0.5], [0.5, 1]])
>>> [round(float(precision.result(weights).open.per_class()[0]), 3) for weights in ([1, 1], [2, 0], [0, 2])]
[0.752, 1.0, 0.505]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.arrays import Values, check_choice, checked_similarity, integer_array, unique_labels
from hardlook.metrics.average_precision import (
    RECALL_LEVELS,
    RECALL_LIMITS,
    ApTable,
    FewDetections,
    MatchTable,
    build_match_table,
    make_ap_table,
    repeat_objects,
    soft_precision,
    vanilla_precision,
)
from hardlook.metrics.detection import UNMATCHED, Detections, IouType, Objects
from hardlook.metrics.detection_batches import ImageArrays, keep_image, match_at_once
from hardlook.metrics.detection_matching import AREA_RANGES, IOU_THRESHOLDS, match_image, select_classes

ImageKey = int | str


@dataclass(frozen=True, eq=False)
class OpenApResult:
    """The three kinds of AP, and `objects` (4 area ranges, K), the number of objects that count."""

    vanilla: ApTable
    dagger: ApTable
    open: ApTable
    objects: NDArray[np.int64]

    def summary(self, classes: Sequence[int] | NDArray[np.int64] | None = None) -> dict[str, dict[str, float]]:
        """COCO's figures of each kind; with `classes`, the generalised score of that set: its classes' average."""
        kinds = {"vanilla": self.vanilla, "dagger": self.dagger, "open": self.open}
        return {kind: table.summary(classes) for kind, table in kinds.items()}


def open_average_precision(matches: MatchTable, similarity: Values, *, asymmetric: bool = False) -> OpenApResult:
    """All three kinds of AP from a table of matches (or a resample of it) under a similarity (K, K).

    The similarity is symmetric, unless `asymmetric` says that it is meant not to be: rows are true labels.

    >>> image = match_image(Objects([1], area=[9]), Detections([1], [0.9], area=[9]), overlap=[[1.0]])
    >>> result = open_average_precision(build_match_table([image], classes=2), np.eye(2))
    >>> result.open.per_class()
    array([nan,  1.])
    """
    shared = checked_similarity(similarity, matches.classes, symmetric=not asymmetric)
    return OpenApResult(
        vanilla_precision(matches), soft_precision(matches), soft_precision(matches, shared), matches.objects()
    )


class OpenAP:
    """Accumulates the matches of images: update, merge, compute, reset.

    `labels` name the classes in the order of their category ids; `similarity` is (K, K), symmetric unless `asymmetric`
    says that it is meant not to be (rows are true labels). `class_sets` maps a name to class indices, for the
    constrained score: objects and detections of other classes are left out before matching. `released` reads matches as
    the released code does (see `match_image`); `category_ids` (K,) tells it which class has id 0, by default the first.
    Equal scores of two images are ordered by the images' keys, so give `image` to `update` where parts are merged;
    without keys, by the order of the updates. For LVIS give `max_detections=300`, and `negative` and `not_exhaustive`
    to every `Objects`: vanilla AP is then LVIS's AP.
    """

    def __init__(
        self, labels: Sequence[str], similarity: Values, *, iou_type: IouType = "segm",
        class_sets: Mapping[str, Sequence[int]] | None = None, max_detections: int = 100,
        released: bool = False, category_ids: Sequence[int] | None = None, asymmetric: bool = False,
    ) -> None:  # fmt: skip
        check_choice(iou_type, IouType, "iou_type")
        if max_detections < 1:
            raise ValueError(f"max_detections: expected 1 or more, got {max_detections}")
        self.labels, self.iou_type = unique_labels(labels), iou_type
        self.max_detections, self.released, self.asymmetric = max_detections, released, asymmetric
        self.similarity = checked_similarity(similarity, len(self.labels), symmetric=not asymmetric)
        ids = list(range(len(self.labels)) if category_ids is None else category_ids)
        if ids != sorted(set(ids)) or len(ids) != len(self.labels):
            raise ValueError(f"category_ids: expected {len(self.labels)} ascending ids, got {ids[:10]}")
        self._category_zero = ids.index(0) if 0 in ids else None
        self._kept = {"": np.ones(len(self.labels), bool)}
        for name, members in (class_sets or {}).items():
            self._kept[name] = self._find_members(name, members)
        self.reset()

    def _find_members(self, name: str, members: Sequence[int]) -> NDArray[np.bool_]:
        """(K,) whether a class is in the set of that name."""
        indices = integer_array(members, f"class_sets[{name!r}]")
        if indices.size and not 0 <= indices.min() <= indices.max() < len(self.labels):
            wrong = indices[(indices < 0) | (indices >= len(self.labels))][0]
            raise ValueError(f"class_sets[{name!r}]: expected classes 0..{len(self.labels) - 1}, got {wrong}")
        return np.isin(np.arange(len(self.labels)), indices)

    def _check_lists(self, *lists: NDArray[np.int64]) -> None:
        for name, classes in zip(("negative", "not_exhaustive"), lists, strict=True):
            if classes.size and not 0 <= classes.min() <= classes.max() < len(self.labels):
                listed = f"{classes.min()} to {classes.max()}"
                raise ValueError(f"{name}: expected classes 0..{len(self.labels) - 1}, got {listed}")

    def reset(self) -> None:
        """Delete all images."""
        self._images: dict[ImageKey, ImageArrays] = {}

    def update(
        self, truth: Objects, found: Detections, *, image: ImageKey | None = None, overlap: Values | None = None
    ) -> None:
        """Add one image; `overlap` (D, G) spares its boxes or masks, such as where masks are run-length encoded."""
        if truth.negative is not None and truth.not_exhaustive is not None:
            self._check_lists(truth.negative, truth.not_exhaustive)
        key = len(self._images) if image is None else image
        if key in self._images:
            raise ValueError(f"image {key!r} was already added; give each image its own key")
        for name, classes in (("objects", truth.classes), ("detections", found.classes)):
            # As unsigned numbers the negative are above all others: one pass finds both.
            if len(classes) and classes.view(np.uint64).max() >= len(self.labels):
                raise ValueError(
                    f"{name} of image {key!r}: expected classes 0..{len(self.labels) - 1}, "
                    f"got {classes.min()} to {classes.max()}"
                )
        self._images[key] = keep_image(truth, found, self.iou_type, overlap)

    def merge(self, other: OpenAP) -> None:
        """Add another's images; merging parts equals one pass, exactly, where images have keys."""
        if self._kept.keys() != other._kept.keys() or self.labels != other.labels:
            raise ValueError("merge: expected a metric of the same labels and class sets")
        ours = self.iou_type, self.max_detections, self.released
        if ours != (other.iou_type, other.max_detections, other.released):
            raise ValueError(f"merge: expected the same iou_type, max_detections and released, {ours}")
        self.add_images(other._images)

    def add_images(self, images: Mapping[ImageKey, ImageArrays]) -> None:
        """Add images that `keep_image` made, by their keys."""
        twice = self._images.keys() & images.keys()
        if twice:
            raise ValueError(f"merge: both hold image {min(map(str, twice))!r}; give update the image's own key")
        self._images |= images

    def table(self, class_set: str = "") -> MatchTable:
        """All matches, or those among the classes of one set, in one table to score, resample or count pairs of."""
        if class_set not in self._kept:
            listed = ", ".join(map(repr, [*self._kept][1:])) or "no set, for none was given"
            raise ValueError(f"class_set: expected {listed}, got {class_set!r}")
        keys = sorted(self._images, key=lambda key: (isinstance(key, str), key))
        images, classes = [self._images[key] for key in keys], len(self.labels)
        options: dict[str, Any] = {
            "max_detections": self.max_detections, "released": self.released, "category_zero": self._category_zero,
        }  # fmt: skip
        if images and not class_set and all(image.truth.negative is None for image in images):
            return match_at_once(images, classes, **options)
        parts = [(image.truth, image.detections(), image.compute_overlap()) for image in images]
        kept = self._kept[class_set]
        few = parts if kept.all() else [select_classes(*part, kept) for part in parts]
        matched = [match_image(truth, found, overlap=overlap, **options) for truth, found, overlap in few]
        return build_match_table(matched, classes)

    def compute(self, class_set: str = "") -> OpenApResult:
        """The scores so far, or the constrained scores of one class set."""
        return open_average_precision(self.table(class_set), self.similarity, asymmetric=self.asymmetric)


@dataclass(frozen=True, eq=False)
class RelevantDetections:
    """The detections that can change a score, by setting: their `places` in the table and the class each `found`.

    Setting p has those from `starts[p]` to `starts[p + 1]`.
    """

    starts: NDArray[np.int64]
    places: NDArray[np.int32]
    found: NDArray[np.int16]


def find_relevant_detections(matched: NDArray[np.int16], labels: NDArray[np.int16], classes: int) -> RelevantDetections:
    """The detections of `matched` (P, N), as in a table of matches, with `labels` (N,), that can change a score.

    >>> find_relevant_detections(np.array([[-1, 0, -2, -1]], np.int16), np.array([0, 0, 0, 0], np.int16), 1).places
    array([0, 1], dtype=int32)
    """
    places, found = [np.zeros(0, np.int32)], [np.zeros(0, np.int16)]
    for row in matched:
        hits = np.flatnonzero(row >= 0)
        last = np.full(classes, -1)
        last[row[hits]] = hits  # ascending, so that the last one stays
        kept = np.flatnonzero((row >= 0) | ((row == UNMATCHED) & (np.arange(len(row)) < last[labels])))
        places.append(kept.astype(np.int32))
        found.append(row[kept])
    starts = np.cumsum([len(part) for part in places])
    return RelevantDetections(starts, np.concatenate(places), np.concatenate(found))


class WeightedPrecision:
    """Open AP, AP-dagger and COCO's AP of the images of `table` under `similarity` (K, K), for any weighting.

    `ranges` is how many of the area ranges are worked out, from 1, all areas, to 4; in others all figures are NaN.
    """

    def __init__(self, table: MatchTable, similarity: Values, ranges: int = len(AREA_RANGES)) -> None:
        if not 1 <= ranges <= len(AREA_RANGES):
            raise ValueError(f"ranges: expected 1 to {len(AREA_RANGES)} area ranges, got {ranges}")
        self.table = table
        self._settings = ranges * len(IOU_THRESHOLDS)
        identity, alike = np.eye(table.classes), checked_similarity(similarity, table.classes)
        self._labels, self._identity = table.separate_excused(identity)
        self._similarity = table.separate_excused(alike)[1]
        count = self._identity.shape[1]
        self._by_class = find_relevant_detections(table.by_class, self._labels, count)
        self._pooled = find_relevant_detections(table.pooled, self._labels, count)
        by_class, pooled = (table.by_class, table.rank), (table.pooled, table.pooled_rank)
        kinds = (*by_class, identity), (*pooled, identity), (*pooled, alike)
        self._few = [{limit: FewDetections(table, *kind, limit) for limit in RECALL_LIMITS} for kind in kinds]

    def result(self, multiplicity: ArrayLike) -> OpenApResult:
        """The scores where image i counts `multiplicity[i]` times, (images,) whole numbers.

        They equal those of `open_average_precision` on the weighted table.
        """
        weighted = self.table.weighted(multiplicity)
        objects = weighted.objects()
        weights = weighted.multiplicity[weighted.image].astype(np.float64)
        kinds = (
            (self._by_class, self._identity), (self._pooled, self._identity), (self._pooled, self._similarity),
        )  # fmt: skip
        vanilla, dagger, opened = (
            make_ap_table(
                *self._precision(*kind, weights, objects),
                {limit: part.compute_recall(weighted.multiplicity, objects) for limit, part in few.items()},
            )
            for kind, few in zip(kinds, self._few, strict=True)
        )
        return OpenApResult(vanilla, dagger, opened, objects)

    def _precision(
        self, relevant: RelevantDetections, similarity: NDArray[np.float64], weights: NDArray[np.float64],
        objects: NDArray[np.int64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
        from hardlook.metrics.kernels.precision import accumulate_relevant

        by_setting = repeat_objects(objects, similarity.shape[1])
        precision, recall = np.full(by_setting.shape, np.nan), np.full(by_setting.shape, np.nan)
        most = self._settings
        accumulate_relevant(
            relevant.starts[: most + 1], relevant.places, relevant.found, self._labels, weights,
            by_setting[:most], similarity, RECALL_LEVELS, precision[:most], recall[:most],
        )  # fmt: skip
        return precision, recall
