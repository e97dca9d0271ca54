"""Units of the benchmarks on label maps: images with truth and, where predictions are stored, a predicted map.

Sources: the planted world (no data given), `--data voc=DIR`, a published dataset such as `--data ade20k=DIR`, `--data
images=DIR --data masks=DIR`, datasets with images inside files or objects (`hardlook.data.stored_files.sources`), and
stored predictions by `--gt DIR --pred DIR`. `--pred` may also stand beside a published or stored dataset, and may be
detectron2's sem_seg_predictions.json or its folder. For free words, phrases.json lies beside the predicted maps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hardlook.data.detectron2 import SEMANTIC, SemanticPrediction, read_semantic_predictions
from hardlook.data.images import find_image, is_image_name, read_image
from hardlook.data.label_maps import read_label_map
from hardlook.data.presets import list_map_presets, number_labels, open_map_preset
from hardlook.data.stored_files import Stored, read_stored_image, read_stored_map
from hardlook.data.stored_files.python_objects import read_map_classes
from hardlook.data.stored_files.sources import (
    FIFTYONE,
    MAP_SOURCES,
    OBJECT,
    find_source,
    list_source_files,
    read_map_samples,
)
from hardlook.data.voc import open_devkit
from hardlook.errors import DataError, OptionError
from hardlook.harness.benchmark import Unit, UnitList
from hardlook.harness.scorecard import LeftOut
from hardlook.models.roles import Image, LabelMap
from hardlook.open_vocabulary.free_words import check_truth_names
from hardlook.open_vocabulary.label_similarity import check_similarity
from hardlook.open_vocabulary.miou.options import Numbering, OpenMiouOptions, SemanticOptions
from hardlook.open_vocabulary.options import free_senses
from hardlook.open_vocabulary.units import check_size, find_scenes, list_given_sources, list_scenes
from hardlook.open_vocabulary.vocabulary import BACKGROUND, join_labels
from hardlook.reading import reading
from hardlook.similarity.free_words.phrase_files import read_numbered_phrases
from hardlook.similarity.free_words.phrases import SenseChoice
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.labels import LabelSet
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import LABELS

PHRASES = "phrases.json"
_MAP_SUFFIXES = {".png", ".npy", ".npz"}


@dataclass(frozen=True)
class LabelledImage:
    """The payload of a unit: where its files are and, once prepared, its arrays.

    `truth_map` (H, W) int32 holds indices into `labels`, -1 where a pixel is ignored; `predicted_map` holds indices
    into `predicted_labels`, for stored predictions. `numbers` and `predicted_numbers` are what the files write for
    each label, `ignored_numbers` what the truth's files write for ignored pixels, `unlabelled_numbers` what stored
    predictions write for no label. `unknown_numbers` are any other numbers of the stored prediction that are no label,
    with their pixels. The image is `image_stem`, or the unit's id, in `image_folder`; in shards and tables, image and
    truth are `image_file` and `truth_file`. `pred_senses` says how the senses of free words are chosen; None where
    predictions have labels. With free words `predicted_labels` are the phrases of this image.
    """

    labels: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    predicted_labels: tuple[str, ...] = ()
    predicted_numbers: tuple[int, ...] = ()
    ignored_numbers: tuple[int, ...] = ()
    unlabelled_numbers: tuple[int, ...] = ()
    context: str = ""
    scene: tuple[PlantedWorld, int] | None = None
    image_folder: Path | None = None
    image_stem: str = ""
    truth_path: Path | None = None
    image_file: Stored | None = None
    truth_file: Stored | None = None
    predicted_path: Path | None = None
    predicted_masks: SemanticPrediction | None = field(default=None, repr=False)
    keep_prediction: bool = True
    pred_senses: SenseChoice | None = None
    image: Image | None = field(default=None, repr=False)
    truth_map: LabelMap | None = field(default=None, repr=False)
    predicted_map: LabelMap | None = field(default=None, repr=False)
    unknown_numbers: Mapping[int, int] = field(default_factory=dict)


def list_sources(options: SemanticOptions) -> Mapping[str, Path | str]:
    """What the units come from, by name."""
    pred_labels = options.pred_labels if isinstance(options, OpenMiouOptions) else None
    sources = list_given_sources(options, labels=options.labels, pred_labels=pred_labels)
    if preset := _find_preset(options):
        sources.pop(preset)
        sources.update(open_map_preset(preset, options.data[preset], options.split).sources)
    if stored := _find_stored(options):
        path = options.data[stored]
        sources.pop(stored)
        sources.update(list_source_files(stored, path, options.split))
    file = _find_mask_file(options.pred) if options.pred else None
    return {**sources, "pred": file} if file else sources


def list_units(options: SemanticOptions) -> Sequence[Unit]:
    """One unit per image, by file stem or `scene-0007`; for open mIoU a label without a sense is an error."""
    if not isinstance(options, OpenMiouOptions):
        return _list_images(options, None)
    predicted = load_label_set(options.pred_labels) if options.pred_labels else None
    units = _list_images(options, predicted)
    names, _ = join_labels(units[0].payload.labels, predicted.names if predicted else ()) if units else ((), None)
    if names:
        if options.pred_words == "free":
            check_truth_names(names)
        check_similarity(names, options, complete=options.pred is not None and options.pred_words == "labels")
    return units


def find_units(options: SemanticOptions, ids: Collection[str]) -> Mapping[str, Unit] | None:
    """The units with these ids, where they are scenes of the planted world or files in folders; None for other data."""
    if not (options.data or options.gt or options.pred):
        return find_scenes(options, _describe_scenes(options), ids)
    if set(options.data) == {"images", "masks"} and not (options.gt or options.pred):
        masks, predictions = options.data["masks"], None
    elif set(options.data) <= {"images"} and options.gt and options.pred and not _find_mask_file(options.pred):
        masks, predictions = options.gt, options.pred
    else:
        return None
    names = options.pred_labels if isinstance(options, OpenMiouOptions) else None
    shared = _describe_maps(options, load_label_set(names) if names else None)
    units = {}
    phrases = _read_phrases(shared, options, predictions)
    for name in ids:
        truth = _find_label_map(masks, name)
        predicted = _find_label_map(predictions, name) if predictions else None
        if truth is None or (predictions and predicted is None):
            # It may be there under another spelling of its suffix, which only a look at all files shows.
            return None
        image_folder = options.data.get("images")
        content = replace(shared, truth_path=truth, image_folder=image_folder, predicted_path=predicted)
        units[name] = Unit(name, _add_phrases(content, name, phrases))
    return units


def prepare_unit(unit: Unit) -> Unit:
    """Read the image, the true and the predicted map; their sizes must be equal."""
    content: LabelledImage = unit.payload
    if content.scene is not None:
        world, index = content.scene
        rendered = world[index]
        truth_map = rendered.classes.astype(np.int32) - 1
        return replace(unit, payload=replace(content, image=rendered.image, truth_map=truth_map))
    assert content.truth_path is not None
    truth_map, unknown = _to_indices(_read_truth(content), content.numbers, content.ignored_numbers)
    if unknown:
        what = f"the truth holds numbers {sorted(unknown)[:5]} that are none of the {len(content.labels)} labels"
        remedy = "choose other --labels or --numbering, or set --ignore to the number that means no label"
        raise DataError(what, file=content.truth_path, unit=unit.id, remedy=remedy)
    image_path, image = _read_image(content, unit.id)
    predicted, unknown = None, {}
    if content.predicted_path:
        stored = _read_stored(content, content.predicted_path, unit.id)
        # A number that is not a label is a prediction all the same, and a wrong one.
        predicted, unknown = _to_indices(stored, content.predicted_numbers, content.unlabelled_numbers)
    remedy = "resize label maps by nearest neighbour to their image, outside hardlook"
    for what, array, path in (("image", image, image_path), ("prediction", predicted, content.predicted_path)):
        check_size(what, array, "its truth", truth_map.shape, file=path, unit=unit.id, remedy=remedy)
    content = replace(content, image=image, truth_map=truth_map, predicted_map=predicted, unknown_numbers=unknown)
    return replace(unit, payload=content)


def _read_truth(content: LabelledImage) -> LabelMap:
    """The true map with the numbers of its file."""
    assert content.truth_path is not None
    file = content.truth_file
    return read_stored_map(file) if file else read_label_map(content.truth_path)


def _read_image(content: LabelledImage, unit: str) -> tuple[Path | None, Image | None]:
    """The image and its file; None twice where only label maps are given."""
    if content.image_file:
        return content.image_file.path, read_stored_image(content.image_file)
    if content.image_folder is None:
        return None, None
    path = find_image(content.image_folder, content.image_stem or unit)
    return path, read_image(path)


def _list_images(options: SemanticOptions, predicted: LabelSet | None) -> list[Unit]:
    """All units; `predicted` are the labels of stored predictions, where they are not the truth's."""
    if preset := _find_preset(options):
        return _list_preset(preset, options, predicted)
    if stored := _find_stored(options):
        return _list_stored_files(stored, options, predicted)
    if options.gt or options.pred:
        if not (options.gt and options.pred):
            remedy = "give the folder of true and of predicted label maps"
            raise OptionError("--gt and --pred go together", remedy=remedy)
        return _list_folders(options, options.gt, options.data.get("images"), options.pred, predicted)
    if not options.data:
        return list_scenes(options, _describe_scenes(options))
    if set(options.data) == {"voc"}:
        return _list_voc(options)
    if set(options.data) == {"images", "masks"}:
        return _list_folders(options, options.data["masks"], options.data["images"], None, predicted)
    remedy = (
        "give --data voc=DIR, or --data images=DIR --data masks=DIR --labels FILE, or --gt DIR --pred DIR, or "
        f"one of {', '.join(MAP_SOURCES)} with --labels FILE, or a published dataset as --data NAME=DIR: "
        f"{', '.join(list_map_presets())}"
    )
    raise OptionError(f"--data {', '.join(sorted(options.data))}: no reader for this data", remedy=remedy)


