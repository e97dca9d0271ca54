"""The long table of queries against a loop over tasks and queries, also where tasks are of different sizes."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from hardlook.benchmarks.metacoco.answers_table import query_answers
from hardlook.benchmarks.metacoco.records import SCHEMA

CONCEPTS, CONTEXTS = ("bus", "cat", "dog", "owl"), ("beach", "fog", "night")


@st.composite
def tasks(draw):
    ways, asked = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    contexts = draw(st.permutations(CONTEXTS))[: draw(st.integers(1, 3))]
    of_context = st.integers(0, len(contexts) - 1)
    answers = st.lists(st.integers(0, ways - 1), min_size=ways * asked, max_size=ways * asked)
    return {
        "ways": ways,
        "concepts": draw(st.permutations(CONCEPTS))[:ways],
        "contexts": contexts,
        "support": draw(st.lists(st.one_of(st.just(-1), of_context), min_size=ways, max_size=ways)),
        "query": draw(st.lists(of_context, min_size=ways * asked, max_size=ways * asked)),
        "predicted": draw(st.one_of(st.just([]), answers)),
    }


def slowly(listed):
    """Task, concept, right, contexts of query, own and answered supports, rivals and ways, query after query."""
    kept = [task for task in listed if task["predicted"]]
    for number, task in enumerate(kept):
        shown = [None if place < 0 else task["contexts"][place] for place in task["support"]]
        each = len(task["predicted"]) // task["ways"]
        for place, (answer, context) in enumerate(zip(task["predicted"], task["query"], strict=True)):
            truth, name = place // each, task["contexts"][context]
            rivals = sum(shown[way] == name for way in range(task["ways"]) if way != truth)
            yield (
                number,
                task["concepts"][truth],
                answer == truth,
                name,
                shown[truth],
                shown[answer],
                rivals,
                task["ways"],
            )


def frame(listed):
    columns = {column.name: None for column in SCHEMA.columns}
    rows = [
        {
            **columns,
            "unit": f"{number}",
            "ways": task["ways"],
            "concepts": "\n".join(task["concepts"]),
            "contexts": "\n".join(task["contexts"]),
            "support_context": task["support"],
            "query_context": task["query"],
            "predicted": task["predicted"],
        }
        for number, task in enumerate(listed)
    ]
    ints = pl.List(pl.Int64)
    lists = {"support_context": ints, "query_context": ints, "predicted": ints}
    return pl.DataFrame(rows, schema_overrides={**lists, "concepts": pl.String, "contexts": pl.String})


@given(st.lists(tasks(), min_size=1, max_size=5))
def test_every_query_is_where_a_loop_puts_it(listed):
    found = query_answers(frame(listed))
    names = [None if place < 0 else found.contexts[place] for place in range(-1, len(found.contexts))]

    def named(numbers):
        return [names[number + 1] for number in numbers]

    rows = zip(
        found.task.tolist(),
        [found.concepts[number] for number in found.concept],
        found.right.tolist(),
        named(found.query_context),
        named(found.own_context),
        named(found.answered_context),
        found.rivals.tolist(),
        found.ways.tolist(),
        strict=True,
    )
    assert list(rows) == list(slowly(listed))
    assert np.array_equal(sorted(found.concepts), found.concepts)
