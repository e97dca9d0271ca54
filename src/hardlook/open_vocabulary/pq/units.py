"""Units of open PQ: images with their true segments and, where they are stored, their predicted ones.

Four sources: the planted world (no data given), a published dataset (`--data coco-panoptic=DIR`, `ade20k-panoptic`)
with a model or `--pred`, `--data panoptic=JSON --data segments=DIR --data images=DIR` for a model, and stored
predictions by `--gt JSON --gt-masks DIR --pred JSON --pred-masks DIR`. `--pred` may be detectron2's output folder, with
predictions.json and the PNGs. For free words, each segment of the JSON has a `phrase` and `isthing`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType

import numpy as np

from hardlook.data.coco_panoptic import decode_ids
from hardlook.data.detectron2 import PANOPTIC, find_output
from hardlook.data.images import read_image
from hardlook.data.presets import PanopticFiles, list_panoptic_presets, open_panoptic_preset
from hardlook.data.problems import ProblemList
from hardlook.errors import DataError, OptionError
from hardlook.harness.benchmark import Unit
from hardlook.metrics.panoptic import Segments
from hardlook.models.roles import Image, LabelMap
from hardlook.open_vocabulary.free_words import check_truth_names
from hardlook.open_vocabulary.label_similarity import check_similarity, find_label_senses
from hardlook.open_vocabulary.options import free_senses
from hardlook.open_vocabulary.pq.annotations import (
    WORLD_VOCABULARY,
    PanopticVocabulary,
    SegmentTable,
    check_kinds,
    join_vocabularies,
    read_annotations,
    read_phrased_annotations,
)
from hardlook.open_vocabulary.pq.options import OpenPqOptions
from hardlook.open_vocabulary.units import check_size, find_scenes, list_given_sources, list_scenes
from hardlook.reading import reading
from hardlook.similarity.free_words.phrases import SenseChoice
from hardlook.similarity.label_sets import load_label_set
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import VOID


@dataclass(frozen=True)
class ImageSegments:
    """The true or the predicted segments of an image: vocabulary, table of segments and PNG.

    Classes of `segments` are indices into `vocabulary`; `map` (H, W) int32 holds segment ids, 0 = void, once it is
    read.
    """

    vocabulary: PanopticVocabulary
    segments: Segments = field(repr=False)
    png: Path | None = None
    map: LabelMap | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SegmentedImage:
    """A unit's payload; `results` is the JSON of stored predictions, `size` the truth's (width, height).

    `pred_senses` says how the senses of free words are chosen, None where predictions have labels; `label_senses` has
    the place of the label of each synset, for free words on crowds of their class.
    """

    truth: ImageSegments
    predicted: ImageSegments | None = None
    results: Path | None = None
    size: tuple[int, int] | None = None
    picture: Path | None = None
    context: str = ""
    scene: tuple[PlantedWorld, int] | None = None
    keep_prediction: bool = True
    pred_senses: SenseChoice | None = None
    label_senses: Mapping[int, int] = field(default_factory=dict, repr=False)
    image: Image | None = field(default=None, repr=False)


def list_sources(options: OpenPqOptions) -> Mapping[str, Path | str]:
    """What the units come from, by name."""
    masks = {f"{side}_masks": _find_masks(options, side) for side in ("gt", "pred") if getattr(options, side)}
    files = {"pred": find_output(options.pred, PANOPTIC)} if options.pred else {}
    sources = {**list_given_sources(options, pred_labels=options.pred_labels), **files, **masks}
    if preset := _open_preset(options):
        sources.pop(next(iter(options.data)))
        # Predictions that are stored do not depend on the images.
        sources.update({name: path for name, path in preset.sources.items() if path != preset.images or not files})
    return sources


def list_units(options: OpenPqOptions) -> Sequence[Unit]:
    """One unit per image, named as the true PNG or `scene-0007`; a label without a sense is an error at once."""
    units = _list_images(options)
    if units:
        content: SegmentedImage = units[0].payload
        vocabulary = content.truth.vocabulary
        free = options.pred_words == "free"
        if content.predicted and not free:
            vocabulary, _ = join_vocabularies(vocabulary, content.predicted.vocabulary)
        given = options.gt or options.data.get("panoptic") or next(iter(options.data.values()), None)
        with reading(given, "the labels cannot be used"):
            check_similarity(vocabulary.names, options, complete=options.pred is not None and not free)
            if free:
                check_truth_names(vocabulary.names)
                senses = find_label_senses(vocabulary.names, options)
                return [replace(unit, payload=replace(unit.payload, label_senses=senses)) for unit in units]
    return units


def prepare_unit(unit: Unit) -> Unit:
    """Read the PNGs, and the image where a model needs it."""
    return read_unit(unit, pixels=unit.payload.results is None)


def read_unit(unit: Unit, *, pixels: bool) -> Unit:
    """The unit with its maps and, with `pixels` and where there is one, its image; sizes must be equal."""
    content: SegmentedImage = unit.payload
    if content.scene is not None:
        return replace(unit, payload=_render_scene(content))
    if content.results is not None and content.predicted is None:
        remedy = "add its row to the annotations; a model that found nothing has a row without segments"
        raise DataError("there is no prediction for this image", file=content.results, unit=unit.id, remedy=remedy)
    truth, predicted = _read_map(content.truth, unit.id), content.predicted and _read_map(content.predicted, unit.id)
    image = read_image(content.picture) if pixels and content.picture else None
    assert truth.map is not None
    size, one_release = truth.map.shape, "take images, PNGs and JSON from one release"
    if content.size:
        stated = content.size[::-1]
        check_size("PNG", truth.map, "the JSON says", stated, file=truth.png, unit=unit.id, remedy=one_release)
    check_size("image", image, "the truth is", size, file=content.picture, unit=unit.id, remedy=one_release)
    if predicted:
        remedy = "resize predictions by nearest neighbour to their truth, outside hardlook"
        check_size("prediction", predicted.map, "the truth is", size, file=predicted.png, unit=unit.id, remedy=remedy)
    return replace(unit, payload=replace(content, truth=truth, predicted=predicted, image=image))


def list_table_errors(segment_map: LabelMap, segments: Segments) -> list[str]:
    """What does not fit between a map of segment ids and its table; empty when all fits."""
    drawn, listed = np.setdiff1d(segment_map, 0), np.asarray(segments.ids)
    kinds = {"drawn but not listed": np.setdiff1d(drawn, listed), "listed but not drawn": np.setdiff1d(listed, drawn)}
    return [f"segments {', '.join(map(str, ids[:5]))} are {what}" for what, ids in kinds.items() if len(ids)]


def _read_map(segments: ImageSegments, unit: str) -> ImageSegments:
    assert segments.png is not None
    try:
        return replace(segments, map=decode_ids(read_image(segments.png)))
    except DataError as error:
        raise error.at(unit=unit) from None


def _render_scene(content: SegmentedImage) -> SegmentedImage:
    assert content.scene is not None
    world, index = content.scene
    rendered = world[index]
    ids = rendered.classes.astype(np.int32) * 4 + rendered.instances
    ids[rendered.classes == VOID] = 0
    listed = np.setdiff1d(ids, 0)
    truth = replace(content.truth, segments=Segments(listed, listed // 4 - 1), map=ids)
    return replace(content, truth=truth, image=rendered.image)


def find_units(options: OpenPqOptions, ids: Collection[str]) -> Mapping[str, Unit] | None:
    """The units with these ids, where they are scenes of the planted world; None for other data."""
    return None if options.data or options.gt or options.pred else find_scenes(options, _describe_scenes(options), ids)


def _describe_scenes(options: OpenPqOptions) -> SegmentedImage:
    """What all scenes of the planted world have in common."""
    truth = ImageSegments(WORLD_VOCABULARY, Segments((), ()))
    return SegmentedImage(truth, keep_prediction=options.keep_predictions, pred_senses=free_senses(options))


def _find_masks(options: OpenPqOptions, side: str) -> Path:
    """The folder of PNGs of `gt` or `pred`: as given, or named as the JSON is, or detectron2's with both."""
    given: Path | None = getattr(options, f"{side}_masks")
    if given is not None:
        return given
    json_file: Path = getattr(options, side)
    folder = json_file if json_file.is_dir() else json_file.with_suffix("")
    if json_file.is_dir() and not any(json_file.glob("*.png")):
        what = f"--{side} {json_file} has no PNG"
        raise OptionError(what, remedy=f"give its PNGs by --{side}-masks DIR; detectron2 deletes those it made itself")
    if not folder.is_dir():
        what = f"--{side} {json_file} is only half of a panoptic format"
        raise OptionError(what, remedy=f"give its PNGs by --{side}-masks DIR")
    return folder


