import numpy as np
import pytest
from panoptic_images import random_image

from hardlook.metrics.panoptic_matching import Segments, join_matches, match_segments
from hardlook.metrics.panoptic_quality import quality_sums
from hardlook.metrics.segment_costs import segment_costs

IMAGE = np.array([[1, 2, 3]])
MATCHES = match_segments(IMAGE, Segments([1, 2, 3], [0, 1, 2]), IMAGE, Segments([1, 2, 3], [1, 2, 2]))
SIMILARITY = np.array([[1, 0.4, 0.4], [0.4, 1, 0.9], [0.4, 0.9, 1]])


def test_between_things_and_stuff_nothing_is_forgiven():
    costs = segment_costs(MATCHES, SIMILARITY, [True, True, False])
    assert list(zip(costs.true, costs.called, costs.hard, strict=True)) == [(1, 2, 1), (0, 1, 1)]
    assert costs.soft == pytest.approx([1, 0.6])


def test_costs_are_the_misses_of_segments_that_were_matched():
    rng = np.random.default_rng(0)
    matches = join_matches([match_segments(*random_image(rng, 4)) for _ in range(40)])
    similarity, things = np.maximum(rng.random((4, 4)), np.eye(4)), np.array([True, True, False, False])
    missed = np.count_nonzero((matches.true >= 0) & (matches.called < 0))
    false_negatives = quality_sums(matches, similarity, things)[3].sum()
    assert segment_costs(matches, similarity, things).soft.sum() == pytest.approx(false_negatives - missed)
    assert len(segment_costs(matches, similarity, things, by="hard", most=2)) == 2
