"""What each role demands of its models' answers (`RoleContract`), and the inputs to check them with.

>>> from hardlook.models.planted.encoders import PlantedTextEncoder
>>> text_encoder = CONTRACTS["text-encoder"]
>>> [answer] = text_encoder.call(PlantedTextEncoder(), ["cat"])
>>> text_encoder.find_faults(PlantedTextEncoder(), "cat", answer[:3])
['vector: expected shape (dimension) = (64,), got (3,)']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from hardlook.models.answer_checks import ANSWERS, AnswerError, RoleAnswers, missing_fields
from hardlook.models.conformance.probes import Probe, clicks, inside, pictures, scene, scenes_by_concept, subject_of
from hardlook.models.one_shot.support_voting import ask_segmenter, segment_with_supports
from hardlook.models.roles import Episode, PairContext, PhrasedAnswer, Support, fit_to_dataset
from hardlook.randomness import generator

LABEL_AGREEMENT = 0.995
FLOAT_TOLERANCE = 1e-3
TEXTS = {
    "word": "cat",
    "phrase": "a photo of a dog",
    "empty text": "",
    "foreign text": "Bär und Möwe, 熊",
    "long text": "the barn beside the road " * 60,
}

CONTEXT = PairContext(fold=0, class_id=1, class_name="cat", training_classes=("car", "bus"))
"""What models that take contexts are given with every pair."""

ENCODED: Mapping[str, tuple[int, ...]] = {"features": (16,), "maps": (16, 3, 4)}
"""Shape of one image in episodes of encoded images: a vector (D,) or a map (C, h, w), not square."""


@dataclass(frozen=True)
class Finding:
    """One check: its name, whether the model passed, and what was expected, what was returned, and where."""

    check: str
    passed: bool
    message: str

    def line(self) -> str:
        """The finding in one line.

        >>> Finding("order", False, "answer 0 differs").line()
        'FAIL order: answer 0 differs'
        """
        return f"{'ok  ' if self.passed else 'FAIL'} {self.check}: {self.message}"


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
    describes how two answers differ, empty when they do not; `extra_checks` are checks of this role alone, and
    `optional_checks`, by an attribute, of those models that have it. `batched` is False for a role that takes one input
    per call.

    >>> capitals = RoleContract(
    ...     RoleAnswers("words", lambda model, word, answer, exact: [] if answer.isupper() else ["not capitals"], list),
    ...     probes=lambda model: [Probe("word", "cat")],
    ...     call=lambda model, words: [model(word) for word in words],
    ...     compare=lambda first, second: "" if first == second else "the words differ",
    ... )
    >>> capitals.find_faults(None, "cat", capitals.call(str.lower, ["cat"])[0])
    ['not capitals']
    """

    answers: RoleAnswers
    probes: Callable[[Any], list[Probe]]
    call: Callable[[Any, list[Any]], list[Any]]
    compare: Callable[[Any, Any], str]
    extra_checks: tuple[tuple[str, Callable[[Any], list[str]]], ...] = ()
    optional_checks: Mapping[str, tuple[str, Callable[[Any], list[str]]]] = field(default_factory=dict)
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


def _image_probes(model: Any) -> list[Probe]:
    return [Probe(name, image) for name, image in pictures().items()]


def _text_probes(model: Any) -> list[Probe]:
    return [Probe(name, text) for name, text in TEXTS.items()]


def _call(role: str, method: str) -> Callable[[Any, list[Any]], list[Any]]:
    return lambda model, values: _split(role, model, getattr(model, method)(values), len(values))


def _split(role: str, model: Any, raw: Any, count: int) -> list[Any]:
    return ANSWERS[role].split(model, raw, count, True)


def _compare(name: str) -> Callable[[Any, Any], str]:
    return lambda first, second: describe_difference(name, first, second)


def _encoded_difference(first: Any, second: Any) -> str:
    if (first[1] is None) != (second[1] is None):
        return "one has a map and the other has none"
    return describe_difference("vector", first[0], second[0]) or (
        describe_difference("map", first[1], second[1]) if first[1] is not None else ""
    )


