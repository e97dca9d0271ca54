"""Several supports for a model that takes one: it is called once per support, and the masks are put to the vote.

>>> class Repeats:
...     supports_at_once = 1
...     def segment_queries(self, queries, supports):
...         return [shown[0].mask for shown in supports]
>>> picture, masks = np.zeros((1, 4, 3), np.uint8), np.array([[[1, 1, 0, 0]], [[1, 0, 1, 0]]], bool)
>>> [mask] = segment_with_supports(Repeats(), [picture], [[Support(picture, mask) for mask in masks]])
>>> mask.tolist()
[[True, True, True, False]]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.models.answer_checks import check_answers
from hardlook.models.roles import Image, Mask, OneShotSegmenter, Support, check_supports


def segment_with_supports(
    model: OneShotSegmenter,
    queries: Sequence[Image],
    supports: Sequence[Sequence[Support]],
    units: Sequence[str] = (),
) -> list[Mask]:
    """One mask (H, W) per query, from all of its supports, whether or not the model can take them together.

    Every answer of the model is checked; an error names the query's entry in `units`.

    A model with the attribute `supports_at_once = 1` is called once per rank (all first supports, then all second
    ones), and a pixel is kept if at least half of a query's masks hold it: with an even number of supports a tie is
    kept. A query without supports then has an empty mask. Any other model gets the supports as they are.
    """
    check_supports(queries, supports)
    if getattr(model, "supports_at_once", None) != 1:
        return _call(model, queries, supports, units)
    votes: list[NDArray[np.int32]] = [np.zeros(query.shape[:2], np.int32) for query in queries]
    for rank in range(max(map(len, supports), default=0)):
        chosen = [place for place, shown in enumerate(supports) if len(shown) > rank]
        asked = [queries[place] for place in chosen], [supports[place][rank : rank + 1] for place in chosen]
        masks = _call(model, *asked, [units[place] for place in chosen] if units else ())
        for place, mask in zip(chosen, masks, strict=True):
            votes[place] += mask
    # Doubled votes instead of halves: integers have no rounding. A query without votes keeps no pixel.
    return [2 * count >= max(len(shown), 1) for count, shown in zip(votes, supports, strict=True)]


def _call(
    model: OneShotSegmenter, queries: Sequence[Image], supports: Sequence[Sequence[Support]], units: Sequence[str]
) -> list[Mask]:
    answers = model.segment_queries(queries, supports)
    return check_answers("one-shot-segmenter", model, answers, list(zip(queries, supports, strict=True)), units)
