"""Clicks as RITM's predictors read them: a clicker that holds them, each with a place, a sign and a number.

A predictor calls `clicker.get_clicks()` and reads `is_positive`, `coords` (row, column) and `indx` of each click; its
transforms call `click.copy(coords=...)`, and its network reads `coords_and_indx`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardlook.models.roles import Clicks


@dataclass(frozen=True)
class PredictorClick:
    """One click: `coords` (row, column) in pixels, `indx` its place in the order of clicking, from 0.

    >>> PredictorClick(True, (3, 4), 0).copy(coords=(1.5, 2.0)).coords_and_indx
    (1.5, 2.0, 0)
    """

    is_positive: bool
    coords: tuple[float, float]
    indx: int

    @property
    def coords_and_indx(self) -> tuple[float, float, int]:
        """Row, column and number, as the network's input has them."""
        return (*self.coords, self.indx)

    def copy(self, **changed: Any) -> PredictorClick:
        """The same click with other fields."""
        return replace(self, **changed)


@dataclass(frozen=True)
class ClickList:
    """The clicks of one trajectory up to now."""

    clicks_list: tuple[PredictorClick, ...]
    click_indx_offset: int = 0

    def get_clicks(self, clicks_limit: int | None = None) -> list[PredictorClick]:
        """The first `clicks_limit` clicks, all by default."""
        return list(self.clicks_list[:clicks_limit])

    def __len__(self) -> int:
        return len(self.clicks_list)


def predictor_clicks(prompt: Clicks, shape: tuple[int, int]) -> tuple[PredictorClick, ...]:
    """A prompt's clicks as whole pixels (row, column) inside a frame (H, W).

    >>> prompt = Clicks(np.array([[4.4, 9]], np.float32), np.array([True]))
    >>> predictor_clicks(prompt, (8, 8))
    (PredictorClick(is_positive=True, coords=(7, 4), indx=0),)
    """
    pixels = np.rint(np.asarray(prompt.points, np.float64).reshape(-1, 2)).astype(int)
    rows, columns = np.clip(pixels[:, 1], 0, shape[0] - 1), np.clip(pixels[:, 0], 0, shape[1] - 1)
    signs = np.asarray(prompt.positive, bool)
    return tuple(
        PredictorClick(bool(sign), (int(row), int(column)), number)
        for number, (row, column, sign) in enumerate(zip(rows, columns, signs, strict=True))
    )
