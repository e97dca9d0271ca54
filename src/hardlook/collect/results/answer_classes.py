"""What became of each answer: it counts, or it is left out for exactly one reason.

The first of these that holds is the reason: the participant is excluded by a rule; the batch is open or was given up
before enough lay inside; the batch is complete and too few lay inside; the click is outside and not near; the display
mode is not the one asked for.

>>> answers = pl.DataFrame({"participant": ["a", "b", "b"], "batch_state": ["complete", "complete", "open"],
...     "batch_valid": [True, True, None], "near": [True, True, True], "mode": ["text", "text", "text"]})
>>> with_class(answers, {"a": "named"})["class"].to_list()
['excluded by rule', 'valid', 'batch not complete']
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from polars.expr.whenthen import ChainedThen

VALID, EXCLUDED, OPEN, INVALID = "valid", "excluded by rule", "batch not complete", "batch invalid"
OUTSIDE, OTHER_MODE = "outside", "of another display mode"
CLASSES = (VALID, OUTSIDE, INVALID, OPEN, EXCLUDED, OTHER_MODE)
BATCH_CLASSES = (VALID, INVALID, OPEN, EXCLUDED)
MEANING = {
    VALID: "inside the region or within the click radius of it, in a batch that counts",
    OUTSIDE: "beyond the click radius, in a batch that counts",
    INVALID: "too few clicks of the batch lie inside",
    OPEN: "the batch is still open, or was given up before enough clicks lay inside",
    EXCLUDED: "a rule of exclusion leaves the participant out",
    OTHER_MODE: "valid, and shown in a display mode that was not asked for",
}


def with_class(answers: pl.DataFrame, excluded: Collection[str], mode: str | None = None) -> pl.DataFrame:
    """Answers with a column `class`, one of `CLASSES`; `mode` names the display mode that is asked for."""
    other = pl.col("mode") != mode if mode is not None else pl.lit(False)
    return answers.with_columns(
        _batch_class(pl.col("batch_state"), pl.col("batch_valid"), excluded)
        .when(~pl.col("near").fill_null(False))
        .then(pl.lit(OUTSIDE))
        .when(other)
        .then(pl.lit(OTHER_MODE))
        .otherwise(pl.lit(VALID))
        .alias("class")
    )


def batches_with_class(batches: pl.DataFrame, excluded: Collection[str]) -> pl.DataFrame:
    """Batches with a column `class`, one of `BATCH_CLASSES`.

    >>> batches = pl.DataFrame({"participant": ["a", "a"], "state": ["returned", "complete"], "valid": [False, False]})
    >>> batches_with_class(batches, ())["class"].to_list()
    ['batch not complete', 'batch invalid']
    """
    return batches.with_columns(
        _batch_class(pl.col("state"), pl.col("valid"), excluded).otherwise(pl.lit(VALID)).alias("class")
    )


def counts_by_class(frame: pl.DataFrame, classes: Collection[str] = CLASSES) -> dict[str, int]:
    """Rows of each class, those without any too.

    >>> counts_by_class(pl.DataFrame({"class": ["valid", "valid"]}), BATCH_CLASSES)
    {'valid': 2, 'batch invalid': 0, 'batch not complete': 0, 'excluded by rule': 0}
    """
    found = dict(frame.group_by("class").len().iter_rows())
    return {name: found.get(name, 0) for name in classes}


def _batch_class(state: pl.Expr, valid: pl.Expr, excluded: Collection[str]) -> ChainedThen:
    counts = valid.fill_null(False)
    return (
        pl.when(pl.col("participant").is_in(list(excluded)))
        .then(pl.lit(EXCLUDED))
        .when((state == "open") | ((state == "returned") & ~counts))
        .then(pl.lit(OPEN))
        .when(~counts)
        .then(pl.lit(INVALID))
    )
