"""How spurious a dataset is: what context says of the concept, and whether it can be seen.

>>> study = label_study(["cat", "dog"] * 20, ["snow", "fog"] * 20, seed=0)
>>> study.images, round(study.adjusted.value, 3)
(40, 1.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hardlook.contexts.association import (
    adjusted_information,
    contingency,
    expected_information,
    mutual_information,
    normalised_information,
)
from hardlook.contexts.half_samples import half_sample_interval
from hardlook.errors import DataError
from hardlook.randomness import generator
from hardlook.stats import Estimate


@dataclass(frozen=True)
class LabelStudy:
    """Concept and context as labels: their information in nats, what chance gives, and the two indices.

    `normalised` lies in [0, 1] and grows by chance; `adjusted` is 0 at chance and at most 1. `empty` counts pairs of
    concept and context without an image.
    """

    images: int
    concepts: int
    contexts: int
    empty: int
    information: float
    chance: float
    normalised: Estimate
    adjusted: Estimate


def label_study(concepts: Sequence[str], contexts: Sequence[str], *, seed: int) -> LabelStudy:
    """The study of two lists of labels, one of each an image."""
    table = contingency(concepts, contexts)
    if min(table.shape) < 2:
        raise DataError(
            f"{table.shape[0]} concepts and {table.shape[1]} contexts leave nothing to go together",
            remedy="two of each are needed; give another split, or none",
        )
    rows, columns = np.array(concepts), np.array(contexts)
    return LabelStudy(
        images=int(table.sum()),
        concepts=table.shape[0],
        contexts=table.shape[1],
        empty=int((table == 0).sum()),
        information=mutual_information(table),
        chance=expected_information(table.sum(1), table.sum(0)),
        normalised=half_sample_interval(
            len(rows),
            lambda kept: normalised_information(rows[kept], columns[kept]),
            rng=generator(seed, "spuriousness", "normalised"),
            bounds=(0, 1),
        ),
        adjusted=half_sample_interval(
            len(rows),
            lambda kept: adjusted_information(rows[kept], columns[kept]),
            rng=generator(seed, "spuriousness", "adjusted"),
            bounds=(-1, 1),
        ),
    )
