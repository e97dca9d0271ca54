"""Which segments are taken for what, and where to see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.open_pq.records import matches_of, words_of_run
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import Example, Gallery, Section, Table

if TYPE_CHECKING:
    import polars as pl

MOST_EXAMPLES = 4


def confusions(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    """The dearest pairs of labels, with an image for each of the first few; None where nothing is misnamed."""
    hard = {_pair(score): score.value for score in scorecard.scores if score.name == "misnamed-segments"}
    soft = {_pair(score): score.value for score in scorecard.scores if score.name == "unforgiven-segments"}
    if not hard:
        return None
    words = words_of_run(records)
    kinds = dict(zip(words.names, words.things, strict=True))
    similarity = {
        (true, called): None if kinds[true] != kinds[called] else 1 - soft[true, called] / hard[true, called]
        for true, called in hard
    }
    table = Table(
        "The dearest confusions",
        "Segments that were found and called something else, and the part of them that similarity does not forgive. "
        "Between a thing and stuff nothing is forgiven.",
        ("true", "called", "similarity", "segments", "not forgiven"),
        [(*pair, similarity[pair], int(hard[pair]), soft[pair]) for pair in hard],
        decimals=2,
    )
    examples = _examples(records, {pair: similarity[pair] for pair in list(hard)[:MOST_EXAMPLES]})
    return Section(
        "What is taken for what",
        "",
        (table, Gallery("Where they happen", "The image with the most such segments of each.", examples)),
    )


def _examples(records: pl.DataFrame, pairs: Mapping[tuple[str, str], float | None]) -> list[Example]:
    names, matches = words_of_run(records).names, matches_of(records)
    examples: dict[str, Example] = {}
    for (true, called), alike in pairs.items():
        meant = (matches.true == names.index(true)) & (matches.called == names.index(called))
        counts = np.bincount(matches.image[meant], minlength=matches.images)
        unit, most = records["unit"][int(counts.argmax())], int(counts.max())
        kind = "a thing and stuff" if alike is None else f"similarity {alike:.2f}"
        words = f"{true} called {called} ({kind})" + (f", {most} times" if most > 1 else "")
        if unit in examples:
            words = f"{examples[unit].caption}; {words}"
        examples[unit] = Example(unit, words)
    return list(examples.values())


def _pair(score: Score) -> tuple[str, str]:
    return score.slice["true"], score.slice["called"]
