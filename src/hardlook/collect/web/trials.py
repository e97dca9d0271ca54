"""The operations of the participants' API: state and settings of a participant, batches, trials and their pictures.

An answer is acknowledged once it is stored; whether a click was right is not revealed. A trial's pictures are served
to its own participant from the moment it is shown until it is answered, and a mask is never served. Trials of the
training round are not stored; their ids are training-0, training-1 and so on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hardlook.collect.store.records import Batch, NewAnswer
from hardlook.collect.study.display_modes import draw_highlighted
from hardlook.collect.study.folder import Study
from hardlook.collect.study.pictures import encode_picture
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import ClickTask, ReviewTask, Task
from hardlook.collect.study.validity import ClickValidator, passes_check
from hardlook.collect.web import messages
from hardlook.collect.web.joining import find_completion_code, is_full
from hardlook.collect.web.messages import AnswerBody, DeviceBody, EmptyBody, LanguageBody, TrainingBody
from hardlook.collect.web.pages import find_image_type, language_name, load_texts
from hardlook.collect.web.refusals import RequestRefused
from hardlook.collect.web.sessions import make_csrf_token
from hardlook.collect.web.site import Visit
from hardlook.collect.web.tokens import shorten_address
from hardlook.data.images import read_image
from hardlook.reading import read_bytes

if TYPE_CHECKING:
    from starlette.responses import Response

ShownTrial = messages.ShownClick | messages.ShownReview | messages.ShownRating

# Clocks and networks are not exact: a trial reaches the page a little later than its show is noted here.
GRACE_SECONDS = 0.25

# After this many answers to a trial of the training round a participant may continue anyway, as the page says too.
TRAINING_TRIES = 2


def get_state(visit: Visit) -> messages.State:
    """All that the page needs to resume where the participant stopped."""
    study, participant = visit.site.study, visit.participant
    settings = study.settings
    tally = visit.site.store.tally(participant.id)
    visit.site.store.touch(participant.id, visit.now)
    return {
        "study": visit.site.sessions.study_tag,
        "kind": settings.kind,
        "title": settings.title,
        "language": participant.language,
        "languages": {code: language_name(code) for code in settings.languages},
        "question": settings.question,
        "click_types": list(visit.site.click_types),
        "csrf": make_csrf_token(study.secret, visit.session.cookie),
        "device": participant.device,
        "trained": participant.trained is not None or not study.training,
        "timings": settings.timings.model_dump(),
        "training": [f"training-{number}" for number in range(len(study.training))],
        "instructions": settings.instructions.get(participant.language, ""),
        "progress": {
            "answered": tally.answered,
            "batches": tally.complete,
            "most_batches": settings.most_batches,
            "batch_size": study.full_batch + settings.attention_checks,
        },
        "full": not tally.batches and is_full(visit.site, participant, visit.now),
        # Not `finished`: where nothing was left, batches that others return can be assigned later.
        "done": tally.complete >= settings.most_batches,
        "code": find_completion_code(visit.site, participant.id),
        "texts": dict(load_texts(participant.language)),
    }


def set_language(visit: Visit, body: LanguageBody) -> messages.Language:
    """Change the language."""
    known = visit.site.study.settings.languages
    if body.language not in known:
        raise RequestRefused(422, "language", f"language: this study has {', '.join(known)}")
    visit.site.store.set_language(visit.participant.id, body.language, visit.now)
    return {"language": body.language, "texts": dict(load_texts(body.language))}


def set_device(visit: Visit, body: DeviceBody) -> messages.Device:
    """Set or change the device.

    A batch that was begun on one device is not finished on another: with the next batch it is returned, and its
    answers stay on record for the device that they were given on.
    """
    settings = visit.site.study.settings
    if settings.kind != "clicks":
        raise RequestRefused(409, "no-device", "This study does not ask for the device.")
    if body.device not in settings.devices:
        wanted = settings.devices[0]
        name = "a computer" if wanted == "pc" else "a phone or a tablet"
        raise RequestRefused(409, f"needs-{wanted}", f"This study needs {name}. Open your link there.")
    open_devices = visit.site.store.devices_with_work(visit.site.rules, visit.now, visit.participant.id)
    if visit.participant.trained is None and body.device not in open_devices:
        name = "computers" if body.device == "pc" else "phones and tablets"
        raise RequestRefused(409, f"full-{body.device}", f"No more answers from {name} are needed right now.")
    visit.site.store.set_device(visit.participant.id, body.device, visit.now)
    return {"device": body.device}


def end_training(visit: Visit, body: EmptyBody) -> messages.Trained:
    """End the training round, once each of its trials was answered rightly, or often enough."""
    if visit.participant.trained is None:
        practice = visit.site.store.practice(visit.participant.id)
        for number in range(len(visit.site.study.training)):
            done = practice.get(f"training-{number}")
            if done is None or not (done.passed or done.tries >= TRAINING_TRIES):
                raise RequestRefused(409, "not-trained", "The practice comes first.")
    visit.site.store.set_trained(visit.participant.id, visit.now)
    return {"trained": True}


def keep_alive(visit: Visit, body: EmptyBody) -> messages.Paused:
    """Restart the time until the open batch is returned."""
    visit.site.store.touch(visit.participant.id, visit.now)
    return {"paused": True}


def get_batch(visit: Visit, body: EmptyBody) -> messages.BatchReply:
    """The open batch, or a new one, or the end of the study for this participant."""
    site, participant = visit.site, visit.participant
    if site.study.settings.kind == "clicks" and participant.device is None:
        raise RequestRefused(409, "no-device", "Say first which device you use.")
    if site.study.training and participant.trained is None:
        raise RequestRefused(409, "not-trained", "The practice comes first.")
    batch = _assign_batch(visit)
    if batch is None:
        return {"done": True, "code": find_completion_code(site, participant.id)}
    trials: list[messages.TrialOfBatch] = [
        {"id": trial.id, "position": trial.position, "answered": trial.state == "answered"} for trial in batch.trials
    ]
    return {"done": False, "batch": {"id": batch.id, "number": batch.number, "trials": trials}}


def _assign_batch(visit: Visit) -> Batch | None:
    """The next batch; of people without an invitation, few at one address may have one open at the same time."""
    site, participant = visit.site, visit.participant
    address = "" if participant.invitation is not None else shorten_address(site.study.secret, visit.address)
    return site.store.next_batch(participant.id, site.rules, visit.now, address)


def show_trial(visit: Visit, body: EmptyBody, trial: str) -> ShownTrial:
    """Begin a trial: from now on its pictures are served, and it can be answered."""
    site = visit.site
    task = find_training_task(site.study, trial)
    if task is not None:
        if visit.participant.trained is None and is_full(site, visit.participant, visit.now):
            raise RequestRefused(409, "full", "No more answers are needed right now. Thank you.")
        site.store.show_practice(visit.participant.id, trial, visit.now)
        return describe_trial(site.study, trial, task, choose_training_mode(site.study, task))
    shown = site.store.show(visit.participant.id, trial, visit.now)
    return describe_trial(site.study, shown.id, site.study.by_id[shown.item.task], shown.item.mode)


def store_answer(visit: Visit, body: AnswerBody) -> messages.Stored:
    """Store an answer and acknowledge it; the same answer sent again is reported as repeated."""
    site, participant = visit.site, visit.participant.id
    trial = site.store.trial(participant, body.trial)
    if trial is None:
        raise _unknown_trial()
    task = site.study.by_id[trial.item.task]
    check_answer(site.study.settings, task, body)
    if trial.state == "assigned":
        _check_time(visit, trial.shown, trial.item.mode)
    answer = NewAnswer(**body.model_dump())
    if answer.x is not None and answer.y is not None:
        verdict = site.validator.validate(task.id, answer.x, answer.y)
        answer = replace(answer, inside=verdict.inside, near=verdict.near)
    elif trial.item.is_check:
        answer = replace(answer, near=passes_check(task, body.value))
    stored = site.store.answer(participant, answer, site.rules.needed, visit.now, site.rules.is_too_quick)
    if stored.batch_complete and site.store.tally(participant).complete >= site.study.settings.most_batches:
        # Nothing is left to assign; asking for it notes the time, also when the page does not ask for more.
        site.store.next_batch(participant, site.rules, visit.now)
    return {
        "stored": True,
        "repeated": stored.repeated,
        "batch_complete": stored.batch_complete,
        "answered": stored.answered,
        "of": stored.of,
    }


def check_training_answer(visit: Visit, body: TrainingBody) -> messages.Training:
    """Judge an answer of the training round, which is not stored; every rating is right."""
    site = visit.site
    task = find_training_task(site.study, body.trial)
    if task is None:
        raise _unknown_trial()
    check_answer(site.study.settings, task, body)
    shown = site.store.practice(visit.participant.id).get(body.trial)
    _check_time(visit, shown.shown if shown else None, choose_training_mode(site.study, task))
    if not isinstance(task, ClickTask) or body.x is None or body.y is None:
        known = task.answer if isinstance(task, ReviewTask) else None
        right = known is None or body.value == known
        site.store.answer_practice(visit.participant.id, body.trial, right, visit.now)
        return {"right": right, "inside": right, "near": right, "feedback": None}
    verdict = site.validator.validate(task.id, body.x, body.y)
    site.store.answer_practice(visit.participant.id, body.trial, verdict.near, visit.now)
    feedback = f"/pictures/{body.trial}/feedback"
    return {"right": verdict.near, "inside": verdict.inside, "near": verdict.near, "feedback": feedback}


def serve_picture(visit: Visit, trial: str, what: str) -> Response:
    """A picture of a trial: `what` is image, target or, of a training trial, feedback."""
    site = visit.site
    task = find_training_task(site.study, trial)
    if task is not None:
        if what == "feedback" and isinstance(task, ClickTask):
            if task.id not in site.feedback:
                site.feedback[task.id] = draw_feedback(site.study, site.validator, task)
            return _image_response(site.feedback[task.id])
        mode = choose_training_mode(site.study, task)
    else:
        own = site.store.trial(visit.participant.id, trial)
        # One response for all of these: whether another participant's trial exists is not revealed.
        if own is None or not own.shows or own.state != "assigned":
            raise _no_picture()
        task, mode = site.study.by_id[own.item.task], own.item.mode
    name = find_picture_file(task, mode, what)
    if name is None:
        raise _no_picture()
    return _image_response(read_bytes(site.study.file(name)))


def draw_feedback(study: Study, validator: ClickValidator, task: ClickTask) -> bytes:
    """The image with its region outlined, as PNG: what a training trial shows after its answer."""
    image = read_image(study.file(task.image))
    return encode_picture(draw_highlighted(image, validator.mask(task.id), task.click_type))


def find_training_task(study: Study, trial: str) -> Task | None:
    """The task of a trial of the training round; None for any other id."""
    return {f"training-{number}": task for number, task in enumerate(study.training)}.get(trial)


def choose_training_mode(study: Study, task: Task) -> str:
    """The display mode of a training trial: the study's modes in turn, skipping those the task has no picture for."""
    if not isinstance(task, ClickTask):
        return ""
    modes = study.settings.modes
    start = study.training.index(task) % len(modes)
    candidates = (*modes[start:], *modes[:start], *sorted(task.targets))
    return next((mode for mode in candidates if mode == "text" or mode in task.targets), "text")


