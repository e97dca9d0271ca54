"""All object instances of the datasets that the command line names with `--data NAME=PATH`.

>>> import tempfile
>>> try:
...     list_instances({"segments": Path(tempfile.mkdtemp())})
... except OptionError as error:
...     error.what
'--data segments: no dataset with object instances'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hardlook.data.click_names import normalize_dataset_name
from hardlook.data.left_out import LeftOutNote, LeftOutNotes
from hardlook.data.object_instances.annotations import (
    list_coco_instances,
    list_panoptic_instances,
    list_stored_instances,
    list_voc_instances,
)
from hardlook.data.object_instances.instance import ObjectInstance
from hardlook.data.object_instances.isegm import list_interactive_instances
from hardlook.data.stored_files.sources import OBJECT_SOURCES, SPLIT_SOURCES, read_object_samples
from hardlook.errors import DataError, OptionError
from hardlook.randomness import generator

# Folders that belong to a dataset, and the datasets that they may belong to.
_COMPANIONS = {"images": ("instances", "panoptic"), "segments": ("panoptic",)}

_USAGE = (
    "pass grabcut, berkeley, davis, coco-mval or tetris=DIR, voc=DIR, instances=JSON images=DIR, "
    "panoptic=JSON segments=DIR images=DIR, one of webdataset, hf-dataset, fiftyone=DIR, or any name=DIR with one "
    "of the interactive layouts"
)


@dataclass(frozen=True)
class InstanceList:
    """The instances of all datasets in the given order, and what was left out."""

    instances: tuple[ObjectInstance, ...]
    left_out: tuple[LeftOutNote, ...]


def list_instances(
    data: Mapping[str, Path],
    *,
    at_most: int | None = None,
    seed: int = 0,
    min_area: int = 0,
    split: str | None = None,
    columns: str = "",
) -> InstanceList:
    """The instances of every dataset in `data`.

    `at_most` samples that many instances per dataset; the sample depends on `seed` and the dataset's name only, and the
    order is kept. Objects below `min_area` pixels of the stored mask are left out. `split` chooses VOC's split,
    or that of a Hugging Face dataset, whose columns `columns` names.
    """
    given = {normalize_dataset_name(name): Path(path) for name, path in data.items()}
    _check_options(data, given, at_most, split)
    instances: list[ObjectInstance] = []
    left_out: list[LeftOutNote] = []
    for dataset in given:
        if dataset in _COMPANIONS:
            continue
        notes = LeftOutNotes(dataset)
        found = _list_dataset(dataset, given, min_area, notes, split, columns)
        if at_most is not None and len(found) > at_most:
            drawn = set(generator(seed, dataset).choice(len(found), at_most, replace=False).tolist())
            for i, one in enumerate(found):
                if i not in drawn:
                    notes.add(f"instances of {dataset} not drawn", f"at most {at_most} of each dataset", one.full_stem)
            found = [found[i] for i in sorted(drawn)]
        instances += found
        left_out += notes.summarize()
    return InstanceList(tuple(instances), tuple(left_out))


def _list_dataset(
    dataset: str, given: Mapping[str, Path], min_area: int, notes: LeftOutNotes, split: str | None, columns: str
) -> Sequence[ObjectInstance]:
    path = given[dataset]
    if dataset == "voc":
        found = list_voc_instances(dataset, path, min_area, notes, split)
    elif dataset in OBJECT_SOURCES:
        samples = read_object_samples(dataset, path, split, columns)
        found = list_stored_instances(dataset, samples, min_area, notes)
    elif dataset == "instances":
        found = list_coco_instances(dataset, path, _find_companion("images", dataset, given), min_area, notes)
    elif dataset == "panoptic":
        segments, images = (_find_companion(name, dataset, given) for name in ("segments", "images"))
        found = list_panoptic_instances(dataset, path, segments, images, min_area, notes)
    else:
        found = list_interactive_instances(dataset, path, min_area, notes)
    if not found:
        left = "; ".join(f"{note.what}: {note.count}" for note in notes.summarize()) or "there is none"
        raise DataError(f"no instance of {dataset} is left ({left})", file=path, remedy="lower the minimal area")
    if twice := [stem for stem, count in Counter(one.full_stem for one in found).items() if count > 1]:
        what = f"{len(twice)} names of {dataset} occur more than once"
        raise DataError(what, file=path, unit=twice[0], remedy="rename images so that every name is unique")
    return found


def _find_companion(name: str, dataset: str, given: Mapping[str, Path]) -> Path:
    if name not in given:
        raise OptionError(f"--data {dataset} without {name}", remedy=f"add --data {name}=DIR; {_USAGE}")
    if not given[name].is_dir():
        raise DataError(f"no folder of {name}", file=given[name], remedy="check the path and that it is unpacked")
    return given[name]


def _check_options(data: Mapping[str, Path], given: Mapping[str, Path], at_most: int | None, split: str | None) -> None:
    if len(given) < len(data):
        raise OptionError(f"--data {', '.join(data)}: one dataset under two spellings", remedy="pass each once")
    if not set(given) - set(_COMPANIONS):
        names = ", ".join(sorted(given)) or "nothing"
        raise OptionError(f"--data {names}: no dataset with object instances", remedy=_USAGE)
    for name, owners in _COMPANIONS.items():
        if name in given and not set(owners) & set(given):
            raise OptionError(f"--data {name} without {' or '.join(owners)}", remedy=_USAGE)
    if at_most is not None and at_most < 1:
        raise OptionError(f"at most {at_most} instances", remedy="choose one or more")
    if split is not None and not {"voc", *SPLIT_SOURCES} & set(given):
        raise OptionError(f"split {split!r} without voc", remedy=f"only voc=DIR and {SPLIT_SOURCES[0]}=DIR have splits")
