"""Contracts of interactive models: promptable segmenters and click models.

>>> from hardlook.models.planted.disc import Disc
>>> [answer] = PROMPTABLE.call(Disc(), [(pictures()["tiny image"], clicks((4, 4, True)))])
>>> answer.mask.shape
(8, 8)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hardlook.models.conformance.checks import (
    AnswerError,
    RoleContract,
    describe_difference,
    find_array_faults,
    missing_fields,
    split_answers,
)
from hardlook.models.conformance.probes import Probe, clicks, inside, pictures, subject_of


def _prompts(model: Any) -> list[Probe]:
    probes = []
    for name, image in pictures().items():
        x, y = inside(subject_of(image), 0.5)
        probes.append(Probe(name, (image, clicks((x, y, True)))))
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
    # Prompts on one image are one batch on one session, as the benchmark sends them.
    answers: list[Any] = [None] * len(values)
    waiting = list(range(len(values)))
    while waiting:
        image = values[waiting[0]][0]
        batch = [index for index in waiting if values[index][0] is image]
        waiting = [index for index in waiting if index not in batch]
        for index, answer in zip(batch, _call_session(model.open(image), [values[i][1] for i in batch]), strict=True):
            answers[index] = answer
    if not values:
        return _call_session(model.open(pictures()["ordinary image"]), [])
    return answers


def _call_session(session: Any, prompts: list[Any]) -> list[Any]:
    if not hasattr(session, "predict"):
        raise AnswerError(f"expected `open` to give a session with `predict`, got {type(session).__qualname__}")
    answers = split_answers(session.predict(prompts), len(prompts), "prompts")
    faults = [fault for answer in answers for fault in missing_fields(answer, "mask", "state")]
    if faults:
        raise AnswerError(faults[0])
    return answers


def _prompted_faults(model: Any, value: Any, answer: Any) -> list[str]:
    height, width = value[0].shape[:2]
    return find_array_faults("mask", answer.mask, np.bool_, {"H": height, "W": width})


def _session_faults(model: Any) -> list[str]:
    images = pictures()
    first, second = images["ordinary image"], images["wide image"]
    asked = [(image, clicks((*inside(subject_of(image), 0.5), True))) for image in (first, second)]
    alone = [_call_session(model.open(image), [prompt])[0] for image, prompt in asked]
    sessions = [model.open(image) for image, _ in asked]
    faults = []
    for turn in (0, 1, 0, 1):
        [answer] = _call_session(sessions[turn], [asked[turn][1]])
        words = describe_difference("mask", alone[turn].mask, answer.mask)
        if words:
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
    image, target = probes[0].value[0], probes[0].value[1]
    surplus = np.zeros_like(target)
    surplus[:6, :9] = ~target[:6, :9]
    single = np.zeros_like(target)
    single[tuple(np.argwhere(target)[0])] = True
    return [
        *probes,
        Probe("surplus region", (image.copy(), target.copy(), surplus, False)),
        Probe("one-pixel error", (image.copy(), target.copy(), single, True)),
    ]


def _click_map_faults(model: Any, value: Any, answer: Any) -> list[str]:
    height, width = value[0].shape[:2]
    faults = find_array_faults("map", answer, np.float64, {"H": height, "W": width}, low=0)
    if not faults and not answer[value[2]].sum() > 0:
        faults.append("map: expected some chance of a click in the error region, got 0 all over it")
    return faults


PROMPTABLE = RoleContract(
    input_name="prompts",
    probes=_prompts,
    call=_predict,
    find_faults=_prompted_faults,
    compare=lambda first, second: describe_difference("mask", first.mask, second.mask),
    extra_checks=(("sessions side by side", _session_faults), ("state given back", _state_faults)),
)

CLICKS = RoleContract(
    input_name="corrections",
    probes=_corrections,
    call=lambda model, values: [model.click_map(*value) for value in values],
    find_faults=_click_map_faults,
    compare=lambda first, second: describe_difference("map", first, second),
    batched=False,
)
