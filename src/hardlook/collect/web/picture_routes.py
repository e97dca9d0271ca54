"""Pictures, each to the one it was handed to, from its show to its answer; the mask itself is never served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardlook.collect.study.display_modes import highlighted
from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import ClickTask, Task
from hardlook.collect.study.validity import Judge
from hardlook.collect.web.refusals import Refused
from hardlook.collect.web.site import Visit
from hardlook.collect.web.trial_views import is_trial_id, picture_of, training_mode, training_task
from hardlook.data.images import read_bytes, read_image

if TYPE_CHECKING:
    from starlette.responses import Response

_MEDIA = {b"\x89PNG": "image/png", b"\xff\xd8": "image/jpeg", b"RIFF": "image/webp"}


def picture(visit: Visit, trial: str, what: str) -> Response:
    """A picture of a trial: `what` is image, target or, of a training trial, feedback."""
    site = visit.site
    task = training_task(site.study, trial)
    if task is not None:
        if what == "feedback" and isinstance(task, ClickTask):
            if task.id not in site.feedback:
                site.feedback[task.id] = outlined(site.study, site.judge, task)
            return _answer(site.feedback[task.id])
        return _file(site.study, task, training_mode(site.study, trial), what)
    found = site.store.trial(visit.participant.id, trial) if is_trial_id(trial) else None
    # One answer for all of these: whether a trial of somebody else exists is nobody's business.
    if found is None or not found.shows or found.state != "assigned":
        raise Refused(404, "no-picture", "There is no such picture, or it is not its time.")
    return _file(site.study, site.study.by_id[found.item.task], found.item.mode, what)


def outlined(study: Study, judge: Judge, task: ClickTask) -> bytes:
    """The image with its region outlined, as PNG: what a training trial shows after its answer."""
    import cv2

    painted = highlighted(read_image(study.file(task.image)), judge.mask(task.id), task.click_type)
    _, data = cv2.imencode(".png", cv2.cvtColor(painted, cv2.COLOR_RGB2BGR))
    return bytes(data.tobytes())


def _file(study: Study, task: Task, mode: str, what: str) -> Response:
    name = picture_of(task, mode, what)
    if name is None:
        raise Refused(404, "no-picture", "There is no such picture, or it is not its time.")
    return _answer(read_bytes(study.file(name)))


def _answer(data: bytes) -> Response:
    from starlette.responses import Response

    kinds = [kind for start, kind in _MEDIA.items() if data.startswith(start)]
    return Response(data, media_type=kinds[0] if kinds else "application/octet-stream")