def describe_trial(study: Study, trial: str, task: Task, mode: str) -> ShownTrial:
    """What the page is sent of a trial; nothing in it reveals the region to click."""
    image = f"/pictures/{trial}/image" if task.image else None
    if isinstance(task, ClickTask):
        return {
            "id": trial,
            "mode": mode,
            "click_type": task.click_type,
            "width": task.width,
            "height": task.height,
            "image": image,
            "target": f"/pictures/{trial}/target" if mode in task.targets else None,
            "description": task.description if mode == "text" else "",
        }
    if isinstance(task, ReviewTask):
        return {"id": trial, "image": image, "concept": task.concept, "context": task.context}
    value = task.value if study.settings.question == "fit" else None
    return {"id": trial, "form": task.form, "labels": list(task.labels), "value": value, "image": image}


def find_picture_file(task: Task, mode: str, what: str) -> str | None:
    """The file of a picture, relative to the study; None where there is none of that name.

    >>> from hardlook.collect.study.tasks import RatingTask
    >>> find_picture_file(RatingTask("t1", "s", "pair", ("a", "b"), "path", 0.5), "", "image") is None
    True
    """
    if what == "image":
        return task.image or None
    if what == "target" and isinstance(task, ClickTask):
        return task.targets.get(mode)
    return None


