"""Sets of classes to score on their own, such as seen and unseen: from a JSON file, or a shipped split by name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.reading import reading
from hardlook.similarity.labels import normalise_name

ClassMasks = Mapping[str, NDArray[np.bool_]]

COCO_SPLIT = "coco-48-17"
SHIPPED = {
    COCO_SPLIT: "COCO's usual split for open-vocabulary detection: 48 base classes, 17 novel ones, 15 of 80 in neither",
    "coco-48-17-all": "the same with all 65 as a third set",
    "coco-things-64-16": "COCO's things for open-set panoptic segmentation: 64 known ones, 16 unknown ones",
}


def load_class_sets(chosen: Path | None, names: Sequence[str]) -> ClassMasks:
    """The sets of a JSON file {"seen": ["cat", ...], ...} or of a shipped one, each as a mask (K,) over `names`.

    >>> from hardlook.similarity.label_sets import load_label_set
    >>> masks = load_class_sets(Path("coco-48-17"), load_label_set("coco80").names)
    >>> {name: int(mask.sum()) for name, mask in masks.items()}
    {'base': 48, 'novel': 17}
    """
    if chosen is None:
        return {}
    shipped = files("hardlook.open_vocabulary").joinpath(f"{chosen}.json") if str(chosen) in SHIPPED else None
    remedy = 'write {"seen": ["cat", "dog"], "unseen": ["owl"]}, with names of the run\'s labels'
    if shipped is None and not chosen.is_file():
        raise DataError("there is no such file", file=chosen, remedy=f"give a JSON file, or {' or '.join(SHIPPED)}")
    with reading(chosen, "not a table of class sets", remedy=remedy):
        text = (shipped or chosen).read_text(encoding="utf-8-sig")
        sets = {str(name): _list_members(name, members) for name, members in json.loads(text).items()}
    known = [normalise_name(name) for name in names]
    masks = {}
    for set_name, members in sets.items():
        missing = [member for member in members if normalise_name(member) not in known]
        if missing:
            what = f"{len(missing)} classes of the set {set_name!r} are not labels of the run: {', '.join(missing[:5])}"
            raise DataError(what, file=chosen, remedy=remedy)
        listed = {normalise_name(member) for member in members}
        masks[set_name] = np.array([name in listed for name in known], np.bool_)
    return masks


def _list_members(name: str, members: object) -> list[str]:
    # The letters of a text would be taken for names.
    if not isinstance(members, list):
        raise ValueError(f"the set {name!r} is no list of names")
    return [str(member) for member in members]
