"""What a participant's page asks: where it stands, its language, device and batches."""

from __future__ import annotations

from hardlook.collect.web import replies
from hardlook.collect.web.bodies import DeviceBody, EmptyBody, LanguageBody
from hardlook.collect.web.csrf import csrf_token
from hardlook.collect.web.joining import code_of
from hardlook.collect.web.refusals import Refused
from hardlook.collect.web.site import Visit
from hardlook.collect.web.texts import name_of, texts
from hardlook.collect.web.trial_views import training_id


def state(visit: Visit) -> replies.State:
    """All that the page needs to go on where the participant stopped."""
    study, here = visit.site.study, visit.participant
    settings = study.settings
    tally = visit.site.store.tally(here.id)
    visit.site.store.touch(here.id, visit.now)
    return {
        "study": visit.site.sessions.mark,
        "kind": settings.kind,
        "title": settings.title,
        "language": here.language,
        "languages": {code: name_of(code) for code in settings.languages},
        "question": settings.question,
        "click_types": list(visit.site.click_types),
        "csrf": csrf_token(study.secret, visit.session.cookie),
        "device": here.device,
        "trained": here.trained is not None or not study.training,
        "timings": settings.timings.model_dump(),
        "training": [training_id(number) for number in range(len(study.training))],
        "instructions": settings.instructions.get(here.language, ""),
        "progress": {
            "answered": tally.answered,
            "batches": tally.complete,
            "most_batches": settings.most_batches,
            "batch_size": settings.batch_size,
        },
        # That nothing was left for them once may be over: batches of others go back.
        "done": tally.complete >= settings.most_batches,
        "code": code_of(visit.site, here.id),
        "texts": dict(texts(here.language)),
    }


def language(visit: Visit, body: LanguageBody) -> replies.Language:
    """Go on in another language."""
    known = visit.site.study.settings.languages
    if body.language not in known:
        raise Refused(422, "language", f"language: this study has {', '.join(known)}")
    visit.site.store.set_language(visit.participant.id, body.language, visit.now)
    return {"language": body.language, "texts": dict(texts(body.language))}


def device(visit: Visit, body: DeviceBody) -> replies.Device:
    """Say, or change, the device.

    A batch that was begun on one device is not finished on another: with the next batch it goes back, and what was
    answered in it stays on record as of the device that it was answered on.
    """
    settings, here = visit.site.study.settings, visit.participant
    if settings.kind != "clicks":
        raise Refused(409, "no-device", "This study does not ask for the device.")
    if body.device not in settings.devices:
        wanted = settings.devices[0]
        words = "a computer" if wanted == "pc" else "a phone or a tablet"
        raise Refused(409, f"needs-{wanted}", f"This study needs {words}. Open your link there.")
    visit.site.store.set_device(here.id, body.device, visit.now)
    return {"device": body.device}


def trained(visit: Visit, body: EmptyBody) -> replies.Trained:
    """The training round is over."""
    visit.site.store.set_trained(visit.participant.id, visit.now)
    return {"trained": True}


def pause(visit: Visit, body: EmptyBody) -> replies.Paused:
    """A sign of life: the time until a batch goes back begins anew."""
    visit.site.store.touch(visit.participant.id, visit.now)
    return {"paused": True}


def batch(visit: Visit, body: EmptyBody) -> replies.BatchReply:
    """The open batch, or a new one, or that nothing is left."""
    site, here = visit.site, visit.participant
    if site.study.settings.kind == "clicks" and here.device is None:
        raise Refused(409, "no-device", "Say first which device you use.")
    if site.study.training and here.trained is None:
        raise Refused(409, "not-trained", "The practice comes first.")
    found = site.store.next_batch(here.id, site.rules, visit.now)
    if found is None:
        return {"done": True, "code": code_of(site, here.id)}
    trials: list[replies.TrialOfBatch] = [
        {"id": trial.id, "position": trial.position, "answered": trial.state == "answered"} for trial in found.trials
    ]
    return {"done": False, "batch": {"id": found.id, "number": found.number, "trials": trials}}
