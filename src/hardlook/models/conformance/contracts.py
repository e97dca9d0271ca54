"""What each role demands of its models' answers, and the inputs to try them with.

>>> from hardlook.models.planted.encoders import PlantedTextEncoder
>>> text_encoder = CONTRACTS["text-encoder"]
>>> [answer] = text_encoder.call(PlantedTextEncoder(), ["cat"])
>>> text_encoder.find_faults(PlantedTextEncoder(), "cat", answer[:3])
['vector: expected shape (dimension) = (64,), got (3,)']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hardlook.models.conformance.checks import (
    AnswerError,
    RoleContract,
    describe_difference,
    find_array_faults,
    missing_fields,
    split_answers,
    split_rows,
)
from hardlook.models.conformance.probes import Probe, clicks, inside, pictures, scene, scenes_by_concept, subject_of
from hardlook.models.roles import Episode, Support
from hardlook.randomness import generator

TEXTS = {
    "word": "cat",
    "phrase": "a photo of a dog",
    "empty text": "",
    "foreign text": "Bär und Möwe, 熊",
    "long text": "the barn beside the road " * 60,
}

UNIT_TOLERANCE = 1e-3

ENCODED: Mapping[str, tuple[int, ...]] = {"features": (16,), "maps": (16, 3, 4)}
"""Shape of one image in episodes of encoded images: a vector (D,) or a map (C, h, w), not square."""


def _image_probes(model: Any) -> list[Probe]:
    return [Probe(name, image) for name, image in pictures().items()]


def _text_probes(model: Any) -> list[Probe]:
    return [Probe(name, text) for name, text in TEXTS.items()]


def _frame(image: Any) -> dict[str, int]:
    return {"H": image.shape[0], "W": image.shape[1]}


def _call(method: str, what: str) -> Callable[[Any, list[Any]], list[Any]]:
    return lambda model, values: split_answers(getattr(model, method)(values), len(values), what)


def _compare(name: str) -> Callable[[Any, Any], str]:
    return lambda first, second: describe_difference(name, first, second)


def _dimension_faults(model: Any) -> list[str]:
    right = isinstance(model.dimension, int | np.integer) and model.dimension > 0
    return [] if right else [f"dimension: expected a whole number above 0, got {model.dimension!r}"]


def _vector_faults(model: Any, vector: Any) -> list[str]:
    return find_array_faults("vector", vector, np.float32, {"dimension": int(model.dimension)})


def _unit_faults(model: Any, value: Any, vector: Any) -> list[str]:
    faults = _vector_faults(model, vector)
    length = float(np.linalg.norm(vector))
    if not faults and abs(length - 1) > UNIT_TOLERANCE:
        faults.append(f"vector: expected length 1, got {length:.4g}")
    return faults


def _encode(model: Any, images: list[Any]) -> list[Any]:
    features = model.encode(images)
    if faults := missing_fields(features, "vectors", "maps"):
        raise AnswerError("; ".join(faults))
    vectors = split_rows(features.vectors, len(images), int(model.dimension), "images")
    maps = [None] * len(images) if features.maps is None else split_answers(features.maps, len(images), "images")
    return list(zip(vectors, maps, strict=True))


def _encoded_faults(model: Any, image: Any, answer: Any) -> list[str]:
    vector, cells = answer
    faults = _vector_faults(model, vector)
    if cells is not None:
        shape = cells.shape if isinstance(cells, np.ndarray) and cells.ndim == 3 else (0, 0, 0)
        faults += find_array_faults("map", cells, np.float32, dict(zip(("C", "h", "w"), shape, strict=True)))
    return faults


def _encoded_difference(first: Any, second: Any) -> str:
    if (first[1] is None) != (second[1] is None):
        return "one has a map and the other has none"
    return describe_difference("vector", first[0], second[0]) or (
        describe_difference("map", first[1], second[1]) if first[1] is not None else ""
    )


def _encode_texts(model: Any, texts: list[str]) -> list[Any]:
    return split_rows(model.encode_text(texts), len(texts), int(model.dimension), "texts")


def _encode_both(model: Any, values: list[Any]) -> list[Any]:
    images = [value for value in values if not isinstance(value, str)]
    seen = iter(split_rows(model.encode_images(images), len(images), int(model.dimension), "images"))
    read = iter(_encode_texts(model, [value for value in values if isinstance(value, str)]))
    return [next(read) if isinstance(value, str) else next(seen) for value in values]


def _label_faults(model: Any) -> list[str]:
    labels = model.labels
    if not isinstance(labels, Sequence) or isinstance(labels, str) or not all(isinstance(name, str) for name in labels):
        return [f"labels: expected a sequence of names, got {type(labels).__name__}"]
    if not labels:
        return ["labels: expected at least one name, got none"]
    twice = sorted({name for name in labels if list(labels).count(name) > 1})
    return [f"labels: expected each name once, got {', '.join(twice)} more often"] if twice else []


def _thing_faults(model: Any) -> list[str]:
    count, flags = len(model.labels), len(model.things)
    wrong = [f"things: expected one flag for each of {count} labels, got {flags}"] if count != flags else []
    return _label_faults(model) + wrong


def _label_map_faults(model: Any, image: Any, answer: Any) -> list[str]:
    return find_array_faults("map", answer, np.int32, _frame(image), -1, len(model.labels) - 1)


def _instance_faults(model: Any, image: Any, found: Any) -> list[str]:
    if faults := missing_fields(found, "masks", "boxes", "scores", "labels"):
        return faults
    count = len(found.scores)
    faults += find_array_faults("masks", found.masks, np.bool_, {"N": count, **_frame(image)})
    faults += find_array_faults("boxes", found.boxes, np.float32, {"N": count, "4": 4})
    faults += find_array_faults("scores", found.scores, np.float32, {"N": count}, 0, 1)
    faults += find_array_faults("labels", found.labels, np.int32, {"N": count}, 0, len(model.labels) - 1)
    return faults or _order_faults(found.scores) + _box_faults(image, found.boxes)


def _order_faults(scores: Any) -> list[str]:
    pairs = [(scores[at], scores[at + 1]) for at in np.flatnonzero(np.diff(scores) > 0)[:1]]
    return [f"scores: expected the best first, got {one:.4g} before {two:.4g}" for one, two in pairs]


def _box_faults(image: Any, boxes: Any) -> list[str]:
    height, width = image.shape[:2]
    outside = (boxes < 0).any(axis=1) | (boxes > [width, height, width, height]).any(axis=1)
    wrong = boxes[outside | (boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1])].tolist()
    wanted = f"x0, y0, x1, y1 within {width} x {height}, x0 <= x1, y0 <= y1"
    return [f"boxes: expected {wanted}, got {box}" for box in wrong[:1]]


def _instance_difference(first: Any, second: Any) -> str:
    pairs = ((name, getattr(first, name), getattr(second, name)) for name in ("labels", "scores", "boxes", "masks"))
    return next((words for words in (describe_difference(*pair) for pair in pairs) if words), "")


def _segment_faults(model: Any, image: Any, answer: Any) -> list[str]:
    if faults := missing_fields(answer, "map", "labels"):
        return faults
    faults = find_array_faults("map", answer.map, np.int32, _frame(image), low=0)
    if not isinstance(answer.labels, Mapping):
        return [*faults, f"labels: expected {{segment id: label index}}, got {type(answer.labels).__name__}"]
    if unnamed := sorted(set(np.unique(answer.map).tolist()) - {0} - set(answer.labels)):
        faults.append(f"labels: expected a label for every segment, got none for segment {unnamed[0]}")
    known = range(len(model.labels))
    faults += [
        f"labels: expected an index from 0 to {len(known) - 1}, got {label} for segment {segment}"
        for segment, label in answer.labels.items()
        if label not in known
    ]
    stuff = [label for label in answer.labels.values() if label in known and not model.things[label]]
    faults += [
        f"labels: expected at most one segment of the stuff {model.labels[label]!r}, got {stuff.count(label)}"
        for label in dict.fromkeys(stuff)
        if stuff.count(label) > 1
    ]
    return faults


def _segment_difference(first: Any, second: Any) -> str:
    # Segment ids are names without meaning: what counts is the labels and how many segments there are.
    if sorted(first.labels.values()) != sorted(second.labels.values()):
        return f"labels: segments of {sorted(first.labels.values())} against {sorted(second.labels.values())}"
    return describe_difference("map", _labelled(first), _labelled(second))


def _labelled(answer: Any) -> Any:
    table = {0: -1} | {int(segment): int(label) for segment, label in answer.labels.items()}
    ids, where = np.unique(answer.map, return_inverse=True)
    return np.array([table.get(int(segment), -2) for segment in ids])[where].reshape(answer.map.shape)


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
    return split_answers(model.segment_queries(queries, supports), len(pairs), "pairs")


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


def _score_faults(model: Any, episode: Episode, scores: Any) -> list[str]:
    return find_array_faults("scores", scores, np.float32, {"queries": len(episode.query), "ways": episode.ways})


def _accepts_faults(model: Any) -> list[str]:
    right = model.accepts in ("images", *ENCODED)
    return [] if right else [f'accepts: expected "images", "features" or "maps", got {model.accepts!r}']


def _query_order_faults(model: Any) -> list[str]:
    episode = _episode(model, "plain", shots=[1, 1, 1], queries=4)
    classify = _call("classify", "episodes")
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
    answers = split_answers(session.predict(prompts), len(prompts), "prompts")
    if faults := [fault for answer in answers for fault in missing_fields(answer, "mask", "state")]:
        raise AnswerError(faults[0])
    return answers


def _prompted_faults(model: Any, value: Any, answer: Any) -> list[str]:
    return find_array_faults("mask", answer.mask, np.bool_, _frame(value[0]))


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
    return _prompted_faults(model, (image,), twice[0]) + changed


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


def _click_map_faults(model: Any, value: Any, answer: Any) -> list[str]:
    faults = find_array_faults("map", answer, np.float64, _frame(value[0]), low=0)
    if not faults and not answer[value[2]].sum() > 0:
        faults.append("map: expected some chance of a click in the error region, got 0 all over it")
    return faults


def _image_contract(method: str, *demands: Any) -> RoleContract:
    return RoleContract("images", _image_probes, _call(method, "images"), *demands)


CONTRACTS: Mapping[str, RoleContract] = {
    "encoder": RoleContract("images", _image_probes, _encode, _encoded_faults, _encoded_difference, _dimension_faults),
    "text-encoder": RoleContract(
        "texts",
        _text_probes,
        _encode_texts,
        lambda model, text, vector: _vector_faults(model, vector),
        _compare("vector"),
        _dimension_faults,
    ),
    "image-text-encoder": RoleContract(
        "images and texts",
        lambda model: _image_probes(model) + _text_probes(model),
        _encode_both,
        _unit_faults,
        _compare("vector"),
        _dimension_faults,
    ),
    "saliency": _image_contract(
        "saliency",
        lambda model, image, found: find_array_faults("map", found, np.float32, _frame(image), 0, 1),
        _compare("map"),
    ),
    "semantic-segmenter": _image_contract("segment", _label_map_faults, _compare("map"), _label_faults),
    "instance-segmenter": _image_contract("detect", _instance_faults, _instance_difference, _label_faults),
    "panoptic-segmenter": _image_contract("segment_panoptic", _segment_faults, _segment_difference, _thing_faults),
    "one-shot-segmenter": RoleContract(
        "pairs",
        _pairs,
        _segment_queries,
        lambda model, pair, mask: find_array_faults("mask", mask, np.bool_, _frame(pair[0])),
        _compare("mask"),
    ),
    "few-shot-learner": RoleContract(
        "episodes",
        _episodes,
        _call("classify", "episodes"),
        _score_faults,
        _compare("scores"),
        _accepts_faults,
        extra_checks=(("order of queries", _query_order_faults),),
    ),
    "promptable-segmenter": RoleContract(
        "prompts",
        _prompts,
        _predict,
        _prompted_faults,
        lambda first, second: describe_difference("mask", first.mask, second.mask),
        extra_checks=(("sessions side by side", _session_faults), ("state given back", _state_faults)),
    ),
    "click-model": RoleContract(
        "corrections",
        _corrections,
        lambda model, values: [model.click_map(*value) for value in values],
        _click_map_faults,
        _compare("map"),
        batched=False,
    ),
}
