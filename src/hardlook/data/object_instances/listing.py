"""All object instances of the datasets that the command line names with `--data NAME=PATH`.

Instances of the Pascal VOC devkit, of COCO's instances.json and panoptic format, and of stored files are listed here,
those of interactive segmentation datasets in `isegm`.

>>> import tempfile
>>> try:
...     list_instances({"segments": Path(tempfile.mkdtemp())})
... except OptionError as error:
...     error.what
'--data segments: no dataset with object instances'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hardlook.data import rle
from hardlook.data.click_names import normalize_dataset_name
from hardlook.data.coco_detection import ImageObjects, read_instances
from hardlook.data.coco_panoptic import decode_ids, read_panoptic
from hardlook.data.images import is_file, read_image
from hardlook.data.label_maps import read_label_map
from hardlook.data.left_out import LeftOutNote, LeftOutNotes
from hardlook.data.object_instances.instance import ObjectInstance, Target
from hardlook.data.object_instances.isegm import count_object_pixels, list_interactive_instances
from hardlook.data.stored_files import Stored
from hardlook.data.stored_files.samples import ObjectSamples
from hardlook.data.stored_files.sources import OBJECT_SOURCES, SPLIT_SOURCES, read_object_samples
from hardlook.data.voc import IGNORE, open_devkit
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


_CROWD_WHY = "a crowd is not one object"


@dataclass(frozen=True)
class VocObject:
    """One object number in an object map of VOC; 255 in the map is ignored."""

    path: Path
    mask_path: Path
    number: int

    def read_target(self) -> Target:
        """The target as stored."""
        labels = read_label_map(self.mask_path)
        return Target(labels == self.number, labels == IGNORE)


@dataclass(frozen=True)
class PanopticObject:
    """One segment of a panoptic PNG; unlabelled pixels are ignored."""

    path: Path
    mask_path: Path
    id: int

    def read_target(self) -> Target:
        """The target as stored."""
        ids = decode_ids(read_image(self.mask_path))
        return Target(ids == self.id, ids == 0)


@dataclass(frozen=True)
class CocoObject:
    """One annotation of the instances.json `mask_path`, run-length encoded; no pixel is ignored."""

    path: Path
    mask_path: Path
    height: int
    width: int
    counts: str
    id: int

    def read_target(self) -> Target:
        """The target as stored."""
        mask = rle.decode({"size": [self.height, self.width], "counts": self.counts})
        return Target(mask, np.zeros(mask.shape, bool))


def list_voc_instances(
    dataset: str, folder: Path, min_area: int, notes: LeftOutNotes, split: str | None
) -> list[ObjectInstance]:
    """The objects of a split's images in the split's order; `split` may be None if the devkit has only one."""
    devkit = open_devkit(folder)
    if split is None:
        splits = devkit.splits()
        if len(splits) != 1:
            remedy = f"choose a split: {', '.join(splits) or 'there are none'}"
            raise OptionError(f"the devkit {folder} has {len(splits)} splits", remedy=remedy)
        split = splits[0]
    found = []
    for image in devkit.images(split):
        if image.object_path is None:
            remedy = "unpack SegmentationObject, or choose a split whose images all have object masks"
            raise DataError(f"no object mask in split {split}", file=folder, unit=image.id, remedy=remedy)
        for number, area in count_object_pixels(read_label_map(image.object_path)).items():
            stored = VocObject(image.path, image.object_path, number)
            instance = ObjectInstance(dataset, image.id, str(number), f"{dataset}/{image.id}", stored)
            if number != IGNORE and notes.check_area(area, min_area, instance.full_stem):
                found.append(instance)
    return found


def list_coco_instances(
    dataset: str, annotations: Path, images: Path, min_area: int, notes: LeftOutNotes
) -> list[ObjectInstance]:
    """The annotated objects in the file's order without crowds; an object's stem is its annotation's id."""
    truth = read_instances(annotations)
    missing = [path for one in truth.images if len(one.ids) and not is_file(path := images / Path(one.file_name))]
    found = [
        instance
        for image in truth.images
        for instance in _list_objects(dataset, image, annotations, images / image.file_name, None, min_area, notes)
    ]
    if missing:
        names = ", ".join(path.name for path in missing[:5]) + (", ..." if len(missing) > 5 else "")
        what = "1 image is missing" if len(missing) == 1 else f"{len(missing)} images are missing"
        raise DataError(f"{what}: {names}", file=images, remedy="check images=DIR")
    return found


def list_stored_instances(
    dataset: str, samples: ObjectSamples, min_area: int, notes: LeftOutNotes
) -> list[ObjectInstance]:
    """The objects of a dataset whose images lie inside of files or objects, as `list_coco_instances` gives them."""
    return [
        instance
        for image in samples.truth.images
        for file in (samples.files[image.id],)
        for instance in _list_objects(dataset, image, samples.file, file.path, file, min_area, notes)
    ]


def _list_objects(
    dataset: str,
    image: ImageObjects,
    annotations: Path,
    path: Path,
    file: Stored | None,
    min_area: int,
    notes: LeftOutNotes,
) -> Iterator[ObjectInstance]:
    """The objects of an image that have masks, without crowds."""
    stem = Path(image.file_name).stem
    for i, crowd, segmentation in zip(image.ids.tolist(), image.crowd, image.segmentations, strict=True):
        unit = f"image {image.id}, annotation {i}"
        if crowd:
            notes.add(f"crowds of {dataset}", _CROWD_WHY, unit)
        elif segmentation is None:
            notes.add(f"objects of {dataset} without a mask", "the annotation has a box alone", unit)
        else:
            try:
                encoded = rle.from_segmentation(segmentation, image.height, image.width)
            except DataError as error:
                raise error.at(file=annotations, unit=unit) from error
            stored = CocoObject(path, annotations, image.height, image.width, encoded["counts"], i)
            instance = ObjectInstance(dataset, stem, str(i), f"{dataset}/{image.id}", stored, image=file)
            if notes.check_area(rle.area(encoded), min_area, instance.full_stem):
                yield instance


def list_panoptic_instances(
    dataset: str, annotations: Path, segments: Path, images: Path, min_area: int, notes: LeftOutNotes
) -> list[ObjectInstance]:
    """The things in the file's order without crowds; an object's stem is its segment's id."""
    content = read_panoptic(annotations, segments, images)
    found = []
    for image in content.images:
        for segment in image.segments:
            if not content.categories[segment.category_id].thing:
                continue
            stored = PanopticObject(image.path, image.segments_path, segment.id)
            instance = ObjectInstance(dataset, image.path.stem, str(segment.id), f"{dataset}/{image.id}", stored)
            if segment.crowd:
                notes.add(f"crowds of {dataset}", _CROWD_WHY, instance.full_stem)
            elif notes.check_area(segment.area, min_area, instance.full_stem):
                found.append(instance)
    return found