def _open_preset(options: OpenPqOptions) -> PanopticFiles | None:
    """The files of a published dataset such as `--data coco-panoptic=DIR`; None where the options name none."""
    named = [name for name in options.data if name in list_panoptic_presets()]
    if named and (len(options.data) > 1 or options.gt or options.gt_masks):
        remedy = "leave out --gt and other --data; stored predictions of its images go beside it as --pred"
        raise OptionError(f"--data {named[0]} has its own images and segments", remedy=remedy)
    if not named:
        return None
    return open_panoptic_preset(named[0], options.data[named[0]], options.split, needs_images=options.pred is None)


def _list_images(options: OpenPqOptions) -> list[Unit]:
    data = options.data
    if preset := _open_preset(options):
        truth = _read_truth(options, preset.annotations, preset.segments, preset.images, preset.spellings)
        if options.pred is None:
            return list(truth[0].values())
        return _list_stored(options, truth, find_output(options.pred, PANOPTIC), preset.spellings)
    if options.gt or options.pred:
        if not (options.gt and options.pred):
            remedy = "give both JSON files and their folders of PNGs"
            raise OptionError("--gt and --pred go together", remedy=remedy)
        truth = _read_truth(options, options.gt, _find_masks(options, "gt"), data.get("images"))
        return _list_stored(options, truth, find_output(options.pred, PANOPTIC))
    if not data:
        return list_scenes(options, _describe_scenes(options))
    if set(data) == {"panoptic", "segments", "images"}:
        units, _, _ = _read_truth(options, data["panoptic"], data["segments"], data["images"])
        return list(units.values())
    remedy = (
        "give --data panoptic=JSON --data segments=DIR --data images=DIR, or --gt JSON --pred JSON, or a published "
        f"dataset as --data NAME=DIR: {', '.join(list_panoptic_presets())}"
    )
    raise OptionError(f"--data {', '.join(sorted(data))}: no reader for this data", remedy=remedy)


