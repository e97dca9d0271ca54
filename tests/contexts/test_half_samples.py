"""Half samples against the standard error that a mean has by theory."""

import math

import numpy as np
import pytest
from scipy import stats

from hardlook.contexts.half_samples import half_sample_interval


def test_the_error_of_a_mean():
    values = np.random.default_rng(0).normal(2, 3, 500)
    found = half_sample_interval(
        500, lambda kept: float(values[kept].mean()), rng=np.random.default_rng(1), halves=3000
    )
    assert found.value == values.mean()
    assert found.standard_error == pytest.approx(stats.sem(values), rel=0.05)
    assert found.interval.high - found.value == pytest.approx(1.959964 * found.standard_error)


def test_few_images_and_bounds():
    few = half_sample_interval(3, lambda kept: 1.0, rng=np.random.default_rng(0))
    assert few.value == 1 and math.isnan(few.interval.low) and few.resamples == 0
    undefined = half_sample_interval(10, lambda kept: math.nan, rng=np.random.default_rng(0))
    assert undefined.undefined == undefined.resamples and not undefined.interval.defined
    values = np.arange(40.0) / 40
    cut = half_sample_interval(40, lambda kept: float(values[kept].max()), rng=np.random.default_rng(0), bounds=(0, 1))
    assert cut.interval.high <= 1


def test_rows_come_once_and_in_order():
    seen = []
    half_sample_interval(21, lambda kept: float(seen.append(kept) or 0), rng=np.random.default_rng(0), halves=5)
    assert [len(kept) for kept in seen] == [21, 10, 10, 10, 10, 10]
    assert all((np.diff(kept) > 0).all() for kept in seen)
