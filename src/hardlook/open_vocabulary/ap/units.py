"""Units of open AP: images with their objects and, where they are stored, their detections.

Five sources: the planted world (no data given), `--data instances=FILE --data images=DIR` with a model, a published
dataset (`--data lvis=DIR`, `coco-instances`, `ade20k-instances`), datasets with images inside of files or objects
(`hardlook.data.stored_files.sources`), and stored detections by `--gt instances.json --pred results.json`, the latter
also as detectron2's output folder, and beside the others; for free words, each detection has a `phrase`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hardlook.data import rle
from hardlook.data.coco_detection import (
    ImageDetections,
    ImageObjects,
    InstanceDataset,
    IouType,
    read_instances,
    read_phrased_results,
    read_results,
)
from hardlook.data.detectron2 import INSTANCES, find_output
from hardlook.data.images import find_image, read_image
from hardlook.data.presets import InstanceFiles, list_instance_presets, open_instance_preset
from hardlook.data.stored_files import Stored, read_stored_image
from hardlook.data.stored_files.sources import OBJECT_SOURCES, find_source, list_source_files, read_object_samples
from hardlook.errors import DataError, OptionError
from hardlook.harness.benchmark import Unit
from hardlook.models.roles import Image
from hardlook.open_vocabulary.ap.options import OpenApOptions
from hardlook.open_vocabulary.free_words import check_truth_names
from hardlook.open_vocabulary.label_similarity import check_similarity, find_label, make_own_labels
from hardlook.open_vocabulary.options import free_senses
from hardlook.open_vocabulary.units import check_size, find_scenes, list_given_sources, list_scenes
from hardlook.open_vocabulary.vocabulary import join_labels
from hardlook.similarity.free_words.phrases import SenseChoice
from hardlook.similarity.label_sets import load_label_set
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import RenderedScene
from hardlook.world.vocabulary import BY_NAME, CONCEPTS

CATEGORIES = {label.code: label.name for label in sorted(CONCEPTS, key=lambda label: label.code)}
_MAX_OBJECTS = 1000  # so that annotation ids of different scenes differ
_MAX_LISTED = 12
_REMEDY = (
    "give --gt instances.json --pred results.json, or --data instances=FILE --data images=DIR with --model, or "
    f"--data NAME=DIR with --model or --pred, NAME one of {', '.join((*list_instance_presets(), *OBJECT_SOURCES))}, or "
    "no data"
)


@dataclass(frozen=True)
class InstanceImage:
    """The payload of a unit: an image with its objects and, once prepared, its pixels where a model needs them.

    `categories` maps the truth's category ids, ascending, to names; `predicted_categories` those of stored detections;
    `frequencies` LVIS's category ids to r, c or f, `synsets` to the senses that its json states. `pred_senses` says how
    the senses of free words are chosen; None where predictions have labels. With free words `predicted_categories` are
    the phrases of all images.
    """

    categories: Mapping[int, str]
    iou: IouType
    keep_predictions: bool
    predicted_categories: Mapping[int, str] = field(default_factory=dict)
    frequencies: Mapping[int, str] = field(default_factory=dict)
    synsets: Mapping[int, str] = field(default_factory=dict)
    context: str = ""
    pred_senses: SenseChoice | None = None
    scene: tuple[PlantedWorld, int] | None = None
    objects: ImageObjects | None = field(default=None, repr=False)
    stored: ImageDetections | None = field(default=None, repr=False)
    image_folder: Path | None = None
    image_file: Stored | None = None
    image: Image | None = field(default=None, repr=False)


def list_sources(options: OpenApOptions) -> Mapping[str, Path | str]:
    """What the units come from, by name."""
    sources = list_given_sources(options, pred_labels=options.pred_labels)
    if files := _open_preset(options):
        [name] = options.data
        sources.pop(name)
        # Detections that are stored do not depend on the images.
        used = files.sources if options.pred is None else {f"{name} annotations": files.annotations}
        sources.update(used)
    if stored := _find_stored(options):
        sources.pop(stored)
        sources.update(list_source_files(stored, options.data[stored], options.split))
    return {**sources, "pred": find_output(options.pred, *INSTANCES)} if options.pred else sources


def list_units(options: OpenApOptions) -> Sequence[Unit]:
    """One unit per image; ids are file stems (image ids where stems repeat), or `scene-0007` for the planted world."""
    if files := _open_preset(options):
        return _list_dataset(options, files.annotations, files.images)
    if stored := _find_stored(options):
        return _list_stored(stored, options)
    if options.gt or options.pred:
        if not (options.gt and options.pred) or set(options.data) - {"images"}:
            raise OptionError("--gt and --pred go together, beside at most --data images=DIR", remedy=_REMEDY)
        return _list_dataset(options, options.gt, options.data.get("images"))
    if not options.data:
        return list_scenes(options, _describe_scenes(options))
    if set(options.data) == {"instances", "images"}:
        return _list_dataset(options, options.data["instances"], options.data["images"])
    raise OptionError(f"--data {', '.join(sorted(options.data))}: no reader for this data", remedy=_REMEDY)


def find_units(options: OpenApOptions, ids: Collection[str]) -> Mapping[str, Unit] | None:
    """The units with these ids, where they are scenes of the planted world; None for other data."""
    return None if options.data or options.gt or options.pred else find_scenes(options, _describe_scenes(options), ids)


def _describe_scenes(options: OpenApOptions) -> InstanceImage:
    """What all scenes of the planted world have in common."""
    return InstanceImage(CATEGORIES, options.iou, options.keep_predictions, pred_senses=free_senses(options))


def _open_preset(options: OpenApOptions) -> InstanceFiles | None:
    """The files of a published dataset such as `--data lvis=DIR`; None where none is given alone."""
    if len(options.data) != 1 or options.gt or next(iter(options.data)) not in list_instance_presets():
        return None
    [(name, folder)] = options.data.items()
    return open_instance_preset(name, folder, options.split, needs_images=options.pred is None)


def _find_stored(options: OpenApOptions) -> str | None:
    """The dataset with images inside of files, or the object, that the options name; None where they name none."""
    stored = find_source(options.data, OBJECT_SOURCES)
    if stored and options.gt:
        raise OptionError(f"--gt beside --data {stored}", remedy="leave out --gt: the dataset has its own truth")
    return stored


def _list_stored(stored: str, options: OpenApOptions) -> list[Unit]:
    """The images of a dataset that `hardlook.data.stored_files` reads."""
    path = options.data[stored]
    samples = read_object_samples(stored, path, options.split, options.columns)
    if options.iou == "segm" and not samples.has_masks():
        raise OptionError(f"the objects of --data {stored} have boxes and no masks", remedy="give --iou bbox")
    return _list_truth(options, _check_truth(samples.truth, path, options), None, samples.files)


def _list_dataset(options: OpenApOptions, annotations: Path, images: Path | None) -> list[Unit]:
    """The images of a json, with the detections of `--pred` where they are given."""
    return _list_truth(options, _check_truth(read_instances(annotations), annotations, options), images, {})


def _list_truth(
    options: OpenApOptions, truth: InstanceDataset, images: Path | None, files: Mapping[int, Stored]
) -> list[Unit]:
    """One unit per image, which lies in the folder `images`, or is one of `files` by image id."""
    shared = InstanceImage(
        truth.categories,
        options.iou,
        options.keep_predictions,
        frequencies=truth.frequencies,
        synsets=truth.synsets,
        pred_senses=free_senses(options),
    )
    if options.pred is None:
        return _list_images(truth, shared, images, {}, files)
    predicted: Mapping[int, str] = truth.categories
    if options.pred_labels:
        labels = load_label_set(options.pred_labels)
        predicted = dict(sorted(zip(labels.category_ids.tolist(), labels.names, strict=True)))
    file = find_output(options.pred, *INSTANCES)
    if options.pred_words == "free":
        predicted, stored = read_phrased_results(file, truth, options.iou)
    else:
        stored = read_results(file, replace(truth, categories=predicted), options.iou)
    return _list_images(truth, replace(shared, predicted_categories=predicted), images, stored, files)


def prepare_unit(unit: Unit) -> Unit:
    """Read the image, where a model needs it."""
    return read_unit(unit, pixels=unit.payload.stored is None)


def read_unit(unit: Unit, *, pixels: bool) -> Unit:
    """The unit with its objects and, with `pixels` and where there is one, its image."""
    content: InstanceImage = unit.payload
    if content.scene is not None:
        world, index = content.scene
        rendered = world[index]
        content = replace(content, image=rendered.image, objects=list_scene_objects(rendered, index))
        return replace(unit, payload=content)
    objects = content.objects
    assert objects is not None
    if not pixels or (content.image_folder is None and content.image_file is None):
        return unit
    path, image = _read_image(content, objects, unit.id)
    size, remedy = (objects.height, objects.width), "use the images that the annotation was made for"
    check_size("image", image, "its annotation says", size, file=path, unit=unit.id, remedy=remedy)
    return replace(unit, payload=replace(content, image=image))


def _read_image(content: InstanceImage, objects: ImageObjects, unit: str) -> tuple[Path, Image]:
    if content.image_file is not None:
        return content.image_file.path, read_stored_image(content.image_file)
    assert content.image_folder is not None
    path = content.image_folder / objects.file_name
    if not objects.file_name or not path.is_file():
        path = find_image(content.image_folder, Path(objects.file_name).stem or unit)
    return path, read_image(path)


def list_scene_objects(rendered: RenderedScene, index: int) -> ImageObjects:
    """The visible objects of scene `index` as COCO's JSON would hold them; ids count from 1, as on disk.

    >>> objects = list_scene_objects(PlantedWorld(count=1)[0], 0)
    >>> objects.id, int(objects.area.sum()) == int(objects.masks().sum()), CATEGORIES[objects.category_ids[0]]
    (1, True, 'owl')
    """
    things = rendered.scene.objects
    encoded = tuple(rle.encode(rendered.mask_of(thing)) for thing in things)
    height, width = rendered.classes.shape
    return ImageObjects(
        index + 1, f"scene-{index:04d}", width, height,
        _MAX_OBJECTS * index + 1 + np.arange(len(things)),
        np.array([BY_NAME[thing.concept].code for thing in things], np.int64),
        np.array([rle.to_box(mask) for mask in encoded], np.float64).reshape(-1, 4),
        np.array([rle.area(mask) for mask in encoded], np.float64),
        np.zeros(len(things), bool),
        encoded,
    )  # fmt: skip


def check_categories(names: Sequence[str], options: OpenApOptions, file: Path | None = None) -> None:
    """Raise an error that lists the categories missing from the label set of `--labels`."""
    if options.labels is None:
        return
    known = load_label_set(options.labels, options.variant)
    missing = [name for name in names if find_label(known, name) is None]
    if missing:
        more = f" and {len(missing) - _MAX_LISTED} more" if len(missing) > _MAX_LISTED else ""
        listed = f"{', '.join(missing[:_MAX_LISTED])}{more}"
        what = f"{len(missing)} of {len(names)} categories are not labels of {options.labels}: {listed}"
        remedy = "choose the label set of this data, or a file of your own with its names and senses"
        raise DataError(what, file=file, remedy=remedy)


def _check_truth(truth: InstanceDataset, path: Path, options: OpenApOptions) -> InstanceDataset:
    names = list(truth.categories.values())
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice or not names:
        what = f"category names that come twice: {', '.join(twice[:5])}" if twice else "there are no categories"
        raise DataError(what, file=path, remedy="labels pair by name: give each category a name of its own")
    check_categories(names, options, path)
    predicted = load_label_set(options.pred_labels).names if options.pred_labels else ()
    try:
        together, _ = join_labels(names, predicted)
        own = make_own_labels({truth.categories[category]: sense for category, sense in truth.synsets.items()})
        if options.pred_words == "free":
            check_truth_names(names)
        complete = options.pred is not None and options.pred_words == "labels"
        check_similarity(together, options, own, complete=complete)
    except DataError as error:
        raise error.at(file=path) from None
    return truth


def _list_images(
    truth: InstanceDataset,
    shared: InstanceImage,
    images: Path | None,
    stored: Mapping[int, ImageDetections],
    files: Mapping[int, Stored],
) -> list[Unit]:
    stems = [Path(image.file_name).stem for image in truth.images]
    unique = all(stems) and len(set(stems)) == len(stems)
    return [
        Unit(
            stem if unique else f"image-{image.id}",
            replace(
                shared,
                objects=image,
                stored=stored.get(image.id),
                image_folder=images,
                image_file=files.get(image.id),
            ),
        )
        for image, stem in zip(truth.images, stems, strict=True)
    ]
