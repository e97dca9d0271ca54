"""Where benchmarks on label maps find images, truth and stored predictions.

Four ways in: the planted world (no data given), `--data voc=DIR`, `--data images=DIR --data masks=DIR`, and stored
predictions by `--gt DIR --pred DIR`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.semantic_images.options import Numbering, SemanticOptions
from hardlook.benchmarks.semantic_images.vocabulary import BACKGROUND
from hardlook.contract.benchmark import Unit
from hardlook.data.images import find_image, read_image
from hardlook.data.label_maps import read_label_map
from hardlook.data.voc import open_devkit
from hardlook.errors import DataError, OptionError
from hardlook.labels.label_set import LabelSet
from hardlook.labels.load import load_label_set
from hardlook.models.roles import Image, LabelMap
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import LABELS

WORLD_LABELS = tuple(label.name for label in LABELS)
_MAP_SUFFIXES = {".png", ".npy", ".npz"}


@dataclass(frozen=True)
class LabelledImage:
    """One unit: where its parts are, and after `prepare` the arrays themselves.

    `truth_map` (H, W) int32 holds indices into `labels`, -1 where the truth says nothing; `predicted_map` holds
    indices into `spoken`, for stored predictions. `numbers` and `spoken_numbers` are what the files write for each
    label, `nothing` what the truth's files write where they say nothing.
    """

    labels: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    spoken: tuple[str, ...] = ()
    spoken_numbers: tuple[int, ...] = ()
    nothing: tuple[int, ...] = ()
    context: str = ""
    scene: tuple[PlantedWorld, int] | None = None
    image_folder: Path | None = None
    truth_path: Path | None = None
    predicted_path: Path | None = None
    keep_prediction: bool = True
    image: Image | None = field(default=None, repr=False)
    truth_map: LabelMap | None = field(default=None, repr=False)
    predicted_map: LabelMap | None = field(default=None, repr=False)


def sources_of(options: SemanticOptions) -> Mapping[str, Path | str]:
    """What the units come from, by name."""
    given: dict[str, Path | str] = dict(options.data)
    labels = Path(options.labels) if options.labels and Path(options.labels).is_file() else None
    for name, path in (("gt", options.gt), ("pred", options.pred), ("labels", labels)):
        if path is not None:
            given[name] = path
    return given or {"planted world": planted_world(options).fingerprint()}


def planted_world(options: SemanticOptions) -> PlantedWorld:
    """The world that stands in when no data is given."""
    return PlantedWorld(seed=options.seed, count=options.scenes)


def list_images(options: SemanticOptions, spoken: LabelSet | None = None) -> Sequence[Unit]:
    """All units; ids are file stems, or `scene-0007` for the planted world.

    `spoken` are the labels of stored predictions, where they are not the truth's.
    """
    if options.gt or options.pred:
        return _stored(options, spoken)
    if not options.data:
        world = planted_world(options)
        shared = LabelledImage(WORLD_LABELS, keep_prediction=options.keep_predictions)
        return [
            Unit(f"scene-{index:04d}", replace(shared, scene=(world, index), context=world.context(index)))
            for index in range(len(world))
        ]
    if set(options.data) == {"voc"}:
        return _voc(options)
    if set(options.data) == {"images", "masks"}:
        return _folders(options, options.data["masks"], options.data["images"], None, spoken)
    raise OptionError(
        f"--data {', '.join(sorted(options.data))}: nobody knows how to read this",
        remedy="give --data voc=DIR, or --data images=DIR --data masks=DIR --labels FILE, or --gt DIR --pred DIR",
    )


def read_unit(content: LabelledImage, unit: str) -> LabelledImage:
    """Read the unit's files; sizes must agree."""
    if content.scene is not None:
        world, index = content.scene
        rendered = world[index]
        return replace(content, image=rendered.image, truth_map=rendered.classes.astype(np.int32) - 1)
    assert content.truth_path is not None
    truth_map, strange = _numbered(read_label_map(content.truth_path), content.numbers, content.nothing)
    if strange:
        raise DataError(
            f"the truth holds numbers {strange[:5]} that are none of the {len(content.labels)} labels",
            file=content.truth_path,
            unit=unit,
            remedy="choose other --labels or --numbering, or set --ignore to the number that means nothing",
        )
    image_path = find_image(content.image_folder, unit) if content.image_folder else None
    image = read_image(image_path) if image_path else None
    predicted = None
    if content.predicted_path:
        # A number that is no label is an answer all the same, and a wrong one.
        predicted, _ = _numbered(read_label_map(content.predicted_path), content.spoken_numbers, ())
    for what, array, path in (
        ("image", image, image_path),
        ("prediction", predicted, content.predicted_path),
    ):
        if array is not None and array.shape[:2] != truth_map.shape:
            raise DataError(
                f"the {what} is {_size(array)} and its truth {_size(truth_map)} pixels (width x height)",
                file=path,
                unit=unit,
                remedy="resize label maps by nearest neighbour to their image, outside hardlook",
            )
    return replace(content, image=image, truth_map=truth_map, predicted_map=predicted)


