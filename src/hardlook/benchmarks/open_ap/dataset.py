"""Where open AP finds images, objects and stored detections.

Three ways in: the planted world (no data given), `--data instances=FILE --data images=DIR` with a model, and stored
detections by `--gt instances.json --pred results.json`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hardlook.benchmarks.open_ap.options import OpenApOptions
from hardlook.benchmarks.open_ap.planted_objects import CATEGORIES, objects_of_scene
from hardlook.benchmarks.open_ap.words import check_words
from hardlook.contract.benchmark import Unit
from hardlook.data.coco_instances import ImageObjects, InstanceDataset, read_instances
from hardlook.data.coco_results import ImageDetections, IouType, read_results
from hardlook.data.images import find_image, read_image
from hardlook.errors import DataError, OptionError
from hardlook.labels.load import load_label_set
from hardlook.models.roles import Image
from hardlook.world.planted import PlantedWorld

_REMEDY = (
    "give --gt instances.json --pred results.json, or --data instances=FILE --data images=DIR with --model, or no data"
)


@dataclass(frozen=True)
class InstanceImage:
    """One unit: an image with its objects, and after `prepare` its pixels where a model is to see them.

    `categories` maps the truth's category ids, ascending, to names; `spoken` those of stored detections.
    """

    categories: Mapping[int, str]
    iou: IouType
    keep_predictions: bool
    spoken: Mapping[int, str] = field(default_factory=dict)
    context: str = ""
    scene: tuple[PlantedWorld, int] | None = None
    objects: ImageObjects | None = field(default=None, repr=False)
    stored: ImageDetections | None = field(default=None, repr=False)
    image_folder: Path | None = None
    image: Image | None = field(default=None, repr=False)


def sources_of(options: OpenApOptions) -> Mapping[str, Path | str]:
    """What the units come from, by name."""
    given: dict[str, Path | str] = dict(options.data)
    words = Path(options.pred_labels) if options.pred_labels and Path(options.pred_labels).is_file() else None
    for name, path in (("gt", options.gt), ("pred", options.pred), ("pred_labels", words)):
        if path is not None:
            given[name] = path
    if options.gt is None and not options.data:
        given["planted world"] = _world(options).fingerprint()
    return given


def list_images(options: OpenApOptions) -> Sequence[Unit]:
    """All units; ids are file stems (image ids where those are not unique), or `scene-0007` for the planted world."""
    if options.gt or options.pred:
        if not (options.gt and options.pred) or set(options.data) - {"images"}:
            raise OptionError("--gt and --pred go together, beside at most --data images=DIR", remedy=_REMEDY)
        return _stored(options, options.gt, options.pred)
    if not options.data:
        world = _world(options)
        shared = InstanceImage(CATEGORIES, options.iou, options.keep_predictions)
        return [
            Unit(f"scene-{index:04d}", replace(shared, scene=(world, index), context=world.context(index)))
            for index in range(len(world))
        ]
    if set(options.data) == {"instances", "images"}:
        truth = _truth(options.data["instances"], options)
        shared = InstanceImage(truth.categories, options.iou, options.keep_predictions)
        return _units(truth, shared, options.data["images"], {})
    raise OptionError(f"--data {', '.join(sorted(options.data))}: nobody knows how to read this", remedy=_REMEDY)


def read_unit(content: InstanceImage, unit: str, *, pixels: bool) -> InstanceImage:
    """The unit with its objects and, where `pixels` are asked for and there are any, its image."""
    if content.scene is not None:
        world, index = content.scene
        rendered = world[index]
        return replace(content, image=rendered.image, objects=objects_of_scene(rendered, index))
    objects = content.objects
    assert objects is not None
    if not pixels or content.image_folder is None:
        return content
    path = content.image_folder / objects.file_name
    if not objects.file_name or not path.is_file():
        path = find_image(content.image_folder, Path(objects.file_name).stem or unit)
    image = read_image(path)
    if image.shape[:2] != (objects.height, objects.width):
        raise DataError(
            f"the image is {image.shape[1]}x{image.shape[0]} and its annotation says {objects.width}x{objects.height} "
            "pixels (width x height)",
            file=path,
            unit=unit,
            remedy="use the images that the annotation was made for",
        )
    return replace(content, image=image)


def _world(options: OpenApOptions) -> PlantedWorld:
    return PlantedWorld(seed=options.seed, count=options.scenes)


def _truth(path: Path, options: OpenApOptions) -> InstanceDataset:
    truth = read_instances(path)
    names = list(truth.categories.values())
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice or not names:
        what = f"category names that come twice: {', '.join(twice[:5])}" if twice else "there are no categories"
        raise DataError(what, file=path, remedy="labels pair by name: give each category a name of its own")
    check_words(names, options, path)
    return truth


def _stored(options: OpenApOptions, gt: Path, pred: Path) -> Sequence[Unit]:
    truth = _truth(gt, options)
    spoken: Mapping[int, str] = truth.categories
    if options.pred_labels:
        words = load_label_set(options.pred_labels)
        spoken = dict(sorted(zip(words.category_ids.tolist(), words.names, strict=True)))
    found = read_results(pred, replace(truth, categories=spoken), options.iou)
    shared = InstanceImage(truth.categories, options.iou, options.keep_predictions, spoken)
    return _units(truth, shared, options.data.get("images"), found)


def _units(
    truth: InstanceDataset, shared: InstanceImage, images: Path | None, found: Mapping[int, ImageDetections]
) -> Sequence[Unit]:
    stems = [Path(image.file_name).stem for image in truth.images]
    named = all(stems) and len(set(stems)) == len(stems)
    return [
        Unit(stem if named else f"image-{image.id}",
             replace(shared, objects=image, stored=found.get(image.id), image_folder=images))
        for image, stem in zip(truth.images, stems, strict=True)
    ]  # fmt: skip
