"""Which samples can be trained on, found before the training: steps and rates follow from their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from hardlook.clicks.training.samples import TrainingSample, on_grid
from hardlook.clicks.training.settings import TrainingSettings
from hardlook.errors import DataError


def unusable(
    samples: Sequence[TrainingSample],
    settings: TrainingSettings,
    *,
    workers: int = 0,
    progress: Callable[[bool], None] | None = None,
) -> dict[int, DataError]:
    """Places of the samples that cannot be put on the grid, each with its error.

    Every sample is prepared once, by `workers` threads (at least one), and not held. `progress` is called after each,
    in their order, with whether it can be used.
    """

    def tried(sample: TrainingSample) -> DataError | None:
        try:
            on_grid(sample, settings)
        except DataError as error:
            return error
        return None

    found: dict[int, DataError] = {}
    with ThreadPoolExecutor(max(1, workers)) as pool:
        for place, error in enumerate(pool.map(tried, samples)):
            if error is not None:
                found[place] = error
            if progress:
                progress(error is None)
    return found
