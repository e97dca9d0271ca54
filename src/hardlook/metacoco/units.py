"""MetaCoCo's units: tasks, by mode, ways, shots and number.

Which images tasks are drawn from, said in names from which any process opens the same ones.

>>> source = ImageSource("PACS", None, "all", 0, (), (), 480)
>>> source.whole, source.split_in(("train", "test"))
(True, None)

The images that tasks are drawn from: a dataset on disk, or scenes of the planted world.

What answers depend on besides the learner and the options: the images, the rule that split them, the encoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import cast

import numpy as np

from hardlook.data.concept_context import ConceptContextDataset, ConceptContextImage, open_dataset
from hardlook.errors import DataError, OptionError
from hardlook.fingerprints import of_sources, of_value
from hardlook.harness.benchmark import Unit, UnitList
from hardlook.harness.scorecard import LeftOut
from hardlook.metacoco.options import MetaCocoOptions
from hardlook.metacoco.tasks.eligibility import Eligibility, eligible_classes
from hardlook.metacoco.tasks.images import ImageTable, image_table
from hardlook.models.identity import sources_of
from hardlook.models.named_model import build_inner
from hardlook.models.registry import find
from hardlook.models.roles import Image
from hardlook.world.planted import PlantedWorld

ALL = "all"


@dataclass(frozen=True)
class ImageSource:
    """Small, hashable, picklable; an empty `path` is the planted world.

    `keep` and `drop` are contexts. `without` names images that are left out since another split has them too.
    `fingerprint` is that of the images as they were when tasks were listed: opening others is an error.
    """

    path: str
    rule: str | None
    split: str | None
    seed: int
    keep: tuple[str, ...]
    drop: tuple[str, ...]
    scenes: int
    without: tuple[str, ...] = ()
    fingerprint: str = ""

    @property
    def whole(self) -> bool:
        """Whether every image is asked about, whatever its split."""
        return self.split == ALL

    def split_in(self, splits: Sequence[str]) -> str | None:
        """The split to test on out of those there are; None for all images."""
        return None if self.whole else self.split or ("test" if "test" in splits else None)


def choose_source(options: MetaCocoOptions) -> ImageSource:
    """What the options say about images; nothing is read."""
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


def images_in_two_splits(dataset: ConceptContextDataset, source: ImageSource) -> tuple[str, ...]:
    """Names of images of the tested split whose content another split has too; classes in two splits are refused.

    Where all splits are asked about together nothing is held out, and nothing is checked.
    """
    tested = source.split_in(dataset.splits)
    if tested is None or not dataset.splits:
        return ()
    shared = dataset.shared_concepts()
    if shared:
        named = "; ".join(f"{concept} ({', '.join(splits)})" for concept, splits in shared.items())
        raise DataError(
            f"classes of the splits must differ, and {len(shared)} are in several: {named}",
            file=dataset.source,
            remedy="--split-rule size, seed or a CSV file splits by class; --split all takes every image as one split",
        )
    across = {row.name for group in dataset.duplicates().across for row in group if row.split == tested}
    return tuple(sorted(across))


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


def make_source(options: MetaCocoOptions) -> ImageSource:
    """What the options say about images, checked, and with the fingerprint of what is there now."""
    source = choose_source(options)
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
def find_eligible(
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
    kept = [row for row in rows if _describe_source(row, source) and row.name not in without]
    if not kept:
        what = "no image is left in these contexts" + (" that no other split has" if without else "")
        raise DataError(what, file=source.path, remedy="choose other contexts, or another split")
    return kept


def _describe_source(row: ConceptContextImage, source: ImageSource) -> bool:
    return (not source.keep or row.context in source.keep) and row.context not in source.drop


def _left_out(rows: Sequence[ConceptContextImage], source: ImageSource) -> tuple[LeftOut, ...]:
    dropped = [row for row in rows if not _describe_source(row, source)]
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


@dataclass(frozen=True)
class TaskSettings:
    """What all tasks of a run share."""

    source: ImageSource
    modes: tuple[str, ...]
    queries: int
    blind_supports: str
    support_contexts: tuple[str, ...]
    encoder: str
    encoder_args: str
    encoder_asked: bool
    keep_predictions: bool


@dataclass(frozen=True, slots=True)
class TaskUnit:
    """One task: everything else follows from these."""

    settings: TaskSettings
    mode: str
    ways: int
    shots: int
    index: int
    repeat: int


def list_units(options: MetaCocoOptions) -> UnitList:
    """Every task of every mode, ways and shots; classes that cannot take part are named."""
    shots, queries, tasks, repeats = options.resolved()
    source = make_source(options)
    settings = TaskSettings(
        source,
        options.modes,
        queries,
        options.blind_supports,
        options.support_contexts,
        options.encoder_name(),
        options.encoder_args,
        options.encoder_asked,
        options.keep_predictions,
    )
    units, left_out = [], list(open_images(source).left_out)
    for ways in options.ways:
        for shot in shots:
            eligible = find_eligible(
                source, options.modes, ways, shot, queries, options.blind_supports, options.support_contexts
            )
            eligible.require()
            left_out += _left_out_notes(eligible.left_out, ways, shot)
            units += [
                Unit(
                    f"{ways}way-{shot}shot-{mode}-{index:05d}",
                    TaskUnit(settings, mode, ways, shot, index, index // tasks),
                    group=f"{ways}-{shot}-{mode}",
                )
                for mode in options.modes
                for index in range(tasks * repeats)
            ]
    return UnitList(units, left_out)


def _left_out_notes(reasons: tuple[tuple[str, str, str], ...], ways: int, shots: int) -> list[LeftOut]:
    """One note for each mode and reason, with all classes it concerns."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for mode, concept, why in reasons:
        grouped.setdefault((mode, why), []).append(concept)
    return [
        LeftOut(f"classes in {mode} tasks, {ways}-way {shots}-shot", len(names), why, tuple(names))
        for (mode, why), names in grouped.items()
    ]


RULES = ("size", "seed")


def list_sources(options: MetaCocoOptions) -> Mapping[str, Path | str]:
    """Paths, and fingerprints of what no path leads to, by name.

    >>> sorted(list_sources(MetaCocoOptions()))
    ['encoder model', 'planted world']
    """
    given: dict[str, Path | str] = dict(options.data)
    # A manifest's images lie anywhere, and a rule may move classes: the opened table is what tasks come from.
    given["images" if given else "planted world"] = make_source(options).fingerprint
    if options.split_rule is not None and options.split_rule not in RULES:
        given["split_rule"] = Path(options.split_rule).expanduser()
    given["encoder model"] = _encoder(options)
    return given


def _encoder(options: MetaCocoOptions) -> str:
    """The identity of the encoder; the usual one is not built, since a learner on images does without it.

    Its code names its weights by their hashes, so that the code is identity enough.
    """
    if options.encoder_asked:
        return build_inner(options.encoder_name(), "encoder", options.encoder_args).whole_fingerprint()
    usual = find(options.encoder_name())
    return of_value([usual.card.name, of_sources(sources_of(cast("type", usual.factory())))])
