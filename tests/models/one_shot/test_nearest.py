"""Nearest-neighbour matching against scikit-learn's neighbours, and the laws it must keep."""

import numpy as np
import pytest
from one_shot_scenes import assert_decides, literal_coverage, planted_cells, scenes, shown
from sklearn.neighbors import NearestNeighbors

from hardlook.errors import OptionError
from hardlook.models.one_shot.nearest import Nearest, foreground_cells, mean_of_largest
from hardlook.models.roles import Support


def matcher(**args):
    return Nearest(encoder="planted-encoder", **args)


def likeness(query, cells, k):
    """Mean cosine of each query cell to its k nearest of (n, C) cells."""
    asked = planted_cells(query)
    found = NearestNeighbors(n_neighbors=min(k, len(cells)), metric="cosine", algorithm="brute").fit(cells)
    distances, _ = found.kneighbors(asked.reshape(-1, asked.shape[2]))
    return 1 - distances.mean(1).reshape(asked.shape[:2])


@pytest.mark.parametrize(("shots", "k"), [(1, 1), (1, 3), (3, 1), (2, 5)])
def test_against_scikit_learn(shots, k):
    drawn = scenes(count=24)
    for place in range(4):
        query, supports = drawn[place].image, [shown(scene) for scene in drawn[place + 1 : place + 1 + shots]]
        inside, outside = [], []
        for support in supports:
            cells = planted_cells(support.image)
            where = literal_coverage(support.mask, cells.shape[:2]) >= 0.5
            inside.append(cells[where])
            outside.append(cells[~where])
        scores = likeness(query, np.concatenate(inside), k) - likeness(query, np.concatenate(outside), k)
        [mask] = matcher(k=k).segment_queries([query], [supports])
        assert_decides(mask, scores, query.shape[:2])


def test_a_small_mask_shows_the_cell_it_covers_most():
    cells = np.zeros((2, 3, 4), np.float32)
    covered = np.array([[0, 0.1, 0.3], [0.2, 0, 0]], np.float32)
    assert foreground_cells(cells, covered, 1 - covered).tolist() == [[False, False, True], [False, False, False]]
    assert not foreground_cells(cells, 0 * covered, 1 - 0 * covered).any()
    assert foreground_cells(cells, 1 - covered, covered).all()


def test_nothing_shown_nothing_found():
    query, other = scenes()[0].image, scenes()[1]
    unmasked = Support(other.image, np.zeros(other.image.shape[:2], bool))
    black = Support(np.zeros_like(query), np.zeros(query.shape[:2], bool))
    assert not np.any(matcher().segment_queries([query] * 4, [[unmasked], [black], [unmasked, black], []]))


def test_a_mask_without_background_counts_it_as_zero():
    scene = scenes()[0]
    everything = Support(scene.image, np.ones(scene.image.shape[:2], bool))
    [mask] = matcher().segment_queries([scene.image], [[everything]])
    assert mask.all()


def test_neither_memory_nor_order_nor_neighbours_change_a_bit():
    drawn = scenes(count=8)
    queries = [scene.image for scene in drawn] * 2
    supports = [[shown(drawn[(place * 3 + 1) % 8])] for place in range(16)]
    together = matcher()
    masks = together.segment_queries(queries, supports)
    forgetful = matcher(memory=0)
    for place in reversed(range(16)):
        [alone] = forgetful.segment_queries([queries[place].copy()], [supports[place]])
        assert np.array_equal(alone, masks[place])
    assert forgetful._cache.size == 0


def test_more_neighbours_than_there_are():
    cosines = np.array([[0.5, 0.0], [0.25, 1.0]], np.float32)
    assert mean_of_largest(cosines, 9).tolist() == [0.375, 0.5]
    assert mean_of_largest(cosines[:0], 3).tolist() == [0.0, 0.0]
    with pytest.raises(OptionError, match="k is at least 1"):
        matcher(k=0)
