"""From records to matches: all classes, and each set of classes on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
WHOLE = ""


@dataclass(frozen=True, eq=False)
class RunMatches:
    """Matches of the same images: with all classes (under the name `WHOLE`), and within each set alone."""

    by_set: Mapping[str, Sequence[ImageMatches]]
    classes: int

    @property
    def images(self) -> int:
        """How many images there are."""
        return len(self.by_set[WHOLE])

    def tables(self) -> dict[str, MatchTable]:
        """One table for all classes and for each set, images in their order."""
        return {name: match_table(images, self.classes) for name, images in self.by_set.items()}

    def only(self, images: Iterable[int]) -> RunMatches:
        """All classes of some of the images, without the sets."""
        return RunMatches({WHOLE: [self.by_set[WHOLE][image] for image in images]}, self.classes)

    def beside(self, other: RunMatches) -> RunMatches:
        """The images of two runs in turn: image i of this run is 2 i, that of the other 2 i + 1.

        Equal scores are settled by image, so those of one image have to stand in one place.
        """
        pairs = {name: zip(images, other.by_set[name], strict=True) for name, images in self.by_set.items()}
        return RunMatches({name: [one for pair in both for one in pair] for name, both in pairs.items()}, self.classes)


def run_matches(
    records: pl.DataFrame, *, max_detections: int = 100, released: bool = False, sets: ClassMasks | None = None
) -> RunMatches:
    """Match every image of `records`, in the order of the rows."""
    inputs, zero = image_inputs(records), int(records["zero"][0])

    def match(image: ImageInput) -> ImageMatches:
        return match_image(
            image.truth, image.found, overlap=image.overlap, max_detections=max_detections,
            released=released, category_zero=None if zero < 0 else zero,
        )  # fmt: skip

    def within(kept: NDArray[np.bool_]) -> Callable[[ImageInput], ImageMatches]:
        return lambda one: match(ImageInput(*only_classes(one.truth, one.found, one.overlap, kept)))

    by_set = {name: list(map(within(kept), inputs)) for name, kept in (sets or {}).items()}
    return RunMatches({WHOLE: [match(one) for one in inputs], **by_set}, len(label_names(records)))