def _describe_scenes(options: SemanticOptions) -> LabelledImage:
    """What all scenes of the planted world have in common."""
    return LabelledImage(
        tuple(label.name for label in LABELS),
        keep_prediction=options.keep_predictions,
        pred_senses=free_senses(options),
    )


def _find_preset(options: SemanticOptions) -> str | None:
    """The published dataset that the options name; None where they name none."""
    named = [name for name in options.data if name in list_map_presets()]
    if named and (len(options.data) > 1 or options.gt):
        remedy = "leave out --gt and other --data; stored predictions of its images go beside it as --pred"
        raise OptionError(f"--data {named[0]} has its own images and label maps", remedy=remedy)
    return named[0] if named else None


def _list_preset(preset: str, options: SemanticOptions, predicted: LabelSet | None) -> list[Unit]:
    dataset = open_map_preset(preset, options.data[preset], options.split)
    layout = dataset.layout
    changed = [
        f"--{name}" for name, usual in (("numbering", "index"), ("ignore", 255)) if getattr(options, name) != usual
    ]
    if layout.labels and options.labels != layout.labels and not layout.own_labels:
        changed.append("--labels")
    if changed:
        remedy = "leave it out; or give the folders as --data images=DIR --data masks=DIR, which take these options"
        raise OptionError(f"{', '.join(changed)}: --data {preset} has its own labels and numbers", remedy=remedy)
    truth = _load_truth(options)
    numbers = number_labels(layout, truth.names, truth.ids.tolist(), truth.category_ids.tolist())
    shared = _describe_labels(options, truth, numbers, layout.ignored, predicted, options.pred_numbering or "index")
    # 255 or 65535, which predictions use as well; smaller ones are numbers of labels there.
    shared = replace(shared, unlabelled_numbers=(*shared.unlabelled_numbers, max(layout.ignored)))
    images = {
        name: replace(shared, truth_path=file.path, image_folder=file.image_folder, image_stem=file.image_stem)
        for name, file in dataset.maps.items()
    }
    return _add_predictions(images, options, options.pred)


