"""Sets of classes to score on their own, such as seen and unseen: from a JSON file, or COCO's usual split by name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, OptionError
from hardlook.similarity.labels import normalise_name

ClassMasks = Mapping[str, NDArray[np.bool_]]

# COCO's usual split for open-vocabulary detection: 48 base classes, 17 novel ones, 15 of the 80 in neither.
COCO_SPLIT = "coco-48-17"


def read_class_sets(path: Path | None, names: Sequence[str]) -> ClassMasks:
    """The sets of a JSON file {"seen": ["cat", ...], ...}, each as a mask (K,) over `names`; none without a file."""
    if path is None:
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        sets = {str(name): [str(member) for member in members] for name, members in document.items()}
    except FileNotFoundError:
        raise DataError("there is no such file", file=path, remedy="give --class-sets FILE.json") from None
    except (ValueError, AttributeError, TypeError) as error:
        remedy = 'write {"seen": ["cat", "dog"], "unseen": ["owl"]}'
        raise DataError(f"not a table of class sets ({error})", file=path, remedy=remedy) from None
    for name, members in sets.items():
        missing = _find_missing(members, names)
        if missing:
            raise DataError(
                f"{len(missing)} classes of the set {name!r} are not labels of the run: {', '.join(missing[:5])}",
                file=path,
                remedy="use the label set's own names",
            )
    return _mask(sets, names)


def load_class_sets(chosen: Path | None, names: Sequence[str]) -> ClassMasks:
    """The sets of a file, or COCO's base and novel classes for `coco-48-17`.

    >>> from hardlook.similarity.label_sets import load_label_set
    >>> masks = load_class_sets(Path("coco-48-17"), load_label_set("coco80").names)
    >>> {name: int(mask.sum()) for name, mask in masks.items()}
    {'base': 48, 'novel': 17}
    """
    if str(chosen) != COCO_SPLIT:
        return read_class_sets(chosen, names)
    shipped = files("hardlook.open_vocabulary").joinpath(f"{COCO_SPLIT}.json").read_text(encoding="utf-8")
    sets: dict[str, list[str]] = json.loads(shipped)
    missing = _find_missing([member for members in sets.values() for member in members], names)
    if missing:
        raise OptionError(
            f"--class-sets {chosen}: {len(missing)} of its classes are not labels of the run: {', '.join(missing[:5])}",
            remedy='write your own sets, {"base": ["cat", "dog"], "novel": ["owl"]}, and pass --class-sets FILE',
        )
    return _mask(sets, names)


def _find_missing(members: Sequence[str], names: Sequence[str]) -> list[str]:
    known = {normalise_name(name) for name in names}
    return [member for member in members if normalise_name(member) not in known]


def _mask(sets: Mapping[str, Sequence[str]], names: Sequence[str]) -> ClassMasks:
    members = {set_name: {normalise_name(member) for member in listed} for set_name, listed in sets.items()}
    return {
        set_name: np.array([normalise_name(name) in one for name in names], np.bool_)
        for set_name, one in members.items()
    }
