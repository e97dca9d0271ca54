"""What a role demands of a model (`RoleContract`), what a check found (`Finding`), and faults of arrays as sentences.

>>> capitals = RoleContract(
...     input_name="words",
...     probes=lambda model: [Probe("word", "cat")],
...     call=lambda model, words: [model(word) for word in words],
...     find_faults=lambda model, word, answer: [] if answer.isupper() else ["expected capitals"],
...     compare=lambda first, second: "" if first == second else "the words differ",
... )
>>> capitals.find_faults(None, "cat", capitals.call(str.lower, ["cat"])[0])
['expected capitals']
>>> Finding("order", False, "answer 0 differs").line()
'FAIL order: answer 0 differs'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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


class AnswerError(Exception):
    """The model's answer cannot be split into one answer per input; the text says why."""


LABEL_AGREEMENT = 0.995
FLOAT_TOLERANCE = 1e-3


def find_array_faults(
    name: str,
    value: Any,
    dtype: type[np.generic],
    shape: Mapping[str, int],
    low: float | None = None,
    high: float | None = None,
) -> list[str]:
    """What is wrong with an array: its kind, type, shape (axis name: length), infinities and range.

    >>> find_array_faults("mask", np.zeros((4, 6)), np.bool_, {"H": 6, "W": 4})
    ['mask: expected bool, got float64', 'mask: expected shape (H, W) = (6, 4), got (4, 6)']
    >>> find_array_faults("map", np.array([[0.0, 1.5]], np.float32), np.float32, {"H": 1, "W": 2}, low=0, high=1)
    ['map: expected values in [0, 1], got 1.5 at index (0, 1)']
    """
    if not isinstance(value, np.ndarray):
        return [f"{name}: expected a numpy array, got {_kind(value)}"]
    faults = []
    if value.dtype != dtype:
        faults.append(f"{name}: expected {np.dtype(dtype)}, got {value.dtype}")
    if value.shape != tuple(shape.values()):
        axes, lengths = ", ".join(shape), tuple(shape.values())
        faults.append(f"{name}: expected shape ({axes}) = {lengths}, got {value.shape}")
    if value.dtype.kind in "iufb" and value.size:
        faults += _value_faults(name, value.astype(float), low, high)
    return faults


def split_answers(raw: Any, count: int, what: str) -> list[Any]:
    """The answers of a call on `count` inputs, if there is one for each."""
    if not isinstance(raw, Sequence) or isinstance(raw, str):
        raise AnswerError(f"expected a list with one answer for each of {count} {what}, got {_kind(raw)}")
    if len(raw) != count:
        raise AnswerError(f"expected {count} answers for {count} {what}, got {len(raw)}")
    return list(raw)


def split_rows(raw: Any, count: int, width: int, what: str) -> list[Any]:
    """The rows of an array (count, width), if it has one for each input."""
    if not isinstance(raw, np.ndarray):
        raise AnswerError(f"vectors: expected a numpy array, got {_kind(raw)}")
    if raw.shape != (count, width):
        raise AnswerError(f"vectors: expected shape (N, D) = {(count, width)} for {count} {what}, got {raw.shape}")
    return list(raw)


def missing_fields(answer: Any, *names: str) -> list[str]:
    """Fields that an answer ought to have and does not."""
    return [f"expected an answer with `{name}`, got {_kind(answer)}" for name in names if not hasattr(answer, name)]


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


def _value_faults(name: str, value: Any, low: float | None, high: float | None) -> list[str]:
    if not np.isfinite(value).all():
        return [f"{name}: expected finite values, got {value[~np.isfinite(value)][0]} {_first(~np.isfinite(value))}"]
    outside = (value < (-np.inf if low is None else low)) | (value > (np.inf if high is None else high))
    if not outside.any():
        return []
    wanted = f"in [{low}, {high}]" if high is not None else f"of at least {low}"
    return [f"{name}: expected values {wanted}, got {value[outside][0]:.4g} {_first(outside)}"]


def _first(where: Any) -> str:
    return f"at index {tuple(int(i) for i in np.argwhere(where)[0])}"


def _kind(value: Any) -> str:
    device = getattr(value, "device", None)
    return f"{type(value).__module__}.{type(value).__qualname__}" + (f" on {device}" if device is not None else "")


@dataclass(frozen=True)
class RoleContract:
    """How models of a role are called, and what their answers must be.

    `input_name` is the plural of one input; `probes(model)` makes fresh inputs; `call(model, values)` gives one answer
    per value, or raises `AnswerError`; `find_faults(model, value, answer)` lists an answer's faults;
    `compare(first, second)` describes how two answers differ, empty when they do not; `attribute_faults(model)` lists
    faults of the model's attributes; `extra_checks` are checks of this role alone. `batched` is False for a role that
    takes one input per call.
    """

    input_name: str
    probes: Callable[[Any], list[Probe]]
    call: Callable[[Any, list[Any]], list[Any]]
    find_faults: Callable[[Any, Any, Any], list[str]]
    compare: Callable[[Any, Any], str]
    attribute_faults: Callable[[Any], list[str]] = lambda model: []
    extra_checks: tuple[tuple[str, Callable[[Any], list[str]]], ...] = ()
    batched: bool = True