def _find_stored(options: SemanticOptions) -> str | None:
    """The dataset with images inside of files, or the object, that the options name; None where they name none."""
    stored = find_source(options.data, MAP_SOURCES)
    if stored and options.gt:
        raise OptionError(f"--gt beside --data {stored}", remedy="leave out --gt: the dataset has its own truth")
    return stored


def _list_stored_files(stored: str, options: SemanticOptions, predicted: LabelSet | None) -> list[Unit]:
    """Images and label maps of a dataset that `hardlook.data.stored_files` reads."""
    path = options.data[stored]
    samples = read_map_samples(stored, path, options.split, options.columns)
    shared = _describe_object(path, options) if stored == OBJECT and options.labels is None else None
    shared = shared or _describe_maps(options, predicted)
    images = {
        one.id: replace(shared, truth_path=one.mask.path, image_file=one.image, truth_file=one.mask) for one in samples
    }
    left_out = _note_images_without_truth(path / "data", images) if stored == FIFTYONE else ()
    return UnitList(_add_predictions(images, options, options.pred), left_out)


def _describe_object(path: Path, options: SemanticOptions) -> LabelledImage | None:
    """What all images of an object have in common that names its own classes; None for another."""
    classes = read_map_classes(path)
    if classes is None or options.pred or options.numbering != "index":
        return None
    ignored = tuple(dict.fromkeys((*classes.ignored, *_list_ignored_numbers(options, classes.names, classes.numbers))))
    return LabelledImage(
        classes.names,
        classes.numbers,
        ignored_numbers=ignored,
        keep_prediction=options.keep_predictions,
        pred_senses=free_senses(options),
    )


