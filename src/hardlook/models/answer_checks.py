"""What a model answers, checked against its role: by every benchmark before it scores, and by `hardlook check`.

`check_answers` gives the answers of a call, one per input, or raises a `ModelError` that names the model, the unit,
what was expected and what was returned. It accepts what can be scored as it is meant: other integer or float types
than the role's, masks of integers 0 and 1, torch tensors in main memory and nested lists of numbers in place of arrays,
detections in any order. `hardlook check` uses the same functions with `exact=True`, which also demands the types and
the order that the role states; so what it accepts, a run accepts.

>>> class Segmenter:
...     labels = ("cat", "sky")
>>> picture = np.zeros((1, 2, 3), np.uint8)
>>> check_answers("semantic-segmenter", Segmenter(), [np.array([[1, -1]])], [picture])
[array([[ 1, -1]], dtype=int32)]
>>> ANSWERS["semantic-segmenter"].find_faults(Segmenter(), picture, np.array([[1, 2]], np.int32), False)
['map: expected values in [-1, 1], got 2 at index (0, 1)']
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.roles import Clicks, Image, Instances, PhrasedAnswer, Prompted, Segments, Session

UNIT_TOLERANCE = 1e-3
# What rounding adds to a probability that was resized or summed; far below anything that changes a score.
ROUNDING = 1e-5
# By the type of a role, the kinds of arrays that hold the same values in another type.
_SAME_VALUES = {"b": "biu", "i": "iu", "f": "fiub"}
_CONVERSIONS = {
    "b": "answer a bool mask, such as scores > threshold",
    "i": "convert whole numbers by .astype(np.int32), take the .argmax of class scores",
    "f": "convert by .astype(np.float32)",
}


class AnswerError(Exception):
    """The model's answer cannot be split into one answer per input; the text says why."""


@dataclass(frozen=True)
class RoleAnswers:
    """What the answers of a role must be.

    `inputs` is the plural of one input; `split(model, raw, count, exact)` gives one answer for each of `count` inputs,
    or raises `AnswerError`; `find_faults(model, value, answer, exact)` lists the faults of the answer to one input;
    `attribute_faults(model, exact)` those of the model's attributes; `to_arrays` gives an answer with numpy arrays in
    place of what converts to them; `convert` gives an answer without faults the type that its role says.
    """

    inputs: str
    find_faults: Callable[[Any, Any, Any, bool], list[str]]
    split: Callable[[Any, Any, int, bool], list[Any]]
    attribute_faults: Callable[[Any, bool], list[str]] = lambda model, exact: []
    convert: Callable[[Any], Any] = lambda answer: answer
    to_arrays: Callable[[Any], Any] = lambda answer: to_array(answer)


def check_answers(role: str, model: Any, raw: Any, values: Sequence[Any], units: Sequence[str] = ()) -> list[Any]:
    """The answers `raw` of a model to `values`, one for each, in the types of the role; else a `ModelError`.

    `values` are inputs as `hardlook check` has them: images, texts, episodes, (query, supports), (image, prompt).
    `units` names the unit of each value, for the error.
    """
    demands = ANSWERS[role]
    if faults := demands.attribute_faults(model, False):
        raise _model_error(role, model, faults)
    try:
        answers = [demands.to_arrays(answer) for answer in demands.split(model, raw, len(values), False)]
    except AnswerError as error:
        raise _model_error(role, model, [str(error)], units[0] if len(units) == 1 else None) from None
    for place, (value, answer) in enumerate(zip(values, answers, strict=True)):
        if faults := demands.find_faults(model, value, answer, False):
            raise _model_error(role, model, faults, units[place] if units else None)
    return [demands.convert(answer) for answer in answers]


def _model_error(role: str, model: Any, faults: Sequence[str], unit: str | None = None) -> ModelError:
    remedy = f"`hardlook check {role} MODEL` lists all that does not fit the role; docs/model-roles.md describes it"
    return ModelError(f"the {role} {_class_name(model)}: {'; '.join(faults)}", unit=unit, remedy=remedy)


