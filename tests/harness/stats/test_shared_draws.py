"""Tasks that share images: the variance that the draw of the images adds, against pools that are drawn again."""

import numpy as np
import pytest

from hardlook.harness.stats.shared_draws import ImageShares, share_out_errors

CONCEPTS, WAYS, DEPTH = 10, 5, 6
CENTRES = np.random.default_rng(3).normal(size=(CONCEPTS, DEPTH))


def answer(rng, images, tasks, shots, queries):
    """Nearest centroid on a pool of images that is drawn anew."""
    spread = np.exp(0.4 * rng.normal(size=(CONCEPTS, images, 1)))
    pool = CENTRES[:, None] + 0.8 * spread * rng.normal(size=(CONCEPTS, images, DEPTH))
    classes = np.argsort(rng.random((tasks, CONCEPTS)), axis=1)[:, :WAYS]
    drawn = np.argsort(rng.random((tasks, WAYS, images)), axis=2)[:, :, : shots + queries]
    seen = pool[classes[:, :, None], drawn]
    apart = ((seen[:, :, shots:, None] - seen[:, :, :shots].mean(axis=2)[:, None, None]) ** 2).sum(axis=-1)
    numbers = classes[:, :, None] * images + drawn
    return apart.argmin(axis=-1) == np.arange(WAYS)[None, :, None], classes, numbers[..., :shots], numbers[..., shots:]


@pytest.mark.parametrize("shots", [1, 3])
def test_the_standard_error_is_that_of_means_over_other_pools(shots):
    rng = np.random.default_rng(shots)
    means, alone, both = [], [], []
    for _ in range(120):
        right, *drawn = answer(rng, 30, 300, shots, 5)
        values = right.mean(axis=(1, 2))
        means.append(values.mean())
        alone.append(values.var(ddof=1) / len(values))
        both.append(alone[-1] + share_out_errors(right, *drawn).measure()[0])
    true = np.std(means)
    # Tasks as if they were independent: an interval of less than half the width.
    assert np.sqrt(np.mean(alone)) < 0.5 * true
    assert 0.85 * true < np.sqrt(np.mean(both)) < 1.2 * true


def test_tasks_without_an_image_in_common_add_nothing():
    rng = np.random.default_rng(0)
    right = rng.random((50, 2, 3)) < 0.6
    classes = np.tile([0, 1], (50, 1))
    numbers = np.arange(50 * 2 * 4).reshape(50, 2, 4)
    variance, _ = share_out_errors(right, classes, numbers[..., :1], numbers[..., 1:]).measure()
    assert variance == pytest.approx(0, abs=1e-12)


def test_two_equal_models_have_no_difference_to_vary():
    rng = np.random.default_rng(1)
    shares = share_out_errors(*answer(rng, 20, 60, 1, 4))
    assert shares.measure()[0] > 0
    assert shares.minus(shares).measure()[0] == pytest.approx(0, abs=1e-15)


def test_no_answers_add_nothing():
    none = np.zeros(0, np.int64)
    assert ImageShares(none, none, np.zeros((0, 2))).measure() == (0.0, 1.0)
