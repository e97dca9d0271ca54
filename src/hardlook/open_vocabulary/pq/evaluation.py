"""Records of panoptic segments: which true segment matched which predicted one, as integers.

All scores come from these: vanilla and open, of any subset of images, under any similarity of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.metrics.panoptic import NO_PARTNER, SegmentMatches, Segments, match_segments
from hardlook.models.answer_checks import check_answers, has_free_words, list_segment_ids
from hardlook.models.roles import LabelMap
from hardlook.open_vocabulary.free_words import (
    check_words,
    count_truth,
    flatten_tables,
    is_countable,
    join_image_names,
    name_phrases,
)
from hardlook.open_vocabulary.label_similarity import place_by_sense
from hardlook.open_vocabulary.pq.annotations import PanopticVocabulary, join_vocabularies
from hardlook.open_vocabulary.pq.units import ImageSegments, SegmentedImage, list_table_errors
from hardlook.open_vocabulary.record_columns import encode_label_map, flatten_column, read_label_names, relabel_column
from hardlook.open_vocabulary.units import require_stored
from hardlook.open_vocabulary.vocabulary import join_run_labels

if TYPE_CHECKING:
    import polars as pl

# Pixels of an image's longer side for one pixel of seam: what a report's small picture can still show.
_PIXELS_PER_SEAM = 256

SCHEMA = RecordSchema(
    (
        Column("context", "text", "where the scene takes place; empty where it is not known", "slice"),
        Column("truth", "text", "the file of the true segments, or the scene of the planted world"),
        Column("names", "text", "the labels, separated by line breaks, those of the truth first"),
        Column("things", "ints", "for each label 1 if it is a thing, 0 if it is stuff"),
        Column("true", "ints", "true label of each matched pair, missed or spare segment; -1 for a spare one"),
        Column("called", "ints", "predicted label of each; -1 for a missed segment"),
        Column("intersection", "ints", "pixels that a matched pair shares; 0 without a partner"),
        Column("union", "ints", "pixels of either, void left out; 0 without a partner"),
        Column(
            "excused", "ints", "1: on void or on its class's last crowd, for the most part; 2: only on all its crowds"
        ),
        Column("phrases", "text", "free words: phrase, class and rule, tabs between, line by line", default=""),
        Column("prediction", "bytes", "the predicted labels as PNG, seams of segments left blank, or empty", "picture"),
    )
)


def evaluate_units(units: Sequence[Unit], model: Any) -> list[Record]:
    """Segment the images as one batch, then match segments, whatever their labels."""
    return [make_record(unit, segments) for unit, segments in zip(units, predict_segments(units, model), strict=True)]


def predict_segments(units: Sequence[Unit], model: Any) -> list[ImageSegments]:
    """The predicted or stored segments of each unit."""
    if model is not None:
        check_words(units, model)
        images, ids = [unit.payload.image for unit in units], [unit.id for unit in units]
        answers = check_answers("panoptic-segmenter", model, model.segment_panoptic(images), images, ids)
        if has_free_words(model):
            return [
                _to_segments(found.answer, PanopticVocabulary(tuple(found.phrases), tuple(map(bool, found.things))))
                for found in answers
            ]
        vocabulary = PanopticVocabulary(tuple(model.labels), tuple(bool(thing) for thing in model.things))
        return [_to_segments(answer, vocabulary) for answer in answers]
    return [require_stored(unit.payload.predicted, unit) for unit in units]


def _to_segments(answer: Any, vocabulary: PanopticVocabulary) -> ImageSegments:
    segment_map = np.asarray(answer.map, np.int32)
    # A segment with a label that is not drawn has no effect.
    drawn, labels = list_segment_ids(segment_map), {int(one): int(label) for one, label in answer.labels.items()}
    classes = np.array([labels[one] for one in drawn], np.int64)
    return ImageSegments(vocabulary, Segments(np.array(drawn, np.int64), classes), map=segment_map)


def make_record(unit: Unit, predicted: ImageSegments) -> Record:
    """The record of one image."""
    content: SegmentedImage = unit.payload
    vocabulary, table, lines = _join(content, predicted)
    segments = Segments(predicted.segments.ids, table[np.asarray(predicted.segments.classes, np.int64)])
    assert content.truth.map is not None and predicted.map is not None
    sides = content.truth.map, content.truth.segments, predicted.map, segments
    try:
        matches = match_segments(*sides, classes=len(vocabulary.names))
    except ValueError as error:
        raise _match_error(content.truth, predicted, unit.id, error) from error
    crowd, excused = content.truth.segments.crowd, matches.excused
    if content.label_senses and crowd is not None and np.asarray(crowd, np.bool_).any():
        # `automobile` lies on a crowd of its class where `car` does.
        places = place_by_sense(vocabulary.names, content.label_senses)
        sides = (*sides[:3], Segments(segments.ids, places[np.asarray(segments.classes, np.int64)]))
        excused = match_segments(*sides).excused
    crowded = excused
    if crowd is not None and np.asarray(crowd, np.bool_).sum() > 1:
        crowded = match_segments(*sides, crowds="all").excused
    return {
        "unit": unit.id,
        "context": content.context,
        "truth": str(content.truth.png or unit.id),
        "names": "\n".join(vocabulary.names),
        "things": [int(thing) for thing in vocabulary.things],
        "true": matches.true.tolist(),
        "called": matches.called.tolist(),
        "intersection": matches.intersection.tolist(),
        "union": matches.union.tolist(),
        "excused": np.where(excused, 1, np.where(crowded, 2, 0)).tolist(),
        "phrases": lines,
        "prediction": encode_label_map(draw_labels(predicted.map, segments)) if content.keep_prediction else b"",
    }


def _join(content: SegmentedImage, predicted: ImageSegments) -> tuple[PanopticVocabulary, NDArray[np.int32], str]:
    """The image's labels, the place of each predicted one among them, and what free words were taken for."""
    truth, said = content.truth.vocabulary, predicted.vocabulary
    if content.pred_senses is None:
        return *join_vocabularies(truth, said), ""
    stuff = [not thing for thing in said.things]
    used = np.asarray(predicted.segments.classes, np.int64).tolist()
    words = name_phrases(truth.names, said.names, used, content.pred_senses, stuff)
    added = words.names[len(truth.names) :]
    return PanopticVocabulary(words.names, (*truth.things, *map(is_countable, added))), words.table, words.lines


