"""The report of open PQ: the gain from similarity, per class and measure, with the confusions behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Record
from hardlook.harness.rounding import format_fixed
from hardlook.harness.scorecard import Scorecard
from hardlook.harness.sections import DotChart, Picture, Section, Spot, Table, score_dot
from hardlook.open_vocabulary.free_words import build_words_section, merge_named_words, read_merged
from hardlook.open_vocabulary.pq.evaluation import (
    draw_labels,
    join_image_vocabularies,
    merge_classes,
    read_matches,
    read_vocabulary,
)
from hardlook.open_vocabulary.pq.units import SegmentedImage, read_unit
from hardlook.open_vocabulary.record_columns import blank_image, decode_label_map
from hardlook.open_vocabulary.sections import (
    add_warnings,
    build_class_chart,
    build_confusions_section,
    build_measures_section,
    build_slice_charts,
    describe_misnamed,
    find_scores_by_class,
    format_count_verb,
    format_gain,
)

if TYPE_CHECKING:
    import polars as pl

_CAPTIONS = {
    "PQ": "Vanilla counts every wrong label the same; open gives credit by the similarity of the two labels.",
    "SQ": "How well matched segments are outlined. Open SQ can be higher or lower: it also weighs misnamed segments.",
    "RQ": "How many segments are found and named; this is where similarity counts.",
}


def build_sections(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections of the report that have content."""
    slices = {"context": "Contexts", "classes": "Sets of classes"}
    charts = build_slice_charts(scorecard, {"pq": "vanilla", "open-pq": "open"}, slices, "PQ")
    words = build_words_section(records, scorecard)
    records = merge_named_words(join_image_vocabularies(records), read_merged(scorecard), merge_classes)
    sections = [
        _build_headline(scorecard),
        _build_classes(records, scorecard),
        build_measures_section(scorecard, "open-pq", "open PQ", ("vanilla", "pq")),
        _build_confusions(records, scorecard),
        words,
        Section("Slices", "", charts) if charts else None,
    ]
    return [section for section in sections if section is not None]


def draw_unit(unit: Unit, record: Record) -> Sequence[Picture]:
    """The image, the true segments and the predicted ones, with blank seams between segments."""
    content: SegmentedImage = read_unit(unit, pixels=True).payload
    assert content.truth.map is not None
    names = record["names"].split("\n")
    truth = draw_labels(content.truth.map, content.truth.segments)
    image = content.image if content.image is not None else blank_image(*truth.shape)
    pictures = [Picture("image", image)] if content.image is not None else []
    pictures.append(Picture("true segments", image, label_map=truth, label_names=names))
    if record["prediction"]:
        predicted = decode_label_map(record["prediction"])
        pictures.append(Picture("predicted segments", image, label_map=predicted, label_names=names))
    return pictures


def describe_unit(record: Record) -> str:
    r"""How many segments of one image were found under their name, and its most frequent confusion.

    >>> record = {"names": "cat\ndog\nsky", "true": [0, 0, 2, 1, -1], "called": [0, 1, 2, -1, 1]}
    >>> describe_unit(record | {"excused": [0, 0, 0, 0, 0]})
    '2 of 4 segments are found by name, 1 by another (cat called dog), 1 is missed, 1 is predicted where there is none.'
    """
    names = str(record["names"]).split("\n")
    pairs = list(zip(record["true"], record["called"], strict=True))
    segments = sum(true >= 0 for true, _ in pairs)
    named = sum(true == called for true, called in pairs)
    wrong = Counter(f"{names[true]} called {names[called]}" for true, called in pairs if -1 < true != called > -1)
    missed = sum(called < 0 for _, called in pairs)
    spare = sum(true < 0 and excused != 1 for (true, _), excused in zip(pairs, record["excused"], strict=True))
    if not segments:
        return f"There is no true segment; {spare} are predicted."
    parts = [f"{named} of {segments} segments are found by name", *describe_misnamed(wrong)]
    parts += [f"{format_count_verb(missed)} missed"] if missed else []
    parts += [f"{format_count_verb(spare)} predicted where there is none"] if spare else []
    return f"{', '.join(parts)}."


