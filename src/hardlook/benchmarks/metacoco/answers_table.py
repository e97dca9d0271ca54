"""All queries of some tasks as one long table of numbers, for slices by concept and by context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class QueryAnswers:
    """One entry a query: its task, its class and the answered one, and the contexts around it.

    `task` numbers the records; `concept`, `query_context`, `own_context` (of its class's supports) and
    `answered_context` (of the answered class's supports) number the names, -1 where supports are of several contexts.
    `rivals` counts the wrong classes whose supports show the query's context.
    """

    concepts: tuple[str, ...]
    contexts: tuple[str, ...]
    task: Numbers
    concept: Numbers
    right: NDArray[np.bool_]
    query_context: Numbers
    own_context: Numbers
    answered_context: Numbers
    rivals: Numbers
    ways: Numbers

    @property
    def attracted(self) -> NDArray[np.bool_]:
        """Wrong answers whose class was shown in the query's own context."""
        led: NDArray[np.bool_] = ~self.right & (self.answered_context == self.query_context)
        return led


def query_answers(records: pl.DataFrame) -> QueryAnswers:
    """The queries of records that kept their answers; those that did not add nothing."""
    kept = records.filter(records["predicted"].list.len() > 0)
    if kept.is_empty():
        none = np.zeros(0, np.int64)
        return QueryAnswers((), (), none, none, none.astype(bool), none, none, none, none, none)
    concepts, concept, first_class = _numbered(kept["concepts"])
    contexts, context, first_context = _numbered(kept["contexts"])
    ways = kept["ways"].to_numpy().astype(np.int64)
    queries = kept["predicted"].list.len().to_numpy().astype(np.int64)
    task = np.repeat(np.arange(len(kept)), queries)
    place = np.arange(len(task)) - np.repeat(np.cumsum(queries) - queries, queries)
    # Queries stand class after class, equally many of each.
    truth = place // (queries // ways)[task]
    answered = _flat(kept["predicted"])
    # Of each class of each task the context of its supports, -1 where those are of several.
    shown = _flat(kept["support_context"])
    owner = np.repeat(np.arange(len(kept)), ways)
    support = np.where(shown < 0, -1, context[first_context[owner] + np.maximum(shown, 0)])
    asked = context[first_context[task] + _flat(kept["query_context"])]
    first_support = (np.cumsum(ways) - ways)[task]
    rivals = np.zeros(len(task), np.int64)
    for way in range(int(ways.max())):
        other = (way < ways[task]) & (way != truth)
        rivals += other & (support[np.where(other, first_support + way, 0)] == asked)
    return QueryAnswers(
        concepts=concepts,
        contexts=contexts,
        task=task,
        concept=concept[first_class[task] + truth],
        right=answered == truth,
        query_context=asked,
        own_context=support[first_support + truth],
        answered_context=support[first_support + answered],
        rivals=rivals,
        ways=ways[task],
    )


def _numbered(texts: pl.Series) -> tuple[tuple[str, ...], Numbers, Numbers]:
    """All names of texts with a name a line, in order; the number of each line; where the lines of each text begin."""
    import polars as pl

    lines = texts.str.split("\n")
    flat, counts = lines.explode(), lines.list.len().to_numpy().astype(np.int64)
    names = sorted(flat.unique().to_list())
    numbers = flat.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
    return tuple(names), numbers, np.cumsum(counts) - counts


def _flat(lists: pl.Series) -> Numbers:
    found: Numbers = lists.explode().to_numpy().astype(np.int64)
    return found
