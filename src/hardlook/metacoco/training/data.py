"""The images and tasks that a few-shot method is trained and validated on.

Training tasks come from the train split, validation tasks from the val split, by the function that draws the tasks of a
benchmark. Images are decoded once: squashed to 96 x 96 pixels (for crops of 84), in one array that is kept on disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.data.concept_context import open_dataset
from hardlook.data.images import read_image
from hardlook.errors import DataError, OptionError
from hardlook.fingerprints import hash_value
from hardlook.metacoco.options import MetaCocoOptions
from hardlook.metacoco.tasks.drawing import draw_tasks
from hardlook.metacoco.tasks.eligibility import Eligibility, find_eligible_classes
from hardlook.metacoco.units import ImageSource, TaskImages, load_images, make_source
from hardlook.models.feature_cache import default_cache_folder
from hardlook.models.preprocessing import CROPPED, RESIZED

if TYPE_CHECKING:
    from hardlook.training.few_shot import EpisodeRows, FewShotData
    from hardlook.training.recipes import Recipe

TRAIN, VALIDATION = "train", "val"
MODES = ("blind", "iid", "ood")
FEWER_QUERIES = (10, 5, 3, 1)  # tried where the val split has too few images for the recipe's


@dataclass(frozen=True)
class DataOptions:
    """Which images: those of `root`, split by its folders or by `split_rule`, of `contexts` only where given.

    `validation_tasks` is the number of tasks of each mode. Near-duplicates are kept, dropped or refused.
    """

    root: Path
    split_rule: str | None = None
    contexts: tuple[str, ...] = ()
    near_duplicates: str = "keep"
    skip_corrupt: bool = False
    validation_tasks: int = 200


def stored_size(size: int) -> int:
    """The side to which images are squashed for crops of `size` pixels, as 96 is to 84.

    >>> stored_size(84), stored_size(32)
    (96, 37)
    """
    return round(size * RESIZED / CROPPED)


def prepare_data(
    options: DataOptions,
    recipe: Recipe,
    *,
    size: int,
    seed: int,
    show_progress: Callable[[int, int], Callable[[int, int], None]] | None = None,
) -> FewShotData:
    """The data of a training, decoded, checked for leaks between the splits, with its tasks.

    An error where the train split cannot form the recipe's tasks; a val split that cannot leaves the validation out.
    """
    from hardlook.training.few_shot import FewShotData

    source, images = _load_split(options, TRAIN, seed)
    table = images.table
    if len(table.concepts) < 2:
        raise DataError("the train split has one class", file=options.root, remedy="give images of more classes")
    eligible = None
    if any(stage.stage == "episodes" for stage in recipe.stages):
        eligible = find_eligible_classes(
            table, ("blind",), recipe.ways, recipe.shots, recipe.queries, blind_supports="paper"
        )
        eligible.require()

    def draw(numbers: NDArray[np.int64]) -> EpisodeRows:
        if eligible is None:
            raise OptionError("this training has no stage on tasks")
        return _draw(eligible, "blind", numbers, seed)

    pixels = decode_images(images, stored_size(size), show_progress)
    held, tasks, notes = _prepare_validation(options, recipe, size=size, seed=seed, show_progress=show_progress)
    facts = {
        "fingerprint": images.fingerprint,
        "images": len(table),
        "classes": len(table.concepts),
        "contexts": list(table.contexts),
        "classes_in_tasks": len(eligible.classes) if eligible is not None else None,
        "leak_check": describe_leaks(options, source),
        "validation": notes,
    }
    return FewShotData(pixels, table.concept, table.concepts, draw, held, tasks, facts)


def _load_split(options: DataOptions, split: str, seed: int) -> tuple[ImageSource, TaskImages]:
    given = MetaCocoOptions(
        data={"root": options.root},
        split=split,
        split_rule=options.split_rule,
        seed=seed,
        test_contexts=options.contexts,
        near_duplicates=options.near_duplicates,
        skip_corrupt=options.skip_corrupt,
    )
    source = make_source(given)
    return source, load_images(source)


def describe_leaks(options: DataOptions, source: ImageSource) -> dict[str, Any]:
    """What was checked between the train split and the others, and what was left out of training."""
    looked = options.near_duplicates != "keep"
    return {
        "classes_shared_with_other_splits": 0,  # any would have been an error
        "images_of_other_splits_left_out": len(source.without),
        "near_duplicates_left_out": len(source.similar) if looked else "not looked for",
        "corrupt_images_left_out": len(source.corrupt) if options.skip_corrupt or looked else "not looked for",
    }


def _prepare_validation(
    options: DataOptions,
    recipe: Recipe,
    *,
    size: int,
    seed: int,
    show_progress: Callable[[int, int], Callable[[int, int], None]] | None,
) -> tuple[NDArray[np.uint8] | None, dict[str, EpisodeRows], dict[str, Any]]:
    """The val split's images, tasks by mode, and what there is of them in words and numbers."""
    if VALIDATION not in open_dataset(options.root, rule=options.split_rule, seed=seed).splits:
        return None, {}, {"modes": [], "why": "the data has no val split"}
    _, images = _load_split(options, VALIDATION, seed)
    found = find_validation_modes(images, recipe)
    if not found:
        why = f"no {recipe.ways} classes of the val split can form tasks of {recipe.shots} shots and a query"
        return None, {}, {"modes": [], "why": why}
    numbers = np.arange(options.validation_tasks)
    tasks = {mode: _draw(eligible, mode, numbers, seed) for mode, eligible in found.items()}
    notes = {
        "modes": list(tasks),
        "tasks": options.validation_tasks,
        "queries": found["blind"].queries,
        "images": len(images.table),
        "fingerprint": images.fingerprint,
    }
    return decode_images(images, stored_size(size), show_progress), tasks, notes


