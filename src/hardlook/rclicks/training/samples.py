"""Training samples: clicks on one region, and the same on the network's grid, in batches.

Order and flips are drawn by seed and epoch, and do not depend on threads: any number of them gives the same batches.

>>> epoch_order(seed=0, epoch=1, count=5).shape, epoch_flips(seed=0, epoch=1, count=5).dtype
((5,), dtype('bool'))
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, HardlookError
from hardlook.models.roles import Image, Mask
from hardlook.randomness import generator
from hardlook.rclicks.click_models.letterbox import Letterbox, Plane, image_on_grid, masks_on_grid
from hardlook.rclicks.training.settings import TrainingSettings
from hardlook.rclicks.training.target_maps import click_map

if TYPE_CHECKING:
    from torch import Tensor


class TrainingSample(Protocol):
    """One region that people clicked; errors name it by its `key`, a text, where it has one."""

    def read(self) -> tuple[Image, Mask, Mask, NDArray[np.integer]]:
        """Image (H, W, 3) uint8, the object's and the error's masks (H, W) bool, clicks (n, 2) x, y in pixels."""
        ...


@dataclass(frozen=True)
class GridSample:
    """A sample on the grid: `image` (3, S, S), `masks` (2, S, S), `target` (S, S), all float32; `clicks` (n, 2) x, y.

    Clicks are cells of `box.content`, the part of the grid that the image covers.
    """

    image: Plane
    masks: Plane
    target: Plane
    box: Letterbox
    clicks: NDArray[np.int64]


def prepare_sample(sample: TrainingSample, settings: TrainingSettings) -> GridSample:
    """The sample as the network takes it; the click map is made in the image's own pixels first."""
    image, target, error, clicks = sample.read()
    box = Letterbox.of(image.shape, settings.size)
    chances = click_map(clicks, error, sigma=settings.sigma, reading=settings.mask_sigma)
    # Probabilities of a large image are tiny: they are scaled before they become float32. The loss ignores the scale.
    wanted = box.place((chances / chances.max()).astype(np.float32), density=True)
    return GridSample(image_on_grid(image, box), masks_on_grid(target, error, box), wanted, box, box.points(clicks))


class GridSamples:
    """Samples on the grid, prepared ahead by `workers` threads; `keep` holds them in memory (4 MiB each at 416)."""

    def __init__(
        self, samples: Sequence[TrainingSample], settings: TrainingSettings, *, workers: int = 0, keep: bool = False
    ) -> None:
        self._samples, self._settings, self._workers = samples, settings, workers
        self._kept: dict[int, GridSample] | None = {} if keep else None

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> GridSample:
        if self._kept and index in self._kept:
            return self._kept[index]
        try:
            prepared = prepare_sample(self._samples[index], self._settings)
        except HardlookError as error:
            raise error.at(unit=getattr(self._samples[index], "key", f"sample {index}")) from error
        if self._kept is not None:
            self._kept[index] = prepared
        return prepared

    def batches(self, order: Sequence[int] | NDArray[np.integer], batch: int) -> Iterator[list[GridSample]]:
        """Lists of `batch` samples in the order given; the last may be shorter."""
        groups = [[int(index) for index in order[start : start + batch]] for start in range(0, len(order), batch)]
        if self._workers < 1:
            yield from ([self[index] for index in group] for group in groups)
            return
        waiting: deque[list[Future[GridSample]]] = deque()
        ahead = 1 + -(-2 * self._workers // batch)
        with ThreadPoolExecutor(self._workers) as pool:
            for group in groups:
                waiting.append([pool.submit(self.__getitem__, index) for index in group])
                if len(waiting) > ahead:
                    yield [future.result() for future in waiting.popleft()]
            while waiting:
                yield [future.result() for future in waiting.popleft()]


def epoch_order(seed: int, epoch: int, count: int) -> NDArray[np.int64]:
    """(count,) the samples' places in the order of an epoch."""
    return generator(seed, "clickability", "order", epoch).permutation(count)


def epoch_flips(seed: int, epoch: int, count: int) -> NDArray[np.bool_]:
    """(count,) which samples an epoch mirrors; it depends on the sample's index, not on the order."""
    drawn = [generator(seed, "clickability", "flip", epoch, place).random() for place in range(count)]
    return np.array(drawn) < 0.5


def stack_batch(samples: Sequence[GridSample], flipped: Sequence[bool] | NDArray[np.bool_]) -> tuple[Tensor, ...]:
    """Images (N, 3, S, S), masks (N, 2, S, S) and targets (N, S, S); those `flipped` are mirrored."""
    import torch

    def stack(planes: list[Plane]) -> Tensor:
        mirrored = [plane[..., ::-1] if flip else plane for plane, flip in zip(planes, flipped, strict=True)]
        return torch.from_numpy(np.stack(mirrored))

    parts = ([one.image for one in samples], [one.masks for one in samples], [one.target for one in samples])
    return tuple(stack(planes) for planes in parts)


def find_unusable(
    samples: Sequence[TrainingSample],
    settings: TrainingSettings,
    *,
    workers: int = 0,
    progress: Callable[[bool], None] | None = None,
) -> dict[int, DataError]:
    """Indices and errors of the samples that cannot be prepared; `progress` gets, in order, whether each is usable."""

    def check(sample: TrainingSample) -> DataError | None:
        try:
            prepare_sample(sample, settings)
        except DataError as error:
            return error
        return None

    found: dict[int, DataError] = {}
    with ThreadPoolExecutor(max(1, workers)) as pool:
        for place, error in enumerate(pool.map(check, samples)):
            if error is not None:
                found[place] = error
            if progress:
                progress(error is None)
    return found