def _list_voc(options: SemanticOptions) -> list[Unit]:
    devkit = open_devkit(options.data["voc"])
    names = (BACKGROUND, *devkit.classes)
    numbers = tuple(range(len(names)))
    ignored = _list_ignored_numbers(options, names, numbers)
    shared = LabelledImage(
        names,
        numbers,
        ignored_numbers=ignored,
        keep_prediction=options.keep_predictions,
        pred_senses=free_senses(options),
    )
    images, masks = devkit.root / "JPEGImages", devkit.root / devkit.masks
    return [
        Unit(name, replace(shared, image_folder=images, truth_path=masks / f"{name}.png"))
        for name in devkit.ids(options.split)
    ]


def _list_folders(
    options: SemanticOptions, masks: Path, images: Path | None, predictions: Path | None, predicted: LabelSet | None
) -> list[Unit]:
    shared = _describe_maps(options, predicted)
    paths = _find_label_maps(masks)
    listed = {stem: replace(shared, truth_path=path, image_folder=images) for stem, path in paths.items()}
    units = _add_predictions(listed, options, predictions)
    if not units:
        raise _no_label_maps(masks)
    return UnitList(units, _note_images_without_truth(images, paths) if images else ())


def _no_label_maps(folder: Path) -> DataError:
    """The error of a folder without a label map, which says what is there."""
    ends = Counter(path.suffix.lower() or "no suffix" for path in folder.iterdir() if path.is_file())
    found = ", ".join(f"{count} {suffix}" for suffix, count in ends.most_common(3))
    remedy = "write label maps as PNG or npy" + ("; JPEG changes the numbers" if set(ends) & {".jpg", ".jpeg"} else "")
    what = f"there is no label map ({', '.join(sorted(_MAP_SUFFIXES))}) in this folder, which has {found or 'no file'}"
    return DataError(what, file=folder, remedy=remedy)


def _note_images_without_truth(images: Path, maps: Collection[str]) -> tuple[LeftOut, ...]:
    """The images of a folder that no label map has the name of."""
    stems = {path.stem for path in images.iterdir() if is_image_name(path)} if images.is_dir() else set()
    without = sorted(stems - set(maps))
    note = LeftOut("images without a label map", len(without), "no label map has their name", (*without[:5],))
    return (note,) if without else ()


