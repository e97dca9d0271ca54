"""Which detection found which object at IoU .5, of many images at once: for judging single images, never for scores.

A detection goes to the object that it overlaps most, a crowd only where there is no other; of several detections of
one object the best scored one has it. COCO's matching gives the same wherever no detection overlaps two objects by
half. A detection that has no object and lies on a crowd is left out.

>>> images = FlatImages.of([{"object_labels": [0], "object_crowd": [0], "labels": [1, 0, 0], "scores": [0.5, 0.9, 0.4],
...                          "pairs": [1, 2], "overlaps": [0.6, 0.8]}])
>>> found_objects(images).tolist()
[-1, 0, -1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.contract.records import Record

if TYPE_CHECKING:
    import polars as pl

NOTHING = -1
LEFT_OUT = -2
Whole = NDArray[np.int64]
_COLUMNS = ("object_labels", "object_crowd", "labels", "scores", "pairs", "overlaps")


@dataclass(frozen=True, eq=False)
class FlatImages:
    """Objects, detections and overlapping pairs of all images, one after another.

    `object_image`, `object_labels` and `crowd` (G,); `image`, `labels` and `scores` (D,); `pair_detection` and
    `pair_object` (P,) are places among these, `overlaps` (P,).
    """

    images: int
    object_image: Whole
    object_labels: Whole
    crowd: NDArray[np.bool_]
    image: Whole
    labels: Whole
    scores: NDArray[np.float64]
    pair_detection: Whole
    pair_object: Whole
    overlaps: NDArray[np.float64]

    @classmethod
    def of(cls, records: pl.DataFrame | Sequence[Record]) -> FlatImages:
        """The columns of records, or of single ones."""
        import polars as pl

        frame = (
            records
            if isinstance(records, pl.DataFrame)
            else pl.DataFrame([{c: r[c] for c in _COLUMNS} for r in records])
        )
        lengths = {name: frame[name].list.len().to_numpy().astype(np.int64) for name in _COLUMNS}
        numbers = np.arange(len(frame))
        pair_image = np.repeat(numbers, lengths["pairs"])
        pairs = _flat(frame["pairs"], np.int64)
        objects, detections = lengths["object_labels"], lengths["labels"]
        first_object, first_detection = np.cumsum(objects) - objects, np.cumsum(detections) - detections
        # A pair is detection * objects + object; an image with a pair has an object.
        detection, one = np.divmod(pairs, np.maximum(objects, 1)[pair_image])
        return cls(
            len(frame),
            np.repeat(numbers, objects),
            _flat(frame["object_labels"], np.int64),
            _flat(frame["object_crowd"], np.int64) > 0,
            np.repeat(numbers, detections),
            _flat(frame["labels"], np.int64),
            _flat(frame["scores"], np.float64),
            first_detection[pair_image] + detection,
            first_object[pair_image] + one,
            _flat(frame["overlaps"], np.float64),
        )


def found_objects(images: FlatImages) -> Whole:
    """(D,) the object that each detection found, NOTHING, or LEFT_OUT."""
    crowd = images.crowd[images.pair_object]
    found = np.full(len(images.labels), NOTHING)
    found[images.pair_detection[crowd]] = LEFT_OUT
    real = np.flatnonzero(~crowd)
    detection, thing = images.pair_detection[real], images.pair_object[real]
    # Sorted so that what is wanted comes last: an assignment keeps the last.
    order = np.lexsort((-thing, images.overlaps[real], detection))
    aim = np.full(len(images.labels), NOTHING)
    aim[detection[order]] = thing[order]
    aiming = np.flatnonzero(aim >= 0)
    rank = np.lexsort((-aiming, -images.labels[aiming], images.scores[aiming]))
    winner = np.full(len(images.object_labels), NOTHING)
    winner[aim[aiming[rank]]] = aiming[rank]
    taken = np.flatnonzero(winner >= 0)
    found[winner[taken]] = taken
    return found


def _flat(lists: pl.Series, dtype: type) -> NDArray[Any]:
    # An empty list explodes to a null.
    return lists.explode().drop_nulls().to_numpy().astype(dtype)
