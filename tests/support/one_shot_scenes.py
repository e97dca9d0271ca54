"""Pairs of the planted world for matchers, and what other libraries make of the same maps."""

from functools import cache

import numpy as np
from scipy.ndimage import map_coordinates

from hardlook.models.planted.encoders import PlantedEncoder
from hardlook.models.roles import Support
from hardlook.world.planted import PlantedWorld


@cache
def scenes(count=24, size=(96, 72), **options):
    return tuple(PlantedWorld(seed=11, count=count, size=size, **options))


def subject_mask(scene):
    return scene.class_mask(scene.scene.subject.concept)


def shown(scene):
    return Support(scene.image, subject_mask(scene))


def planted_cells(image):
    """(h, w, C) in float64, as the planted encoder has them."""
    return np.moveaxis(np.asarray(PlantedEncoder().encode([image]).maps[0], np.float64), 0, -1)


def literal_coverage(mask, grid):
    """Shares by cutting every pixel into small squares, as many as make the borders of cells fall between them."""
    fine = np.repeat(np.repeat(mask.astype(float), grid[0], axis=0), grid[1], axis=1)
    height, width = mask.shape
    return fine.reshape(grid[0], height, grid[1], width).mean(axis=(1, 3))


def interpolated(scores, size):
    """Bilinear interpolation between cell centres, the outermost cells continued, by scipy."""
    rows = (np.arange(size[0]) + 0.5) * scores.shape[0] / size[0] - 0.5
    columns = (np.arange(size[1]) + 0.5) * scores.shape[1] / size[1] - 0.5
    return map_coordinates(scores, np.meshgrid(rows, columns, indexing="ij"), order=1, mode="nearest")


def assert_decides(mask, scores, size):
    """The mask is where the scores are above 0, wherever rounding does not decide."""
    expected = interpolated(scores, size)
    clear = np.abs(expected) > 1e-4
    assert clear.mean() > 0.1, clear.mean()
    assert np.array_equal(mask[clear], expected[clear] > 0)
