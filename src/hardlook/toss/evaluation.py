"""Evaluating pairs: predict one mask per pair, and count pixels in a record.

Every score under every reading follows from these counts. `make_record` and its columns `COUNTS` serve all benchmarks
on one-shot pairs, `SCHEMA` and `evaluate_units` are those of TOSS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from hardlook.data import rle
from hardlook.data.class_tokens import parse_numbered_token
from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.harness.scorecard import LeftOut
from hardlook.models.one_shot.support_voting import segment_with_supports
from hardlook.models.roles import Mask, PairContext
from hardlook.toss.pair_lists import EXAMPLES
from hardlook.toss.pairs import OneShotPair

if TYPE_CHECKING:
    import polars as pl

SLICES = (
    Column("tier", "int", "1 query complexity, 2 support cognizance, 3 generalisation, 0 the fixed pairs", "slice"),
    Column(
        "fold",
        "int",
        "the fold whose test classes these are; in tier 3 the fold of the model, -1 if it has none",
        "slice",
    ),
    Column("split", "text", "the query's partition in tier 1, the level in tier 2, else empty", "slice"),
    Column("class", "text", "the class to find", "slice"),
    Column("shots", "int", "how many supports", "slice"),
    Column("mixed", "bool", "query and support are of two classes by a slip of names (tier 3)", "slice"),
)
COUNTS: tuple[Column, ...] = (
    Column("query", "text", "the query's image: what intervals resample"),
    Column("support", "text", "the supports, as class and image, separated by spaces"),
    Column("intersection", "int", "pixels predicted and true"),
    Column("predicted", "int", "pixels predicted"),
    Column("truth", "int", "pixels true"),
    Column("predicted_void", "int", "pixels predicted where the truth leaves the class open"),
    Column("void", "int", "pixels where the truth leaves the class open"),
    Column("pixels", "int", "pixels of the query"),
    Column("listing", "text", "where the pair comes from"),
    Column("prediction", "text", "the predicted mask, run-length encoded, or empty", "picture"),
    Column("empty_supports", "int", "supports that are to show the class and whose mask has no pixel", default=0),
)
NO_SALIENCY = -1
SALIENT_COUNTS: tuple[Column, ...] = (
    Column("salient", "int", "pixels of the saliency model's mask of the query; -1 where it was not asked"),
    Column("predicted_salient", "int", "pixels predicted and salient; -1 where it was not asked"),
    Column("truth_salient", "int", "pixels true and salient; -1 where it was not asked"),
    Column("found_salient", "int", "pixels predicted, true and salient; -1 where it was not asked"),
)
NO_SIMILARITY = -2.0
SIMILARITY = Column("similarity", "float", "cosine of the images of query and support; -2 where no encoder was asked")
SCHEMA = RecordSchema((*SLICES, *COUNTS, *SALIENT_COUNTS, SIMILARITY))


def evaluate_units(units: Sequence[Unit], model: Any) -> Sequence[Record]:
    """Segment all queries in one call, then count pixels."""
    return [
        {
            **make_record(unit, mask, SLICES),
            **count_salient_pixels(unit.payload, mask),
            SIMILARITY.name: unit.payload.similarity,
        }
        for unit, mask in zip(units, predict_masks(units, model), strict=True)
    ]


def predict_masks(units: Sequence[Unit], model: Any) -> list[Mask]:
    """The model's masks, checked against its role; without a model the stored ones."""
    pairs = [unit.payload for unit in units]
    if model is None:
        return [pair.predicted for pair in pairs]
    ids, contexts = [unit.id for unit in units], [make_context(pair) for pair in pairs]
    queries, supports = [pair.image for pair in pairs], [pair.support for pair in pairs]
    return segment_with_supports(model, queries, supports, ids, contexts)


def make_context(pair: OneShotPair) -> PairContext:
    """What the model may know of a pair; the class is that of the support, which in L4 is not the query's."""
    settings, fold = pair.settings, int(pair.slices["fold"])
    source, support = settings.source, pair.supports[0]
    name = source.class_of(support) if pair.shows_class else None
    number = parse_numbered_token(support)[0] if name and "fss" not in source.paths() else None
    return PairContext(fold if fold >= 0 else None, number, name, settings.training_classes)


def make_record(unit: Unit, mask: Mask, slices: Sequence[Column]) -> Record:
    """The record of one pair and its predicted mask (H, W); `slices` are the columns taken from the pair's labels."""
    pair: OneShotPair = unit.payload
    truth = pair.truth
    assert truth is not None
    return {
        "unit": unit.id,
        **{column.name: pair.slices[column.name] for column in slices},
        "query": pair.settings.source.image_of(pair.query),
        "support": " ".join(pair.supports),
        "intersection": _count(mask & truth.mask),
        "predicted": _count(mask),
        "truth": _count(truth.mask),
        "predicted_void": _count(mask & truth.void),
        "void": _count(truth.void),
        "pixels": int(mask.size),
        "listing": pair.settings.listing,
        "prediction": rle.encode(mask)["counts"] if pair.settings.keep_prediction else "",
        "empty_supports": sum(not shown.mask.any() for shown in pair.support) if pair.shows_class else 0,
    }


def note_empty_supports(records: pl.DataFrame, pair: str = "unit") -> tuple[LeftOut, ...]:
    """A note on pairs whose support was to show the class, and whose mask has no pixel of it.

    `pair` is the column that names the pair, of which several units with the same support count once.
    """
    rows = records.filter(records["empty_supports"] > 0)
    units = rows.unique(pair, keep="first", maintain_order=True)["unit"].to_list()
    why = "a support's mask has no pixel of its class, so it shows nothing; the pairs count"
    return (
        (LeftOut("pairs with an empty support", len(units), why, tuple(units[:EXAMPLES]), kept=True),) if units else ()
    )


def count_salient_pixels(pair: OneShotPair, mask: Mask) -> dict[str, Any]:
    """The columns of `SALIENT_COUNTS` for a predicted mask (H, W)."""
    if pair.salient is None:
        return {column.name: NO_SALIENCY for column in SALIENT_COUNTS}
    assert pair.truth is not None
    true_salient = pair.truth.mask & pair.salient
    return {
        "salient": _count(pair.salient),
        "predicted_salient": _count(mask & pair.salient),
        "truth_salient": _count(true_salient),
        "found_salient": _count(mask & true_salient),
    }


def decode_prediction(counts: str, shape: tuple[int, int]) -> Mask:
    """The mask from the text in a record; `shape` is (height, width).

    >>> mask = np.eye(3, dtype=bool)
    >>> bool((decode_prediction(rle.encode(mask)["counts"], (3, 3)) == mask).all())
    True
    """
    return rle.decode({"size": list(shape), "counts": counts})


def _count(mask: Mask) -> int:
    return cv2.countNonZero(mask.view(np.uint8))