def _voc(options: SemanticOptions) -> Sequence[Unit]:
    devkit = open_devkit(options.data["voc"])
    names = (BACKGROUND, *devkit.classes)
    numbers = tuple(range(len(names)))
    shared = LabelledImage(
        names, numbers, nothing=_nothing(options, names, numbers), keep_prediction=options.keep_predictions
    )
    images, masks = devkit.root / "JPEGImages", devkit.root / devkit.masks
    return [
        Unit(name, replace(shared, image_folder=images, truth_path=masks / f"{name}.png"))
        for name in devkit.ids(options.split)
    ]


def _stored(options: SemanticOptions, spoken: LabelSet | None) -> Sequence[Unit]:
    if not (options.gt and options.pred):
        raise OptionError("--gt and --pred go together", remedy="give the folder of true and of predicted label maps")
    return _folders(options, options.gt, options.data.get("images"), options.pred, spoken)


def _folders(
    options: SemanticOptions, masks: Path, images: Path | None, predictions: Path | None, spoken: LabelSet | None
) -> Sequence[Unit]:
    known = truth_labels(options)
    numbers = numbers_of(known, options.numbering)
    words = spoken or known
    shared = LabelledImage(
        known.names,
        numbers,
        words.names,
        numbers_of(words, options.pred_numbering or options.numbering),
        _nothing(options, known.names, numbers),
        keep_prediction=options.keep_predictions,
    )
    truths = _label_maps(masks)
    predicted = _label_maps(predictions) if predictions else {}
    surplus = sorted(set(predicted) - set(truths))
    if surplus:
        raise DataError(
            f"{len(surplus)} predictions have no truth: {', '.join(surplus[:5])}",
            file=predictions,
            remedy="predictions and truth pair by file stem; remove or rename the surplus",
        )
    units = []
    for stem, path in truths.items():
        if predictions and stem not in predicted:
            # Named all the same: the run then records the missing file as this unit's failure.
            predicted[stem] = predictions / f"{stem}.png"
        content = replace(shared, truth_path=path, image_folder=images, predicted_path=predicted.get(stem))
        units.append(Unit(stem, content))
    return units


def _label_maps(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise DataError("there is no such folder of label maps", file=folder, remedy="check the path")
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in _MAP_SUFFIXES:
            if path.stem in found:
                raise DataError(f"two label maps are called {path.stem!r}", file=path, remedy="keep one of them")
            found[path.stem] = path
    return found


def truth_labels(options: SemanticOptions, variant: str = "corrected") -> LabelSet:
    """The label set of the truth's label maps; nothing about it is guessed."""
    if options.labels is None:
        raise OptionError(
            "label maps hold numbers, and nobody said what they are called",
            remedy="give --labels SET (hardlook labels list) or --labels FILE with one label name a line, first for 0",
        )
    return load_label_set(options.labels, variant)


def numbers_of(labels: LabelSet, numbering: Numbering) -> tuple[int, ...]:
    """What label maps write for each label.

    >>> numbers_of(load_label_set("coco80"), "category-id")[10:13]
    (11, 13, 14)
    """
    numbers = labels.category_ids if numbering == "category-id" else labels.ids + (numbering == "one-based")
    return tuple(numbers.tolist())


def _nothing(options: SemanticOptions, names: Sequence[str], numbers: Sequence[int]) -> tuple[int, ...]:
    """The numbers by which the truth says nothing; one that is a label's would delete that label without a word."""
    if options.ignore in numbers:
        raise OptionError(
            f"--ignore {options.ignore} is the number of the label {names[numbers.index(options.ignore)]!r}",
            remedy="give --ignore the number that your maps write for no label, or 65535 where there is none",
        )
    return (options.ignore, 0) if options.numbering == "one-based" else (options.ignore,)


def _numbered(stored: LabelMap, numbers: Sequence[int], nothing: Sequence[int]) -> tuple[LabelMap, list[int]]:
    """A stored map as indices from 0, -1 for nothing and for no label; and the numbers that are no label."""
    ids = np.array(numbers, np.int64)
    order = np.argsort(ids)
    places = np.clip(np.searchsorted(ids[order], stored), 0, len(ids) - 1)
    known = ids[order][places] == stored
    strange = np.unique(stored[~known & ~np.isin(stored, nothing)]).tolist()
    return np.where(known, order[places], -1).astype(np.int32), strange


def _size(array: NDArray[np.generic]) -> str:
    return f"{array.shape[1]}x{array.shape[0]}"
