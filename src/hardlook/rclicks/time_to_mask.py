"""The computing time behind a mask: opening the image once, and every click, by the cost of a model.

>>> times = parse_click_times("opening=400,click=50,model=mine")
>>> times.seconds(4), str(times)
(0.6, 'opening=400,click=50,model=mine')
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from hardlook.errors import DataError, OptionError
from hardlook.reading import read_json, reading

COST_SCHEMA = "hardlook.clicks-cost/1"
_REMEDY = "give the cost.json of `hardlook clicks cost MODEL --out FOLDER`, or opening=MS,click=MS"


@dataclass(frozen=True)
class ClickTimes:
    """Milliseconds to open an image and to answer a click; `model` says of which model, and where it ran."""

    opening: float
    click: float
    model: str = ""

    def seconds(self, clicks: ArrayLike) -> np.ndarray | float:
        """Seconds of opening an image and of `clicks` clicks."""
        taken: np.ndarray | float = (self.opening + np.asarray(clicks, np.float64) * self.click) / 1000
        return float(taken) if np.ndim(taken) == 0 else taken

    def __str__(self) -> str:
        """As `parse_click_times` reads it."""
        return f"opening={self.opening:.6g},click={self.click:.6g}" + (f",model={self.model}" if self.model else "")


def parse_click_times(text: str) -> ClickTimes:
    """The times in a cost.json, or in a text such as opening=400,click=50, in milliseconds."""
    if "=" not in text:
        return read_click_times(Path(text).expanduser())
    # The model comes last, and may have commas in its name.
    pairs = dict(part.partition("=")[::2] for part in text.split(",", 2))
    try:
        times = ClickTimes(float(pairs.pop("opening")), float(pairs.pop("click")), pairs.pop("model", ""))
    except (KeyError, ValueError):
        raise OptionError(f"--cost {text}: expected two times", remedy=_REMEDY) from None
    if pairs or not (0 <= times.opening < math.inf and 0 <= times.click < math.inf):
        raise OptionError(f"--cost {text}: expected two times of at least 0", remedy=_REMEDY)
    return times


def read_click_times(path: Path) -> ClickTimes:
    """The times in the cost.json of `hardlook clicks cost`."""
    what = "not a cost of `hardlook clicks cost`"
    document = read_json(path, what=what, remedy=_REMEDY)
    with reading(path, what, remedy=_REMEDY):
        if document["schema"] != COST_SCHEMA:
            raise DataError(f"expected {COST_SCHEMA}, got {document['schema']}", file=path, remedy=_REMEDY)
        cost = document["cost"]
        opening, click = float(cost["opening"]["mean"]), float(cost["click"]["mean"])
        if not (0 <= opening < math.inf and 0 <= click < math.inf):
            raise DataError(f"times of {opening} and {click} ms", file=path, remedy=_REMEDY)
        return ClickTimes(opening, click, f"{document['model']['name']} on {cost['device']} ({cost['machine']})")
