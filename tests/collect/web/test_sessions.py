"""Cookies and origins: a session is one participant's of one study for some time, and only our own page uses it."""

import json

import pytest

from hardlook.collect.web.sessions import SESSION_DAYS, Sessions
from hardlook.collect.web.tokens import sign

from .visitors import FORM, KEY, session_cookie

STATE = "/api/state"
POSTS = (
    ("/api/language", {"language": "de"}),
    ("/api/device", {"device": "pc"}),
    ("/api/trained", {}),
    ("/api/pause", {}),
    ("/api/batch", {}),
    ("/api/trials/training-0/show", {}),
    ("/api/answers", {"key": "k" * 16, "trial": "t" * 16, "x": 1.0, "y": 1.0}),
    ("/api/training", {"trial": "training-0", "x": 1.0, "y": 1.0}),
)


def test_the_cookie_is_kept_from_scripts_and_other_sites(hall):
    joined = hall.visitor().join()
    (cookie,) = joined.cookies
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes
    assert "secure" not in attributes and not any(part.startswith("domain") for part in attributes)


def test_over_https_it_is_bound_to_the_host(hall_of, clicks_study):
    hall = hall_of(clicks_study, public_url="https://study.example")
    visitor = hall.visitor(host="study.example", origin="https://study.example")
    (cookie,) = visitor.join().cookies
    assert cookie.startswith("__Host-") and "secure" in cookie.lower()
    assert visitor.get(STATE).status == 200
    assert visitor.post("/api/pause", {}).status == 200
    assert visitor.post("/api/pause", {}, origin="http://study.example").status == 403


def test_without_a_session_nothing_is_answered(hall):
    stranger = hall.visitor()
    assert (stranger.get(STATE).status, stranger.get(STATE).error) == (401, "no-session")
    assert stranger.get("/pictures/training-0/image").status == 401
    assert {stranger.post(path, body).status for path, body in POSTS} == {401}


def test_forged_and_foreign_cookies_are_none(hall, hall_of, review_study):
    visitor = hall.participant()
    name, value = session_cookie(visitor)
    participant = hall.store.participants()["id"][0]
    other = hall_of(review_study).participant()
    secret = hall.study.secret
    forged = {
        "cut short": value[:-1],
        "empty": "",
        "without signature": value.partition(".")[0],
        "of another study": session_cookie(other)[1],
        "another purpose": sign(secret, "form", {"p": participant}, hall.now + 1000),
        "an invitation": sign(secret, "invitation", {"p": participant}, hall.now + 1000),
        "another secret": Sessions(bytes(32)).made(participant, hall.now),
        "nobody's": Sessions(secret).made("0" * 32, hall.now),
        "SQL": Sessions(secret).made("' OR 1=1 --", hall.now),
        "the id itself": participant,
        "no ASCII": "é" * 40,
        "very long": "A" * 3000,
    }
    for what, cookie in forged.items():
        visitor.cookies[name] = cookie.encode().decode("latin-1")
        assert visitor.get(STATE).status == 401, what
        assert visitor.post("/api/pause", {}).status in (401, 403), what
    visitor.cookies[name] = value
    assert visitor.get(STATE).status == 200


def test_a_session_ends(hall):
    visitor = hall.participant()
    hall.now += SESSION_DAYS * 86_400 - 1
    assert visitor.get(STATE).status == 200
    hall.now += 1
    assert visitor.get(STATE).status == 401


def test_two_studies_of_one_host_keep_two_cookies(hall, hall_of, review_study):
    visitor, other = hall.participant(), hall_of(review_study).visitor()
    other.cookies = visitor.cookies
    other.join()
    assert visitor.get(STATE).json["kind"] == "clicks" and other.get(STATE).json["kind"] == "review"


