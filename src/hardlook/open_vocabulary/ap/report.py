"""The report of open AP: the gain from similarity, per class and measure, with the confusions behind it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data import rle
from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Record
from hardlook.harness.rounding import format_fixed
from hardlook.harness.scorecard import Scorecard
from hardlook.harness.sections import DotChart, Picture, Section, Spot, Table, score_dot
from hardlook.models.roles import LabelMap
from hardlook.open_vocabulary.ap.evaluation import join_image_vocabularies, merge_classes
from hardlook.open_vocabulary.ap.image_precision import FlatImages, match_objects
from hardlook.open_vocabulary.ap.matches import ALL_CLASSES, match_records
from hardlook.open_vocabulary.ap.options import PROTOCOL
from hardlook.open_vocabulary.ap.scores import CLASS_QUANTITIES, GROUPS, KINDS, QUANTITIES
from hardlook.open_vocabulary.ap.units import InstanceImage, read_unit
from hardlook.open_vocabulary.free_words import build_words_section, merge_named_words, read_merged
from hardlook.open_vocabulary.record_columns import blank_image, read_label_names
from hardlook.open_vocabulary.sections import (
    add_warnings,
    build_class_chart,
    build_confusions_section,
    build_measures_section,
    describe_misnamed,
    find_scores,
    find_scores_by_class,
    format_count_verb,
    format_gain,
)

if TYPE_CHECKING:
    import polars as pl

NOT_CHARTED = ("ar1", "ar10", "ars", "arm", "arl")


def build_sections(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections of the report that have content."""
    sections = [
        _build_headline(scorecard),
        _build_classes(scorecard),
        build_measures_section(scorecard, "open-ap", "open AP", ("dagger", "dagger-ap")),
        _build_confusions(
            merge_named_words(join_image_vocabularies(records), read_merged(scorecard), merge_classes), scorecard
        ),
        build_words_section(records, scorecard),
        _build_slices(scorecard),
    ]
    return [section for section in sections if section is not None]


def draw_unit(unit: Unit, record: Record) -> Sequence[Picture]:
    """The image, its objects and its best detections with their scores: masks, or outlines where boxes are scored."""
    content: InstanceImage = read_unit(unit, pixels=True).payload
    objects = content.objects
    assert objects is not None
    names, size = record["names"].split("\n"), (objects.height, objects.width)
    image = content.image if content.image is not None else blank_image(*size)
    if content.iou == "segm":
        regions = list(objects.masks())
    else:
        regions = [draw_box_outline(box, *size) for box in objects.boxes.tolist()]
    truth = paint_regions(zip(record["object_labels"], regions, strict=True), size)
    pictures = [Picture("image", image)] if content.image is not None else []
    pictures.append(Picture("truth", image, label_map=truth, label_names=names))
    if record["detections"]:
        kept = json.loads(record["detections"])
        # The best is painted last, over the others.
        painted = paint_regions(((label, _decode_region(region, size)) for label, _, region in reversed(kept)), size)
        scored = [
            " ".join([name, *(f"{format_fixed(score, 2)}" for label, score, _ in kept if label == row)])
            for row, name in enumerate(names)
        ]
        pictures.append(Picture("detections", image, label_map=painted, label_names=scored))
    return pictures


def _decode_region(region: str | list[float], size: tuple[int, int]) -> NDArray[np.bool_]:
    if isinstance(region, str):
        return rle.decode({"size": list(size), "counts": region})
    return draw_box_outline(region, *size)


def draw_box_outline(box: Sequence[float], height: int, width: int) -> NDArray[np.bool_]:
    """The outline (height, width) of a box, thick enough to be seen in a thumbnail.

    >>> draw_box_outline([1, 1, 6, 6], 8, 8).astype(int)[:4]
    array([[0, 0, 0, 0, 0, 0, 0, 0],
           [0, 1, 1, 1, 1, 1, 1, 0],
           [0, 1, 1, 1, 1, 1, 1, 0],
           [0, 1, 1, 0, 0, 1, 1, 0]])
    """
    thickness = max(2, round(max(height, width) / 128))
    # Farther outside than the outline is thick nothing can be seen, and OpenCV has no larger numbers.
    x0, x1 = (_clip(x, width, thickness) for x in (box[0], box[0] + box[2]))
    y0, y1 = (_clip(y, height, thickness) for y in (box[1], box[1] + box[3]))
    drawn = np.zeros((height, width), np.uint8)
    cv2.rectangle(drawn, (x0, y0), (x1 - 1, y1 - 1), 1, -1)
    if x1 - x0 > 2 * thickness and y1 - y0 > 2 * thickness:
        cv2.rectangle(drawn, (x0 + thickness, y0 + thickness), (x1 - thickness - 1, y1 - thickness - 1), 0, -1)
    return drawn.astype(bool)


