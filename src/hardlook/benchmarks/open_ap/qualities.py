"""Single images: how well the objects of each were found, ranked and named, and what went wrong on it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_ap.found_objects import LEFT_OUT, FlatImages, found_objects
from hardlook.benchmarks.open_ap.options import OpenApOptions
from hardlook.benchmarks.open_ap.scores import similarity_of_run
from hardlook.contract.records import Record

if TYPE_CHECKING:
    import polars as pl


def judged_images(records: pl.DataFrame, options: OpenApOptions) -> pl.DataFrame:
    """`unit`, `image-open-ap50` and `image-ap50`, from 0 to 1; NaN for an image without objects.

    All detections of an image in one ranking, whatever their labels: at each object found (IoU .5), the precision so
    far, times the similarity of the label given and the true one; divided by the number of objects. The second one
    counts the right label only. They are AP in the plain sense, not interpolated as COCO's, which is no figure of a
    single image.
    """
    import polars as pl

    images, similarity = FlatImages.of(records), similarity_of_run(records, options)
    values = [
        ranked_precision(images, matrix, options.max_detections) for matrix in (similarity, np.eye(len(similarity)))
    ]
    return pl.DataFrame({"unit": records["unit"], "image-open-ap50": values[0], "image-ap50": values[1]})


def ranked_precision(images: FlatImages, similarity: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """(images,) average precision with part of the credit for similar labels, over the best `most` detections.

    >>> record = {"object_labels": [0, 1], "object_crowd": [0, 0], "labels": [0, 1, 0], "scores": [0.9, 0.8, 0.7],
    ...           "pairs": [0, 5], "overlaps": [0.9, 0.9]}  # a cat, a false alarm, a dog called cat
    >>> ranked_precision(FlatImages.of([record]), np.array([[1, 0.4], [0.4, 1]]), 100).round(3)
    array([0.593])
    """
    found = found_objects(images)
    order = np.lexsort((images.labels, -images.scores, images.image))
    order = order[_rank(images.image[order]) < most]
    order = order[found[order] != LEFT_OUT]
    image, thing = images.image[order], found[order]
    hit = thing >= 0
    credit = np.zeros(len(order))
    credit[hit] = similarity[images.object_labels[thing[hit]], images.labels[order[hit]]]
    objects = np.bincount(images.object_image[~images.crowd], minlength=images.images)
    sums = np.bincount(image, credit * _precision(image, credit, images.images), minlength=images.images)
    return np.where(objects > 0, sums / np.maximum(objects, 1), np.nan)


def caption_of(record: Record) -> str:
    r"""How many objects were found and named, and the most frequent confusion of one image, in words.

    >>> record = {"names": "cat\ndog", "object_labels": [0, 1, 1], "object_crowd": [0, 0, 0], "labels": [0, 0],
    ...           "scores": [0.9, 0.8], "pairs": [0, 4], "overlaps": [0.9, 0.9]}
    >>> caption_of(record)
    '1 of 3 objects is found by name (IoU .5), 1 by another (dog called cat), 1 is missed.'
    """
    names, images = str(record["names"]).split("\n"), FlatImages.of([record])
    found = found_objects(images)
    hits = np.flatnonzero(found >= 0)
    pairs = list(zip(images.object_labels[found[hits]].tolist(), images.labels[hits].tolist(), strict=True))
    objects = int((~images.crowd).sum())
    if not objects:
        return f"There is no object to find; {_are(len(found))} detected."
    named = sum(true == called for true, called in pairs)
    wrong = Counter(f"{names[true]} called {names[called]}" for true, called in pairs if true != called)
    parts = [f"{named} of {objects} objects {'is' if named == 1 else 'are'} found by name (IoU .5)"]
    if wrong:
        word, times = wrong.most_common(1)[0]
        most = f"{word}, {times} times" if times > 1 else word
        parts.append(f"{wrong.total()} by another ({most if len(wrong) == 1 else 'most: ' + most})")
    missed = objects - len(pairs)
    parts += [f"{_are(missed)} missed"] if missed else []
    return f"{', '.join(parts)}."


def _precision(image: NDArray[np.int64], credit: NDArray[np.float64], images: int) -> NDArray[np.float64]:
    """(n,) the mean credit of an image's entries up to each; `image` (n,) ascending.

    Place by place and not by one long sum, so that no image's value depends on another's in the last digit.
    """
    rank, so_far = _rank(image), np.zeros(images)
    by_rank = np.argsort(rank, kind="stable")
    starts = np.searchsorted(rank[by_rank], np.arange(rank.max(initial=-1) + 2))
    precision = np.zeros(len(image))
    for place, (start, end) in enumerate(pairwise(starts.tolist()), 1):
        rows = by_rank[start:end]
        so_far[image[rows]] += credit[rows]
        precision[rows] = so_far[image[rows]] / place
    return precision


def _rank(image: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) the place of each entry among those of its image, `image` (n,) ascending."""
    return np.asarray(np.arange(len(image)) - np.searchsorted(image, image))


def _are(count: int) -> str:
    return f"{count} {'is' if count == 1 else 'are'}"
