"""What the report of open PQ shows: what similarity gives back, to which classes, under which measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.open_labels.charts import is_slice, measures_section
from hardlook.benchmarks.open_pq.examples import confusions
from hardlook.benchmarks.open_pq.records import matches_of, words_of_run
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import DotChart, ScatterChart, Section, Spot, Table, dot_of

if TYPE_CHECKING:
    import polars as pl

_TITLES = (("PQ", "pq"), ("SQ", "sq"), ("RQ", "rq"))
_WORDS = (("", "vanilla"), ("open-", "open"))


def show(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections, those without content left out."""
    found = [
        _headline(scorecard),
        _classes(records, scorecard),
        measures_section(scorecard, "open-pq", "open PQ", ("vanilla", "pq")),
        confusions(records, scorecard),
        _slices(scorecard),
    ]
    return [section for section in found if section is not None]


def _headline(scorecard: Scorecard) -> Section:
    kinds = list(dict.fromkeys(score.slice["kind"] for score in scorecard.scores if set(score.slice) == {"kind"}))
    charts = []
    for title, name in _TITLES:
        rows = [
            dot_of(scorecard.get(f"{prefix}{name}", **({"kind": kind} if kind else {})), word, kind or "all")
            for kind in ("", *kinds)
            for prefix, word in _WORDS
        ]
        charts.append(DotChart(f"{title}, vanilla and open", _CAPTIONS[name], rows, axis=title))
    gain, pq, opened = (scorecard.get(name) for name in ("open-gain", "pq", "open-pq"))
    bounds = f" ({gain.interval.low:.3f} to {gain.interval.high:.3f})" if gain.interval else ""
    text = (
        f"Similarity gives back {gain.value:.3f}{bounds} of PQ: from {pq.value:.3f} to {opened.value:.3f}. "
        "What is left is missed, badly outlined, or wrong beyond the choice of words."
    )
    return Section("What similarity gives back", text, tuple(charts))


_CAPTIONS = {
    "pq": "Vanilla counts every wrong label the same; open gives back what the similarity of the two labels says.",
    "sq": "How well matched segments are outlined. Open SQ can be higher or lower: it also weighs misnamed segments.",
    "rq": "How many segments are found and named; this is where similarity counts.",
}


def _classes(records: pl.DataFrame, scorecard: Scorecard) -> Section:
    hard, soft = _by_class(scorecard, "pq"), _by_class(scorecard, "open-pq")
    words = words_of_run(records)
    kinds = {name: "thing" if thing else "stuff" for name, thing in zip(words.names, words.things, strict=True)}
    chart = ScatterChart(
        "PQ of each class, vanilla and open",
        "On the line nothing is given back; far above it the class is taken for similar ones.",
        [Spot(hard[name].value, soft[name].value, name, kinds[name]) for name in hard],
        "vanilla PQ",
        "open PQ",
        diagonal=True,
    )
    gains = {name: soft[name].value - hard[name].value for name in hard}
    ranked = sorted(hard, key=lambda name: (-np.nan_to_num(gains[name]), name))
    counts = _segment_counts(records)
    table = Table(
        "Each class",
        "Segments: true ones, those of them that were found and called something else, and those not found. "
        "A class that is only predicted, and only where its equal is true, has no open PQ.",
        ("class", "vanilla PQ", "open PQ", "given back", "segments", "misnamed", "missed"),
        [
            (name, _cell(hard[name].value), _cell(soft[name].value), _cell(gains[name]), *counts[name])
            for name in ranked
        ],
    )
    return Section("Which classes", "", (chart, table))


def _segment_counts(records: pl.DataFrame) -> dict[str, list[int]]:
    """Of each class: true segments, misnamed and missed ones."""
    matches, names = matches_of(records), words_of_run(records).names
    is_true, missed = matches.true >= 0, matches.called < 0
    misnamed = ~missed & (matches.true != matches.called)
    table = [
        np.bincount(matches.true[is_true & which], minlength=len(names)).tolist()
        for which in (is_true, misnamed, missed)
    ]
    return {name: counts for name, *counts in zip(names, *table, strict=True)}


def _slices(scorecard: Scorecard) -> Section | None:
    blocks = []
    for key, title in (("context", "Contexts"), ("classes", "Sets of classes")):
        rows = [
            dot_of(score, score.slice[key], {"pq": "vanilla", "open-pq": "open"}[score.name])
            for score in scorecard.scores
            if score.name in ("pq", "open-pq") and set(score.slice) == {key}
        ]
        if rows:
            blocks.append(DotChart(title, "PQ, vanilla and open.", rows, axis="PQ"))
    return Section("Slices", "", tuple(blocks)) if blocks else None


def _by_class(scorecard: Scorecard, name: str) -> dict[str, Score]:
    return {score.slice["class"]: score for score in scorecard.scores if is_slice(score, name, {"class"})}


def _cell(value: float) -> float | None:
    return None if np.isnan(value) else value