@pytest.mark.parametrize(("path", "body"), POSTS)
def test_every_change_needs_the_sessions_token(hall, path, body):
    visitor, other = hall.participant(), hall.participant()
    other_token, own = other.csrf, visitor.csrf
    assert other_token != own
    for token in ("", "x", own[:-1], own + "0", own.upper(), other_token):
        refused = visitor.post(path, body, csrf=token)
        assert (refused.status, refused.error) == (403, "csrf")
    assert visitor.post(path, body).status in (200, 404)


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:9000", "https://127.0.0.1:8000", ""]
)
def test_every_change_comes_from_our_own_origin(hall, origin):
    visitor = hall.participant()
    for path, body in POSTS:
        assert visitor.post(path, body, origin=origin or " ").error == "other-origin"
    assert visitor.post("/api/pause", {}, headers=[("sec-fetch-site", "same-origin")]).status == 200
    for site in ("cross-site", "same-site"):
        assert visitor.post("/api/pause", {}, headers=[("sec-fetch-site", site)]).error == "other-origin"


def test_who_says_nothing_of_an_origin_still_needs_the_token(hall):
    """Old browsers: the token alone stands against another site's form there."""
    visitor = hall.participant()
    for path, body in POSTS:
        content = json.dumps(body).encode()
        assert visitor.send("POST", path, content, kind="application/json").error == "csrf"
        token = [("x-csrf-token", visitor.csrf)]
        assert visitor.send("POST", path, content, kind="application/json", headers=token).status in (200, 404)


def test_one_cookie_among_others_and_twice(hall):
    """A cookie that somebody else managed to set beside ours is no session, and does no harm but to itself."""
    visitor, other = hall.participant(), hall.participant()
    (name, own), (_, theirs) = session_cookie(visitor), session_cookie(other)
    who = {own: visitor.csrf, theirs: other.csrf}
    for cookies, seen in (
        (f"a=b; {name}={own}; c=d", own),
        (f'{name}="{own}"', own),
        (f"{name}={own}; {name.upper()}={theirs}", own),
        (f"{name}=x; {name}={own}", own),
        (f"{name}={own}; {name}={theirs}", theirs),
        (f"{name}={own};" + "; ".join(f"x{number}=y" for number in range(500)), own),
    ):
        visitor.cookies = {}
        reply = visitor.get(STATE, headers=[("cookie", cookies)])
        assert (reply.status, reply.json["csrf"]) == (200, who[seen]), cookies


def test_a_form_of_consent_sent_again_by_the_same_browser_is_the_same_person(hall):
    visitor = hall.visitor()
    page = visitor.get("/").text
    fields = {"token": "", "agree": "yes", "csrf": page.partition('name="csrf" value="')[2].partition('"')[0]}
    for _ in range(3):
        assert visitor.form("/join", fields).status == 303
    assert hall.store.participants().height == 1


def test_the_form_of_consent_is_our_own_too(hall):
    visitor, other = hall.visitor(), hall.visitor()
    page, others = visitor.get("/").text, other.get("/").text
    token, theirs = (text.partition('name="csrf" value="')[2].partition('"')[0] for text in (page, others))
    fields = {"token": "", "agree": "yes", "language": "en", "csrf": token}
    assert visitor.form("/join", {**fields, "csrf": theirs}).status == 403
    assert visitor.form("/join", {**fields, "csrf": ""}).status == 403
    assert visitor.form("/join", fields, origin="https://evil.example").status == 403
    kept, visitor.cookies = visitor.cookies, {}
    assert visitor.form("/join", fields).status == 403
    visitor.cookies = kept
    assert visitor.send("POST", "/join", b"agree=yes", kind="text/plain").status == 415
    assert visitor.send("POST", "/join", "agree=y\xe9s".encode("latin-1"), kind=FORM).status == 400
    assert visitor.send("POST", "/join", b"a=1&" * 100, kind=FORM).status == 400
    assert hall.store.participants().height == 0
    assert visitor.form("/join", fields).status == 303
    hall.now += 13 * 3600
    assert visitor.form("/join", fields).status == 403


def test_a_participants_cookie_opens_nothing_of_the_researchers(hall):
    visitor = hall.participant()
    name, value = session_cookie(visitor)
    visitor.cookies[name.replace("session", "research")] = value
    assert visitor.get("/research").status in (401, 403)
    researcher = hall.visitor()
    assert researcher.get(f"/research/key/{KEY}").status == 303
    assert researcher.get(STATE).status == 401