def _describe_maps(options: SemanticOptions, predicted: LabelSet | None) -> LabelledImage:
    """What all images have in common where the options name labels and numbers."""
    truth = _load_truth(options)
    numbers, pred_numbering = _list_numbers(truth, options.numbering), options.pred_numbering or options.numbering
    ignored = _list_ignored_numbers(options, truth.names, numbers)
    return _describe_labels(options, truth, numbers, ignored, predicted, pred_numbering)


def _load_truth(options: SemanticOptions) -> LabelSet:
    """The labels that the truth's numbers stand for."""
    if options.labels is None:
        files = "--labels FILE with one label name per line, the first for 0"
        remedy = f"give --labels SET (hardlook labels list) or {files}"
        raise OptionError("label maps hold numbers, and no option names their labels", remedy=remedy)
    return load_label_set(options.labels, "corrected")


def _describe_labels(
    options: SemanticOptions,
    truth: LabelSet,
    numbers: tuple[int, ...],
    ignored: tuple[int, ...],
    predicted: LabelSet | None,
    pred_numbering: Numbering,
) -> LabelledImage:
    """What all images of the truth and of stored predictions have in common."""
    predicted = predicted or truth
    unlabelled = (options.ignore, 0, -1) if pred_numbering == "one-based" else (options.ignore, -1)
    return LabelledImage(
        truth.names,
        numbers,
        predicted.names,
        _list_numbers(predicted, pred_numbering),
        ignored,
        unlabelled,
        keep_prediction=options.keep_predictions,
        pred_senses=free_senses(options),
    )


def _add_predictions(
    images: Mapping[str, LabelledImage], options: SemanticOptions, predictions: Path | None
) -> list[Unit]:
    """One unit per image, with its stored prediction where a folder or file of them is given."""
    mask_file = _find_mask_file(predictions) if predictions else None
    predicted_masks = read_semantic_predictions(mask_file) if mask_file else {}
    if mask_file:
        predicted_paths = dict.fromkeys(predicted_masks, mask_file)
    else:
        predicted_paths = _find_label_maps(predictions) if predictions else {}
    surplus = sorted(set(predicted_paths) - set(images))
    if surplus:
        what = f"{len(surplus)} predictions have no truth: {', '.join(surplus[:5])}"
        remedy = "predictions and truth pair by file stem; remove or rename the surplus"
        raise DataError(what, file=predictions, remedy=remedy)
    phrases = _read_phrases(next(iter(images.values()), None), options, predictions)
    if predictions and (unknown := sorted(set(phrases or ()) - set(images))):
        what = f"{len(unknown)} images have phrases and no truth: {', '.join(unknown[:5])}"
        remedy = "phrases and truth pair by file stem, without the suffix; remove or rename the surplus"
        raise DataError(what, file=predictions / PHRASES, remedy=remedy)
    units = []
    for stem, image in images.items():
        if predictions and stem not in predicted_paths:
            # Listed all the same: the run then records the missing file as this unit's failure.
            predicted_paths[stem] = mask_file or predictions / f"{stem}.png"
        content = replace(image, predicted_path=predicted_paths.get(stem), predicted_masks=predicted_masks.get(stem))
        units.append(Unit(stem, _add_phrases(content, stem, phrases)))
    return units


def _read_phrases(
    content: LabelledImage | None, options: SemanticOptions, predictions: Path | None
) -> Mapping[str, Mapping[int, str]] | None:
    """The free words of stored predictions, by image and number; None where there are none."""
    if content is None or content.pred_senses is None or predictions is None:
        return None
    file = predictions / PHRASES
    if not file.is_file():
        remedy = f'write {PHRASES} beside the maps: {{"image": ["a red car", "sky"]}}, a list or numbers with phrases'
        raise DataError(f"--pred-words free: there is no {PHRASES}", file=predictions, remedy=remedy)
    first = 1 if (options.pred_numbering or options.numbering) == "one-based" else 0
    return read_numbered_phrases(file, first)


def _add_phrases(content: LabelledImage, name: str, phrases: Mapping[str, Mapping[int, str]] | None) -> LabelledImage:
    """The image with the phrases that its stored prediction's numbers stand for; numbers without one are no label."""
    if phrases is None:
        return content
    numbered = phrases.get(name, {})
    return replace(content, predicted_labels=tuple(numbered.values()), predicted_numbers=tuple(numbered))


