"""Single tasks of MetaCoCo: how many of their queries were answered rightly, and what the others were taken for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hardlook.benchmarks.metacoco.slices import MISLED
from hardlook.contract.benchmark import Quality
from hardlook.contract.records import Record

if TYPE_CHECKING:
    import polars as pl

QUALITIES = (Quality("task-accuracy", "accuracy of the task"),)
MOST_NAMED = 6


def task_qualities(records: pl.DataFrame) -> pl.DataFrame:
    """`unit` and `task-accuracy`: the share of right answers, of the task in its mode."""
    import polars as pl

    return records.select("unit", (pl.col("correct") / pl.col("queries")).alias("task-accuracy"))


def caption_of(record: Record) -> str:
    r"""What was asked, how many answers are right, and how the others went wrong, in words.

    >>> record = {"mode": "iid", "shots": 1, "correct": 2, "queries": 4, "concepts": "cat\ndog"}
    >>> caption_of(record | {"support_context": [0, 1], "query_context": [0, 0, 1, 1], "predicted": [1, 1, 1, 1]})
    'Of 4 queries about cat, dog (iid, 1 shot) 2 are right; most often cat is called dog (2 times).'
    """
    concepts = str(record["concepts"]).split("\n")
    named = ", ".join(concepts[:MOST_NAMED])
    named += f" and {len(concepts) - MOST_NAMED} more" if len(concepts) > MOST_NAMED else ""
    shots = f"{record['shots']} {'shot' if record['shots'] == 1 else 'shots'}"
    right = "is" if record["correct"] == 1 else "are"
    words = (
        f"Of {record['queries']} queries about {named} ({record['mode']}, {shots}) {record['correct']} {right} right"
    )
    each = len(record["predicted"]) // len(concepts)
    wrong = [
        (place // each, answer, context)
        for place, (answer, context) in enumerate(zip(record["predicted"], record["query_context"], strict=True))
        if answer != place // each
    ]
    if not wrong:
        return f"{words}."
    # The most frequent one, of equally frequent ones the first by class.
    (asked, answered), times = min(Counter(pair[:2] for pair in wrong).items(), key=lambda one: (-one[1], one[0]))
    asked_as, called = concepts[asked], concepts[answered]
    often = (
        f"most often {asked_as} is called {called} ({times} times)" if times > 1 else f"{asked_as} is called {called}"
    )
    words += f"; {often}"
    shown = record["support_context"]
    if record["mode"] not in MISLED or min(shown) < 0:
        return f"{words}."
    led = sum(shown[answer] == context for _, answer, context in wrong)
    say = "names" if led == 1 else "name"
    return f"{words}; {led} of {len(wrong)} wrong answers {say} a class shown in the query's context."
