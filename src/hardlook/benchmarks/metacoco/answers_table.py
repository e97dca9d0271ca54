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
    concepts = sorted({name for text in kept["concepts"].unique() for name in text.split("\n")})
    contexts = sorted({name for text in kept["contexts"].unique() for name in text.split("\n")})
    concept_number = {name: number for number, name in enumerate(concepts)}
    context_number = {name: number for number, name in enumerate(contexts)}
    parts: dict[str, list[Numbers]] = {name: [] for name in _COLUMNS}
    named = zip(
        kept["ways"].to_list(),
        kept["concepts"].to_list(),
        kept["contexts"].to_list(),
        kept["support_context"].to_list(),
        kept["query_context"].to_list(),
        kept["predicted"].to_list(),
        strict=True,
    )
    for task, (ways, concept_text, context_text, support_context, query_context, predicted) in enumerate(named):
        names = np.array([concept_number[name] for name in concept_text.split("\n")], np.int64)
        # The last entry answers -1, the place of supports from several contexts.
        places = np.array([*(context_number[name] for name in context_text.split("\n")), -1], np.int64)
        support = places[support_context]
        asked, answered = places[query_context], np.asarray(predicted, np.int64)
        truth = np.repeat(np.arange(ways), len(answered) // ways)
        same = support[None, :] == asked[:, None]
        same[np.arange(len(truth)), truth] = False
        parts["task"].append(np.full(len(truth), task))
        parts["concept"].append(names[truth])
        parts["right"].append(answered == truth)
        parts["query_context"].append(asked)
        parts["own_context"].append(support[truth])
        parts["answered_context"].append(support[answered])
        parts["rivals"].append(same.sum(1))
        parts["ways"].append(np.full(len(truth), ways))
    joined = {name: np.concatenate(arrays) if arrays else np.zeros(0, np.int64) for name, arrays in parts.items()}
    joined["right"] = joined["right"].astype(bool)
    return QueryAnswers(tuple(concepts), tuple(contexts), **joined)  # type: ignore[arg-type]


_COLUMNS = ("task", "concept", "right", "query_context", "own_context", "answered_context", "rivals", "ways")
