"""Where open PQ finds true and predicted segments.

Three ways in: the planted world (no data given), `--data panoptic=JSON --data segments=DIR --data images=DIR` for a
model, and stored predictions by `--gt JSON --gt-masks DIR --pred JSON --pred-masks DIR`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import numpy as np

from hardlook.benchmarks.open_pq.annotations import PanopticAnnotations, SegmentTable, read_annotations, refuse_unknown
from hardlook.benchmarks.open_pq.options import OpenPqOptions
from hardlook.benchmarks.open_pq.words import Words, check_senses, join_words, words_of, words_of_set
from hardlook.contract.benchmark import Unit
from hardlook.data.misfits import Misfits
from hardlook.errors import DataError, OptionError
from hardlook.metrics.panoptic_matching import Segments
from hardlook.models.roles import Image, LabelMap
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import LABELS

WORLD_WORDS = Words(tuple(label.name for label in LABELS), tuple(label.thing for label in LABELS))


@dataclass(frozen=True)
class Side:
    """One side of an image, true or predicted: the words, the table of segments and the PNG.

    Classes of `segments` are indices into `words`; `map` (H, W) int32 holds segment ids, 0 = void, once it is read.
    """

    words: Words
    segments: Segments = field(repr=False)
    png: Path | None = None
    map: LabelMap | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SegmentedImage:
    """One unit: its two sides (no predicted one for a model), and after `prepare` the image for a model.

    `results` is the JSON of stored predictions; `size` is (width, height) as the truth's JSON says.
    """

    truth: Side
    predicted: Side | None = None
    results: Path | None = None
    size: tuple[int, int] | None = None
    picture: Path | None = None
    context: str = ""
    scene: tuple[PlantedWorld, int] | None = None
    keep_prediction: bool = True
    image: Image | None = field(default=None, repr=False)

    @property
    def words(self) -> Words:
        """The words of both sides, as far as they are known before a model answers."""
        return join_words(self.truth.words, self.predicted.words)[0] if self.predicted else self.truth.words


def sources_of(options: OpenPqOptions) -> Mapping[str, Path | str]:
    """What the units come from, by name."""
    given: dict[str, Path | str] = dict(options.data)
    for name, path in (("gt", options.gt), ("pred", options.pred)):
        if path is not None:
            given[name] = path
            given[f"{name}_masks"] = masks_of(options, name)
    if options.pred_labels and Path(options.pred_labels).is_file():
        given["pred_labels"] = Path(options.pred_labels)
    return given or {"planted world": _world(options).fingerprint()}


def masks_of(options: OpenPqOptions, side: str) -> Path:
    """The folder of PNGs of `gt` or `pred`: as given, or named as the JSON is."""
    given: Path | None = getattr(options, f"{side}_masks")
    if given is not None:
        return given
    json_file: Path = getattr(options, side)
    beside = json_file.with_suffix("")
    if not beside.is_dir():
        raise OptionError(
            f"--{side} {json_file} is only half of a panoptic format", remedy=f"give its PNGs by --{side}-masks DIR"
        )
    return beside


def list_images(options: OpenPqOptions) -> Sequence[Unit]:
    """All units; ids are the names of the true PNGs, or `scene-0007` for the planted world."""
    if options.gt or options.pred:
        if not (options.gt and options.pred):
            raise OptionError("--gt and --pred go together", remedy="give both JSON files and their folders of PNGs")
        return _stored(options, options.gt, options.pred)
    if not options.data:
        return _planted(options)
    if set(options.data) == {"panoptic", "segments", "images"}:
        data = options.data
        return list(_truth(options, data["panoptic"], data["segments"], data["images"]).units.values())
    raise OptionError(
        f"--data {', '.join(sorted(options.data))}: nobody knows how to read this",
        remedy="give --data panoptic=JSON --data segments=DIR --data images=DIR, or --gt JSON --pred JSON",
    )


def _world(options: OpenPqOptions) -> PlantedWorld:
    return PlantedWorld(seed=options.seed, count=options.scenes)


def _planted(options: OpenPqOptions) -> list[Unit]:
    world = _world(options)
    truth = Side(WORLD_WORDS, Segments((), ()))
    shared = SegmentedImage(truth, keep_prediction=options.keep_predictions)
    return [
        Unit(f"scene-{index:04d}", replace(shared, scene=(world, index), context=world.context(index)))
        for index in range(len(world))
    ]


@dataclass(frozen=True)
class Truth:
    """The true side of a dataset: units by image id, the words, and where each category id is in them."""

    units: Mapping[str, Unit]
    words: Words
    places: Mapping[int, int]


def _truth(options: OpenPqOptions, path: Path, masks: Path, images: Path | None) -> Truth:
    content = read_annotations(path)
    if not content.categories:
        raise DataError("the truth lists no categories", file=path, remedy="add their id, name and isthing")
    words = words_of(content.categories.values(), path)
    if options.labels:
        check_senses(words, options.labels, path)
    places = {category: place for place, category in enumerate(content.categories)}
    refuse_unknown(content.tables, places, path, "list every category")
    units = {
        table.image: Unit(
            PurePosixPath(table.png or table.image).with_suffix("").as_posix(),
            SegmentedImage(
                _side(words, table, places, masks, f"{table.image}.png"),
                size=table.size,
                picture=images / (table.picture or f"{table.image}.jpg") if images else None,
                keep_prediction=options.keep_predictions,
            ),
        )
        for table in content.tables
    }
    return Truth(units, words, places)


def _stored(options: OpenPqOptions, gt: Path, pred: Path) -> list[Unit]:
    truth = _truth(options, gt, masks_of(options, "gt"), options.data.get("images"))
    content = read_annotations(pred)
    words, places = _spoken(content, options.pred_labels, pred, truth)
    refuse_unknown(content.tables, places, pred, "list it among the file's categories, or choose --pred-labels")
    misfits = Misfits()
    for table in content.tables:
        if table.image not in truth.units:
            misfits.add("predicted image ids", table.image)
    misfits.refuse("predictions without truth", file=pred, remedy="predictions pair with truth by image_id")
    folder, tables = masks_of(options, "pred"), {table.image: table for table in content.tables}
    found = []
    for image, unit in truth.units.items():
        payload = replace(unit.payload, results=pred)
        if image in tables:
            side = _side(words, tables[image], places, folder, payload.truth.png.name)
            payload = replace(payload, predicted=side)
        found.append(replace(unit, payload=payload))
    return found


def _spoken(
    content: PanopticAnnotations, labels: str | None, path: Path, truth: Truth
) -> tuple[Words, Mapping[int, int]]:
    """The words of predictions and where category ids are in them: the file's own, else --pred-labels, else truth's."""
    if content.categories:
        return words_of(content.categories.values(), path), {c: place for place, c in enumerate(content.categories)}
    if labels:
        words, ids = words_of_set(labels)
        return words, {category: place for place, category in enumerate(ids)}
    return truth.words, truth.places


def _side(words: Words, table: SegmentTable, places: Mapping[int, int], folder: Path, png: str) -> Side:
    classes = np.array([places[category] for category in table.categories], np.int64)
    segments = Segments(np.array(table.ids, np.int64), classes, np.array(table.crowd, np.bool_))
    return Side(words, segments, folder / (table.png or png))
