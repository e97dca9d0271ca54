"""What a role demands of a model (`RoleContract`), what a check found (`Finding`), and how two answers differ.

>>> capitals = RoleContract(
...     RoleAnswers("words", lambda model, word, answer, exact: [] if answer.isupper() else ["not capitals"], list),
...     probes=lambda model: [Probe("word", "cat")],
...     call=lambda model, words: [model(word) for word in words],
...     compare=lambda first, second: "" if first == second else "the words differ",
... )
>>> capitals.find_faults(None, "cat", capitals.call(str.lower, ["cat"])[0])
['not capitals']
>>> Finding("order", False, "answer 0 differs").line()
'FAIL order: answer 0 differs'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardlook.models.answer_checks import RoleAnswers
from hardlook.models.conformance.probes import Probe


@dataclass(frozen=True)
class Finding:
    """One check: its name, whether the model passed, and what was expected, what came, and where."""

    check: str
    passed: bool
    message: str

    def line(self) -> str:
        """The finding in one line."""
        return f"{'ok  ' if self.passed else 'FAIL'} {self.check}: {self.message}"


LABEL_AGREEMENT = 0.995
FLOAT_TOLERANCE = 1e-3


def describe_difference(name: str, first: Any, second: Any) -> str:
    """How two answers differ, empty when they do not.

    Whole numbers and masks may differ in 0.5 % of the places and floats by 1e-3: networks round by batch.

    >>> describe_difference("map", np.zeros(2), np.array([0.0, 1.0]))
    'map: differs by up to 1'
    """
    one, two = np.asarray(first), np.asarray(second)
    if one.shape != two.shape:
        return f"{name}: shape {one.shape} against {two.shape}"
    if not one.size:
        return ""
    if one.dtype.kind in "iub":
        agreement = float((one == two).mean())
        return "" if agreement >= LABEL_AGREEMENT else f"{name}: only {agreement:.1%} of the values are the same"
    if np.allclose(one, two, rtol=FLOAT_TOLERANCE, atol=FLOAT_TOLERANCE, equal_nan=True):
        return ""
    return f"{name}: differs by up to {float(np.nanmax(np.abs(one.astype(float) - two.astype(float)))):.3g}"


@dataclass(frozen=True)
class RoleContract:
    """How models of a role are called, and what their answers must be.

    `answers` are the demands on answers and attributes, which runs check too, and here exactly; `probes(model)` makes
    fresh inputs; `call(model, values)` gives one answer per value, or raises `AnswerError`; `compare(first, second)`
    describes how two answers differ, empty when they do not; `extra_checks` are checks of this role alone. `batched` is
    False for a role that takes one input per call.
    """

    answers: RoleAnswers
    probes: Callable[[Any], list[Probe]]
    call: Callable[[Any, list[Any]], list[Any]]
    compare: Callable[[Any, Any], str]
    extra_checks: tuple[tuple[str, Callable[[Any], list[str]]], ...] = ()
    batched: bool = True

    @property
    def input_name(self) -> str:
        """The plural of one input."""
        return self.answers.inputs

    def find_faults(self, model: Any, value: Any, answer: Any) -> list[str]:
        """What is wrong with the answer to one input."""
        return self.answers.find_faults(model, value, answer, True)

    def attribute_faults(self, model: Any) -> list[str]:
        """What is wrong with the model's attributes."""
        return self.answers.attribute_faults(model, True)