def _encode_both(model: Any, values: list[Any]) -> list[Any]:
    images, texts = ([value for value in values if isinstance(value, str) is is_text] for is_text in (False, True))
    split = ANSWERS["image-text-encoder"].split
    seen = iter(split(model, model.encode_images(images), len(images), True))
    read = iter(split(model, model.encode_text(texts), len(texts), True))
    return [next(read) if isinstance(value, str) else next(seen) for value in values]


def _instance_difference(first: Any, second: Any) -> str:
    pairs = ((name, getattr(first, name), getattr(second, name)) for name in ("labels", "scores", "boxes", "masks"))
    return next((words for words in (describe_difference(*pair) for pair in pairs) if words), "")


def _segment_difference(first: Any, second: Any) -> str:
    # Segment ids are names without meaning: what counts is the labels and how many segments there are.
    if sorted(first.labels.values()) != sorted(second.labels.values()):
        return f"labels: segments of {sorted(first.labels.values())} against {sorted(second.labels.values())}"
    return describe_difference("map", _labelled(first), _labelled(second))


def _labelled(answer: Any) -> Any:
    table = {0: -1} | {int(segment): int(label) for segment, label in answer.labels.items()}
    ids, where = np.unique(answer.map, return_inverse=True)
    return np.array([table.get(int(segment), -2) for segment in ids])[where].reshape(answer.map.shape)


def _allow_phrases(compare: Callable[[Any, Any], str]) -> Callable[[Any, Any], str]:
    """The comparison of answers that may be `PhrasedAnswer`s."""

    def compare_answers(first: Any, second: Any) -> str:
        if not isinstance(first, PhrasedAnswer) or not isinstance(second, PhrasedAnswer):
            return compare(first, second)
        if (*first.phrases,) != (*second.phrases,):
            return f"phrases: {list(first.phrases)} against {list(second.phrases)}"
        return compare(first.answer, second.answer)

    return compare_answers


def _pairs(model: Any) -> list[Probe]:
    images = pictures()
    shown = {name: Support(image, subject_of(image)) for name, image in pictures().items()}
    first, unmasked = shown["ordinary image"], np.zeros(images["tall image"].shape[:2], bool)
    return [
        *(Probe(name, (image, [first])) for name, image in images.items()),
        Probe("support of another size", (images["ordinary image"].copy(), [shown["wide image"]])),
        Probe("tiny support", (images["ordinary image"].copy(), [shown["tiny image"]])),
        Probe("several supports", (images["tall image"].copy(), list(shown.values())[:3])),
        Probe("support without a mask", (images["wide image"].copy(), [Support(images["tall image"], unmasked)])),
        Probe("black support", (images["tall image"].copy(), [shown["black image"]])),
    ]


def _segment_queries(model: Any, pairs: list[Any]) -> list[Any]:
    queries, supports = [query for query, _ in pairs], [shown for _, shown in pairs]
    contexts = [CONTEXT for _ in pairs]
    if getattr(model, "supports_at_once", None) == 1 and any(len(shown) > 1 for shown in supports):
        # Called once per support, as a run does; each answer has to fit the role.
        return list(segment_with_supports(model, queries, supports, (), contexts, partial(_check_masks, model)))
    return _split("one-shot-segmenter", model, ask_segmenter(model, queries, supports, contexts), len(pairs))


def _check_masks(model: Any, raw: Any, queries: Any, supports: Any, units: Any) -> list[Any]:
    masks = _split("one-shot-segmenter", model, raw, len(queries))
    for query, shown, mask in zip(queries, supports, masks, strict=True):
        if faults := ANSWERS["one-shot-segmenter"].find_faults(model, (query, shown), mask, True):
            raise AnswerError(faults[0])
    return masks


def _episodes(model: Any) -> list[Probe]:
    return [
        Probe("episode", _episode(model, "plain", shots=[1, 1, 1], queries=4)),
        Probe("several shots", _episode(model, "shots", shots=[3, 3], queries=3)),
        Probe("uneven shots", _episode(model, "uneven", shots=[1, 3, 2], queries=2)),
        Probe("one query", _episode(model, "single", shots=[1, 1], queries=1)),
    ]


