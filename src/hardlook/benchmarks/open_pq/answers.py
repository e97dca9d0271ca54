"""Segments answered by a model, or read from stored predictions, with the words they are written in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardlook.benchmarks.open_pq.dataset import SegmentedImage, Side
from hardlook.benchmarks.open_pq.words import Words
from hardlook.contract.benchmark import Unit
from hardlook.errors import ModelError, OptionError
from hardlook.metrics.panoptic_matching import Segments

_CHECK = "`hardlook check panoptic-segmenter MODEL` shows what else does not fit"


def answered_sides(units: Sequence[Unit], model: Any) -> list[Side]:
    """One predicted side a unit; the images go to the model as one batch."""
    contents: list[SegmentedImage] = [unit.payload for unit in units]
    if model is not None:
        words = Words(tuple(model.labels), tuple(bool(thing) for thing in model.things))
        answers = model.segment_panoptic([content.image for content in contents])
        return [_side(answer, words, unit) for answer, unit in zip(answers, units, strict=True)]
    return [_stored(content, unit.id) for content, unit in zip(contents, units, strict=True)]


def _side(answer: Any, words: Words, unit: Unit) -> Side:
    segment_map = np.asarray(answer.map, np.int32)
    shape = unit.payload.truth.map.shape
    if segment_map.shape != shape:
        what = f"the model answered a map of {segment_map.shape} for an image of {shape} (height, width)"
        raise ModelError(what, unit=unit.id, remedy=_CHECK)
    # A segment that is named and not drawn says nothing; one that is drawn and not named cannot be judged.
    drawn = [int(one) for one in np.setdiff1d(segment_map, 0)]
    labels = {int(one): int(label) for one, label in answer.labels.items()}
    strange = [one for one in drawn if not 0 <= labels.get(one, -1) < len(words.names)]
    if strange:
        what = f"segment {strange[0]} of the model's answer has no label, or one outside its {len(words.names)} labels"
        raise ModelError(what, unit=unit.id, remedy=_CHECK)
    classes = np.array([labels[one] for one in drawn], np.int64)
    return Side(words, Segments(np.array(drawn, np.int64), classes), map=segment_map)


def _stored(content: SegmentedImage, unit: str) -> Side:
    if content.predicted is None:
        raise OptionError(
            "there is neither a model nor a stored prediction", unit=unit, remedy="give --model or --pred"
        )
    return content.predicted