def _build_headline(scorecard: Scorecard) -> Section:
    kinds = list(dict.fromkeys(score.slice["kind"] for score in scorecard.scores if set(score.slice) == {"kind"}))
    charts = []
    for title, caption in _CAPTIONS.items():
        rows = [
            score_dot(scorecard.get(f"{prefix}{title.lower()}", **where), word, where.get("kind", "all"))
            for where in ({}, *({"kind": kind} for kind in kinds))
            for prefix, word in (("", "vanilla"), ("open-", "open"))
        ]
        charts.append(DotChart(f"{title}, vanilla and open", caption, rows, axis=title))
    vanilla, opened = scorecard.get("pq").value, scorecard.get("open-pq").value
    text = (
        f"Similarity adds {format_gain(scorecard)} of PQ: from {format_fixed(vanilla, 3)} to "
        f"{format_fixed(opened, 3)}. "
        "The remaining segments are missed, badly outlined, or wrong by more than a choice of words."
    )
    return Section("Gain from similarity", add_warnings(text, scorecard), tuple(charts))


def _build_classes(records: pl.DataFrame, scorecard: Scorecard) -> Section:
    hard, soft = find_scores_by_class(scorecard, "pq"), find_scores_by_class(scorecard, "open-pq")
    vocabulary = read_vocabulary(records)
    things = zip(vocabulary.names, vocabulary.things, strict=True)
    kinds = {name: "thing" if thing else "stuff" for name, thing in things}
    spots = [Spot(hard[name].value, soft[name].value, name, kinds[name]) for name in hard]
    gains = {name: soft[name].value - hard[name].value for name in hard}
    ranked = sorted(hard, key=lambda name: (-np.nan_to_num(gains[name]), name))
    counts = _count_segments(records)
    table = Table(
        "Each class",
        "Segments: true ones, those of them that were found under another label, and those not found. "
        "A class that is only predicted, and only where its equal is true, has no open PQ.",
        ("class", "vanilla PQ", "open PQ", "given back", "segments", "misnamed", "missed"),
        [
            (
                name,
                *(None if np.isnan(value) else value for value in (hard[name].value, soft[name].value, gains[name])),
                *counts[name],
            )
            for name in ranked
        ],
    )
    return Section("Classes", "", (build_class_chart("PQ", "vanilla", spots), table))


def _count_segments(records: pl.DataFrame) -> dict[str, list[int]]:
    """Per class: true segments, misnamed and missed ones."""
    matches, names = read_matches(records), read_vocabulary(records).names
    is_true, missed = matches.true >= 0, matches.called < 0
    misnamed = ~missed & (matches.true != matches.called)
    table = [
        np.bincount(matches.true[is_true & which], minlength=len(names)).tolist()
        for which in (is_true, misnamed, missed)
    ]
    return {name: counts for name, *counts in zip(names, *table, strict=True)}


def _build_confusions(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    captions = (
        "Segments that were found under another label, and the part of them that similarity does not excuse. "
        "Between a thing and stuff nothing is excused.",
        "The image with the most segments of each confusion.",
    )
    vocabulary, matches = read_vocabulary(records), read_matches(records)
    things = dict(zip(vocabulary.names, vocabulary.things, strict=True))

    def count_by_image(true: str, called: str) -> NDArray[np.int64]:
        places = vocabulary.names.index(true), vocabulary.names.index(called)
        meant = (matches.true == places[0]) & (matches.called == places[1])
        return np.bincount(matches.image[meant], minlength=matches.images)

    units = records["unit"].to_list()
    return build_confusions_section(
        scorecard, "misnamed-segments", captions, units, count_by_image, lambda a, b: things[a] == things[b]
    )
