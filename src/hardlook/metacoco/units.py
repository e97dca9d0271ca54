"""MetaCoCo's units: one few-shot task each, and the images that tasks are drawn from.

A unit holds names and numbers only. From them any process loads the same images and draws the same task.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import cast

import numpy as np

from hardlook.data.concept_context import (
    ConceptContextDataset,
    ImageTable,
    build_image_table,
    drop_images,
    find_similar_names,
    open_dataset,
    open_samples,
)
from hardlook.data.near_duplicates import decode_images, find_leaks, find_unreadable
from hardlook.data.stored_files import Stored, read_stored_image
from hardlook.data.stored_files.python_objects import DatasetObject, find_object
from hardlook.data.stored_files.sources import (
    LABEL_SOURCES,
    OBJECT,
    find_source,
    list_source_files,
    read_labelled_samples,
)
from hardlook.errors import DataError, OptionError
from hardlook.fingerprints import hash_sources, hash_value
from hardlook.harness.benchmark import Unit, UnitList
from hardlook.harness.scorecard import LeftOut
from hardlook.metacoco.options import MetaCocoOptions
from hardlook.metacoco.tasks.eligibility import Eligibility, find_eligible_classes
from hardlook.models.identity import sources_of
from hardlook.models.named_model import build_inner
from hardlook.models.preprocessing import Preprocessing
from hardlook.models.registry import find
from hardlook.models.roles import Image
from hardlook.world.planted import PlantedWorld

ALL = "all"
ROOT = "root"
SPLIT_RULES = ("size", "seed")  # any other rule is a file
_TASK_ID = re.compile(r"(\d{1,9})way-(\d{1,9})shot-([a-z]+)-(\d{5,12})")
EXAMPLES = 5  # names of images that are left out


@dataclass(frozen=True)
class ImageSource:
    """Which images tasks are drawn from; an empty `path` is the planted world.

    `keep` and `drop` are contexts. `without` names images that are left out because another split has them too,
    `similar` those of which another image shows the same picture, `corrupt` those that cannot be read.
    `fingerprint` is that of the images when the tasks were listed: loading others is an error. `kind` says how `path`
    is read (root, or one of `hardlook.data.stored_files.sources`), with `columns`; `given` is a dataset object.

    >>> ImageSource("PACS", None, None, 0, (), (), 480).choose_split(("train", "test"))
    'test'
    """

    path: str
    rule: str | None
    split: str | None
    seed: int
    keep: tuple[str, ...]
    drop: tuple[str, ...]
    scenes: int
    without: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()
    corrupt: tuple[str, ...] = ()
    fingerprint: str = ""
    kind: str = ROOT
    columns: str = ""
    given: DatasetObject | None = None

    def open(self) -> ConceptContextDataset:
        """All its images."""
        if self.kind == ROOT:
            return open_dataset(self.path, rule=self.rule, seed=self.seed)
        path = self.given.path if self.given is not None else Path(self.path)
        samples = read_labelled_samples(self.kind, path, self.columns)
        return open_samples(path, samples, rule=self.rule, seed=self.seed)

    def choose_split(self, splits: Sequence[str]) -> str | None:
        """The split to test on out of those there are; None for all images."""
        return None if self.split == ALL else self.split or ("test" if "test" in splits else None)


@dataclass(frozen=True, eq=False)
class TaskImages:
    """The images that tasks are drawn from: their labels as a table, and the image of each row.

    `files` are the rows' (none if planted), or `stored` where images are not files of their own; `hashes` of their
    contents; `fingerprint` is of all labels and contents.
    """

    table: ImageTable
    files: tuple[Path, ...]
    hashes: tuple[str, ...]
    names: tuple[str, ...]
    fingerprint: str
    world: PlantedWorld | None = None
    left_out: tuple[LeftOut, ...] = ()
    stored: tuple[Stored, ...] = ()

    def read(self, row: int) -> Image:
        """The image (H, W, 3) of a row."""
        if self.world is not None:
            return _render_scene(self.world, row)
        if self.stored:
            return _read_stored(self.stored[row], self.hashes[row])
        return _read_image(self.files[row], self.hashes[row])


@dataclass(frozen=True)
class TaskSettings:
    """The settings that all tasks of a run share."""

    source: ImageSource
    modes: tuple[str, ...]
    queries: int
    blind_supports: str
    support_contexts: tuple[str, ...]
    encoder: str
    encoder_args: str
    encoder_given: bool
    keep_predictions: bool
    preprocessing: Preprocessing


@dataclass(frozen=True, slots=True)
class TaskUnit:
    """One task; its images follow from these values."""

    settings: TaskSettings
    mode: str
    ways: int
    shots: int
    index: int
    repeat: int


def list_units(options: MetaCocoOptions) -> UnitList:
    """Every task of every mode, ways and shots; classes that cannot take part are named."""
    shots, _, tasks, repeats = options.resolved()
    settings = _make_settings(options)
    units, left_out = [], list(load_images(settings.source).left_out)
    for ways in options.ways:
        for shot in shots:
            eligible = find_eligible(settings, ways, shot)
            eligible.require()
            grouped: dict[tuple[str, str], list[str]] = {}
            for mode, concept, why in eligible.left_out:
                grouped.setdefault((mode, why), []).append(concept)
            left_out += [
                LeftOut(f"classes in {mode} tasks, {ways}-way {shot}-shot", len(names), why, tuple(names))
                for (mode, why), names in grouped.items()
            ]
            units += [
                _make_unit(settings, mode, ways, shot, index, tasks)
                for mode in options.modes
                for index in range(tasks * repeats)
            ]
    return UnitList(units, left_out)


def find_units(options: MetaCocoOptions, ids: Collection[str]) -> Mapping[str, Unit]:
    """The tasks with these ids: their numbers say what is drawn, so that no other task is listed.

    >>> options = MetaCocoOptions(modes=("iid",), tasks=3)
    >>> sorted(find_units(options, ["5way-1shot-iid-00002", "5way-1shot-iid-00003", "5way-1shot-ood-00000", "1"]))
    ['5way-1shot-iid-00002']
    """
    shots, _, tasks, repeats = options.resolved()
    settings = _make_settings_once(options.model_dump_json(), type(options))
    found = {}
    for name in ids:
        if not (parts := _TASK_ID.fullmatch(name)):
            continue
        ways, shot, mode, index = int(parts[1]), int(parts[2]), parts[3], int(parts[4])
        unit = _make_unit(settings, mode, ways, shot, index, tasks)
        asked = ways in options.ways and shot in shots and mode in options.modes and index < tasks * repeats
        if asked and unit.id == name:
            found[name] = unit
    return found


def _make_unit(settings: TaskSettings, mode: str, ways: int, shots: int, index: int, tasks: int) -> Unit:
    """The task of that number; `tasks` of them are one repeat."""
    task = TaskUnit(settings, mode, ways, shots, index, index // tasks)
    return Unit(f"{ways}way-{shots}shot-{mode}-{index:05d}", task, group=f"{ways}-{shots}-{mode}")


def _make_settings(options: MetaCocoOptions) -> TaskSettings:
    return TaskSettings(
        make_source(options),
        options.modes,
        options.resolved()[1],
        options.blind_supports,
        options.support_contexts,
        options.encoder_name(),
        options.encoder_args,
        options.encoder_given,
        options.keep_predictions,
        options.preprocessing,
    )


@lru_cache(maxsize=4)
def _make_settings_once(dumped: str, kind: type[MetaCocoOptions]) -> TaskSettings:
    """The settings of options as JSON: images are listed once, whatever number of tasks is looked up."""
    return _make_settings(kind.model_validate_json(dumped))


def list_sources(options: MetaCocoOptions) -> Mapping[str, Path | str]:
    """What the answers depend on besides learner and options: images, split file, encoder; paths or fingerprints.

    >>> sorted(list_sources(MetaCocoOptions()))
    ['encoder model', 'planted world']
    """
    given: dict[str, Path | str] = dict(options.data)
    if stored := find_source(options.data, LABEL_SOURCES):
        given = list_source_files(stored, options.data[stored], None)
    # A manifest's images lie anywhere, and a split rule may move classes: the loaded table is what counts.
    given["images" if given else "planted world"] = make_source(options).fingerprint
    if options.split_rule is not None and options.split_rule not in SPLIT_RULES:
        given["split_rule"] = Path(options.split_rule).expanduser()
    given["encoder model"] = _fingerprint_encoder(options)
    return given


def _fingerprint_encoder(options: MetaCocoOptions) -> str:
    """The fingerprint of the encoder; the default one is not built, since a learner on images does not need it.

    Its code names its weights by their hashes, so the fingerprint of the code is enough.
    """
    if options.encoder_given:
        return build_inner(options.encoder_name(), "encoder", options.encoder_args).whole_fingerprint()
    default = find(options.encoder_name())
    return hash_value([default.card.name, hash_sources(sources_of(cast("type", default.factory())))])


def make_source(options: MetaCocoOptions) -> ImageSource:
    """The images that the options select, checked, with their fingerprint."""
    kind = find_source(options.data, LABEL_SOURCES) or ROOT
    if options.data and set(options.data) != {kind}:
        remedy = (
            "give --data root=DIR (split/concept/context/image or concept/context/image) or a manifest, or one of "
            f"{', '.join(LABEL_SOURCES)}"
        )
        raise OptionError(f"--data {', '.join(sorted(options.data))}: MetaCoCo reads one dataset", remedy=remedy)
    if kind == ROOT and options.columns:
        raise OptionError("--columns without hf-dataset", remedy="leave it out: folders and manifests have no columns")
    source = ImageSource(
        str(options.data.get(kind, "")),
        options.split_rule,
        options.split,
        options.seed,
        options.test_contexts,
        options.train_contexts,
        options.scenes,
        kind=kind,
        columns=options.columns,
        given=find_object(options.data[OBJECT]) if kind == OBJECT else None,
    )
    if not source.path:
        return replace(source, fingerprint=_make_world(source).fingerprint())
    dataset = source.open()
    if options.skip_corrupt or options.near_duplicates != "keep":
        source = _decode_source(dataset, source, options)
        dataset = drop_images(dataset, {*source.corrupt, *source.similar})
    if options.skip_corrupt:
        # What has no content in other splits has no copy in this one.
        unreadable = find_unreadable([row.file or row.path for row in dataset.rows])
        dataset = drop_images(dataset, {dataset.rows[place].name for place in unreadable})
    source = replace(source, without=_find_images_in_two_splits(dataset, source))
    return replace(source, fingerprint=_load_dataset(dataset, source).fingerprint)


def _decode_source(dataset: ConceptContextDataset, source: ImageSource, options: MetaCocoOptions) -> ImageSource:
    """The source with its corrupt images and near-duplicates listed, or an error where the options refuse them."""
    tested = source.choose_split(dataset.splits)
    rows = dataset.rows if options.near_duplicates != "keep" else dataset.of_split(tested)
    decoded = decode_images([row.file or row.path for row in rows])
    if decoded.corrupt and not options.skip_corrupt:
        (place, why), *_ = decoded.corrupt.items()
        what = f"{len(decoded.corrupt)} of {len(rows)} images cannot be read; the first: {why}"
        raise DataError(what, file=rows[place].path, remedy="replace them, or leave them out by --skip-corrupt")
    # Corrupt images of other splits are of no concern here.
    corrupt = tuple(rows[place].name for place in decoded.corrupt if tested in (None, rows[place].split))
    source = replace(source, corrupt=corrupt)
    if options.near_duplicates == "keep":
        return source
    similar = find_leaks(rows, decoded, tested)
    if similar and options.near_duplicates == "refuse":
        what = f"{len(similar)} images show the same picture as others: {', '.join(similar[:EXAMPLES])}"
        shown = "`hardlook data inspect --decode` shows them; " if source.kind == ROOT else ""
        remedy = f"{shown}leave them out by --near-duplicates drop"
        raise DataError(what + (", ..." if len(similar) > EXAMPLES else ""), file=source.path, remedy=remedy)
    return replace(source, similar=similar)


def _find_images_in_two_splits(dataset: ConceptContextDataset, source: ImageSource) -> tuple[str, ...]:
    """Images of the tested split that another split has too, none for `all`; a class in two splits is an error."""
    tested = source.choose_split(dataset.splits)
    if tested is None or not dataset.splits:
        return ()
    shared = dataset.shared_concepts()
    if shared:
        named = "; ".join(f"{concept} ({', '.join(splits)})" for concept, splits in shared.items())
        what = f"classes of the splits must differ, and {len(shared)} are in several: {named}"
        remedy = "--split-rule size, seed or a CSV file splits by class; --split all takes every image as one split"
        raise DataError(what, file=dataset.source, remedy=remedy)
    across = {row.name for group in dataset.duplicates().across for row in group if row.split == tested}
    return tuple(sorted(across))


@lru_cache(maxsize=4)
def load_images(source: ImageSource) -> TaskImages:
    """The images of a source, listed once per process; a `DataError` where they changed since it was made."""
    if not source.path:
        world = _make_world(source)
        every = range(len(world))
        names = tuple(f"scene-{index:04d}" for index in every)
        table = build_image_table(list(map(world.concept, every)), list(map(world.context, every)), names)
        hashes = tuple(f"{world.fingerprint()}-{name}" for name in names)
        return TaskImages(table, (), hashes, names, world.fingerprint(), world)
    dataset = source.open()
    images = _load_dataset(drop_images(dataset, {*source.corrupt, *source.similar}), source)
    if source.fingerprint not in ("", images.fingerprint):
        what = "the images, their labels or their splits changed after the tasks were listed"
        raise DataError(what, file=source.path, remedy="give the command again, with another --out or --new")
    return images


@lru_cache(maxsize=16)
def find_eligible(settings: TaskSettings, ways: int, shots: int) -> Eligibility:
    """The classes that can take part in every mode; found once per process."""
    return find_eligible_classes(
        load_images(settings.source).table,
        settings.modes,
        ways,
        shots,
        settings.queries,
        blind_supports=settings.blind_supports,
        support_contexts=settings.support_contexts,
    )


def _load_dataset(dataset: ConceptContextDataset, source: ImageSource) -> TaskImages:
    split = source.choose_split(dataset.splits)
    rows = dataset.of_split(split)
    hash_of = {row.name: content for row, content in zip(rows, dataset.hashes(split), strict=True)}
    # Contexts of training may be those of other splits alone.
    for asked, among in ((source.keep, rows), (source.drop, dataset.rows)):
        known = {row.context for row in among}
        if unknown := [context for context in asked if context not in known]:
            few = ", ".join(sorted(known)[:10])
            raise DataError(f"no context {unknown[0]!r} in the data", file=source.path, remedy=f"it has {few}")
    # An image of several contexts shows all of them: one of training is seen, whatever else it shows.
    seen = {row.name for row in rows if row.context in source.drop}
    dropped = [row for row in rows if row.name in seen or (source.keep and row.context not in source.keep)]
    excluded = {id(row) for row in dropped}
    kept = [row for row in rows if id(row) not in excluded and row.name not in source.without]
    if not kept:
        what = "no image is left in these contexts" + (" that no other split has" if source.without else "")
        raise DataError(what, file=source.path, remedy="choose other contexts, or another split")
    left_out = []
    names = {row.name for row in dropped} - {row.name for row in kept}
    if names:
        contexts = tuple(sorted({row.context for row in dropped}))
        left_out.append(LeftOut("images", len(names), "their contexts are not asked about", contexts))
    if source.without:
        why = "another split has the same content; `hardlook data inspect` lists all of them"
        left_out.append(LeftOut("images in two splits", len(source.without), why, source.without[:EXAMPLES]))
    for kind, groups in find_similar_names(kept).items():
        if groups:
            alike = tuple(name for group in groups for name in group)
            why = "they differ in case, `_`, `-` or spaces alone, and count as different"
            left_out.append(LeftOut(f"{kind} of similar names", len(alike), why, alike[:EXAMPLES], kept=True))
    # Folders and manifests can be inspected.
    in_files = source.kind == ROOT
    if source.similar:
        shown = "; `hardlook data inspect --decode` shows all of them" if in_files else ""
        why = f"another image shows the same picture{shown}"
        left_out.append(LeftOut("near-duplicate images", len(source.similar), why, source.similar[:EXAMPLES]))
    if source.corrupt:
        why = "they cannot be read" + ("; `hardlook data inspect --decode` says why" if in_files else "")
        left_out.append(LeftOut("corrupt images", len(source.corrupt), why, source.corrupt[:EXAMPLES]))
    contents = tuple(hash_of[row.name] for row in kept)
    stored = tuple(row.file for row in kept if row.file is not None)
    return TaskImages(
        build_image_table([row.concept for row in kept], [row.context for row in kept], contents),
        () if stored else tuple(row.path for row in kept),
        contents,
        tuple(row.name for row in kept),
        hash_value([[row.name, row.concept, row.context, row.split, hash_of[row.name]] for row in kept]),
        left_out=tuple(left_out),
        stored=stored,
    )


def _make_world(source: ImageSource) -> PlantedWorld:
    # One clear subject per scene: the question is which class it is, not where.
    return PlantedWorld(seed=source.seed, count=source.scenes, size=(96, 72), salient=True, distractors=0)


@lru_cache(maxsize=4096)
def _render_scene(world: PlantedWorld, index: int) -> Image:
    return world[index].image


@lru_cache(maxsize=512)
def _read_image(path: Path, content: str) -> Image:
    from hardlook.data.images import read_image

    image = read_image(path)
    image.flags.writeable = False
    return np.asarray(image)


@lru_cache(maxsize=512)
def _read_stored(file: Stored, content: str) -> Image:
    image = read_stored_image(file)
    image.flags.writeable = False
    return image
