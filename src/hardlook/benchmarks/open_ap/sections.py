"""What the report of open AP shows: what similarity gives back, to which classes, under which measure, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.open_ap.galleries import confusion_examples
from hardlook.benchmarks.open_ap.scores import KINDS, QUANTITIES
from hardlook.benchmarks.open_labels.charts import is_slice, measures_section
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import DotChart, Gallery, ScatterChart, Section, Spot, Table, dot_of

if TYPE_CHECKING:
    import polars as pl

MOST_EXAMPLES = 4


def show(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections, those without content left out."""
    found = [
        _headline(scorecard),
        _classes(scorecard),
        measures_section(scorecard, "open-ap", "open AP", ("dagger", "dagger-ap")),
        _confusions(records, scorecard),
        _slices(scorecard),
    ]
    return [section for section in found if section is not None]


def _headline(scorecard: Scorecard) -> Section:
    rows = [
        dot_of(score, kind, title)
        for name, title in QUANTITIES.items()
        for prefix, kind in KINDS.items()
        if not np.isnan((score := scorecard.get(prefix + name)).value)
    ]
    gain = scorecard.get("open-gain")
    if np.isnan(gain.value):
        return Section("What similarity gives back", "There is no object to find, so there is no AP.")
    chart = DotChart(
        "Vanilla, dagger and open",
        "Vanilla matches within classes. Dagger pools the classes, so that a misnamed detection takes its object away; "
        "open does the same and gives back what the similarity of the two labels says.",
        rows,
        axis="score",
    )
    bounds = f" ({gain.interval.low:.3f} to {gain.interval.high:.3f})" if gain.interval else ""
    dagger, opened, vanilla = (scorecard.get(name).value for name in ("dagger-ap", "open-ap", "ap"))
    text = (
        f"Similarity gives back {gain.value:.3f}{bounds} of AP: from {dagger:.3f} (dagger) to {opened:.3f} (open). "
        f"Vanilla AP is {vanilla:.3f}; what lies between it and dagger is the effect of ranking all classes together."
    )
    return Section("What similarity gives back", text, (chart,))


def _classes(scorecard: Scorecard) -> Section | None:
    by_kind = [
        {score.slice["class"]: score for score in scorecard.scores if is_slice(score, f"{prefix}ap", {"class"})}
        for prefix in KINDS
    ]
    vanilla, hard, soft = by_kind
    if not hard:
        return None
    chart = ScatterChart(
        "AP of each class, dagger and open",
        "On the line nothing is given back; far above it the class is taken for similar ones.",
        [Spot(hard[name].value, soft[name].value, name) for name in hard],
        "dagger AP",
        "open AP",
        diagonal=True,
    )
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
    return Section("Which classes", "", (chart, table))


def _confusions(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    hard = {_pair(score): score.value for score in scorecard.scores if score.name == "confused-objects"}
    soft = {_pair(score): score.value for score in scorecard.scores if score.name == "unforgiven-objects"}
    if not hard:
        return None
    similarity = {pair: 1 - soft[pair] / hard[pair] for pair in hard}
    table = Table(
        "The dearest confusions",
        "Objects that were found (IoU .5) under another label, and the part of them that similarity does not forgive.",
        ("true", "called", "similarity", "objects", "not forgiven"),
        [(*pair, similarity[pair], int(hard[pair]), soft[pair]) for pair in hard],
        decimals=2,
    )
    examples = confusion_examples(records, {pair: similarity[pair] for pair in list(hard)[:MOST_EXAMPLES]})
    gallery = Gallery("Where they happen", "An image with the most objects so confused.", examples)
    return Section("What is taken for what", "", (table, gallery) if examples else (table,))


def _slices(scorecard: Scorecard) -> Section | None:
    blocks = []
    words = {f"{prefix}ap": kind for prefix, kind in KINDS.items()}
    for keys, title in ((("context",), "Contexts"), (("classes", "setting"), "Sets of classes")):
        rows = [
            dot_of(score, words[score.name], ", ".join(score.slice[key] for key in keys))
            for score in sorted(scorecard.scores, key=lambda score: [score.slice.get(key, "") for key in keys])
            if score.name in words and set(score.slice) == set(keys) and not np.isnan(score.value)
        ]
        if rows:
            blocks.append(DotChart(title, "AP, vanilla, dagger and open.", rows, axis="AP"))
    text = (
        "Generalised: all classes take part in matching, and the values of the set's classes are averaged. "
        "Constrained: objects and detections of other classes are left out before matching."
        if any("setting" in score.slice for score in scorecard.scores)
        else ""
    )
    return Section("Slices", text, tuple(blocks)) if blocks else None


def _pair(score: Score) -> tuple[str, str]:
    return score.slice["true"], score.slice["called"]