_Truth = tuple[dict[str, Unit], PanopticVocabulary, dict[int, int]]


def _read_truth(
    options: OpenPqOptions,
    path: Path,
    masks: Path,
    images: Path | None,
    spellings: Mapping[str, str] = MappingProxyType({}),
) -> _Truth:
    """Units by image id, the vocabulary, and where each category id is in it."""
    content = read_annotations(path)
    if not content.categories:
        raise DataError("the truth lists no categories", file=path, remedy="add their id, name and isthing")
    vocabulary = content.build_vocabulary(path, spellings)
    if options.labels:
        check_kinds(vocabulary, options.labels, path)
    places = _number(content.categories)
    content.check_categories(places, path, "list every category")
    units = {
        table.image_id: Unit(
            PurePosixPath(table.png_file or table.image_id).with_suffix("").as_posix(),
            SegmentedImage(
                _make_segments(vocabulary, table, places, masks / (table.png_file or f"{table.image_id}.png")),
                size=table.size,
                picture=images / (table.image_file or f"{table.image_id}.jpg") if images else None,
                keep_prediction=options.keep_predictions,
                pred_senses=free_senses(options),
            ),
        )
        for table in content.tables
    }
    return units, vocabulary, places


def _list_stored(
    options: OpenPqOptions, truth: _Truth, pred: Path, spellings: Mapping[str, str] = MappingProxyType({})
) -> list[Unit]:
    true_units, vocabulary, places = truth
    if options.pred_words == "free":
        content, vocabulary = read_phrased_annotations(pred)
        places = _number(range(len(vocabulary.names)))
    else:
        content = read_annotations(pred)
    if content.categories:
        vocabulary, places = content.build_vocabulary(pred, spellings), _number(content.categories)
    elif options.pred_labels:
        labels = load_label_set(options.pred_labels)
        vocabulary = PanopticVocabulary(labels.names, tuple(labels.things.tolist()))
        places = _number(labels.category_ids.tolist())
    content.check_categories(places, pred, "list it among the file's categories, or choose --pred-labels")
    problems = ProblemList()
    for table in content.tables:
        if table.image_id not in true_units:
            problems.add("predicted image ids", table.image_id)
    problems.raise_if_any("predictions without truth", file=pred, remedy="predictions pair with truth by image_id")
    folder, tables = _find_masks(options, "pred"), {table.image_id: table for table in content.tables}
    units = []
    for image, unit in true_units.items():
        payload = replace(unit.payload, results=pred)
        if image in tables:
            png = folder / (tables[image].png_file or payload.truth.png.name)
            payload = replace(payload, predicted=_make_segments(vocabulary, tables[image], places, png))
        units.append(replace(unit, payload=payload))
    return units


def _number(categories: Iterable[int]) -> dict[int, int]:
    return {category: place for place, category in enumerate(categories)}


def _make_segments(
    vocabulary: PanopticVocabulary, table: SegmentTable, places: Mapping[int, int], png: Path
) -> ImageSegments:
    classes = np.array([places[category] for category in table.category_ids], np.int64)
    segments = Segments(np.array(table.segment_ids, np.int64), classes, np.array(table.is_crowd, np.bool_))
    return ImageSegments(vocabulary, segments, png)
