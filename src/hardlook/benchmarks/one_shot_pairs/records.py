"""The record of a pair: whole pixel counts, from which every score under every reading follows."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from hardlook.benchmarks.one_shot_pairs.pairs import OneShotPair
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Column, Record
from hardlook.data import rle
from hardlook.models.roles import Mask

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
)


def record_of(unit: Unit, mask: Mask, slices: Sequence[str]) -> Record:
    """The record of one pair; `slices` names the labels of the pair that become columns."""
    pair: OneShotPair = unit.payload
    truth = pair.truth
    assert truth is not None
    return {
        "unit": unit.id,
        **{name: pair.slices[name] for name in slices},
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
    }


def decode_prediction(counts: str, shape: tuple[int, int]) -> Mask:
    """Back from the text in a record; `shape` is (height, width).

    >>> mask = np.eye(3, dtype=bool)
    >>> bool((decode_prediction(rle.encode(mask)["counts"], (3, 3)) == mask).all())
    True
    """
    return rle.decode({"size": list(shape), "counts": counts})


def _count(mask: Mask) -> int:
    return cv2.countNonZero(mask.view(np.uint8))
