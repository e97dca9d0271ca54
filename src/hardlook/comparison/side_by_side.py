"""The pictures of one unit as several models answered it: what they share once, what differs with the model's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.contract.sections import Picture
from hardlook.errors import HardlookError

if TYPE_CHECKING:
    from hardlook.runs.scoring import ScoredRun


def pictures_of(
    runs: Mapping[str, ScoredRun], wanted: Mapping[str, Sequence[str]]
) -> dict[str, Sequence[Picture] | str]:
    """By unit its pictures, or the reason why there are none; `wanted` has the models to show for each unit."""
    if not wanted:
        return {}
    listed: dict[str, dict[str, Any]] = {}
    whole: dict[str, Mapping[str, Any]] = {}
    for model, run in runs.items():
        mine = [unit for unit, models in wanted.items() if model in models]
        try:
            listed[model] = {unit.id: unit for unit in run.benchmark.units(run.options)} if mine else {}
            whole[model] = run.whole_records(mine) if mine else {}
        except (HardlookError, OSError) as error:
            return {unit: f"the data of {model} cannot be read any more: {error}" for unit in wanted}
    found: dict[str, Sequence[Picture] | str] = {}
    for unit, models in wanted.items():
        try:
            answers = {
                model: runs[model].benchmark.pictures(listed[model][unit], whole[model][unit]) for model in models
            }
        except (HardlookError, OSError, KeyError) as error:
            found[unit] = f"no picture: {error}"
        else:
            found[unit] = joined(answers)
    return found


def joined(answers: Mapping[str, Sequence[Picture]]) -> list[Picture]:
    """Pictures that all models have alike come once and first; the others follow with the model's name.

    >>> image = np.zeros((2, 2, 3), np.uint8)
    >>> both = {"ant": [Picture("image", image)], "bee": [Picture("image", image), Picture("answer", image + 1)]}
    >>> [picture.label for picture in joined(both)]
    ['image', 'answer (bee)']
    """
    models = list(answers)
    shared = [
        one for one in answers[models[0]] if all(any(alike(one, two) for two in answers[other]) for other in models[1:])
    ]
    own = [
        replace(picture, label=f"{picture.label} ({model})")
        for model, pictures in answers.items()
        for picture in pictures
        if not any(alike(picture, one) for one in shared)
    ]
    return [*shared, *own]


def alike(one: Picture, other: Picture) -> bool:
    """Whether two pictures show the same under the same label."""
    shown = ((one.image, other.image), (one.mask, other.mask), (one.label_map, other.label_map))
    arrays: list[tuple[Any, Any]] = [(np.asarray(mine), np.asarray(theirs)) for mine, theirs in shown]
    return (
        one.label == other.label
        and tuple(one.points) == tuple(other.points)
        and all(mine.dtype == theirs.dtype and np.array_equal(mine, theirs) for mine, theirs in arrays)
    )
