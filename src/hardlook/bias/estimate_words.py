"""Estimates as the bias studies write and say them: JSON without NaN, and a value with its interval in words."""

from __future__ import annotations

import math
from typing import Any

from hardlook.contract.sections import Dot
from hardlook.stats import Estimate


def number(value: float | None) -> float | None:
    """The value, or None where there is none.

    >>> number(float("nan")) is None, number(0.5)
    (True, 0.5)
    """
    return None if value is None or not math.isfinite(value) else float(value)


def document_of(estimate: Estimate | None) -> dict[str, Any] | None:
    """An estimate as a JSON object."""
    if estimate is None:
        return None
    interval = estimate.interval
    return {
        "value": number(estimate.value),
        "low": number(interval.low),
        "high": number(interval.high),
        "level": interval.level,
        "n": interval.n,
        "resampled": interval.resampled,
    }


def dot(label: str, estimate: Estimate, group: str = "") -> Dot:
    """An estimate as a row of a dot chart."""
    return Dot(label, estimate.value, number(estimate.interval.low), number(estimate.interval.high), group)


def said(estimate: Estimate, decimals: int = 2) -> str:
    """The value with its interval, such as `0.62 (0.58 to 0.66)`."""
    if not math.isfinite(estimate.value):
        return "undefined"
    text = f"{estimate.value:.{decimals}f}"
    low, high = estimate.interval.low, estimate.interval.high
    return f"{text} ({low:.{decimals}f} to {high:.{decimals}f})" if estimate.interval.defined else text


def percent(estimate: Estimate) -> str:
    """A share with its interval in percent, such as `62 % (58 to 66)`."""
    if not math.isfinite(estimate.value):
        return "undefined"
    text = f"{100 * estimate.value:.0f} %"
    low, high = 100 * estimate.interval.low, 100 * estimate.interval.high
    return f"{text} ({low:.0f} to {high:.0f})" if estimate.interval.defined else text
