"""Coordinates in a span keep products, and lifting brings vectors back."""

import numpy as np
import pytest

from hardlook.models.few_shot.span import span_of


def check(rows):
    span = span_of(rows)
    wide = rows.astype(float)
    size = max(1.0, float((wide**2).sum(2).max()))
    products, kept = wide @ wide.transpose(0, 2, 1), span.coordinates @ span.coordinates.transpose(0, 2, 1)
    np.testing.assert_allclose(kept, products, atol=1e-10 * size)
    np.testing.assert_allclose(span.lifted(span.coordinates), wide, atol=1e-5 * np.sqrt(size))
    return span


@pytest.mark.parametrize("shape", [(3, 5, 40), (2, 7, 7), (2, 9, 4), (4, 1, 3)])
def test_random_rows(shape):
    span = check(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    assert span.coordinates.shape == (shape[0], shape[1], min(shape[1:]))


def test_rows_that_repeat_or_are_empty():
    rows = np.random.default_rng(1).standard_normal((3, 6, 20)).astype(np.float32)
    rows[0, 1] = rows[0, 0]
    rows[1, 2:] = 0
    rows[2] = 0
    span = check(rows)
    assert np.isfinite(span.basis).all()
    assert not span.coordinates[2].any()


def test_rows_of_very_different_size():
    rows = np.random.default_rng(2).standard_normal((2, 4, 30)).astype(np.float32)
    rows[:, 0] *= 1000
    check(rows)