def _match_error(truth: ImageSegments, predicted: ImageSegments, unit: str, error: ValueError) -> DataError:
    for name, side in (("truth", truth), ("prediction", predicted)):
        assert side.map is not None
        lines = list_table_errors(side.map, side.segments)
        if lines:
            remedy = "its colours are ids R + 256 G + 65536 B, and the JSON lists each once; write both again"
            return DataError(f"{name}: {'; '.join(lines)}", file=side.png, unit=unit, remedy=remedy)
    return DataError(str(error), file=truth.png, unit=unit, remedy="check the two PNGs and their rows in the JSON")


def draw_labels(segment_map: LabelMap, segments: Segments) -> LabelMap:
    """(H, W) int32 labels of a map of segment ids, -1 for void and for the seams, so that instances stay apart.

    >>> draw_labels(np.array([[7, 7, 9, 9, 0]], np.int32), Segments([7, 9], [2, 2])).tolist()
    [[2, -1, 2, -1, -1]]
    """
    ids, classes = np.asarray(segments.ids, np.int64), np.asarray(segments.classes, np.int64)
    order = np.argsort(ids)
    labels = np.full(segment_map.shape, -1, np.int32)
    if len(ids):
        place = np.searchsorted(ids[order], segment_map).clip(max=len(ids) - 1)
        known = ids[order][place] == segment_map
        labels[known] = classes[order][place][known]
    for width in range(1, 1 + max(1, max(segment_map.shape) // _PIXELS_PER_SEAM)):
        labels[:, :-width][segment_map[:, width:] != segment_map[:, :-width]] = -1
        labels[:-width][segment_map[width:] != segment_map[:-width]] = -1
    return labels


def read_vocabulary(records: pl.DataFrame) -> PanopticVocabulary:
    """The labels of a run and which are things."""
    return PanopticVocabulary(tuple(read_label_names(records)), tuple(bool(one) for one in records["things"][0]))


def read_matches(records: pl.DataFrame, crowds: str = "last") -> SegmentMatches:
    """The matches of all records, images in their order."""
    lengths = records["true"].list.len().to_numpy()
    excused = flatten_column(records["excused"])
    return SegmentMatches(
        image=np.repeat(np.arange(len(records), dtype=np.int64), lengths),
        true=flatten_column(records["true"]),
        called=flatten_column(records["called"]),
        intersection=flatten_column(records["intersection"]),
        union=flatten_column(records["union"]),
        excused=excused > 0 if crowds == "all" else excused == 1,
        images=len(records),
    )


def merge_vocabularies(runs: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """The records of several runs relabelled into one vocabulary, without pictures, which keep their own numbers.

    Sums of every image and class stay equal to the last bit; means over classes can differ in the last digit, since
    floats are then added with other zeros between them. A label that is a thing in one run and stuff in another is an
    error: similarity counts only within a kind, so scores would change.
    """
    runs = [join_image_vocabularies(records) for records in runs]
    vocabularies = [read_vocabulary(records) for records in runs]
    truth_counts = [int(read_matches(records).true.max(initial=-1)) + 1 for records in runs]
    names, tables = join_run_labels([vocabulary.names for vocabulary in vocabularies], truth_counts)
    things = np.full(len(names), -1, np.int64)
    for vocabulary, table in zip(vocabularies, tables, strict=True):
        kinds = np.array(vocabulary.things, np.int64)
        differing = np.flatnonzero((things[table] >= 0) & (things[table] != kinds))
        if len(differing):
            what = f"{vocabulary.names[differing[0]]!r} is a thing in one run and stuff in another"
            raise DataError(what, remedy="run again with models or files that agree on what is a thing")
        things[table] = kinds
    joint = PanopticVocabulary(names, tuple((things > 0).tolist()))
    return [_relabel(records, [table] * len(records), joint) for records, table in zip(runs, tables, strict=True)]


def join_image_vocabularies(records: pl.DataFrame) -> pl.DataFrame:
    """The records in one vocabulary, where images with free words have their own; without pictures then."""
    joined = join_image_names(records)
    if joined is None:
        return records
    names, tables = joined
    truth = records["things"][0].to_list()[: count_truth(names)]
    things = (*(bool(thing) for thing in truth), *map(is_countable, names[len(truth) :]))
    return _relabel(records, tables, PanopticVocabulary(names, things))


def merge_classes(records: pl.DataFrame, table: NDArray[np.int64], *, keep: bool) -> pl.DataFrame:
    """The records with class k counted as class `table[k]`; with `keep`, merged classes stay in the list of names."""
    vocabulary = read_vocabulary(records)
    own = table == np.arange(len(table))
    if own.all():
        return records
    if not keep:
        rows = np.flatnonzero(own).tolist()
        table = (np.cumsum(own) - 1)[table]
        names, things = vocabulary.names, vocabulary.things
        vocabulary = PanopticVocabulary(tuple(names[row] for row in rows), tuple(things[row] for row in rows))
    return _relabel(records, [table] * len(records), vocabulary)


def _relabel(
    records: pl.DataFrame, tables: Sequence[NDArray[np.int64]], vocabulary: PanopticVocabulary
) -> pl.DataFrame:
    """The records without pictures, label k of a row as `tables[row][k]`, an index into the vocabulary."""
    import polars as pl

    flat, start = flatten_tables(tables, records["true"].list.len().to_numpy())

    def look_up(labels: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(labels < 0, NO_PARTNER, flat[start + np.maximum(labels, 0)])

    columns = [relabel_column(records[name], look_up) for name in ("true", "called")]
    things = pl.lit([int(thing) for thing in vocabulary.things], pl.List(pl.Int64)).alias("things")
    names = pl.lit("\n".join(vocabulary.names)).alias("names")
    return records.drop("prediction", strict=False).with_columns(*columns, names, things)