def _find_mask_file(predictions: Path) -> Path | None:
    """detectron2's file of masks, given itself or by its folder; None for a folder of label maps."""
    if predictions.is_file():
        return predictions
    file = predictions / SEMANTIC
    if not file.is_file():
        return None
    if maps := _find_label_maps(predictions):
        what = f"the folder has {SEMANTIC} and label maps, such as {next(iter(maps.values())).name}"
        raise DataError(what, file=predictions, remedy=f"give --pred {file}, or move one of the two")
    return file


def _read_stored(content: LabelledImage, path: Path, unit: str) -> LabelMap:
    """The stored prediction with the numbers of its file."""
    if path.suffix != ".json":
        return read_label_map(path)
    if content.predicted_masks is None:
        remedy = "predictions and truth pair by the stem of their file names"
        raise DataError("there is no prediction for this image", file=path, unit=unit, remedy=remedy)
    with reading(path, "the masks cannot be read", remedy="write the file again"):
        return content.predicted_masks.draw()


def _find_label_maps(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise DataError("there is no such folder of label maps", file=folder, remedy="check the path")
    paths: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in _MAP_SUFFIXES:
            if path.stem in paths:
                what = f"two label maps have one stem: {paths[path.stem].name} and {path.name}"
                raise DataError(what, file=folder, unit=path.stem, remedy="keep one of them, or rename one")
            paths[path.stem] = path
    return paths


def _find_label_map(folder: Path, name: str) -> Path | None:
    """The label map of an image, found without listing the folder; None where there is not exactly one."""
    paths = [folder / f"{name}{suffix}" for suffix in sorted(_MAP_SUFFIXES)] if name == Path(name).name else []
    found = [path for path in paths if path.is_file()]
    return found[0] if len(found) == 1 else None


def _list_numbers(labels: LabelSet, numbering: Numbering) -> tuple[int, ...]:
    """What label maps write for each label.

    >>> _list_numbers(load_label_set("coco80"), "category-id")[10:13]
    (11, 13, 14)
    >>> _list_numbers(load_label_set("pc59"), "alphabetical")[:3]  # aeroplane, bicycle, bird: 2 is the bed
    (0, 5, 6)
    """
    if numbering == "alphabetical":
        ordered = sorted(labels.names)
        return tuple(ordered.index(name) for name in labels.names)
    numbers = labels.category_ids if numbering == "category-id" else labels.ids + (numbering == "one-based")
    return tuple(numbers.tolist())


def _list_ignored_numbers(options: SemanticOptions, names: Sequence[str], numbers: Sequence[int]) -> tuple[int, ...]:
    """The numbers of ignored pixels; the number of a label among them would silently delete that label."""
    if options.ignore in numbers:
        what = f"--ignore {options.ignore} is the number of the label {names[numbers.index(options.ignore)]!r}"
        remedy = "give --ignore the number that your maps write for no label, or 65535 where there is none"
        raise OptionError(what, remedy=remedy)
    return (options.ignore, 0) if options.numbering == "one-based" else (options.ignore,)


def _to_indices(stored: LabelMap, numbers: Sequence[int], ignored: Sequence[int]) -> tuple[LabelMap, dict[int, int]]:
    """A stored map as indices from 0, -1 for ignored and unknown numbers; and the unknown numbers with their pixels."""
    ids = np.array(numbers, np.int64)
    if not len(ids):  # an image without a phrase
        ids = np.array([np.iinfo(np.int64).min])
    order = np.argsort(ids)
    places = np.clip(np.searchsorted(ids[order], stored), 0, len(ids) - 1)
    known = ids[order][places] == stored
    unknown, pixels = np.unique(stored[~known & ~np.isin(stored, ignored)], return_counts=True)
    indices = np.where(known, order[places], -1).astype(np.int32)
    return indices, dict(zip(unknown.tolist(), pixels.tolist(), strict=True))
