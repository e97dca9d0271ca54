"""The images that a semantic projection is trained on: maps of a frozen encoder, and the classes in their cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data.untrained_images import find_copies, is_held_back, read_excluded
from hardlook.data.voc import IGNORE, VocImage, open_devkit
from hardlook.errors import DataError, ModelError, OptionError
from hardlook.fingerprints import hash_array, hash_value
from hardlook.models.families.words import Word, read_words
from hardlook.models.feature_cache import CachedEncoder, default_cache_folder
from hardlook.models.named_model import build_named
from hardlook.open_vocabulary.word_projection import add_device, build_text_encoder, encode_words
from hardlook.similarity.labels import normalise_name

if TYPE_CHECKING:
    from hardlook.training.projection.recipes import ProjectionRecipe
    from hardlook.training.projection.trainee import ProjectionData

VOC_WORDS = "voc20"
BATCH = 16
StartProgress = Callable[[int, int], Callable[[int, int], None]]


@dataclass(frozen=True)
class ProjectionDataOptions:
    """Which images: those of the VOC devkit `voc` and of its list `split`, without those of `exclude`.

    `unseen` are classes that do not train; `words` names what the classes are called in the space of words, by default
    their own names. `held_back` is the share of images that validate.
    """

    voc: Path
    split: str = "train"
    unseen: tuple[str, ...] = ()
    words: str | None = None
    exclude: Path | None = None
    held_back: float = 0.1


def choose_unseen(
    classes: Sequence[str], fold: int | None, folds: int = 4, unseen: Sequence[str] = ()
) -> tuple[str, ...]:
    """The classes that do not train: those named, or those of a fold, which cuts the classes in order (PASCAL-5i).

    >>> choose_unseen(("cat", "dog", "car", "bus"), 1, 2), choose_unseen(("cat", "dog"), None, unseen=["Dog"])
    (('car', 'bus'), ('dog',))
    """
    if unseen and fold is not None:
        raise OptionError("--fold and --unseen are both given", remedy="give one of them")
    if fold is not None:
        if not 2 <= folds <= len(classes) or not 0 <= fold < folds:
            raise OptionError(
                f"--fold {fold} of {folds}: there is no such fold of {len(classes)} classes",
                remedy=f"--folds from 2 to {len(classes)}, --fold from 0 to one less",
            )
        parts = np.array_split(np.arange(len(classes)), folds)
        return tuple(classes[place] for place in parts[fold])
    known = {normalise_name(name): name for name in classes}
    if unknown := [name for name in unseen if normalise_name(name) not in known]:
        raise OptionError(f"--unseen {unknown[0]}: no class of the data", remedy=f"some of {', '.join(classes)}")
    chosen = {known[normalise_name(name)] for name in unseen}
    if len(chosen) == len(classes):
        raise OptionError("no class is left to train on", remedy="name fewer classes as unseen")
    return tuple(name for name in classes if name in chosen)


def choose_words(classes: Sequence[str], given: str | None) -> list[Word]:
    """The word of each class: of the file or label set `given`, of the shipped set for VOC's classes, or its name."""
    shipped = {normalise_name(word.label): word for word in read_words((VOC_WORDS,)).words}
    if given is not None:
        shipped = {normalise_name(word.label): word for word in read_words((given,)).words}
        if absent := [name for name in classes if normalise_name(name) not in shipped]:
            what = f"the words do not name the class {absent[0]!r}"
            raise OptionError(what, remedy=f"a file of labels with all of {', '.join(classes)}")
    return [shipped.get(normalise_name(name)) or Word(name, name.replace("_", " ")) for name in classes]


