"""All instances of what the command line names with `--data NAME=PATH`.

>>> import tempfile
>>> try:
...     list_instances({"segments": Path(tempfile.mkdtemp())})
... except OptionError as error:
...     error.what
'--data segments: no instances come from these'

Instances of VOC's devkit, of COCO's instances.json and of COCO's panoptic format.

>>> import json, tempfile
>>> import PIL.Image
>>> folder = Path(tempfile.mkdtemp())
>>> PIL.Image.new("RGB", (4, 3)).save(folder / "7.png")
>>> _ = (folder / "instances.json").write_text(json.dumps({
...     "images": [{"id": 7, "file_name": "7.png", "width": 4, "height": 3}],
...     "categories": [{"id": 18, "name": "dog"}],
...     "annotations": [{"id": 1, "image_id": 7, "category_id": 18, "bbox": [0, 0, 2, 2], "area": 4, "iscrowd": 0,
...                      "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]]}]}))
>>> (dog,) = list_coco_instances("instances", folder / "instances.json", folder, 0, LeftOutNotes("instances"))
>>> dog.full_stem, int(dog.read_target().mask.sum())
('7_______1', 4)

Instances of GrabCut, Berkeley, DAVIS, COCO-MVal, TETRIS, and of any folder with one of their layouts.

>>> LAYOUT_OF["tetris"].rule, LAYOUT_OF["davis"] == LAYOUT_OF["coco-mval"]
('integers', True)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hardlook.data.click_names import normalize_dataset_name
from hardlook.data.left_out import LeftOutNote, LeftOutNotes
from hardlook.data.object_instances.annotations import list_coco_instances, list_panoptic_instances, list_voc_instances
from hardlook.data.object_instances.instance import ObjectInstance
from hardlook.data.object_instances.isegm import list_interactive_instances
from hardlook.errors import DataError, OptionError
from hardlook.randomness import generator

# What lies beside a dataset, and the datasets that it may lie beside.
_BESIDE = {"images": ("instances", "panoptic"), "segments": ("panoptic",)}

WAYS = (
    "give grabcut, berkeley, davis, coco-mval or tetris=DIR, voc=DIR, instances=JSON images=DIR, "
    "panoptic=JSON segments=DIR images=DIR, or any name=DIR with one of the interactive layouts"
)


@dataclass(frozen=True)
class InstanceList:
    """Instances, dataset after dataset in the order given, and what was left out of them."""

    instances: tuple[ObjectInstance, ...]
    left_out: tuple[LeftOutNote, ...]


def list_instances(
    data: Mapping[str, Path],
    *,
    at_most: int | None = None,
    seed: int = 0,
    min_area: int = 0,
    split: str | None = None,
) -> InstanceList:
    """The instances of every dataset in `data`.

    `at_most` draws that many of each dataset; the draw depends on `seed` and the dataset's name alone, and the order
    stays. Objects below `min_area` pixels of the stored mask are left out. `split` chooses VOC's list of images.
    """
    given = {normalize_dataset_name(name): Path(path) for name, path in data.items()}
    _refuse(data, given, at_most, split)
    instances: list[ObjectInstance] = []
    left_out: list[LeftOutNote] = []
    for dataset in given:
        if dataset in _BESIDE:
            continue
        notes = LeftOutNotes(dataset)
        found: Sequence[ObjectInstance] = _read(dataset, given, min_area, notes, split)
        _refuse_twins(dataset, found, given[dataset])
        if at_most is not None and len(found) > at_most:
            drawn = set(generator(seed, dataset).choice(len(found), at_most, replace=False).tolist())
            for i, one in enumerate(found):
                if i not in drawn:
                    notes.add(f"instances of {dataset} not drawn", f"at most {at_most} of each dataset", one.full_stem)
            found = [found[i] for i in sorted(drawn)]
        instances += found
        left_out += notes.summarize()
    return InstanceList(tuple(instances), tuple(left_out))


def _read(
    dataset: str, given: Mapping[str, Path], min_area: int, notes: LeftOutNotes, split: str | None
) -> list[ObjectInstance]:
    path = given[dataset]
    if dataset == "voc":
        found = list_voc_instances(dataset, path, min_area, notes, split)
    elif dataset == "instances":
        found = list_coco_instances(dataset, path, _beside("images", dataset, given), min_area, notes)
    elif dataset == "panoptic":
        segments, images = (_beside(name, dataset, given) for name in ("segments", "images"))
        found = list_panoptic_instances(dataset, path, segments, images, min_area, notes)
    else:
        found = list_interactive_instances(dataset, path, min_area, notes)
    if not found:
        left = "; ".join(f"{note.what}: {note.count}" for note in notes.summarize()) or "there is none"
        raise DataError(f"no instance of {dataset} to click on ({left})", file=path, remedy="lower the minimal area")
    return found


def _beside(name: str, dataset: str, given: Mapping[str, Path]) -> Path:
    if name not in given:
        raise OptionError(f"--data {dataset} without {name}", remedy=f"add --data {name}=DIR; {WAYS}")
    if not given[name].is_dir():
        raise DataError(f"no folder of {name}", file=given[name], remedy="check the path and that it is unpacked")
    return given[name]


def _refuse(data: Mapping[str, Path], given: Mapping[str, Path], at_most: int | None, split: str | None) -> None:
    if len(given) < len(data):
        raise OptionError(f"--data {', '.join(data)}: one dataset under two spellings", remedy="give each once")
    if not set(given) - set(_BESIDE):
        raise OptionError(f"--data {', '.join(sorted(given)) or 'nothing'}: no instances come from these", remedy=WAYS)
    for name, owners in _BESIDE.items():
        if name in given and not set(owners) & set(given):
            raise OptionError(f"--data {name} without {' or '.join(owners)}", remedy=WAYS)
    if at_most is not None and at_most < 1:
        raise OptionError(f"at most {at_most} instances", remedy="ask for one or more")
    if split is not None and "voc" not in given:
        raise OptionError(f"split {split!r} without voc", remedy="only voc=DIR has splits")


def _refuse_twins(dataset: str, found: Sequence[ObjectInstance], path: Path) -> None:
    twins = [stem for stem, number in Counter(one.full_stem for one in found).items() if number > 1]
    if twins:
        what = f"{len(twins)} names of {dataset} stand" if len(twins) > 1 else f"1 name of {dataset} stands"
        remedy = "give images of different folders different names"
        raise DataError(f"{what} for two instances", file=path, unit=twins[0], remedy=remedy)