def _clip(place: float, side: int, margin: int) -> int:
    return round(min(max(place, -1 - margin), side + 1 + margin))


def paint_regions(regions: Iterable[tuple[int, NDArray[np.bool_]]], size: tuple[int, int]) -> LabelMap:
    """A label map (height, width) of labelled regions, -1 elsewhere; a rim keeps neighbours of one label apart.

    >>> left, right = np.zeros((1, 4), bool), np.zeros((1, 4), bool)
    >>> left[:, :2], right[:, 2:] = True, True
    >>> paint_regions([(5, left), (5, right)], (1, 4))
    array([[ 5, -1,  5,  5]], dtype=int32)
    """
    drawn = np.full(size, -1, np.int32)
    cross = np.ones((3, 3), np.uint8)
    for label, region in regions:
        drawn[cv2.dilate(region.astype(np.uint8), cross).astype(bool)] = -1
        drawn[region] = label
    return drawn


def describe_unit(record: Record) -> str:
    r"""How many objects of one image were found under their name, and its most frequent confusion.

    >>> record = {"names": "cat\ndog", "object_labels": [0, 1, 1], "object_crowd": [0, 0, 0], "labels": [0, 0],
    ...           "scores": [0.9, 0.8], "pairs": [0, 4], "overlaps": [0.9, 0.9]}
    >>> describe_unit(record)
    '1 of 3 objects is found by name (IoU .5), 1 by another (dog called cat), 1 is missed.'
    """
    names, federated = str(record["names"]).split("\n"), record.get("protocol") == "lvis"
    images = FlatImages.from_records([record], federated=federated)
    found = match_objects(images)
    hits = np.flatnonzero(found >= 0)
    pairs = list(zip(images.object_labels[found[hits]].tolist(), images.labels[hits].tolist(), strict=True))
    objects = int((~images.crowd).sum())
    if not objects:
        return f"There is no object to find; {format_count_verb(len(found))} detected."
    named = sum(true == called for true, called in pairs)
    wrong = Counter(f"{names[true]} called {names[called]}" for true, called in pairs if true != called)
    parts = [f"{named} of {objects} objects {'is' if named == 1 else 'are'} found by name (IoU .5)"]
    parts += describe_misnamed(wrong)
    missed = objects - len(pairs)
    parts += [f"{format_count_verb(missed)} missed"] if missed else []
    return f"{', '.join(parts)}."


def _build_headline(scorecard: Scorecard) -> Section:
    title = "Gain from similarity"
    if np.isnan(scorecard.get("open-gain").value):
        return Section(title, "There is no object to find, so there is no AP.")
    chart = DotChart(
        "Vanilla, dagger and open",
        "Vanilla matches within classes. Dagger pools the classes, so that a misnamed detection takes its object away; "
        "open does the same and gives credit by the similarity of the two labels.",
        [
            score_dot(score, kind, quantity)
            for name, quantity in _list_quantities(scorecard).items()
            if name not in NOT_CHARTED
            for prefix, (kind, _) in KINDS.items()
            if not np.isnan((score := scorecard.get(prefix + name)).value)
        ],
        axis="score",
    )
    dagger, opened, vanilla = (scorecard.get(name).value for name in ("dagger-ap", "open-ap", "ap"))
    text = (
        f"Similarity adds {format_gain(scorecard)} of AP: from {format_fixed(dagger, 3)} (dagger) to "
        f"{format_fixed(opened, 3)} (open). "
        f"Vanilla AP is {format_fixed(vanilla, 3)}; its difference to dagger is the effect of ranking all classes "
        "together."
    )
    if _is_federated(scorecard):
        text += (
            " The data are LVIS's, and all scores follow its rules: vanilla AP is LVIS AP. A detection counts where "
            "its class has objects in the image or is known to be absent; false positives of classes that are not "
            "annotated exhaustively do not count."
        )
    return Section(title, add_warnings(text, scorecard), (chart, _build_score_table(scorecard)))


