"""Records of panoptic segments: what matched what, as integers.

All scores come from these: vanilla and open, of any subset of images, under any similarity of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_pq.dataset import SegmentedImage, Side
from hardlook.benchmarks.open_pq.pictures import drawn_labels
from hardlook.benchmarks.open_pq.unit_files import table_misfits
from hardlook.benchmarks.open_pq.words import Words, join_words
from hardlook.benchmarks.semantic_images.one_vocabulary import one_list, relabelled
from hardlook.benchmarks.semantic_images.pictures import encode_map
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Column, Record, RecordSchema
from hardlook.errors import DataError
from hardlook.metrics.panoptic_matching import NOBODY, SegmentMatches, Segments, match_segments

if TYPE_CHECKING:
    import polars as pl

SCHEMA = RecordSchema(
    (
        Column("context", "text", "where the scene takes place; empty where nobody said", "slice"),
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
        Column("prediction", "bytes", "the predicted labels as PNG, seams of segments left blank, or empty", "picture"),
    )
)


def record_of(unit: Unit, answer: Side) -> Record:
    """The record of one image."""
    content: SegmentedImage = unit.payload
    words, table = join_words(content.truth.words, answer.words)
    said = Segments(answer.segments.ids, table[np.asarray(answer.segments.classes, np.int64)])
    assert content.truth.map is not None and answer.map is not None
    sides = content.truth.map, content.truth.segments, answer.map, said
    try:
        matches = match_segments(*sides, classes=len(words.names))
    except ValueError as error:
        raise _misfit(content.truth, answer, unit.id, error) from error
    crowd, crowded = content.truth.segments.crowd, matches.excused
    if crowd is not None and np.asarray(crowd, np.bool_).sum() > 1:
        crowded = match_segments(*sides, crowds="all").excused
    shown = encode_map(drawn_labels(answer.map, said)) if content.keep_prediction else b""
    return {
        "unit": unit.id,
        "context": content.context,
        "truth": str(content.truth.png or unit.id),
        "names": "\n".join(words.names),
        "things": [int(thing) for thing in words.things],
        "true": matches.true.tolist(),
        "called": matches.called.tolist(),
        "intersection": matches.intersection.tolist(),
        "union": matches.union.tolist(),
        "excused": np.where(matches.excused, 1, np.where(crowded, 2, 0)).tolist(),
        "prediction": shown,
    }


def words_of_run(records: pl.DataFrame) -> Words:
    """The labels of a run and which are things."""
    return Words(tuple(str(records["names"][0]).split("\n")), tuple(bool(one) for one in records["things"][0]))


def matches_of(records: pl.DataFrame, crowds: str = "last") -> SegmentMatches:
    """The matches of all records, images in their order."""
    lengths = records["true"].list.len().to_numpy()
    excused = _values(records["excused"])
    return SegmentMatches(
        image=np.repeat(np.arange(len(records), dtype=np.int64), lengths),
        true=_values(records["true"]),
        called=_values(records["called"]),
        intersection=_values(records["intersection"]),
        union=_values(records["union"]),
        excused=excused > 0 if crowds == "all" else excused == 1,
        images=len(records),
    )


def in_one_vocabulary(runs: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """The records of several runs in one list of labels, without their pictures, which keep their own numbers.

    Sums of every image and class stay what they are, to the last bit; means over classes can differ in the last
    digit, since floats are then added with other zeros between them. A word that is a thing to one model and stuff to
    another is refused: similarity counts only within a kind, so scores would change.
    """
    import polars as pl

    spoken = [words_of_run(records) for records in runs]
    largest = [int(matches_of(records).true.max(initial=-1)) for records in runs]
    names, tables = one_list([words.names for words in spoken], [label + 1 for label in largest])
    things = np.full(len(names), -1, np.int64)
    for words, table in zip(spoken, tables, strict=True):
        kinds = np.array(words.things, np.int64)
        twofold = np.flatnonzero((things[table] >= 0) & (things[table] != kinds))
        if len(twofold):
            what = f"{words.names[twofold[0]]!r} is a thing in one run and stuff in another"
            raise DataError(what, remedy="run again with models or files that agree on what is a thing")
        things[table] = kinds
    shared = [pl.lit("\n".join(names)).alias("names"), pl.lit(things.tolist(), pl.List(pl.Int64)).alias("things")]

    def changed(records: pl.DataFrame, table: NDArray[np.int64]) -> pl.DataFrame:
        places = np.append(table, NOBODY)  # -1 is its last entry, and stays -1
        columns = [relabelled(records[name], lambda labels: places[labels]) for name in ("true", "called")]
        return records.drop("prediction", strict=False).with_columns(*columns, *shared)

    return [changed(records, table) for records, table in zip(runs, tables, strict=True)]


def _misfit(truth: Side, answer: Side, unit: str, error: ValueError) -> DataError:
    for name, side in (("truth", truth), ("prediction", answer)):
        assert side.map is not None
        lines = table_misfits(side.map, side.segments)
        if lines:
            remedy = "its colours are ids R + 256 G + 65536 B, and the JSON lists each once; write both again"
            return DataError(f"{name}: {'; '.join(lines)}", file=side.png, unit=unit, remedy=remedy)
    return DataError(str(error), file=truth.png, unit=unit, remedy="check the two PNGs and their rows in the JSON")


def _values(lists: pl.Series) -> NDArray[np.int64]:
    # An empty list explodes to a null.
    return lists.explode().drop_nulls().to_numpy().astype(np.int64)
