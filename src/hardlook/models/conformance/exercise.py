"""How a role is tried: what goes in, how to ask, what an answer must be, and when two answers are the same.

>>> shouting = Exercise(
...     what="words",
...     probes=lambda model: [Probe("word", "cat")],
...     ask=lambda model, words: [model(word) for word in words],
...     judge=lambda model, word, answer: [] if answer.isupper() else ["expected capitals"],
...     differ=lambda first, second: "" if first == second else "the words differ",
... )
>>> shouting.judge(None, "cat", shouting.ask(str.lower, ["cat"])[0])
['expected capitals']
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hardlook.models.conformance.probes import Probe


def nothing_more(model: Any) -> list[str]:
    """No faults: for roles without attributes to look at."""
    return []


@dataclass(frozen=True)
class Exercise:
    """A role's exercise.

    `probes()` makes fresh inputs; `ask(model, values)` gives one answer a value, or raises `Unanswered`; `judge(model,
    value, answer)` lists an answer's faults; `differ(first, second)` says how two answers differ, empty when they
    do not; `attributes(model)` lists faults of the model's attributes; `further` are checks of this role alone.
    `batched` is False for a role that takes one input a call.
    """

    what: str
    probes: Callable[[Any], list[Probe]]
    ask: Callable[[Any, list[Any]], list[Any]]
    judge: Callable[[Any, Any, Any], list[str]]
    differ: Callable[[Any, Any], str]
    attributes: Callable[[Any], list[str]] = nothing_more
    further: tuple[tuple[str, Callable[[Any], list[str]]], ...] = ()
    batched: bool = True
