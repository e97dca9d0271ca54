"""Format estimates for the reports of studies: JSON without NaN, dots of a chart, and text with the interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hardlook.harness.rounding import format_fixed
from hardlook.harness.sections import Dot
from hardlook.harness.stats import Estimate

_KEYS = ("value", "low", "high", "level", "n", "resampled")


def finite_or_none(value: float | None) -> float | None:
    """The value; None if it is missing, NaN or infinite.

    >>> finite_or_none(float("nan")) is None, finite_or_none(0.5)
    (True, 0.5)
    """
    return None if value is None or not math.isfinite(value) else float(value)


def estimate_to_json(estimate: Estimate | None, keys: Sequence[str] = _KEYS) -> dict[str, Any] | None:
    """An estimate as a JSON object with these keys."""
    if estimate is None:
        return None
    interval = estimate.interval
    values = {
        "value": finite_or_none(estimate.value),
        "low": finite_or_none(interval.low),
        "high": finite_or_none(interval.high),
        "level": interval.level,
        "n": interval.n,
        "resampled": interval.resampled,
    }
    return {key: values[key] for key in keys}


def make_estimate_dot(label: str, estimate: Estimate, group: str = "", *, scale: float = 1) -> Dot:
    """An estimate, multiplied by `scale`, as a row of a dot chart."""
    low, high = (finite_or_none(bound * scale) for bound in (estimate.interval.low, estimate.interval.high))
    return Dot(label, scale * estimate.value, low, high, group)


def format_estimate(estimate: Estimate, decimals: int = 2) -> str:
    """The value with its interval, such as `0.62 (0.58 to 0.66)`."""
    if not math.isfinite(estimate.value):
        return "undefined"
    interval = estimate.interval
    value, low, high = (format_fixed(number, decimals) for number in (estimate.value, interval.low, interval.high))
    return f"{value} ({low} to {high})" if interval.defined else value


def format_share(estimate: Estimate) -> str:
    """A share with its interval in percent, such as `62 % (58 to 66)`."""
    if not math.isfinite(estimate.value):
        return "undefined"
    text = f"{format_fixed(100 * estimate.value, 0)} %"
    low, high = 100 * estimate.interval.low, 100 * estimate.interval.high
    return f"{text} ({format_fixed(low, 0)} to {format_fixed(high, 0)})" if estimate.interval.defined else text
