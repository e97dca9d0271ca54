"""A click model's map as a distribution over the pixels of an error region, and clicks drawn from it.

>>> import numpy as np
>>> from hardlook.randomness import generator
>>> error = np.array([[False, True], [False, True]])
>>> distribution = click_distribution(np.array([[9.0, 1.0], [9.0, 3.0]]), error)
>>> distribution.chances.tolist()
[[0.0, 0.25], [0.0, 0.75]]
>>> sorted(set(map(tuple, distribution.draw(generator(0, "example"), 40).tolist())))
[(1, 0), (1, 1)]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, ModelError


@dataclass(frozen=True)
class ClickDistribution:
    """Chances (H, W) of a click, 0 outside the error region, sum 1; `fell_back`: the map was 0 there, all are equal."""

    chances: NDArray[np.float64]
    fell_back: bool = False

    def draw(self, rng: np.random.Generator, *size: int) -> NDArray[np.int64]:
        """Independent clicks (*size, 2) int64, each (x, y) in pixels.

        >>> ClickDistribution(np.array([[0.0, 1.0]])).draw(np.random.default_rng(0), 2, 3).shape
        (2, 3, 2)
        """
        flat = self.chances.ravel()
        pixels = np.flatnonzero(flat)
        cumulative = np.cumsum(flat[pixels])
        # Scaled by the sum that was reached, so that rounding leaves no gap behind the last pixel.
        found = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
        rows, columns = np.divmod(pixels[np.minimum(found, len(pixels) - 1)], self.chances.shape[1])
        return np.stack([columns, rows], axis=-1).astype(np.int64)


def click_distribution(click_map: NDArray[np.floating], error: NDArray[np.bool_]) -> ClickDistribution:
    """The map (H, W), at least 0, times the error region (H, W) bool, divided by its sum.

    A map of another shape or with negative or undefined values is a `ModelError`, an empty region a `DataError`.

    >>> click_distribution(np.zeros((1, 2)), np.array([[True, True]]))
    ClickDistribution(chances=array([[0.5, 0.5]]), fell_back=True)
    """
    values = np.asarray(click_map, dtype=np.float64)
    if values.shape != error.shape:
        what = f"the click map has shape {values.shape} where the error region has {error.shape}"
        remedy = "a click model answers with one value per pixel; `hardlook check click-model` tries one"
        raise ModelError(what, remedy=remedy)
    if not error.any():
        raise DataError("the error region is empty: there is nothing to click", remedy="leave the stem out")
    inside = values[error]
    if not np.isfinite(inside).all() or inside.min() < 0:
        what = f"the click map goes from {inside.min()} to {inside.max()} in the error region"
        raise ModelError(what, remedy="chances are finite and at least 0; `hardlook check click-model` tries a model")
    peak = inside.max()
    # Divided by the peak first, so that very small values keep their digits in the sum.
    inside = inside / peak if peak else np.ones_like(inside)
    chances = np.zeros(error.shape)
    chances[error] = inside / inside.sum()
    return ClickDistribution(chances, fell_back=not peak)
