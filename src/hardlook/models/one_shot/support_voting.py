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

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.models.answer_checks import check_answers
from hardlook.models.roles import Image, Mask, OneShotSegmenter, PairContext, Support, check_supports

Check = Callable[[Any, Sequence[Image], Sequence[Sequence[Support]], Sequence[str]], list[Mask]]
"""Turns the raw answers of a model to queries with supports, by unit, into masks; an error where one does not fit."""


def segment_with_supports(
    model: OneShotSegmenter,
    queries: Sequence[Image],
    supports: Sequence[Sequence[Support]],
    units: Sequence[str] = (),
    contexts: Sequence[PairContext] = (),
    check: Check | None = None,
) -> list[Mask]:
    """One mask (H, W) per query, from all of its supports, whether or not the model can take them together.

    Every answer of the model is checked, by `check` or as a run does; an error names the query's entry in `units`.
    `contexts` has one entry per query, or none; only a model that takes contexts is given them.

    A model with the attribute `supports_at_once = 1` is called once per rank (all first supports, then all second
    ones), and a pixel is kept if at least half of a query's masks hold it: with an even number of supports a tie is
    kept. A query without supports then has an empty mask. Any other model gets the supports as they are.
    """
    check_supports(queries, supports)
    given = contexts or [PairContext() for _ in queries]

    def ask(places: Sequence[int], shown: Sequence[Sequence[Support]]) -> list[Mask]:
        asked = [queries[place] for place in places]
        raw = ask_segmenter(model, asked, shown, [given[place] for place in places])
        named = [units[place] for place in places] if units else ()
        if check is not None:
            return check(raw, asked, shown, named)
        return check_answers("one-shot-segmenter", model, raw, list(zip(asked, shown, strict=True)), named)

    if getattr(model, "supports_at_once", None) != 1:
        return ask(range(len(queries)), supports)
    votes: list[NDArray[np.int32]] = [np.zeros(query.shape[:2], np.int32) for query in queries]
    for rank in range(max(map(len, supports), default=0)):
        chosen = [place for place, shown in enumerate(supports) if len(shown) > rank]
        masks = ask(chosen, [supports[place][rank : rank + 1] for place in chosen])
        for place, mask in zip(chosen, masks, strict=True):
            votes[place] += mask
    # Doubled votes instead of halves: integers have no rounding. A query without votes keeps no pixel.
    return [2 * count >= max(len(shown), 1) for count, shown in zip(votes, supports, strict=True)]


def takes_contexts(model: Any) -> bool:
    """Whether `segment_queries` of a model has a parameter `contexts`.

    >>> class Reads:
    ...     def segment_queries(self, queries, supports, contexts):
    ...         return [shown[0].mask for shown in supports]
    >>> takes_contexts(Reads())
    True
    """
    try:
        return "contexts" in inspect.signature(model.segment_queries).parameters
    except (TypeError, ValueError):  # a method of a compiled class, which has no signature
        return False


def ask_segmenter(
    model: Any, queries: Sequence[Image], supports: Sequence[Sequence[Support]], contexts: Sequence[PairContext]
) -> Any:
    """The raw answers of a model, which is given the contexts where it takes them."""
    more = {"contexts": contexts} if takes_contexts(model) else {}
    return model.segment_queries(queries, supports, **more)
