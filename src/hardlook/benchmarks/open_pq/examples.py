"""Which segments are taken for what, and the images worth looking at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.open_pq.records import matches_of, words_of_run
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import Example, Gallery, Section, Table
from hardlook.metrics.panoptic_quality import mean_quality, quality_sums_by_image

if TYPE_CHECKING:
    import polars as pl

SHOWN = 6
MOST_EXAMPLES = 4


def confusions(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    """The dearest pairs of labels, with an image for each of the first few; None where nothing is misnamed."""
    hard = {_pair(score): score.value for score in scorecard.scores if score.name == "misnamed-segments"}
    soft = {_pair(score): score.value for score in scorecard.scores if score.name == "unforgiven-segments"}
    if not hard:
        return None
    words = words_of_run(records)
    kinds = dict(zip(words.names, words.things, strict=True))
    rows = [
        (
            true,
            called,
            None if kinds[true] != kinds[called] else 1 - soft[true, called] / hard[true, called],
            int(hard[true, called]),
            soft[true, called],
        )
        for true, called in hard
    ]
    table = Table(
        "The dearest confusions",
        "Segments that were found and called something else, and the part of them that similarity does not forgive. "
        "Between a thing and stuff nothing is forgiven.",
        ("true", "called", "similarity", "segments", "not forgiven"),
        rows,
        decimals=2,
    )
    examples = _examples(records, list(hard)[:MOST_EXAMPLES])
    return Section(
        "What is taken for what",
        "",
        (table, Gallery("Where they happen", "The image with the most such segments of each.", examples)),
    )


def hardest_images(records: pl.DataFrame) -> Section:
    """The images with the lowest PQ of their own."""
    words = words_of_run(records)
    sums = quality_sums_by_image(matches_of(records), np.eye(len(words.names)), words.things)
    values = mean_quality(sums)[:, 0]
    known = [int(row) for row in np.argsort(values, kind="stable") if not np.isnan(values[row])]
    units = records["unit"].to_list()
    shown = [Example(units[row], f"vanilla PQ {values[row]:.3f}") for row in known[:SHOWN]]
    caption = "Lowest vanilla PQ first, over the classes of the image alone."
    return Section("Which images", "", (Gallery("The hardest images", caption, shown),))


def _examples(records: pl.DataFrame, pairs: Sequence[tuple[str, str]]) -> list[Example]:
    names, matches = words_of_run(records).names, matches_of(records)
    examples: dict[str, Example] = {}
    for true, called in pairs:
        meant = (matches.true == names.index(true)) & (matches.called == names.index(called))
        counts = np.bincount(matches.image[meant], minlength=matches.images)
        unit, most = records["unit"][int(counts.argmax())], int(counts.max())
        words = f"{true} called {called}" + (f", {most} times" if most > 1 else "")
        if unit in examples:
            words = f"{examples[unit].caption}; {words}"
        examples[unit] = Example(unit, words)
    return list(examples.values())


def _pair(score: Score) -> tuple[str, str]:
    return score.slice["true"], score.slice["called"]
