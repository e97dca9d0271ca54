"""Sessions of participants and researchers: cookies, keys, origins, and forms that only our own page can send."""

import json

import pytest
from starlette.requests import Request
from web_visitors import FORM, session_cookie
from web_visitors import KEY as web_visitors_KEY

from hardlook.collect.web.guard import PublicAddress
from hardlook.collect.web.refusals import RequestRefused
from hardlook.collect.web.sessions import (
    LOGINS_PER_MINUTE,
    RESEARCHER_SECONDS,
    SESSION_SECONDS,
    ResearcherGate,
    Sessions,
    derive_research_key,
    is_csrf_token,
    make_csrf_token,
)
from hardlook.collect.web.tokens import sign_token

KEY = "the-key-of-the-researchers"

SECRET = bytes(range(32))


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def gate(clock):
    return ResearcherGate(Sessions(SECRET), KEY, PublicAddress(), clock)


def request(cookie="", *, client="127.0.0.1", **headers):
    named = {"host": "127.0.0.1:8000", **({"cookie": cookie} if cookie else {}), **headers}
    pairs = [(name.encode(), value.encode()) for name, value in named.items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": pairs, "client": (client, 1)})


def cookie_of(response):
    return response.headers["set-cookie"].partition(";")[0]


def test_the_key_opens_until_evening(gate, clock):
    response = gate.log_in(request(), KEY)
    assert (response.status_code, response.headers["location"]) == (303, "/research")
    assert {"httponly", "samesite=strict"} <= {
        part.strip().lower() for part in response.headers["set-cookie"].split(";")
    }
    inside = request(cookie_of(response))
    assert gate.is_researcher(inside) and not gate.is_researcher(request())
    clock.now += RESEARCHER_SECONDS
    assert not gate.is_researcher(inside)


@pytest.mark.parametrize("key", ["", KEY[:-1], KEY + "x", KEY.upper(), "é", "\0", "' OR 1=1 --", "x" * 2000])
def test_another_key_opens_nothing(gate, key):
    with pytest.raises(RequestRefused) as refused:
        gate.log_in(request(), key)
    assert refused.value.status == 403 and (not key or key not in refused.value.message)


def test_tries_are_few(gate, clock):
    def tried(client, key="wrong"):
        with pytest.raises(RequestRefused) as refused:
            gate.log_in(request(client=client), key)
        return refused.value.status

    assert [tried("1.1.1.1") for _ in range(LOGINS_PER_MINUTE)] == [403] * LOGINS_PER_MINUTE
    # The right key as well: else a thief would know by the answer.
    assert tried("1.1.1.1", KEY) == 429
    clock.now += 60
    assert gate.log_in(request(client="1.1.1.1"), KEY).status_code == 303


def test_one_stranger_does_not_lock_the_researchers_out(gate):
    for _ in range(20 * LOGINS_PER_MINUTE):
        with pytest.raises(RequestRefused):
            gate.log_in(request(client="1.1.1.1"), "wrong")
    assert gate.log_in(request(client="2.2.2.2"), KEY).status_code == 303


def test_forms_belong_to_one_researcher_and_our_own_page(gate):
    one, two = (request(cookie_of(gate.log_in(request(), KEY))) for _ in range(2))
    token = gate.make_form_token(one)
    assert gate.is_valid_form(one, token) and not gate.is_valid_form(two, token)
    assert not any(gate.is_valid_form(*form) for form in ((one, ""), (one, "é"), (request(), token)))
    assert not gate.is_valid_form(request(), gate.make_form_token(request()))
    cookie = one.headers["cookie"]
    assert gate.is_valid_form(request(cookie, origin="http://127.0.0.1:8000"), token)
    assert not gate.is_valid_form(request(cookie, origin="https://evil.example"), token)
    assert not gate.is_valid_form(request(cookie, **{"sec-fetch-site": "cross-site"}), token)


def test_another_key_or_study_ends_all_sessions(gate, clock):
    inside = request(cookie_of(gate.log_in(request(), KEY)))
    for sessions, key in ((Sessions(SECRET), KEY + "!"), (Sessions(bytes(32)), KEY)):
        assert not ResearcherGate(sessions, key, PublicAddress(), clock).is_researcher(inside)


def test_logging_out_forgets_the_cookie(gate):
    response = gate.log_out()
    assert "max-age=0" in response.headers["set-cookie"].lower()


# Made by the code before itsdangerous, for this secret: what browsers hold must stay valid.
PARTICIPANT = "0123456789abcdef0123456789abcdef"

SESSION = (
    "eyJlIjoxNzY1MTg0MDAwLjAsInAiOnsicCI6IjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmIn19"
    ".HRGT06oI_l0RcFvsU5gcMEzv5CuyHAAU5ktDzDGRbL4"
)

RESEARCHER = (
    "eyJlIjoxNzYwMDQzMjAwLjAsInAiOnsiciI6IjAwMTEyMjMzNDQ1NTY2NzcifX0.HWjeWIHaW_vasmujiMtTeX_RRrU-KIpF85d-JqYhXSo"
)

ISSUED_KEY = "9C4DyOgOpjjCRlhaj1XLfGXf4myGEw-S"


def test_participants_cookies_of_earlier_versions_stay_valid():
    sessions = Sessions(SECRET)
    assert sessions.name == "hardlook_session_89f11ae4" and sessions.form_name == "hardlook_form_89f11ae4"
    assert Sessions(SECRET, secure=True).name == "__Host-hardlook_session_89f11ae4"
    assert sessions.make_cookie(PARTICIPANT, 1_760_000_000.0) == SESSION
    session = sessions.read({sessions.name: SESSION}, 1_765_183_999.0)
    assert (session.participant, session.cookie) == (PARTICIPANT, SESSION)
    assert sessions.read({sessions.name: SESSION}, 1_765_184_000.0) is None
    assert sessions.read({sessions.name: SESSION.swapcase()}, 0.0) is None
    assert Sessions(bytes(32)).read({Sessions(bytes(32)).name: SESSION}, 0.0) is None
    assert make_csrf_token(SECRET, SESSION) == "bb142cf92696759b7aeacb8737de4dd6"
    assert is_csrf_token(SECRET, SESSION, "bb142cf92696759b7aeacb8737de4dd6")
    assert not is_csrf_token(SECRET, SESSION, "bb142cf92696759b7aeacb8737de4dd7")
    assert sessions.make_form_token("cookie") == "0f17fa6e610a3e7367c3c17c9aac4a72"


def test_researchers_cookies_of_earlier_versions_stay_valid(clock):
    assert derive_research_key(SECRET) == ISSUED_KEY
    gate = ResearcherGate(Sessions(SECRET), ISSUED_KEY, PublicAddress(), clock)
    inside = request(f"hardlook_research_89f11ae4={RESEARCHER}")
    clock.now = 1_760_043_199.0
    assert gate.is_researcher(inside)
    assert gate.make_form_token(inside) == "afb6f8e6e24191fc137a51f5f0599af6"
    assert gate.is_valid_form(inside, "afb6f8e6e24191fc137a51f5f0599af6")
    assert not gate.is_researcher(request(f"hardlook_research_89f11ae4={RESEARCHER[:-1]}"))
    assert not gate.is_researcher(request(f"hardlook_research_89f11ae4={SESSION}"))
    clock.now = 1_760_043_200.0
    assert not gate.is_researcher(inside) and not gate.is_valid_form(inside, gate.make_form_token(inside))


def test_keys_are_long(clock):
    with pytest.raises(ValueError, match="at least 16"):
        ResearcherGate(Sessions(SECRET), "short", PublicAddress(), clock)
    assert len(derive_research_key(SECRET)) == 32


def test_the_printed_link_opens_the_dashboard_and_a_wrong_one_does_not(study_app):
    from web_visitors import KEY as OURS

    visitor = study_app.visitor()
    assert visitor.get("/research").status == 403
    assert visitor.get("/research/key/wrong-wrong-wrong-wrong").status == 403
    assert 'content="0; url=/research"' in visitor.get(f"/research/key/{OURS}").text
    assert visitor.get("/research").status == 200


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


def test_the_cookie_is_kept_from_scripts_and_other_sites(study_app):
    joined = study_app.visitor().join()
    (cookie,) = joined.cookies
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes
    assert "secure" not in attributes and not any(part.startswith("domain") for part in attributes)


def test_in_a_frame_the_cookie_is_sent_but_only_within_the_framing_site(make_study_app, clicks_study):
    origins = ("https://worker.mturk.com",)
    app = make_study_app(clicks_study, public_url="https://study.example", frame_origins=origins)
    visitor = app.visitor(host="study.example", origin="https://study.example")
    for reply in (visitor.get("/"), visitor.join()):
        (cookie,) = reply.cookies
        attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert cookie.startswith("__Host-") and {"httponly", "secure", "samesite=none", "partitioned"} <= attributes
    assert visitor.post("/api/pause", {}).status == 200
    # What SameSite does elsewhere, the origin and the token do here.
    assert visitor.post("/api/pause", {}, origin="https://worker.mturk.com").status == 403
    assert visitor.post("/api/pause", {}, csrf="").status == 403
    assert visitor.post("/api/pause", {}, headers=[("sec-fetch-site", "cross-site")]).status == 403
    # The researchers' cookie is never sent in a frame.
    door = visitor.get("/research/key/a-key-that-only-researchers-have")
    assert "SameSite=strict" in door.cookies[0] and "Partitioned" not in door.cookies[0]


def test_over_https_it_is_bound_to_the_host(make_study_app, clicks_study):
    study_app = make_study_app(clicks_study, public_url="https://study.example")
    visitor = study_app.visitor(host="study.example", origin="https://study.example")
    (cookie,) = visitor.join().cookies
    assert cookie.startswith("__Host-") and "secure" in cookie.lower()
    assert visitor.get(STATE).status == 200
    assert visitor.post("/api/pause", {}).status == 200
    assert visitor.post("/api/pause", {}, origin="http://study.example").status == 403


def test_without_a_session_nothing_is_answered(study_app):
    stranger = study_app.visitor()
    assert (stranger.get(STATE).status, stranger.get(STATE).error) == (401, "no-session")
    assert stranger.get("/pictures/training-0/image").status == 401
    assert {stranger.post(path, body).status for path, body in POSTS} == {401}


def test_forged_and_foreign_cookies_are_none(study_app, make_study_app, review_study):
    visitor = study_app.participant()
    name, value = session_cookie(visitor)
    participant = study_app.store.participants()["id"][0]
    other = make_study_app(review_study).participant()
    secret = study_app.study.secret
    forged = {
        "cut short": value[:-1],
        "empty": "",
        "without signature": value.partition(".")[0],
        "of another study": session_cookie(other)[1],
        "another purpose": sign_token(secret, "form", {"p": participant}, study_app.now + 1000),
        "an invitation": sign_token(secret, "invitation", {"p": participant}, study_app.now + 1000),
        "another secret": Sessions(bytes(32)).make_cookie(participant, study_app.now),
        "nobody's": Sessions(secret).make_cookie("0" * 32, study_app.now),
        "SQL": Sessions(secret).make_cookie("' OR 1=1 --", study_app.now),
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


def test_a_session_ends(study_app):
    began = study_app.now
    visitor = study_app.participant()
    study_app.now = began + SESSION_SECONDS - 1
    assert visitor.get(STATE).status == 200
    study_app.now += 1
    assert visitor.get(STATE).status == 401


def test_two_studies_of_one_host_keep_two_cookies(study_app, make_study_app, review_study):
    visitor, other = study_app.participant(), make_study_app(review_study).visitor()
    other.cookies = visitor.cookies
    other.join()
    assert visitor.get(STATE).json["kind"] == "clicks" and other.get(STATE).json["kind"] == "review"


@pytest.mark.parametrize(("path", "body"), POSTS)
def test_every_change_needs_the_sessions_token(study_app, path, body):
    visitor, other = study_app.participant(), study_app.participant()
    other_token, own = other.csrf, visitor.csrf
    assert other_token != own
    for token in ("", "x", own[:-1], own + "0", own.upper(), other_token):
        refused = visitor.post(path, body, csrf=token)
        assert (refused.status, refused.error) == (403, "csrf")
    assert visitor.post(path, body).status in (200, 404)


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:9000", "https://127.0.0.1:8000", ""]
)
def test_every_change_comes_from_our_own_origin(study_app, origin):
    visitor = study_app.participant()
    for path, body in POSTS:
        assert visitor.post(path, body, origin=origin or " ").error == "other-origin"
    assert visitor.post("/api/pause", {}, headers=[("sec-fetch-site", "same-origin")]).status == 200
    for site in ("cross-site", "same-site"):
        assert visitor.post("/api/pause", {}, headers=[("sec-fetch-site", site)]).error == "other-origin"


def test_who_says_nothing_of_an_origin_still_needs_the_token(study_app):
    """Old browsers: the token alone stands against another site's form there."""
    visitor = study_app.participant()
    for path, body in POSTS:
        content = json.dumps(body).encode()
        assert visitor.send("POST", path, content, kind="application/json").error == "csrf"
        token = [("x-csrf-token", visitor.csrf)]
        assert visitor.send("POST", path, content, kind="application/json", headers=token).status in (200, 404, 409)


def test_one_cookie_among_others_and_twice(study_app):
    """A cookie that somebody else managed to set beside ours is no session, and does no harm but to itself."""
    visitor, other = study_app.participant(), study_app.participant()
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


def test_a_form_of_consent_sent_again_by_the_same_browser_is_the_same_person(study_app):
    visitor = study_app.visitor()
    page = visitor.get("/").text
    fields = {"token": "", "agree": "yes", "csrf": page.partition('name="csrf" value="')[2].partition('"')[0]}
    for _ in range(3):
        assert visitor.form("/join", fields).status == 303
    assert study_app.store.participants().height == 1


def test_the_form_of_consent_is_our_own_too(study_app):
    visitor, other = study_app.visitor(), study_app.visitor()
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
    assert study_app.store.participants().height == 0
    assert visitor.form("/join", fields).status == 303
    study_app.now += 13 * 3600
    assert visitor.form("/join", fields).status == 403


def test_a_participants_cookie_opens_nothing_of_the_researchers(study_app):
    visitor = study_app.participant()
    name, value = session_cookie(visitor)
    visitor.cookies[name.replace("session", "research")] = value
    assert visitor.get("/research").status in (401, 403)
    researcher = study_app.visitor()
    assert researcher.get(f"/research/key/{web_visitors_KEY}").status == 200
    assert researcher.get(STATE).status == 401