def _is_federated(scorecard: Scorecard) -> bool:
    return any((reading.name, reading.value) == (PROTOCOL, "lvis") for reading in scorecard.readings)


def _list_quantities(scorecard: Scorecard) -> dict[str, str]:
    """Name and title of the scores over all classes that the scorecard has, without the kind."""
    groups = {name: title for name, title, _ in GROUPS.values()}
    known = {score.name for score in scorecard.scores}
    quantities = {name: title for name, (title, _) in QUANTITIES.items()} | groups
    return {name: title for name, title in quantities.items() if name in known}


def _build_score_table(scorecard: Scorecard) -> Table:
    rows: list[tuple[str | float, ...]] = [
        (title, *(scorecard.get(prefix + name).value for prefix in KINDS))
        for name, title in _list_quantities(scorecard).items()
    ]
    return Table(
        "AP and AR",
        "AR1 and AR10: the best 1 and 10 detections of each image and class for vanilla, of each image for dagger and "
        "open (LVIS: of each image for all three).",
        ("figure", *(kind for kind, _ in KINDS.values())),
        rows,
    )


def _build_classes(scorecard: Scorecard) -> Section | None:
    vanilla, hard, soft = (find_scores_by_class(scorecard, f"{prefix}ap") for prefix in KINDS)
    if not hard:
        return None
    chart = build_class_chart("AP", "dagger", [Spot(hard[name].value, soft[name].value, name) for name in hard])
    gains = {name: soft[name].value - hard[name].value for name in hard}
    table = Table(
        "Each class",
        "Images: those that have the class among their objects or detections.",
        ("class", "vanilla AP", "dagger AP", "open AP", "given back", "images"),
        [
            (name, vanilla[name].value, hard[name].value, soft[name].value, gains[name], hard[name].n)
            for name in sorted(gains, key=lambda name: -gains[name])
        ],
    )
    columns = {
        f"{kind} {figure}": find_scores_by_class(scorecard, prefix + name)
        for name, figure in CLASS_QUANTITIES.items()
        if name != "ap"
        for prefix, (kind, _) in KINDS.items()
    }
    further = Table(
        "AP50 and AR of each class",
        "",
        ("class", *columns),
        [
            (name, *(scores[name].value for scores in columns.values()))
            for name in hard
            if all(name in scores for scores in columns.values())
        ],
    )
    return Section("Classes", "", (chart, table, further))


def _build_confusions(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    if not find_scores(scorecard, "confused-objects", "true", "called"):
        return None
    captions = (
        "Objects that were found (IoU .5) under another label, and the part of them that similarity does not excuse.",
        "An image with the most objects of each confusion.",
    )
    # The examples come from matching with the default number of detections.
    matches = match_records(records, federated=_is_federated(scorecard))
    table, names = matches.tables()[ALL_CLASSES], read_label_names(records)

    def count_by_image(true: str, called: str) -> NDArray[np.int64]:
        confused = (table.pooled[0] == names.index(true)) & (table.labels == names.index(called))
        return np.bincount(table.image[confused], minlength=len(records))

    return build_confusions_section(scorecard, "confused-objects", captions, records["unit"].to_list(), count_by_image)


def _build_slices(scorecard: Scorecard) -> Section | None:
    charts = []
    kinds = {f"{prefix}ap": kind for prefix, (kind, _) in KINDS.items()}
    for keys, title in ((("context",), "Contexts"), (("classes", "setting"), "Sets of classes")):
        rows = [
            score_dot(score, kinds[score.name], ", ".join(score.slice[key] for key in keys))
            for score in sorted(scorecard.scores, key=lambda score: [score.slice.get(key, "") for key in keys])
            if score.name in kinds and set(score.slice) == set(keys) and not np.isnan(score.value)
        ]
        if rows:
            charts.append(DotChart(title, "AP, vanilla, dagger and open.", rows, axis="AP"))
    text = (
        "Generalised: all classes take part in matching, and the values of the set's classes are averaged. "
        "Constrained: objects and detections of other classes are left out before matching."
        if any("setting" in score.slice for score in scorecard.scores)
        else ""
    )
    return Section("Slices", text, tuple(charts)) if charts else None