class CheckedSession:
    """An opened image whose answers are checked, call by call."""

    def __init__(self, model: Any, image: Image) -> None:
        self.model, self.image = model, image
        self.session: Session = model.open(image)
        if not hasattr(self.session, "predict"):
            fault = f"expected `open` to give a session with `predict`, got {describe_kind(self.session)}"
            raise _model_error("promptable-segmenter", model, [fault])

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One answer per prompt, its mask (H, W) bool."""
        values = [(self.image, prompt) for prompt in prompts]
        return check_answers("promptable-segmenter", self.model, self.session.predict(prompts), values)


def to_array(value: Any) -> Any:
    """The value as a numpy array where it converts to one, such as a torch tensor on the CPU or nested lists.

    Anything else is given back as it is. The type of an empty list is not known, so it is not converted.

    >>> to_array([[1, 2], [3, 4]]).dtype.kind, to_array([[1, 2], [3]]), to_array(None)
    ('i', [[1, 2], [3]], None)
    """
    if isinstance(value, np.ndarray) or not (isinstance(value, list | tuple) or hasattr(value, "__array__")):
        return value
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return value
    return array if array.size or not isinstance(value, list | tuple) else value


def find_array_faults(
    name: str,
    value: Any,
    dtype: type[np.generic],
    shape: Mapping[str, int],
    low: float | None = None,
    high: float | None = None,
    *,
    exact: bool = True,
    values: bool = True,
) -> list[str]:
    """What is wrong with an array: its kind, type, shape (axis name: length) and, with `values`, infinities and range.

    >>> find_array_faults("mask", np.zeros((4, 6)), np.bool_, {"H": 6, "W": 4})
    ['mask: expected bool, got float64', 'mask: expected shape (H, W) = (6, 4), got (4, 6)']
    >>> find_array_faults("map", np.array([[0.0, 1.5]], np.float32), np.float32, {"H": 1, "W": 2}, low=0, high=1)
    ['map: expected values in [0, 1], got 1.5 at index (0, 1)']
    >>> find_array_faults("map", np.array([[3]]), np.int32, {"H": 1, "W": 1}, low=-1, high=9, exact=False)
    []
    """
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        return [f"{name}: expected a numpy array, got {describe_kind(value)}{_suggest_conversion(value)}"]
    faults, wanted = [], np.dtype(dtype)
    if value.dtype != wanted and (exact or value.dtype.kind not in _SAME_VALUES[wanted.kind]):
        hint = "" if exact else f" ({_CONVERSIONS[wanted.kind]})"
        faults.append(f"{name}: expected {wanted}, got {value.dtype}{hint}")
    if value.shape != tuple(shape.values()):
        axes, lengths = ", ".join(shape), tuple(shape.values())
        faults.append(f"{name}: expected shape ({axes}) = {lengths}, got {value.shape}")
    if not values or not value.size or value.dtype.kind not in "iufb":
        return faults
    if wanted.kind == "b" and value.dtype.kind != "f":
        # A bool array can hold other bytes than 0 and 1: a view of a mask of 0 and 255 does.
        stored = value.view(np.uint8) if value.dtype.kind == "b" else value
        return faults + _value_faults(name, stored, 0, 1, 0.0)
    return faults + _value_faults(name, value, low, high, 0.0 if exact else ROUNDING)


def _value_faults(name: str, value: NDArray[Any], low: float | None, high: float | None, rounding: float) -> list[str]:
    floats = value.dtype.kind == "f"
    if not floats and low is None and high is None:
        return []
    # The two ends tell of all values: nan spreads into both, and they need no array of the same size.
    smallest, largest = value.min(), value.max()
    if floats and not (np.isfinite(smallest) and np.isfinite(largest)):
        infinite = ~np.isfinite(value)
        return [f"{name}: expected finite values, got {value[infinite][0]} {_first(infinite)}"]
    slack = rounding if floats else 0
    least, most = -np.inf if low is None else low - slack, np.inf if high is None else high + slack
    if smallest >= least and largest <= most:
        return []
    wanted = f"in [{low}, {high}]" if high is not None else f"of at least {low}"
    outside = value < least if smallest < least else value > most
    first = value[outside][0]
    return [f"{name}: expected values {wanted}, got {f'{first:.4g}' if floats else first} {_first(outside)}"]


def _first(where: NDArray[np.bool_]) -> str:
    return f"at index {tuple(int(i) for i in np.argwhere(where)[0])}"


def describe_kind(value: Any) -> str:
    """The class of a value and, where it has one, its device.

    >>> describe_kind([])
    'list'
    """
    device = None if isinstance(value, np.ndarray) else getattr(value, "device", None)
    return _class_name(value) + (f" on {device}" if device is not None else "")


def _suggest_conversion(value: Any) -> str:
    """What to call on a tensor that numpy cannot read; empty for other values.

    >>> from types import SimpleNamespace
    >>> _suggest_conversion(SimpleNamespace(device="cuda:0"))
    ' (call .cpu())'
    """
    if not str(getattr(value, "device", "cpu")).startswith("cpu"):
        return " (call .cpu())"
    if getattr(value, "requires_grad", False):
        return " (call .detach())"
    return " (call .float())" if "bfloat16" in str(getattr(value, "dtype", "")) else ""


def _class_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def split_answers(raw: Any, count: int, what: str, exact: bool = True) -> list[Any]:
    """The answers of a call on `count` inputs, if there is one for each."""
    if not exact and not isinstance(raw, Sequence):
        raw = to_array(raw)
    stacked = not exact and isinstance(raw, np.ndarray) and raw.ndim > 0
    if not stacked and (not isinstance(raw, Sequence) or isinstance(raw, str | bytes)):
        got = f"{describe_kind(raw)}{_suggest_conversion(raw)}"
        raise AnswerError(f"expected a list with one answer for each of {count} {what}, got {got}")
    if len(raw) != count:
        raise AnswerError(f"expected {count} answers for {count} {what}, got {len(raw)}")
    return list(raw)


def split_rows(raw: Any, count: int, width: int, what: str, exact: bool = True) -> list[Any]:
    """The rows of an array (count, width), if it has one for each input."""
    raw = raw if exact else to_array(raw)
    if not isinstance(raw, np.ndarray):
        raise AnswerError(f"vectors: expected a numpy array, got {describe_kind(raw)}{_suggest_conversion(raw)}")
    if raw.shape != (count, width):
        raise AnswerError(f"vectors: expected shape (N, D) = {(count, width)} for {count} {what}, got {raw.shape}")
    return list(raw)


def missing_fields(answer: Any, *names: str) -> list[str]:
    """Fields that an answer ought to have and does not."""
    kind = describe_kind(answer)
    return [f"expected an answer with `{name}`, got {kind}" for name in names if not hasattr(answer, name)]


def _frame(image: Image) -> dict[str, int]:
    return {"H": image.shape[0], "W": image.shape[1]}


def _dimension_faults(model: Any, exact: bool) -> list[str]:
    right = isinstance(model.dimension, int | np.integer) and model.dimension > 0
    return [] if right else [f"dimension: expected a whole number above 0, got {model.dimension!r}"]


def _vector_faults(model: Any, value: Any, vector: Any, exact: bool) -> list[str]:
    return find_array_faults("vector", vector, np.float32, {"dimension": int(model.dimension)}, exact=exact)


def _unit_vector_faults(model: Any, value: Any, vector: Any, exact: bool) -> list[str]:
    faults = _vector_faults(model, value, vector, exact)
    length = 1.0 if faults else float(np.linalg.norm(vector))
    return faults if abs(length - 1) <= UNIT_TOLERANCE else [f"vector: expected length 1, got {length:.4g}"]


def _split_features(model: Any, features: Any, count: int, exact: bool) -> list[Any]:
    """(vector, map or None) of each image."""
    if faults := missing_fields(features, "vectors", "maps"):
        raise AnswerError("; ".join(faults))
    vectors = split_rows(features.vectors, count, int(model.dimension), "images", exact)
    maps = [None] * count if features.maps is None else split_answers(features.maps, count, "images", exact)
    return list(zip(vectors, maps, strict=True))


def _feature_faults(model: Any, image: Any, answer: Any, exact: bool) -> list[str]:
    vector, cells = answer
    faults = _vector_faults(model, image, vector, exact)
    if cells is not None:
        shape = cells.shape if isinstance(cells, np.ndarray) and cells.ndim == 3 else (0, 0, 0)
        axes = dict(zip(("C", "h", "w"), shape, strict=True))
        faults += find_array_faults("map", cells, np.float32, axes, exact=exact)
    return faults


def _label_faults(model: Any, exact: bool) -> list[str]:
    labels = model.labels
    listed = isinstance(labels, Sequence) or (not exact and isinstance(labels, np.ndarray))
    if not listed or isinstance(labels, str) or not all(isinstance(name, str) for name in labels):
        return [f"labels: expected a sequence of names, got {type(labels).__name__}"]
    if not len(labels):
        return ["labels: expected at least one name, got none"]
    twice = sorted(name for name, count in Counter(labels).items() if count > 1) if exact else []
    return [f"labels: expected each name once, got {', '.join(twice)} more often"] if twice else []


def _thing_faults(model: Any, exact: bool) -> list[str]:
    if faults := _label_faults(model, exact):
        return faults
    count, flags = len(model.labels), len(model.things)
    return [f"things: expected one flag for each of {count} labels, got {flags}"] if count != flags else []


def _label_map_faults(model: Any, image: Any, answer: Any, exact: bool) -> list[str]:
    return find_array_faults("map", answer, np.int32, _frame(image), -1, len(model.labels) - 1, exact=exact)


def _instance_faults(model: Any, image: Any, found: Any, exact: bool) -> list[str]:
    if faults := missing_fields(found, "masks", "boxes", "scores", "labels"):
        return faults
    scores, boxes = found.scores, found.boxes
    count = len(scores) if isinstance(scores, np.ndarray) and scores.ndim else 0
    faults += find_array_faults("masks", found.masks, np.bool_, {"N": count, **_frame(image)}, exact=exact)
    faults += find_array_faults("boxes", boxes, np.float32, {"N": count, "4": 4}, exact=exact)
    faults += find_array_faults("scores", scores, np.float32, {"N": count}, 0, 1, exact=exact)
    last = len(model.labels) - 1
    faults += find_array_faults("labels", found.labels, np.int32, {"N": count}, 0, last, exact=exact)
    return faults or _box_faults(image, boxes, exact) + (_order_faults(scores) if exact else [])


def _order_faults(scores: Any) -> list[str]:
    pairs = [(scores[at], scores[at + 1]) for at in np.flatnonzero(np.diff(scores) > 0)[:1]]
    return [f"scores: expected the best first, got {one:.4g} before {two:.4g}" for one, two in pairs]


def _box_faults(image: Any, boxes: Any, exact: bool) -> list[str]:
    height, width = image.shape[:2]
    wrong = (boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1])
    wanted = "x0, y0, x1, y1"
    if exact:  # networks overhang the frame by fractions of a pixel, and such boxes can be scored
        wrong |= (boxes < 0).any(axis=1) | (boxes > [width, height, width, height]).any(axis=1)
        wanted += f" within {width} x {height}"
    return [f"boxes: expected {wanted}, x0 <= x1, y0 <= y1, got {box}" for box in boxes[wrong].tolist()[:1]]


def list_segment_ids(segment_map: NDArray[np.integer]) -> list[int]:
    """The ids of a map (H, W) of whole numbers from 0, ascending, without 0.

    >>> list_segment_ids(np.array([[7, 0, 2], [7, 7, 10**9]]))
    [2, 7, 1000000000]
    """
    if not segment_map.size:
        return []
    # Counting takes a fifth of the time of sorting, as long as the ids are not as large as colours.
    if segment_map.max() > segment_map.size:
        return [int(one) for one in np.unique(segment_map) if one]
    counts = np.bincount(segment_map.ravel().astype(np.intp, copy=False))
    return [int(one) for one in np.flatnonzero(counts) if one]


def _segment_faults(model: Any, image: Any, answer: Any, exact: bool) -> list[str]:
    if faults := missing_fields(answer, "map", "labels"):
        return faults
    limit = np.iinfo(np.int32).max
    faults = find_array_faults("map", answer.map, np.int32, _frame(image), 0, limit, exact=exact)
    if not isinstance(answer.labels, Mapping):
        return [*faults, f"labels: expected {{segment id: label index}}, got {type(answer.labels).__name__}"]
    labels: dict[int, int] = {}
    for segment, label in answer.labels.items():
        try:
            labels[operator.index(segment)] = operator.index(label)
        except TypeError:
            return [*faults, f"labels: expected whole numbers, got {label!r} for segment {segment!r}"]
    if faults:
        return faults
    drawn, known = list_segment_ids(answer.map), range(len(model.labels))
    if unnamed := [segment for segment in drawn if segment not in labels]:
        faults.append(f"labels: expected a label for every segment, got none for segment {unnamed[0]}")
    faults += [
        f"labels: expected an index from 0 to {len(known) - 1}, got {label} for segment {segment}"
        for segment, label in labels.items()
        if label not in known
    ]
    # A segment that is listed and not drawn has no effect on a score.
    counted = labels if exact else [segment for segment in drawn if segment in labels]
    stuff = Counter(label for label in map(labels.get, counted) if label in known and not model.things[label])
    faults += [
        f"labels: expected at most one segment of the stuff {model.labels[label]!r}, got {count}"
        for label, count in stuff.items()
        if count > 1
    ]
    return faults


def _mask_faults(model: Any, value: Any, mask: Any, exact: bool) -> list[str]:
    return find_array_faults("mask", mask, np.bool_, _frame(value[0]), exact=exact)


def _prompted_faults(model: Any, value: Any, answer: Any, exact: bool) -> list[str]:
    return missing_fields(answer, "mask", "state") or _mask_faults(model, value, answer.mask, exact)


def _score_faults(model: Any, episode: Any, scores: Any, exact: bool) -> list[str]:
    shape = {"queries": len(episode.query), "ways": episode.ways}
    return find_array_faults("scores", scores, np.float32, shape, exact=exact)


def _accepts_faults(model: Any, exact: bool) -> list[str]:
    right = model.accepts in ("images", "features", "maps")
    return [] if right else [f'accepts: expected "images", "features" or "maps", got {model.accepts!r}']


def _saliency_faults(model: Any, image: Any, found: Any, exact: bool) -> list[str]:
    return find_array_faults("map", found, np.float32, _frame(image), 0, 1, exact=exact)


def _click_map_faults(model: Any, value: Any, answer: Any, exact: bool) -> list[str]:
    faults = find_array_faults("map", answer, np.float64, _frame(value[0]), low=0, exact=exact)
    if exact and not faults and not answer[value[2]].sum() > 0:
        faults.append("map: expected some chance of a click in the error region, got 0 all over it")
    return faults


def _features_to_arrays(answer: Any) -> Any:
    vector, cells = answer
    return to_array(vector), to_array(cells)


def _instances_to_arrays(found: Any) -> Any:
    names = ("masks", "boxes", "scores", "labels")
    if missing_fields(found, *names) or all(isinstance(getattr(found, name), np.ndarray) for name in names):
        return found
    return Instances(*(to_array(getattr(found, name)) for name in names))


def _segments_to_arrays(answer: Any) -> Any:
    if missing_fields(answer, "map", "labels") or isinstance(answer.map, np.ndarray):
        return answer
    return Segments(to_array(answer.map), answer.labels)


def _prompted_to_arrays(answer: Any) -> Any:
    if missing_fields(answer, "mask", "state") or isinstance(answer.mask, np.ndarray):
        return answer
    return Prompted(to_array(answer.mask), answer.state)


def _to_int32(label_map: NDArray[Any]) -> NDArray[np.int32]:
    return label_map.astype(np.int32, copy=False)


def _to_bool(mask: NDArray[Any]) -> NDArray[np.bool_]:
    return mask.astype(np.bool_, copy=False)


def _to_bool_prompted(answer: Any) -> Any:
    return answer if answer.mask.dtype == np.bool_ else Prompted(_to_bool(answer.mask), answer.state)


def has_free_words(model: Any) -> bool:
    """Whether a segmenter answers in words of its own choosing, by `PhrasedAnswer`s."""
    return bool(getattr(model, "free_words", False))


_UNANNOUNCED = "phrases need free_words = True in the model's class, and --pred-words free in a run"


def _allow_phrases(demands: RoleAnswers, needs_things: bool = False) -> RoleAnswers:
    """The demands on a segmenter that may also answer by `PhrasedAnswer`s, where its `free_words` says so."""

    def find_faults(model: Any, value: Any, answer: Any, exact: bool) -> list[str]:
        if not has_free_words(model):
            faults = demands.find_faults(model, value, answer, exact)
            return [f"{faults[0]}; {_UNANNOUNCED}"] if isinstance(answer, PhrasedAnswer) else faults
        if faults := missing_fields(answer, "answer", "phrases", "things"):
            return faults
        phrases, things = answer.phrases, answer.things
        if isinstance(phrases, str) or not isinstance(phrases, Sequence):
            return [f"phrases: expected a sequence of texts, got {describe_kind(phrases)}"]
        if other := [phrase for phrase in phrases if not isinstance(phrase, str)]:
            return [f"phrases: expected texts, got {describe_kind(other[0])}"]
        if needs_things and len(things) != len(phrases):
            return [f"things: expected one flag for each of {len(phrases)} phrases, got {len(things)}"]
        return demands.find_faults(SimpleNamespace(labels=phrases, things=things), value, answer.answer, exact)

    def apply(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def change_answer(answer: Any) -> Any:
            is_phrased = isinstance(answer, PhrasedAnswer)
            return replace(answer, answer=change(answer.answer)) if is_phrased else change(answer)

        return change_answer

    return replace(
        demands,
        find_faults=find_faults,
        attribute_faults=lambda model, exact: [] if has_free_words(model) else demands.attribute_faults(model, exact),
        convert=apply(demands.convert),
        to_arrays=apply(demands.to_arrays),
    )


def _list_of(what: str) -> Callable[[Any, Any, int, bool], list[Any]]:
    return lambda model, raw, count, exact: split_answers(raw, count, what, exact)


def _rows_of(what: str) -> Callable[[Any, Any, int, bool], list[Any]]:
    return lambda model, raw, count, exact: split_rows(raw, count, int(model.dimension), what, exact)


ANSWERS: Mapping[str, RoleAnswers] = {
    "encoder": RoleAnswers(
        "images", _feature_faults, _split_features, _dimension_faults, to_arrays=_features_to_arrays
    ),
    "text-encoder": RoleAnswers("texts", _vector_faults, _rows_of("texts"), _dimension_faults),
    "image-text-encoder": RoleAnswers(
        "images and texts", _unit_vector_faults, _rows_of("images and texts"), _dimension_faults
    ),
    "saliency": RoleAnswers("images", _saliency_faults, _list_of("images")),
    "semantic-segmenter": _allow_phrases(
        RoleAnswers("images", _label_map_faults, _list_of("images"), _label_faults, _to_int32)
    ),
    "instance-segmenter": _allow_phrases(
        RoleAnswers("images", _instance_faults, _list_of("images"), _label_faults, to_arrays=_instances_to_arrays)
    ),
    "panoptic-segmenter": _allow_phrases(
        RoleAnswers("images", _segment_faults, _list_of("images"), _thing_faults, to_arrays=_segments_to_arrays),
        needs_things=True,
    ),
    "one-shot-segmenter": RoleAnswers("pairs", _mask_faults, _list_of("pairs"), convert=_to_bool),
    "few-shot-learner": RoleAnswers("episodes", _score_faults, _list_of("episodes"), _accepts_faults),
    "promptable-segmenter": RoleAnswers(
        "prompts",
        _prompted_faults,
        _list_of("prompts"),
        convert=_to_bool_prompted,
        to_arrays=_prompted_to_arrays,
    ),
    "click-model": RoleAnswers("corrections", _click_map_faults, _list_of("corrections")),
}
