"""Scenes to measure planted models on, and what it means that an error rises with a dial."""

from functools import cache

import numpy as np
from scipy.stats import spearmanr

from hardlook.world.planted import PlantedWorld

DIALS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@cache
def scenes(count=24, size=(96, 72), **options):
    """Rendered scenes of a small world; options as `PlantedWorld` has them."""
    return tuple(PlantedWorld(seed=5, count=count, size=size, **options))


def images(**options):
    return [scene.image for scene in scenes(**options)]


def assert_rises(error):
    """The error is 0 or least at 0, most at 1, and orders the dials."""
    errors = [error(dial) for dial in DIALS]
    assert errors[-1] > errors[0] + 0.05, errors
    assert spearmanr(DIALS, errors).statistic >= 0.9, errors


def assert_flat(error, tolerance=1e-6):
    errors = [error(dial) for dial in DIALS]
    assert max(errors) - min(errors) <= tolerance, errors


def iou(first, second):
    union = np.count_nonzero(first | second)
    return np.count_nonzero(first & second) / union if union else 1.0