def _episode(model: Any, key: str, shots: list[int], queries: int) -> Episode:
    ways = len(shots)
    labels = np.repeat(np.arange(ways), shots).astype(np.int64)
    if model.accepts in ENCODED:
        random, shape = generator(0, "conformance", key), ENCODED[model.accepts]
        centres = random.standard_normal((ways, *shape))
        support = (centres[labels] + 0.1 * random.standard_normal((len(labels), *shape))).astype(np.float32)
        return Episode(support, labels, (centres[np.arange(queries) % ways] + 0.1).astype(np.float32), ways, key)
    shown = scenes_by_concept()
    support_scenes = [shown[way][shot] for way in range(ways) for shot in range(shots[way])]
    query_scenes = [shown[index % ways][-1 - index // ways] for index in range(queries)]
    images = [[scene(index).image.copy() for index in scenes] for scenes in (support_scenes, query_scenes)]
    return Episode(images[0], labels, images[1], ways, key)


def _query_order_faults(model: Any) -> list[str]:
    episode = _episode(model, "plain", shots=[1, 1, 1], queries=4)
    classify = _call("few-shot-learner", "classify")
    [straight], [turned] = classify(model, [episode]), classify(model, [replace(episode, query=episode.query[::-1])])
    words = describe_difference("scores", straight, np.asarray(turned)[::-1])
    return [f"expected rows that follow the queries, but {words} when the queries are turned round"] if words else []


def _prompts(model: Any) -> list[Probe]:
    probes = [
        Probe(name, (image, clicks((*inside(subject_of(image), 0.5), True)))) for name, image in pictures().items()
    ]
    image = probes[0].value[0]
    height, width = image.shape[:2]
    x, y = inside(subject_of(image), 0.5)
    return [
        *probes,
        Probe("several clicks", (image, clicks((x, y, True), (0, 0, False), (*inside(subject_of(image), 1.0), True)))),
        Probe("click in the corner", (image, clicks((width - 1, height - 1, True)))),
        Probe("click between pixels", (image, clicks((x + 0.4, y - 0.4, True)))),
        *(_box_probes(image, (x, y)) if getattr(model, "takes_boxes", False) else []),
    ]


def _box_probes(image: Any, inside: tuple[float, float]) -> list[Probe]:
    rows, columns = np.nonzero(subject_of(image))
    box = np.array([columns.min(), rows.min(), columns.max(), rows.max()], np.float32)
    corner = np.array([0, 0, 0, 0], np.float32)
    return [
        Probe("a box", (image, clicks(box=box))),
        Probe("a box and clicks", (image, clicks((*inside, True), (0, 0, False), box=box))),
        Probe("a box of one pixel", (image, clicks(box=corner))),
    ]


def _predict(model: Any, values: list[Any]) -> list[Any]:
    if not values:
        return _call_session(model.open(pictures()["ordinary image"]), [])
    # Prompts on one image are one batch on one session, as the benchmark sends them.
    places: dict[int, list[int]] = {}
    for place, (image, _) in enumerate(values):
        places.setdefault(id(image), []).append(place)
    answers: dict[int, Any] = {}
    for batch in places.values():
        session = model.open(values[batch[0]][0])
        answers.update(zip(batch, _call_session(session, [values[place][1] for place in batch]), strict=True))
    return [answers[place] for place in range(len(values))]


def _call_session(session: Any, prompts: list[Any]) -> list[Any]:
    if not hasattr(session, "predict"):
        raise AnswerError(f"expected `open` to give a session with `predict`, got {type(session).__qualname__}")
    answers = _split("promptable-segmenter", None, session.predict(prompts), len(prompts))
    if faults := [fault for answer in answers for fault in missing_fields(answer, "mask", "state")]:
        raise AnswerError(faults[0])
    return answers


def _session_faults(model: Any) -> list[str]:
    images = [pictures()[name] for name in ("ordinary image", "wide image")]
    asked = [(image, clicks((*inside(subject_of(image), 0.5), True))) for image in images]
    alone = [_call_session(model.open(image), [prompt])[0] for image, prompt in asked]
    sessions = [model.open(image) for image, _ in asked]
    faults = []
    for turn in (0, 1, 0, 1):
        [answer] = _call_session(sessions[turn], [asked[turn][1]])
        if words := describe_difference("mask", alone[turn].mask, answer.mask):
            faults.append(f"expected session {turn} to answer as if it were alone, but {words}")
    return faults


def _state_faults(model: Any) -> list[str]:
    image = pictures()["ordinary image"]
    session = model.open(image)
    x, y = inside(subject_of(image), 0.5)
    [first] = _call_session(session, [clicks((x, y, True))])
    further = clicks((x, y, True), (*inside(subject_of(image), 0.9), True), state=first.state)
    twice = [_call_session(session, [further])[0] for _ in range(2)]
    words = describe_difference("mask", twice[0].mask, twice[1].mask)
    changed = [f"expected a state that a prompt may use again, but {words}"] if words else []
    return ANSWERS["promptable-segmenter"].find_faults(model, (image,), twice[0], True) + changed


def _dataset_faults(model: Any) -> list[str]:
    image = pictures()["ordinary image"]
    prompt = clicks((*inside(subject_of(image), 0.5), True))
    [before] = _call_session(model.open(image), [prompt])
    faults = []
    for dataset in ("davis", "an unpublished dataset"):
        [answer] = _call_session(fit_to_dataset(model, dataset).open(image), [prompt])
        faults += ANSWERS["promptable-segmenter"].find_faults(model, (image,), answer, True)
    [after] = _call_session(model.open(image), [prompt])
    words = describe_difference("mask", before.mask, after.mask)
    return faults + ([f"expected `for_dataset` to leave the model as it is, but {words}"] if words else [])


def _corrections(model: Any) -> list[Probe]:
    probes = []
    for name, image in pictures().items():
        target = subject_of(image)
        # Nothing is salient in the black picture: then all of it is to be clicked.
        target = target if target.any() else ~target
        probes.append(Probe(name, (image, target, target.copy(), True)))
    image, target = probes[0].value[:2]
    surplus, single = np.zeros_like(target), np.zeros_like(target)
    surplus[:6, :9] = ~target[:6, :9]
    single[tuple(np.argwhere(target)[0])] = True
    return [
        *probes,
        Probe("surplus region", (image.copy(), target.copy(), surplus, False)),
        Probe("one-pixel error", (image.copy(), target.copy(), single, True)),
    ]


def _contract(
    role: str,
    probes: Callable[[Any], list[Probe]],
    call: Callable[[Any, list[Any]], list[Any]] | str,
    compare: Callable[[Any, Any], str],
    **more: Any,
) -> RoleContract:
    """The contract of a role; `call` is the method that takes a list of inputs, or a function that calls the model."""
    return RoleContract(ANSWERS[role], probes, _call(role, call) if isinstance(call, str) else call, compare, **more)


CONTRACTS: Mapping[str, RoleContract] = {
    "encoder": _contract("encoder", _image_probes, "encode", _encoded_difference),
    "text-encoder": _contract("text-encoder", _text_probes, "encode_text", _compare("vector")),
    "image-text-encoder": _contract(
        "image-text-encoder",
        lambda model: _image_probes(model) + _text_probes(model),
        _encode_both,
        _compare("vector"),
    ),
    "saliency": _contract("saliency", _image_probes, "saliency", _compare("map")),
    "semantic-segmenter": _contract("semantic-segmenter", _image_probes, "segment", _allow_phrases(_compare("map"))),
    "instance-segmenter": _contract(
        "instance-segmenter", _image_probes, "detect", _allow_phrases(_instance_difference)
    ),
    "panoptic-segmenter": _contract(
        "panoptic-segmenter", _image_probes, "segment_panoptic", _allow_phrases(_segment_difference)
    ),
    "one-shot-segmenter": _contract("one-shot-segmenter", _pairs, _segment_queries, _compare("mask")),
    "few-shot-learner": _contract(
        "few-shot-learner",
        _episodes,
        "classify",
        _compare("scores"),
        extra_checks=(("order of queries", _query_order_faults),),
    ),
    "promptable-segmenter": _contract(
        "promptable-segmenter",
        _prompts,
        _predict,
        lambda first, second: describe_difference("mask", first.mask, second.mask),
        extra_checks=(("sessions side by side", _session_faults), ("state given back", _state_faults)),
        optional_checks={"for_dataset": ("settings of a dataset", _dataset_faults)},
    ),
    "click-model": _contract(
        "click-model",
        _corrections,
        lambda model, values: [model.click_map(*value) for value in values],
        _compare("map"),
        batched=False,
    ),
}
