"""The images that tasks are drawn from: a dataset on disk, or scenes of the planted world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from hardlook.benchmarks.metacoco.image_source import ImageSource, asked_source, images_in_two_splits
from hardlook.benchmarks.metacoco.options import MetaCocoOptions
from hardlook.contract.scorecard import LeftOut
from hardlook.data.concept_context import ConceptContextDataset, ConceptContextImage, open_dataset
from hardlook.errors import DataError
from hardlook.fingerprint import of_value
from hardlook.models.roles import Image
from hardlook.tasks.eligibility import Eligibility, eligible_classes
from hardlook.tasks.image_table import ImageTable, image_table
from hardlook.world.planted import PlantedWorld

EXAMPLES = 5


@dataclass(frozen=True, eq=False)
class OpenedImages:
    """The table that tasks are drawn from, and how to get at each row's picture.

    `files` are the rows' files (none for the planted world), `hashes` their contents' hashes; `fingerprint` is that of
    every row's name, labels, split and content.
    """

    table: ImageTable
    files: tuple[Path, ...]
    hashes: tuple[str, ...]
    names: tuple[str, ...]
    fingerprint: str
    world: PlantedWorld | None = None
    left_out: tuple[LeftOut, ...] = ()

    def read(self, row: int) -> Image:
        """The picture (H, W, 3) of a row."""
        if self.world is not None:
            return _scene(self.world, row)
        return _image(self.files[row], self.hashes[row])


def source_of(options: MetaCocoOptions) -> ImageSource:
    """What the options say about images, checked, and with the fingerprint of what is there now."""
    source = asked_source(options)
    if not source.path:
        return replace(source, fingerprint=_world(source).fingerprint())
    dataset = open_dataset(source.path, rule=source.rule, seed=source.seed)
    source = replace(source, without=images_in_two_splits(dataset, source))
    return replace(source, fingerprint=_of_dataset(dataset, source).fingerprint)


@lru_cache(maxsize=4)
def open_images(source: ImageSource) -> OpenedImages:
    """The images of a source, read once a process; a `DataError` where they are no longer those it was made from."""
    if not source.path:
        return _of_world(_world(source))
    opened = _of_dataset(open_dataset(source.path, rule=source.rule, seed=source.seed), source)
    if source.fingerprint not in ("", opened.fingerprint):
        what = "the images, their labels or their splits changed after the tasks were listed"
        raise DataError(what, file=source.path, remedy="give the command again, with another --out or --new")
    return opened


@lru_cache(maxsize=16)
def eligibility_of(
    source: ImageSource,
    modes: tuple[str, ...],
    ways: int,
    shots: int,
    queries: int,
    blind_supports: str,
    support_contexts: tuple[str, ...] = (),
) -> Eligibility:
    """Which classes can take part in every mode."""
    return eligible_classes(
        open_images(source).table,
        modes,
        ways,
        shots,
        queries,
        blind_supports=blind_supports,
        support_contexts=support_contexts,
    )


def _of_world(world: PlantedWorld) -> OpenedImages:
    rows = [(world.concept(index), world.context(index)) for index in range(len(world))]
    names = tuple(f"scene-{index:04d}" for index in range(len(world)))
    table = image_table([row[0] for row in rows], [row[1] for row in rows], names)
    hashes = tuple(f"{world.fingerprint()}-{name}" for name in names)
    return OpenedImages(table, (), hashes, names, world.fingerprint(), world)


def _of_dataset(dataset: ConceptContextDataset, source: ImageSource) -> OpenedImages:
    split = source.split_in(dataset.splits)
    rows = dataset.of_split(split)
    hash_of = dict(zip((row.name for row in rows), dataset.hashes(split), strict=True))
    kept = _of_contexts(rows, source)
    contents = tuple(hash_of[row.name] for row in kept)
    return OpenedImages(
        image_table([row.concept for row in kept], [row.context for row in kept], contents),
        tuple(row.path for row in kept),
        contents,
        tuple(row.name for row in kept),
        of_value([[row.name, row.concept, row.context, row.split, hash_of[row.name]] for row in kept]),
        left_out=_left_out(rows, source),
    )


def _of_contexts(rows: Sequence[ConceptContextImage], source: ImageSource) -> list[ConceptContextImage]:
    known = {row.context for row in rows}
    for context in (*source.keep, *source.drop):
        if context not in known:
            few = ", ".join(sorted(known)[:10])
            raise DataError(f"no context {context!r} in the data", file=source.path, remedy=f"it has {few}")
    without = set(source.without)
    kept = [row for row in rows if _asked_about(row, source) and row.name not in without]
    if not kept:
        what = "no image is left in these contexts" + (" that no other split has" if without else "")
        raise DataError(what, file=source.path, remedy="choose other contexts, or another split")
    return kept


def _asked_about(row: ConceptContextImage, source: ImageSource) -> bool:
    return (not source.keep or row.context in source.keep) and row.context not in source.drop


def _left_out(rows: Sequence[ConceptContextImage], source: ImageSource) -> tuple[LeftOut, ...]:
    dropped = [row for row in rows if not _asked_about(row, source)]
    notes = []
    if dropped:
        contexts = tuple(sorted({row.context for row in dropped}))
        notes.append(LeftOut("images", len(dropped), "their contexts are not asked about", contexts))
    if source.without:
        why = "another split has the same content; `hardlook data inspect` lists all of them"
        notes.append(LeftOut("images in two splits", len(source.without), why, source.without[:EXAMPLES]))
    return tuple(notes)


def _world(source: ImageSource) -> PlantedWorld:
    # One clear subject in every scene: what is asked here is which class, not where it is.
    return PlantedWorld(seed=source.seed, count=source.scenes, size=(96, 72), salient=True, distractors=0)


@lru_cache(maxsize=4096)
def _scene(world: PlantedWorld, index: int) -> Image:
    return world[index].image


@lru_cache(maxsize=512)
def _image(path: Path, content: str) -> Image:
    from hardlook.data.images import read_image

    image = read_image(path)
    image.flags.writeable = False
    return np.asarray(image)