def find_validation_modes(images: TaskImages, recipe: Recipe) -> dict[str, Eligibility]:
    """By mode, the classes that validation tasks are drawn from; modes that the data do not allow are left out.

    Classes and supports are the same in all modes where all modes can be had together. A val split with too few images
    for the recipe's queries gets fewer.
    """
    for queries in (recipe.queries, *(fewer for fewer in FEWER_QUERIES if fewer < recipe.queries)):

        def find(modes: Sequence[str], queries: int = queries) -> Eligibility:
            return find_eligible_classes(images.table, modes, recipe.ways, recipe.shots, queries)

        together = find(MODES)
        if len(together.classes) >= recipe.ways:
            return dict.fromkeys(MODES, together)
        alone = {mode: found for mode in MODES if len((found := find((mode,))).classes) >= recipe.ways}
        if "blind" in alone:
            return alone
    return {}


def _draw(eligible: Eligibility, mode: str, numbers: NDArray[np.int64], seed: int) -> EpisodeRows:
    from hardlook.training.few_shot import EpisodeRows

    tasks = draw_tasks(eligible, mode, numbers, seed=seed)
    return EpisodeRows(tasks.support, tasks.query, tasks.classes)


def decode_images(
    images: TaskImages,
    side: int,
    show_progress: Callable[[int, int], Callable[[int, int], None]] | None = None,
    *,
    folder: Path | None = None,
) -> NDArray[np.uint8]:
    """(n, side, side, 3) uint8: every image squashed, decoded now or read from the cache of arrays on disk."""
    home = folder or default_cache_folder().parent / "decoded_images"
    path = home / f"{hash_value([list(images.hashes), side, 'bilinear'])}.npy"
    if path.is_file():
        try:
            return np.asarray(np.load(path))
        except (OSError, ValueError, EOFError):
            path.unlink()  # damaged: decoded again
    pixels = np.empty((len(images.files), side, side, 3), np.uint8)
    advance = show_progress(len(pixels), 0) if show_progress else None

    def decode(row: int) -> None:
        whole = PIL.Image.fromarray(np.ascontiguousarray(read_image(images.files[row])))
        pixels[row] = np.asarray(whole.resize((side, side), PIL.Image.Resampling.BILINEAR))

    with ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
        for _ in pool.map(decode, range(len(pixels))):
            if advance is not None:
                advance(1, 0)
    home.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("wb") as stream:
        np.save(stream, pixels)
    beside.replace(path)
    return pixels
