"""Clicks of people as a table that has been checked: whole, by round, by dataset, by what was clicked on.

>>> table = ClickTable(pl.DataFrame({
...     "dataset": ["GrabCut"] * 2, "image_stem": ["llama"] * 2, "object_stem": [""] * 2, "model_type": [""] * 2,
...     "click_type": ["first"] * 2, "full_stem": ["llama"] * 2, "device": ["pc", "mobile"],
...     "x": [3.0, 5.0], "y": [4.0, 4.0], "w": [9, 9], "h": [8, 8]}))
>>> clicks = table.for_dataset("grabcut").first().by_full_stem()["llama"]
>>> clicks.points.tolist(), clicks.devices.tolist(), clicks.size
([[3.0, 4.0], [5.0, 4.0]], ['pc', 'mobile'], (9, 8))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hardlook.data.object_instances.dataset_names import dataset_name
from hardlook.errors import OptionError

TEXTS = ("dataset", "image_stem", "object_stem", "model_type", "click_type", "full_stem", "device")
NUMBERS = ("x", "y", "w", "h")
COLUMNS = TEXTS + NUMBERS


@dataclass(frozen=True, eq=False)
class StemClicks:
    """All clicks on one full stem: `points` (n, 2) float64 as x, y in pixels, `devices` (n,) of str, in file order.

    `size` is the width and height of the image that was clicked on.
    """

    dataset: str
    full_stem: str
    image_stem: str
    object_stem: str
    click_type: str
    size: tuple[int, int]
    points: NDArray[np.float64]
    devices: NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class ClickTable:
    """A checked table with the columns `COLUMNS`, a row a click.

    `clipped` rows lay outside their image and were moved to its edge. `repeated` rows equal an earlier row in every
    column: two people may hit one pixel, so they stay. Both count the whole file, also after rows were chosen.
    """

    frame: pl.DataFrame
    clipped: int = 0
    repeated: int = 0

    def __len__(self) -> int:
        return self.frame.height

    def first(self) -> ClickTable:
        """The clicks of the first round."""
        return self.of_type("first")

    def of_type(self, *click_types: str) -> ClickTable:
        """The clicks of these types: first, fn, fp."""
        return self._where(pl.col("click_type").is_in(click_types))

    def on_device(self, device: str) -> ClickTable:
        """The clicks made on pc or mobile."""
        return self._where(pl.col("device") == device)

    def for_dataset(self, name: str) -> ClickTable:
        """The clicks on a dataset (or in a display mode), however its name is spelt; empty where there are none."""
        spelt = [text for text in self.frame["dataset"].unique() if dataset_name(text) == dataset_name(name)]
        return self._where(pl.col("dataset").is_in(spelt))

    def datasets(self) -> tuple[str, ...]:
        """The datasets as the file spells them, sorted."""
        return tuple(sorted(self.frame["dataset"].unique()))

    def counts(self) -> dict[str, dict[str, int]]:
        """Clicks by dataset (as spelt, sorted) and click type."""
        counted = self.frame.group_by("dataset", "click_type").len().sort("dataset", "click_type")
        found: dict[str, dict[str, int]] = {}
        for dataset, click_type, number in counted.iter_rows():
            found.setdefault(dataset, {})[click_type] = number
        return found

    def by_full_stem(self) -> Mapping[str, StemClicks]:
        """The clicks by full stem, stems sorted; of one dataset, since GrabCut and Berkeley share stems.

        Several spellings of one dataset count as one; the clicks carry the first spelling of their stem.
        """
        names = self.datasets()
        if len(set(map(dataset_name, names))) > 1:
            remedy = "choose one with for_dataset first: datasets share stems"
            raise OptionError(f"clicks of {len(names)} datasets ({', '.join(names[:5])}) by stem", remedy=remedy)
        same = [name for name in COLUMNS if name not in ("x", "y", "device", "model_type", "dataset")]
        grouped = self.frame.group_by(same, maintain_order=True).agg(pl.col("dataset").first(), "x", "y", "device")
        found = {}
        for image, number, click_type, stem, *size, dataset, x, y, devices in grouped.sort("full_stem").iter_rows():
            points = np.array([x, y], np.float64).T.copy()
            width, height = size
            on = np.array(devices, np.str_)
            found[stem] = StemClicks(dataset, stem, image, number, click_type, (width, height), points, on)
        return found

    def _where(self, condition: pl.Expr) -> ClickTable:
        return replace(self, frame=self.frame.filter(condition))
