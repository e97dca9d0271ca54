"""What a click model says of an error's free pixels: the part of its map that can be drawn from.

A map is multiplied by the error and by not yet clicked; dividing it by its sum changes no draw and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.clicks.error_regions import Region
from hardlook.clicks.groups import Ranked, rank
from hardlook.clicks.instance import Instance
from hardlook.clicks.next_click import Choice, Pixels
from hardlook.errors import ModelError
from hardlook.models.roles import ClickModel, Mask


@dataclass(frozen=True)
class Chances:
    """The free pixels of a region and their chances: `pixels` (n,) flat places in its box, `ranked` their values."""

    region: Region
    pixels: NDArray[np.intp]
    ranked: Ranked

    def place(self, index: int) -> tuple[int, int]:
        """Row and column in the frame of the free pixel `index`."""
        row, column = divmod(int(self.pixels[index]), self.region.box.width)
        return row + self.region.box.top, column + self.region.box.left


def find_chances(
    instance: Instance, click_model: ClickModel, choices: Sequence[Choice], clicked: Sequence[Pixels]
) -> list[Chances]:
    """The chances in each chosen error, of which the pixels `clicked` (k, 2), rows and columns, are not free.

    A `local` click model is shown the error's box only; one with `click_maps` is asked for all maps at once.
    A map of another shape, or with a negative or undefined value on a free pixel, raises a `ModelError`.
    """
    maps = _local_maps if getattr(click_model, "local", False) else _frame_maps
    return [
        Chances(choice.region, pixels, _ranked(chances, pixels, click_model, instance))
        for choice, chances, made in zip(choices, maps(instance, click_model, choices), clicked, strict=True)
        for pixels in [np.flatnonzero(_free(choice.region, made))]
    ]


def _local_maps(instance: Instance, click_model: ClickModel, choices: Sequence[Choice]) -> list[Any]:
    maps = []
    for choice in choices:
        cut, error = choice.region.box.slices, choice.region.mask
        chances = click_model.click_map(instance.image[cut], instance.target[cut], error, choice.positive)
        maps.append(_of_shape(chances, error.shape, click_model, instance))
    return maps


def _frame_maps(instance: Instance, click_model: ClickModel, choices: Sequence[Choice]) -> list[Any]:
    errors, positives = [], []
    for choice in choices:
        error = np.zeros(instance.shape, bool)
        error[choice.region.box.slices] = choice.region.mask
        errors.append(error)
        positives.append(choice.positive)
    together = getattr(click_model, "click_maps", None)
    if together is not None:
        maps = list(together(instance.image, instance.target, errors, positives))
    else:
        one = click_model.click_map
        maps = [one(instance.image, instance.target, *asked) for asked in zip(errors, positives, strict=True)]
    if len(maps) != len(errors):
        raise _fault(click_model, instance, f"expected {len(errors)} maps, got {len(maps)}")
    whole = [_of_shape(chances, instance.shape, click_model, instance) for chances in maps]
    return [chances[choice.region.box.slices] for choice, chances in zip(choices, whole, strict=True)]


def _free(region: Region, clicked: Pixels) -> Mask:
    places = clicked - (region.box.top, region.box.left)
    places = places[((places >= 0) & (places < region.mask.shape)).all(axis=1)]
    if not len(places):
        return region.mask
    free = region.mask.copy()
    free[places[:, 0], places[:, 1]] = False
    return free


def _ranked(chances: Any, pixels: NDArray[np.intp], click_model: ClickModel, instance: Instance) -> Ranked:
    ranked = rank(np.asarray(chances).reshape(-1)[pixels].astype(np.float64, copy=False))
    # Ascending, negative values come first and undefined ones last, so two looks check all.
    for value in ranked.ascending[[0, -1]] if len(pixels) else ():
        if not 0 <= value < np.inf:
            raise _fault(click_model, instance, f"expected finite chances of at least 0, got {value}")
    return ranked


def _of_shape(chances: Any, shape: tuple[int, ...], click_model: ClickModel, instance: Instance) -> Any:
    got = getattr(chances, "shape", type(chances).__name__)
    if got != shape:
        raise _fault(click_model, instance, f"expected a map of shape {shape}, got {got}")
    return chances


def _fault(click_model: ClickModel, instance: Instance, what: str) -> ModelError:
    return ModelError(
        f"the click model {type(click_model).__name__}: {what}",
        unit=instance.name,
        remedy="`hardlook check click-model NAME` tries it",
    )