def prepare_data(
    options: ProjectionDataOptions, recipe: ProjectionRecipe, device: str = "cpu", start: StartProgress | None = None
) -> ProjectionData:
    """Maps, shares of classes and word vectors; each image is encoded once and its maps are kept on disk."""
    import torch

    from hardlook.training.projection.trainee import ProjectionData

    devkit = open_devkit(options.voc)
    trained = tuple(name for name in devkit.classes if name not in options.unseen)
    numbers = {name: place + 1 for place, name in enumerate(devkit.classes)}
    text = build_text_encoder(recipe.text, dict(recipe.text_args), device)
    words = choose_words(trained, options.words)
    table = encode_words(text.model, words)
    if table.without:
        what = f"these classes have no vector of {recipe.text}: {', '.join(table.without)}"
        raise OptionError(what, remedy="--labels FILE with the class and, after a comma, a word that has one")
    chosen, counts = choose_images(devkit.images(options.split), options)
    inner = build_named(recipe.encoder, "encoder", add_device(recipe.encoder, dict(recipe.encoder_args), device))
    encoder = CachedEncoder(inner.model, inner.whole_fingerprint(), default_cache_folder())
    advance = start(len(chosen), 0) if start is not None else None
    maps: Any = None
    shares: Any = None
    hashes, without = [], 0
    for first in range(0, len(chosen), BATCH):
        part = chosen[first : first + BATCH]
        images = [one.read() for one in part]
        found = encoder.encode(images).maps
        if found is None:
            raise ModelError(f"the encoder {recipe.encoder!r} has no maps", remedy="take one that gives maps")
        for place, (one, image, features) in enumerate(zip(part, images, found, strict=True), start=first):
            channels, height, width = features.shape
            if maps is None:
                # Half precision: the maps of a thousand images would not fit into the memory of a small machine.
                maps = torch.empty((len(chosen), height, width, channels), dtype=torch.float16)
                shares = torch.empty((len(chosen), height, width, 1 + len(trained)), dtype=torch.float32)
            if (height, width, channels) != tuple(maps.shape[1:]):
                what = f"maps of the encoder differ in size: {features.shape} after {tuple(maps.shape[1:])}"
                raise ModelError(what, unit=one.id, remedy="take an encoder that squashes images to one size")
            classes = one.read_classes()
            if classes.shape != image.shape[:2]:
                what = f"the class mask is {classes.shape}, the image {image.shape[:2]}"
                raise DataError(what, file=one.class_path, unit=one.id, remedy="masks have their image's size")
            cells = count_shares(classes, [numbers[name] for name in trained], (height, width), novel=recipe.novel)
            without += not cells[..., 1:].any()
            maps[place] = torch.from_numpy(np.ascontiguousarray(features.transpose(1, 2, 0))).half()
            shares[place] = torch.from_numpy(cells)
            hashes.append([one.id, hash_array(image), hash_array(classes)])
        if advance is not None:
            advance(len(part), 0)
    held = np.array([is_held_back(one.id, options.held_back) for one in chosen])
    if held.all():
        held[:] = False
    facts = {
        "fingerprint": hash_value(hashes),
        "encoder": inner.whole_fingerprint(),
        "text": text.whole_fingerprint(),
        "unseen": list(options.unseen),
        "words": [word.text for word in words],
        **counts,
        "without_a_trained_class": without,
        "trained_on": int((~held).sum()),
        "validation": {"images": int(held.sum()), **({} if held.any() else {"why": "no image was held back"})},
    }
    ids = tuple(one.id for one in chosen)
    rows, back = np.flatnonzero(~held), np.flatnonzero(held)
    return ProjectionData(maps, shares, table.vectors, trained, rows, back, facts, ids)


def choose_images(images: Sequence[VocImage], options: ProjectionDataOptions) -> tuple[list[VocImage], dict[str, Any]]:
    """The images that train and validate, and what was left out, in numbers."""
    excluded = read_excluded(options.exclude)
    present = [one for one in images if one.id not in excluded]
    copies = find_copies({one.id: one.path for one in present}, options.exclude)
    chosen = [one for one in present if one.id not in copies]
    counts = {
        "images": len(images),
        "excluded_by_name": len(images) - len(present),
        "copies_of_excluded_images": sorted(copies) if copies else 0,
    }
    if not chosen:
        what = f"no image is left to train on: {len(images)} images, {len(images) - len(present)} excluded by name"
        raise DataError(what, file=options.voc, remedy="check --data, --split and --exclude")
    return chosen, counts


def count_shares(
    classes: NDArray[np.integer[Any]], trained: Sequence[int], size: tuple[int, int], *, novel: str = "ignored"
) -> NDArray[np.float32]:
    """(h, w, 1 + K): the share of each cell's pixels that are background and of each trained class.

    `classes` (H, W) has 0 for background and 255 for no label; other numbers that are not `trained` are ignored, or
    with `novel` background count as such.

    >>> count_shares(np.array([[0, 1, 255, 2]]), [1], (1, 2)).round(2).tolist()
    [[[0.5, 0.5], [0.0, 0.0]]]
    """
    plain = classes == 0
    if novel == "background":
        plain |= ~np.isin(classes, [0, IGNORE, *trained])
    layers = [plain, *(classes == number for number in trained)]
    height, width = size
    # By area, so that the shares of a cell add up to 1 where all of its pixels have a label.
    cells = [
        cv2.resize(layer.astype(np.float32), (width, height), interpolation=cv2.INTER_AREA)
        if layer.any()
        else np.zeros(size, np.float32)
        for layer in layers
    ]
    return np.stack(cells, axis=-1)
