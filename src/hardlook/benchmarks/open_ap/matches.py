"""From records to matches: all classes, and each set of classes on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_ap.records import ImageInput, image_inputs, label_names
from hardlook.metrics.detection_matching import ImageMatches, match_image, only_classes
from hardlook.metrics.match_table import MatchTable, match_table

if TYPE_CHECKING:
    import polars as pl

ClassMasks = Mapping[str, NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class RunTables:
    """Matches of the same images: with all classes (`whole`), and within each set alone (`constrained`)."""

    whole: MatchTable
    constrained: Mapping[str, MatchTable]

    def weighted(self, multiplicity: NDArray[np.int64]) -> RunTables:
        """The same where image i counts `multiplicity[i]` times."""
        inner = {name: table.weighted(multiplicity) for name, table in self.constrained.items()}
        return RunTables(self.whole.weighted(multiplicity), inner)


def run_tables(
    records: pl.DataFrame, *, max_detections: int = 100, released: bool = False, sets: ClassMasks | None = None
) -> RunTables:
    """Match every image of `records` and put the matches in tables, images in the order of the rows."""
    inputs, classes = image_inputs(records), len(label_names(records))
    zero = int(records["zero"][0])

    def table(images: Sequence[ImageInput]) -> MatchTable:
        return match_table([match(image) for image in images], classes)

    def match(image: ImageInput) -> ImageMatches:
        return match_image(
            image.truth, image.found, overlap=image.overlap, max_detections=max_detections,
            released=released, category_zero=None if zero < 0 else zero,
        )  # fmt: skip

    constrained = {
        name: table([ImageInput(*only_classes(one.truth, one.found, one.overlap, kept)) for one in inputs])
        for name, kept in (sets or {}).items()
    }
    return RunTables(table(inputs), constrained)
