"""The images that a one-shot network is trained on: those of a fold's training classes, all or selected.

`all` are the images that hold a training class; `leave-out` those of them that hold no test class (an oracle); `sgtss`
those that saliency-guided training set selection keeps. A list of `hardlook bias select` may be given in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.data.untrained_images import is_held_back, read_excluded, read_lines
from hardlook.errors import DataError, OptionError
from hardlook.fingerprints import hash_array, hash_value
from hardlook.models.named_model import build_inner
from hardlook.toss.bias.selection import KEPT_LIST
from hardlook.toss.bias.training_images import (
    ClassSplit,
    LabelledImage,
    OpenedImages,
    measure_coverage,
    open_images,
    select_images,
    select_training_images,
    split_of_fold,
)
from hardlook.toss.folds import COCO_CLASSES, COCO_FOLDS
from hardlook.toss.saliency_cache import SaliencyMaskCache, default_mask_folder

if TYPE_CHECKING:
    from hardlook.training.one_shot import OneShotData
    from hardlook.training.one_shot_recipes import OneShotRecipe

ALL, LEAVE_OUT, SGTSS = "all", "leave-out", "sgtss"
SELECTIONS = (ALL, LEAVE_OUT, SGTSS)
IGNORED = 255
StartProgress = Callable[[int, int], Callable[[int, int], None]]


@dataclass(frozen=True)
class OneShotDataOptions:
    """Which images: those of `paths`, of the list `split` of a devkit, without those of `exclude`.

    `selection` is one of the three, or the path of a list. `held_back` is the share of images that validate.
    """

    paths: Mapping[str, Path]
    fold: int
    folds: int = 4
    split: str | None = None
    labels: Path | None = None
    selection: str = ALL
    exclude: Path | None = None
    saliency: str = "u2netp"
    held_back: float = 0.1


def choose_split(classes: Sequence[str], fold: int, folds: int, *, coco: bool) -> ClassSplit:
    """The fold's classes: COCO-20i takes every fourth of COCO's 80, all others cut the classes in order, as PASCAL-5i.

    >>> choose_split(("cat", "dog", "car", "bus"), 1, 2, coco=False).test
    ('car', 'bus')
    """
    if coco and len(classes) == COCO_CLASSES and folds == COCO_FOLDS:
        if not 0 <= fold < folds:
            raise OptionError(f"--fold {fold}: there is no such fold", remedy=f"one from 0 to {folds - 1}")
        test = tuple(classes[fold::folds])
        training = tuple(name for name in classes if name not in test)
        return ClassSplit(training, test, f"fold {fold} of COCO-20i")
    return split_of_fold(classes, fold, folds)


def choose_images(
    opened: OpenedImages, split: ClassSplit, options: OneShotDataOptions, start: StartProgress | None = None
) -> tuple[list[LabelledImage], dict[str, Any]]:
    """The images that are trained and validated on, and what was left out, in numbers."""
    excluded = read_excluded(options.exclude)
    present = [one for one in opened.images if one.image not in excluded]
    images = select_training_images(present, split)
    counts: dict[str, Any] = {
        "images": len(opened.images),
        "excluded": len(opened.images) - len(present),
        "unreadable": len(opened.unread),
        "without a training class": len(present) - len(images),
    }
    if options.selection == LEAVE_OUT:
        kept = [one for one in images if not set(split.test) & set(one.classes)]
    elif options.selection == SGTSS:
        kept = _select_by_saliency(opened, images, split, options, start)
    elif options.selection == ALL:
        kept = images
    else:
        kept = _select_by_list(images, Path(options.selection).expanduser())
    counts["dropped by the selection"] = len(images) - len(kept)
    if not kept:
        what = f"no image is left to train on ({', '.join(f'{key} {value}' for key, value in counts.items())})"
        raise DataError(what, remedy="check --data, --fold, --selection and --exclude")
    return kept, counts


def _select_by_saliency(
    opened: OpenedImages,
    images: Sequence[LabelledImage],
    split: ClassSplit,
    options: OneShotDataOptions,
    start: StartProgress | None,
) -> list[LabelledImage]:
    model = build_inner(options.saliency, "saliency")
    cache = SaliencyMaskCache(model.model, model.identity.fingerprint(), default_mask_folder())
    advance = start(len(images), 0) if start is not None else lambda done, failed: None
    rows, unread = measure_coverage(opened.source, images, split, cache, advance)
    if unread:
        what = f"{len(unread)} training images cannot be read: {unread[0].error}"
        raise DataError(what, unit=unread[0].image, remedy="replace or remove the file")
    kept = set(select_images(rows).kept)
    return [one for one in images if one.image in kept]


def _select_by_list(images: Sequence[LabelledImage], path: Path) -> list[LabelledImage]:
    if not path.exists():
        remedy = f"one of {', '.join(SELECTIONS)}, or the path of a list or of a folder of `hardlook bias select`"
        raise OptionError(f"--selection {path}: there is no such selection", remedy=remedy)
    file = path / KEPT_LIST if path.is_dir() else path
    listed = read_lines(file)
    known = {one.image for one in images}
    if absent := [name for name in listed if name not in known]:
        what = f"{len(absent)} of {len(listed)} images of the list are no training images here: {absent[0]}"
        raise DataError(what, file=file, remedy="make the list for this fold and these data: hardlook bias select")
    wanted = set(listed)
    return [one for one in images if one.image in wanted]


def prepare_data(options: OneShotDataOptions, recipe: OneShotRecipe, start: StartProgress | None = None) -> OneShotData:
    """Images, class maps and classes of a fold, decoded, none larger than the recipe's images."""
    from hardlook.training.images.segmentation_images import pack_images
    from hardlook.training.one_shot import OneShotData

    opened = open_images(options.paths, options.labels, options.split)
    classes = tuple(opened.source.classes)
    if len(classes) >= IGNORED:
        raise DataError(f"{len(classes)} classes do not fit into class maps of bytes", remedy="train on fewer classes")
    split = choose_split(classes, options.fold, options.folds, coco="coco" in options.paths)
    chosen, counts = choose_images(opened, split, options, start)
    advance = start(len(chosen), 0) if start is not None else None
    images, maps, hashes = [], [], []
    for one in chosen:
        image, label = _read(opened, one, recipe.size)
        images.append(image)
        maps.append(label)
        hashes.append([one.image, hash_array(image), hash_array(label)])
        if advance is not None:
            advance(1, 0)
    held = np.array([is_held_back(one.image, options.held_back) for one in chosen])
    if held.all():
        held[:] = False
    numbers = {number + 1: name for number, name in enumerate(classes)}
    by_name = {name: number for number, name in numbers.items()}
    facts = {
        "fingerprint": hash_value(hashes),
        "fold": split.name,
        "selection": options.selection if options.selection in SELECTIONS else "a list",
        "test_classes": list(split.test),
        **{key.replace(" ", "_"): value for key, value in counts.items()},
        "trained_on": int((~held).sum()),
        "validation": {"images": int(held.sum()), **({} if held.any() else {"why": "no image was held back"})},
    }
    return OneShotData(
        pack_images(images, maps),
        tuple(by_name[name] for name in split.training),
        tuple(by_name[name] for name in split.test),
        np.flatnonzero(~held),
        np.flatnonzero(held),
        numbers,
        facts,
    )


def _read(opened: OpenedImages, one: LabelledImage, size: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """An image and its class map with 255 for no label, made smaller where their longer side exceeds `size`."""
    image = opened.source.read_image(one.tokens[0])
    label = opened.source.read_classes(one.image).astype(np.uint8)
    longer = max(image.shape[:2])
    if longer <= size:
        return np.ascontiguousarray(image), label
    height, width = (max(1, round(side * size / longer)) for side in image.shape[:2])
    smaller = PIL.Image.fromarray(np.ascontiguousarray(image)).resize((width, height), PIL.Image.Resampling.BILINEAR)
    reduced = PIL.Image.fromarray(label).resize((width, height), PIL.Image.Resampling.NEAREST)
    return np.asarray(smaller), np.asarray(reduced)
