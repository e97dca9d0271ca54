"""Parts of units that the open metrics share: scenes of the planted world, sources, stored predictions, sizes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, OptionError
from hardlook.harness.benchmark import Unit, paths_given
from hardlook.open_vocabulary.options import SceneOptions
from hardlook.world.planted import PlantedWorld

Prediction = TypeVar("Prediction")

_SCENE = re.compile("scene-([0-9]{4,18})")


def list_scenes(options: SceneOptions, payload: Any) -> list[Unit]:
    """One unit per scene of the planted world, such as `scene-0007`: `payload` with its `scene` and `context`."""
    world = _planted_world(options)
    return [_make_scene(world, index, payload) for index in range(len(world))]


def find_scenes(options: SceneOptions, payload: Any, ids: Collection[str]) -> dict[str, Unit]:
    """Those of the units of `list_scenes` with these ids; the others are not made."""
    world = _planted_world(options)
    numbers = {name: int(digits[1]) for name in ids if (digits := _SCENE.fullmatch(name))}
    found = (_make_scene(world, index, payload) for index in numbers.values() if index < len(world))
    # `scene-00007` is not the name of a scene, though scene 7 exists.
    return {unit.id: unit for unit in found if unit.id in numbers}


def _make_scene(world: PlantedWorld, index: int, payload: Any) -> Unit:
    return Unit(f"scene-{index:04d}", replace(payload, scene=(world, index), context=world.context(index)))


def list_given_sources(options: SceneOptions, **label_sets: str | None) -> dict[str, Path | str]:
    """The paths that the options name, or the planted world's fingerprint; and the label sets that are files."""
    given: Mapping[str, Path | str] = paths_given(options) or {"planted world": _planted_world(options).fingerprint()}
    files = {name: Path(labels) for name, labels in label_sets.items() if labels and Path(labels).is_file()}
    return {**given, **files}


def _planted_world(options: SceneOptions) -> PlantedWorld:
    return PlantedWorld(seed=options.seed, count=options.scenes)


def require_stored(prediction: Prediction | None, unit: Unit) -> Prediction:
    """The stored prediction of a unit, for a run without a model; an error where there is none."""
    if prediction is None:
        what, remedy = "there is neither a model nor a stored prediction", "give --model or --pred"
        raise OptionError(what, unit=unit.id, remedy=remedy)
    return prediction


def check_size(
    what: str,
    array: NDArray[np.generic] | None,
    other: str,
    size: tuple[int, ...],
    *,
    file: Path | None,
    unit: str,
    remedy: str,
) -> None:
    """Raise an error where an image or a map has another size than `other`, whose `size` is (height, width)."""
    if array is not None and array.shape[:2] != size:
        height, width = array.shape[:2]
        text = f"the {what} has {width}x{height} pixels (width x height), {other} {size[1]}x{size[0]}"
        raise DataError(text, file=file, unit=unit, remedy=remedy)
