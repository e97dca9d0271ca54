"""Which confusions of whole segments cost the most: pairs of labels, in segments, hard and soft."""

from __future__ import annotations

from typing import Literal

import numpy as np

from hardlook.metrics.array_input import Values, as_numpy
from hardlook.metrics.confusion_costs import ConfusionCosts, confusion_costs
from hardlook.metrics.panoptic_matching import SegmentMatches
from hardlook.metrics.similarity_matrix import checked_similarity


def segment_costs(
    matches: SegmentMatches,
    similarity: Values,
    things: Values,
    *,
    by: Literal["soft", "hard"] = "soft",
    most: int | None = None,
) -> ConfusionCosts:
    """The pairs of labels of matched segments, dearest first; the `most` dearest of them.

    `hard` counts segments, `soft` the share 1 - S of them; between a thing and stuff nothing is forgiven. Segments
    that match nothing are no confusion of labels and cost nothing here.

    >>> from hardlook.metrics.panoptic_matching import Segments, match_segments
    >>> image = np.array([[1, 2]])
    >>> matches = match_segments(image, Segments([1, 2], [0, 1]), image, Segments([1, 2], [1, 1]))
    >>> segment_costs(matches, [[1, 0.75], [0.75, 1]], [True, True]).soft
    array([0.25])
    """
    is_thing = as_numpy(things).astype(np.bool_)
    classes = len(is_thing)
    pairs = (matches.true >= 0) & (matches.called >= 0)
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (matches.true[pairs], matches.called[pairs]), 1)
    shared = np.where(is_thing[:, None] == is_thing, checked_similarity(similarity, classes), 0.0)
    return confusion_costs(counts, shared, by=by, most=most)