def check_answer(settings: StudySettings, task: Task, body: AnswerBody | TrainingBody) -> None:
    """Refuse with 422 an answer of the wrong kind: a click must lie within its image, a rating from 1 to 10."""
    if isinstance(task, ClickTask):
        if body.x is None or body.y is None or body.value is not None:
            raise RequestRefused(422, "field", "a click has x and y, and no value")
        if not (0 <= body.x < task.width and 0 <= body.y < task.height):
            message = f"x, y: expected a point of the image, {task.width} by {task.height} pixels"
            raise RequestRefused(422, "field", message)
        return
    least, most = (0, 1) if settings.kind == "review" else (1, 10)
    if body.x is not None or body.y is not None or body.value is None or not least <= body.value <= most:
        message = f"value: expected a whole number from {least} to {most}, without x and y"
        raise RequestRefused(422, "field", message)


def _check_time(visit: Visit, shown: float | None, mode: str) -> None:
    """Refuse an answer before the trial was shown for as long as its phases take; late answers are accepted."""
    if shown is None:
        raise RequestRefused(409, "not-shown", "This trial was not shown yet.")
    # A clock that was set back says nothing about what was seen, and the answer would be lost.
    if 0 <= visit.now - shown < visit.site.study.settings.least_seconds(mode) - GRACE_SECONDS:
        raise RequestRefused(409, "too-early", "The answer came before the picture can have been seen.")


def _image_response(data: bytes) -> Response:
    from starlette.responses import Response

    return Response(data, media_type=find_image_type(data) or "application/octet-stream")


def _unknown_trial() -> RequestRefused:
    return RequestRefused(404, "unknown-trial", "There is no such trial of yours.")


def _no_picture() -> RequestRefused:
    return RequestRefused(404, "no-picture", "There is no such picture, or it is not shown now.")
