"""Models that keep their role's contract but for one fault: planted models whose answers are modified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from hardlook.models.registry import build
from hardlook.models.roles import Features, Instances, Prompted, Segments


@dataclass(frozen=True)
class RoleAccess:
    """How to modify the answers of a role's model: its name and method, and a function that makes an answer wrong."""

    name: str
    method: str
    make_wrong: Callable[[Any], Any]
    unpack: Callable[[Any], list[Any]] = list
    pack: Callable[[list[Any]], Any] = list


def vectors(rows: list[Any]) -> np.ndarray:
    return np.array(rows, np.float32) if rows else np.zeros((0, 64), np.float32)


def features(rows: list[Any]) -> Features:
    return Features(vectors([row for row, _ in rows]), [cells for _, cells in rows])


def no_instances(found: Instances) -> Instances:
    return Instances(found.masks[:0], found.boxes[:0], found.scores[:0], found.labels[:0])


ROLE_ACCESS = {
    "encoder": RoleAccess(
        "planted-encoder", "encode", lambda a: (-a[0], a[1]), lambda f: [*zip(f.vectors, f.maps, strict=True)], features
    ),
    "text-encoder": RoleAccess("planted-text-encoder", "encode_text", lambda a: -a, list, vectors),
    "image-text-encoder": RoleAccess(
        "planted-image-text-encoder", "encode_images", lambda a: -a, list, vectors
    ),
    "saliency": RoleAccess("planted-saliency", "saliency", lambda a: 1 - a),
    "semantic-segmenter": RoleAccess("planted-segmenter", "segment", lambda a: (a == 0).astype(np.int32)),
    "instance-segmenter": RoleAccess("planted-instances", "detect", no_instances),
    "panoptic-segmenter": RoleAccess("planted-panoptic", "segment_panoptic", lambda a: Segments(a.map * 0, {})),
    "one-shot-segmenter": RoleAccess("planted-one-shot", "segment_queries", lambda a: ~a),
    "few-shot-learner": RoleAccess("planted-learner", "classify", lambda a: -a),
    "promptable-segmenter": RoleAccess("disc", "predict", lambda a: Prompted(~a.mask)),
    "click-model": RoleAccess(
        "planted-clicks", "click_map", lambda a: a[::-1, ::-1] + 1, lambda a: [a], lambda r: r[0]
    ),
}  # fmt: skip

Fault = Callable[["Broken", list[Any], list[Any]], list[Any]]


class Broken:
    """A planted model whose answers are modified by `fault`."""

    def __init__(self, role: str, fault: Fault, number: int = 0, **attributes: Any) -> None:
        access = ROLE_ACCESS[role]
        inner = build(access.name, role)
        self.access, self.fault, self.number = access, fault, number
        self.calls, self.given = 0, []
        for name in ("dimension", "labels", "things", "accepts"):
            if hasattr(inner, name):
                setattr(self, name, attributes.get(name, getattr(inner, name)))
        if role == "promptable-segmenter":
            self.open = lambda image: SimpleNamespace(predict=self._modify_answers_of(inner.open(image).predict, image))
        else:
            setattr(self, access.method, self._modify_answers_of(getattr(inner, access.method)))
        if role == "image-text-encoder":
            self.encode_text = inner.encode_text

    def _modify_answers_of(self, method: Callable[..., Any], *opened: Any) -> Callable[..., Any]:
        def call(first: Any, *rest: Any) -> Any:
            self.calls += 1
            inputs = [(first, *rest)] if self.access.method == "click_map" else list(first)
            answers = self.access.unpack(method(first, *rest))
            changed = self.fault(self, [*opened, *inputs], answers)
            self.given += answers
            return self.access.pack(changed)

        return call


def arrays(value: Any) -> list[np.ndarray]:
    if isinstance(value, np.ndarray):
        return [value]
    if is_dataclass(value):
        return [array for field in fields(value) for array in arrays(getattr(value, field.name))]
    return [array for part in value for array in arrays(part)] if isinstance(value, list | tuple) else []


_RANDOM_FLIPS = np.random.default_rng(0).random((1000, 20)) < 0.5


def crash_on_small_images(model, inputs, answers):
    if any(array.ndim == 3 and array.shape[:2] == (8, 8) for value in inputs for array in arrays(value)):
        raise ValueError("too small for me")
    return answers


def drop_last_answer(model, inputs, answers):
    return answers[:-1]


def depend_on_batch_size(model, inputs, answers):
    return [model.access.make_wrong(answer) for answer in answers] if len(answers) == 1 else answers


def depend_on_position(model, inputs, answers):
    return [model.access.make_wrong(answers[0]), *answers[1:]] if len(answers) > 1 else answers


def change_at_random(model, inputs, answers):
    flips = _RANDOM_FLIPS[model.calls % len(_RANDOM_FLIPS)]
    return [model.access.make_wrong(answer) if flips[index] else answer for index, answer in enumerate(answers)]


def repeat_previous_answer(model, inputs, answers):
    """The last answer is that of the call before: state leaks from one call into the next."""
    earlier, model.last = getattr(model, "last", None), answers[-1]
    fits = earlier is not None and arrays(earlier)[0].shape == arrays(answers[-1])[0].shape
    return [*answers[:-1], earlier] if fits else answers


def depend_on_instance(model, inputs, answers):
    return [model.access.make_wrong(answer) for answer in answers] if model.number % 2 else answers


def overwrite_inputs(model, inputs, answers):
    for array in (array for value in inputs for array in arrays(value)):
        array[...] = 0
    return answers


def overwrite_earlier_answers(model, inputs, answers):
    earlier, model.given = model.given, []
    for array in (array for answer in earlier for array in arrays(answer)):
        array[...] = array == 0
    return answers


def fail_on_empty_batch(model, inputs, answers):
    if not answers:
        raise IndexError("nothing to work on")
    return answers


def changed(change: Callable[[Any], Any]) -> Fault:
    """A fault that applies `change` to every answer."""
    return lambda model, inputs, answers: [change(answer) for answer in answers]


def part(name: str, change: Callable[[Any], Any]) -> Fault:
    """A fault that applies `change` to the field `name` of every answer."""
    return changed(lambda answer: replace(answer, **{name: change(getattr(answer, name))}))


def stained(value, dtype=None):
    """A function that sets the first element of an array, of that type, to a value."""

    def change(array):
        array = array.astype(dtype or array.dtype)
        array.reshape(-1)[:1] = value
        return array

    return change
