"""What the report of open mIoU shows: what similarity gives back, to which classes, under which measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.open_labels.charts import is_slice, measures_section
from hardlook.benchmarks.semantic_images.qualities import NO_LABEL
from hardlook.benchmarks.semantic_images.records import cells_of, label_names
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import DotChart, Example, Gallery, ScatterChart, Section, Spot, Table, dot_of

if TYPE_CHECKING:
    import polars as pl

MOST_EXAMPLES = 4


def show(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections, those without content left out."""
    found = [
        _headline(scorecard),
        _classes(scorecard),
        measures_section(scorecard, "open-miou", "open mIoU", ("vanilla", "miou")),
        _confusions(records, scorecard),
        _slices(scorecard),
    ]
    return [section for section in found if section is not None]


def _headline(scorecard: Scorecard) -> Section:
    pairs = (
        ("mIoU", "miou"),
        ("pixel accuracy", "pixel-accuracy"),
        ("mean accuracy", "mean-accuracy"),
        ("fwIoU", "fw-iou"),
    )
    rows = [
        dot_of(scorecard.get(f"{prefix}{name}"), word, title)
        for title, name in pairs
        for prefix, word in (("", "vanilla"), ("open-", "open"))
    ]
    gain = scorecard.get("open-gain")
    chart = DotChart(
        "Vanilla and open",
        "Vanilla counts every wrong label the same; open gives back what the similarity of the two labels says.",
        rows,
        axis="score",
    )
    bounds = f" ({gain.interval.low:.3f} to {gain.interval.high:.3f})" if gain.interval else ""
    text = (
        f"Similarity gives back {gain.value:.3f}{bounds} of mIoU: from {scorecard.get('miou').value:.3f} to "
        f"{scorecard.get('open-miou').value:.3f}. What is left is wrong beyond the choice of words."
    )
    return Section("What similarity gives back", text, (chart,))


def _classes(scorecard: Scorecard) -> Section:
    hard = {score.slice["class"]: score for score in scorecard.scores if is_slice(score, "iou", {"class"})}
    soft = {score.slice["class"]: score for score in scorecard.scores if is_slice(score, "open-iou", {"class"})}
    spots = [Spot(hard[name].value, soft[name].value, name) for name in hard if name in soft]
    chart = ScatterChart(
        "IoU of each class, vanilla and open",
        "On the line nothing is given back; far above it the class is taken for similar ones.",
        spots,
        "vanilla IoU",
        "open IoU",
        diagonal=True,
    )
    gains = {name: soft[name].value - hard[name].value for name in hard if name in soft}
    ranked = sorted((name for name in gains if not np.isnan(gains[name])), key=lambda name: -gains[name])
    table = Table(
        "Each class",
        "Images: those that have the class in truth or prediction.",
        ("class", "vanilla IoU", "open IoU", "given back", "images"),
        [(name, hard[name].value, soft[name].value, gains[name], hard[name].n) for name in ranked],
    )
    return Section("Which classes", "", (chart, table))


def _confusions(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    hard = {_pair(score): score.value for score in scorecard.scores if score.name == "confused-pixels"}
    soft = {_pair(score): score.value for score in scorecard.scores if score.name == "unforgiven-pixels"}
    if not hard:
        return None
    similarity = {pair: 1 - soft[pair] / hard[pair] for pair in hard}
    table = Table(
        "The dearest confusions",
        "Pixels of one label that were called another, and the part of them that similarity does not forgive.",
        ("true", "called", "similarity", "pixels", "not forgiven"),
        [(*pair, similarity[pair], int(hard[pair]), soft[pair]) for pair in hard],
        decimals=2,
    )
    examples = _examples(records, {pair: similarity[pair] for pair in list(hard)[:MOST_EXAMPLES]})
    blocks = (table, Gallery("Where they happen", "The image with the most pixels of each.", examples))
    return Section("What is taken for what", "", blocks if examples else (table,))


def _examples(records: pl.DataFrame, pairs: Mapping[tuple[str, str], float]) -> list[Example]:
    names, cells = [*label_names(records), NO_LABEL], cells_of(records)
    examples: dict[str, Example] = {}
    for (true, called), similarity in pairs.items():
        cell = names.index(true) * len(names) + names.index(called)
        meant = cells.cell == cell
        pixels = np.bincount(cells.image[meant], cells.pixels[meant], minlength=cells.images)
        unit = records["unit"][int(np.argmax(pixels))]
        words = f"{true} called {called} (similarity {similarity:.2f}): {pixels.max():,.0f} pixels."
        examples.setdefault(unit, Example(unit, words))
    return list(examples.values())


def _slices(scorecard: Scorecard) -> Section | None:
    blocks = []
    for key, title in (("kind", "Things and stuff"), ("context", "Contexts"), ("classes", "Sets of classes")):
        rows = [
            dot_of(score, score.slice[key], {"miou": "vanilla", "open-miou": "open"}[score.name])
            for score in scorecard.scores
            if score.name in ("miou", "open-miou") and set(score.slice) == {key}
        ]
        if rows:
            blocks.append(DotChart(title, "mIoU, vanilla and open.", rows, axis="mIoU"))
    return Section("Slices", "", tuple(blocks)) if blocks else None


def _pair(score: Score) -> tuple[str, str]:
    return score.slice["true"], score.slice["called"]
