"""The images that tasks are drawn from: a dataset on disk, or scenes of the planted world."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from hardlook.benchmarks.metacoco.options import MetaCocoOptions
from hardlook.contract.scorecard import LeftOut
from hardlook.data.concept_context import ConceptContextImage, open_dataset
from hardlook.errors import DataError, HardlookError, OptionError
from hardlook.models.inner_model import build_inner
from hardlook.models.roles import Image
from hardlook.tasks.eligibility import Eligibility, eligible_classes
from hardlook.tasks.image_table import ImageTable, image_table
from hardlook.world.planted import PlantedWorld

EXAMPLES = 5


@dataclass(frozen=True)
class ImageSource:
    """Names from which any process opens the same images; small, hashable, picklable."""

    path: str
    rule: str | None
    split: str | None
    seed: int
    keep: tuple[str, ...]
    drop: tuple[str, ...]
    scenes: int


@dataclass(frozen=True, eq=False)
class OpenedImages:
    """The table that tasks are drawn from, and how to get at each row's picture.

    `files` are the rows' files (none for the planted world), `hashes` their contents' hashes.
    """

    table: ImageTable
    files: tuple[Path, ...]
    hashes: tuple[str, ...]
    names: tuple[str, ...]
    world: PlantedWorld | None = None
    left_out: tuple[LeftOut, ...] = ()

    def read(self, row: int) -> Image:
        """The picture (H, W, 3) of a row."""
        if self.world is not None:
            return _scene(self.world, row)
        return _image(self.files[row])


def source_of(options: MetaCocoOptions) -> ImageSource:
    """What the options say about images."""
    if options.data and set(options.data) != {"root"}:
        raise OptionError(
            f"--data {', '.join(sorted(options.data))}: MetaCoCo reads one dataset",
            remedy="give --data root=DIR (split/concept/context/image or concept/context/image) or a manifest",
        )
    return ImageSource(
        str(options.data.get("root", "")),
        options.split_rule,
        options.split,
        options.seed,
        options.test_contexts,
        options.train_contexts,
        options.scenes,
    )


def sources(options: MetaCocoOptions) -> Mapping[str, Path | str]:
    """What the units come from, by name."""
    given: dict[str, Path | str] = dict(options.data)
    if not given:
        given["planted world"] = _world(source_of(options)).fingerprint()
    # A learner on images needs no encoder, and so none that is installed.
    with contextlib.suppress(HardlookError):
        encoder = build_inner(options.encoder_name(), "encoder", options.encoder_args)
        given["encoder model"] = encoder.whole_fingerprint()
    return given


@lru_cache(maxsize=4)
def open_images(source: ImageSource) -> OpenedImages:
    """The images of a source, read once a process."""
    if not source.path:
        world = _world(source)
        rows = [(world.concept(index), world.context(index)) for index in range(len(world))]
        names = tuple(f"scene-{index:04d}" for index in range(len(world)))
        table = image_table([row[0] for row in rows], [row[1] for row in rows], names)
        hashes = tuple(f"{world.fingerprint()}-{name}" for name in names)
        return OpenedImages(table, (), hashes, names, world)
    dataset = open_dataset(source.path, rule=source.rule, seed=source.seed)
    split = source.split or ("test" if "test" in dataset.splits else None)
    rows_of = dataset.of_split(None if split == "all" else split)
    kept = _of_contexts(rows_of, source)
    hash_of = dict(zip((row.name for row in rows_of), dataset.hashes(None if split == "all" else split), strict=True))
    contents = tuple(hash_of[row.name] for row in kept)
    table = image_table([row.concept for row in kept], [row.context for row in kept], contents)
    left_out = _left_out(rows_of, kept)
    return OpenedImages(
        table, tuple(row.path for row in kept), contents, tuple(row.name for row in kept), None, left_out
    )


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


def _of_contexts(rows: Sequence[ConceptContextImage], source: ImageSource) -> list[ConceptContextImage]:
    known = {row.context for row in rows}
    for context in (*source.keep, *source.drop):
        if context not in known:
            few = ", ".join(sorted(known)[:10])
            raise DataError(f"no context {context!r} in the data", file=source.path, remedy=f"it has {few}")
    kept = [row for row in rows if (not source.keep or row.context in source.keep) and row.context not in source.drop]
    if not kept:
        raise DataError("no image is left in these contexts", file=source.path, remedy="choose other contexts")
    return kept


def _left_out(rows: Sequence[ConceptContextImage], kept: Sequence[ConceptContextImage]) -> tuple[LeftOut, ...]:
    dropped = sorted({row.context for row in rows} - {row.context for row in kept})
    if len(rows) == len(kept):
        return ()
    why = "their contexts are not asked about: " + ", ".join(dropped[:EXAMPLES])
    return (LeftOut("images", len(rows) - len(kept), why),)


def _world(source: ImageSource) -> PlantedWorld:
    # One clear subject in every scene: what is asked here is which class, not where it is.
    return PlantedWorld(seed=source.seed, count=source.scenes, size=(96, 72), salient=True, distractors=0)


@lru_cache(maxsize=4096)
def _scene(world: PlantedWorld, index: int) -> Image:
    return world[index].image


@lru_cache(maxsize=512)
def _image(path: Path) -> Image:
    from hardlook.data.images import read_image

    image = read_image(path)
    image.flags.writeable = False
    return np.asarray(image)
