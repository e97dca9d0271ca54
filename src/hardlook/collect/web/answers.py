"""What happens in a trial: it is shown, answered, and only then acknowledged; whether a click was right is not told."""

from __future__ import annotations

from hardlook.collect.store.records import NewAnswer, Trial
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import ClickTask, ReviewTask, Task
from hardlook.collect.web import replies
from hardlook.collect.web.bodies import AnswerBody, EmptyBody, TrainingBody
from hardlook.collect.web.refusals import Refused
from hardlook.collect.web.site import Visit
from hardlook.collect.web.trial_views import ShownView, is_trial_id, shown_view, training_mode, training_task

# Clocks and networks are not exact: a show reaches the page a little later than it is noted here.
GRACE_SECONDS = 0.25


def show(visit: Visit, body: EmptyBody, trial: str) -> ShownView:
    """Begin a trial: from now on its pictures can be read, and it can be answered."""
    site = visit.site
    task = training_task(site.study, trial)
    if task is not None:
        return shown_view(site.study, trial, task, training_mode(site.study, trial))
    if not is_trial_id(trial):
        raise _unknown_trial()
    found = site.store.show(visit.participant.id, trial, visit.now)
    return shown_view(site.study, found.id, site.study.by_id[found.item.task], found.item.mode)


def answer(visit: Visit, body: AnswerBody) -> replies.Stored:
    """Store an answer, then say so; the same answer again is said to be there already."""
    site = visit.site
    trial = site.store.trial(visit.participant.id, body.trial)
    if trial is None:
        raise _unknown_trial()
    task = site.study.by_id[trial.item.task]
    check_values(site.study.settings, task, body)
    if trial.state == "assigned":
        _check_time(visit, trial)
    verdict = None
    if isinstance(task, ClickTask) and body.x is not None and body.y is not None:
        verdict = site.judge.click(task.id, body.x, body.y)
    new = NewAnswer(
        body.key,
        body.trial,
        x=body.x,
        y=body.y,
        inside=verdict.inside if verdict else None,
        near=verdict.near if verdict else None,
        value=body.value,
        early=body.early,
        reaction_ms=body.reaction_ms,
        durations=body.durations.model_dump(),
        circumstances=body.circumstances.model_dump(),
    )
    stored = site.store.answer(visit.participant.id, new, site.rules.needed, visit.now)
    if stored.batch_complete:
        _note_the_end(visit)
    return {
        "stored": True,
        "repeated": stored.repeated,
        "batch_complete": stored.batch_complete,
        "answered": stored.answered,
        "of": stored.of,
    }


def training(visit: Visit, body: TrainingBody) -> replies.Training:
    """Judge an answer of the training round, which is not stored; every rating is right."""
    site = visit.site
    task = training_task(site.study, body.trial)
    if task is None:
        raise _unknown_trial()
    check_values(site.study.settings, task, body)
    if not isinstance(task, ClickTask) or body.x is None or body.y is None:
        known = task.answer if isinstance(task, ReviewTask) else None
        right = known is None or body.value == known
        return {"right": right, "inside": right, "near": right, "feedback": None}
    verdict = site.judge.click(task.id, body.x, body.y)
    feedback = f"/pictures/{body.trial}/feedback"
    return {"right": verdict.near, "inside": verdict.inside, "near": verdict.near, "feedback": feedback}


def check_values(settings: StudySettings, task: Task, body: AnswerBody | TrainingBody) -> None:
    """Refuse with 422 what is no answer of this kind: a click lies within its image, a rating from 1 to 10."""
    if isinstance(task, ClickTask):
        if body.x is None or body.y is None or body.value is not None:
            raise Refused(422, "field", "a click has x and y, and no value")
        if not (0 <= body.x < task.width and 0 <= body.y < task.height):
            raise Refused(422, "field", f"x, y: expected a point of the image, {task.width} by {task.height} pixels")
        return
    least, most = (0, 1) if settings.kind == "review" else (1, 10)
    if body.x is not None or body.y is not None or body.value is None or not least <= body.value <= most:
        raise Refused(422, "field", f"value: expected a whole number from {least} to {most}, without x and y")


def _note_the_end(visit: Visit) -> None:
    """Note that somebody did all that is asked for, also when their page does not ask for more."""
    site, here = visit.site, visit.participant.id
    if site.store.tally(here).complete >= site.study.settings.most_batches:
        # Nothing is handed out beyond the most; asking is what notes it.
        site.store.next_batch(here, site.rules, visit.now)


def _check_time(visit: Visit, trial: Trial) -> None:
    """Refuse what was never shown, or sooner after its first show than its phases take; later is never too late."""
    if trial.shown is None:
        raise Refused(409, "not-shown", "This trial was not shown yet.")
    settings = visit.site.study.settings
    if settings.kind != "clicks":
        return
    timings = settings.timings
    planned = timings.image + timings.target_of(trial.item.mode) + timings.again
    # A clock that was set back says nothing of what was seen, and the answer would be lost.
    if 0 <= visit.now - trial.shown < planned - GRACE_SECONDS:
        raise Refused(409, "too-early", "The answer came before the picture can have been seen.")


def _unknown_trial() -> Refused:
    return Refused(404, "unknown-trial", "There is no such trial of yours.")
