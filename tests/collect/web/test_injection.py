"""What comes from outside is text: it is no path, no markup, no SQL."""

import json
import sqlite3
from contextlib import closing
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardlook.collect.web.tokens import make_invitation_links

from .conftest import SCRIPT

TRAVERSALS = (
    "../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/secret.key",
    "%2e%2e%2fsecret.key",
    "..%5c..%5csecret.key",
    "..\\..\\secret.key",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "//etc/passwd",
    "file:///etc/passwd",
    "secret.key",
    "secret.key%00.png",
    "%00",
    "study.css%00",
    "C:%5cwindows%5cwin.ini",
    "%c0%ae%c0%ae/secret.key",
    "%ff%fe",
    "~root",
    "....//....//secret.key",
)

SQL = (
    "' OR '1'='1",
    "'; DROP TABLE answers; --",
    '" OR ""="',
    "x' UNION SELECT value FROM facts --",
    "\\'; DELETE FROM participants; --",
    "1; PRAGMA writable_schema=1",
    "%27%20OR%201=1--",
    "$1",
    ":id",
    "?",
    "{}",
    "%s",
)

PREFIXES = ("/", "/static/", "/pictures/", "/pictures/training-0/", "/join/", "/api/trials/", "/research/", "/api/")


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.scripts, self.handlers = [], []

    def handle_starttag(self, tag, attrs):
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))
        self.handlers += [name for name, _ in attrs if name.startswith("on") or name == "style"]


def no_foreign_script(page):
    tags = Tags()
    tags.feed(page)
    return (
        all(source and source.startswith(("/static/", "/research/")) for source in tags.scripts) and not tags.handlers
    )


@pytest.mark.parametrize("prefix", PREFIXES)
def test_no_part_of_an_address_is_a_path(study_app, prefix):
    visitor = study_app.participant()
    secret = study_app.study.secret.hex()
    for traversal in TRAVERSALS:
        for path in (prefix + traversal, f"{prefix}{traversal}/image", f"{prefix}{traversal}/show"):
            for method in ("GET", "HEAD", "POST"):
                reply = visitor.send(method, path)
                assert reply.status in (401, 403, 404, 405, 415), (method, path)
                assert secret not in reply.content.decode("latin-1") and "root:" not in reply.content.decode("latin-1")


def test_scripts_in_titles_and_labels_are_text(study_app, make_study_app, review_study, ratings_study):
    visitor = study_app.visitor()
    hostile = make_study_app(
        review_study, title=SCRIPT, contact=SCRIPT, consent={"en": SCRIPT}, instructions={"en": SCRIPT}
    )
    pages = [visitor.get(path).text for path in ("/", "/work", "/done", "/privacy", "/nowhere", "/join/x")]
    pages += [hostile.visitor().get(path).text for path in ("/", "/work", "/done", "/privacy", "/nowhere")]
    for page in pages:
        assert no_foreign_script(page) and SCRIPT not in page
        assert "&lt;script&gt;" in page
    person = hostile.participant()
    state = person.get("/api/state")
    assert state.json["instructions"] == state.json["title"] == SCRIPT
    assert state.headers["content-type"] == "application/json"
    shown = person.show(person.batch()["batch"]["trials"][0]["id"])
    assert shown.json["concept"] == SCRIPT and shown.headers["content-type"] == "application/json"


def test_scripts_in_what_a_client_sends_are_not_sent_back_as_markup(study_app):
    visitor = study_app.participant()
    quoted = SCRIPT.replace("<", "%3C").replace(">", "%3E").replace('"', "%22")
    for path in (f"/{quoted}", f"/join/{quoted}", f"/?lang={quoted}", f"/privacy?lang={quoted}", f"/research/{quoted}"):
        page = study_app.visitor().get(path)
        assert no_foreign_script(page.text) and SCRIPT not in page.text
    for path in (f"/pictures/{quoted}/image", f"/api/{quoted}"):
        reply = visitor.get(path)
        assert reply.status == 404 and reply.headers["content-type"] == "application/json"
    reply = visitor.post("/api/answers", {SCRIPT: SCRIPT, "key": SCRIPT, "trial": SCRIPT})
    assert reply.status == 422 and reply.headers["content-type"] == "application/json"
    page = study_app.visitor().get("/")
    token = page.text.partition('name="csrf" value="')[2].partition('"')[0]
    visitor = study_app.visitor()
    visitor.get("/")
    answer = visitor.form("/join", {"csrf": token, "token": SCRIPT, "agree": SCRIPT, "language": SCRIPT})
    assert no_foreign_script(answer.text) and SCRIPT not in answer.text


@pytest.mark.parametrize(
    "text", ["x\r\nSet-Cookie: a=b", "x\nLocation: /evil", "x\r\n\r\n<p>", "\u560a\u560dSet-Cookie: a=b"]
)
def test_no_text_from_outside_becomes_a_header(study_app, text):
    visitor, quoted = study_app.participant(), quote(text)
    replies = [study_app.visitor().get(f"{path}{quoted}") for path in ("/", "/join/", "/?lang=", "/privacy?lang=")]
    replies += [visitor.get(f"{path}{quoted}") for path in ("/pictures/", "/static/", "/research/key/", "/api/")]
    replies += [
        study_app.visitor().join(language=text),
        study_app.visitor().join(token=text),
        visitor.post("/api/pause", {}),
    ]
    replies.append(visitor.post("/api/language", {"language": text}))
    for reply in replies:
        for name, value in reply.headers.items():
            assert not set("\r\n\0") & set(name + value)
            assert "a=b" not in value and "/evil" not in value


@pytest.mark.parametrize("text", SQL)
def test_sql_in_every_field_is_text_or_refused(study_app, text):
    visitor = study_app.participant()
    tables = count_all(study_app)
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    study_app.now += 5
    whole = {"key": "k" * 16, "trial": trial, "x": 1.0, "y": 1.0}
    nested = {"durations": {"image": text}, "circumstances": {"pointer": text}}
    for change in ({name: text} for name in (*whole, "value", "early", "reaction_ms", "durations", text)):
        assert visitor.post("/api/answers", {**whole, **change}).status == 422
    for name, value in nested.items():
        assert visitor.post("/api/answers", {**whole, name: value}).status == 422
    for path, name in (("/api/language", "language"), ("/api/device", "device"), ("/api/training", "trial")):
        assert visitor.post(path, {name: text}).status == 422
    quoted = quote(text, safe="")
    assert visitor.show(quoted).error == "unknown-trial"
    assert visitor.get(f"/pictures/{quoted}/image").error == "no-picture"
    assert visitor.get(f"/join/{quoted}").status == 403
    assert visitor.get(f"/research/key/{quoted}").status == 403
    assert study_app.visitor().join(language=text).status == 303
    assert study_app.visitor().join(token=text).status == 403
    assert visitor.get("/api/state", headers=[("x-csrf-token", text)]).status == 200
    after = count_all(study_app)
    assert after == {**tables, "participants": tables["participants"] + 1, "batches": 1, "assignments": 3}
    assert visitor.post("/api/answers", whole).status == 200


def count_all(study_app):
    names = ("facts", "items", "progress", "participants", "batches", "assignments", "answers")
    with closing(sqlite3.connect(study_app.database.removeprefix("sqlite:///"))) as database:
        return {name: database.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in names}


def test_an_invitation_with_strange_words_is_none(study_app):
    good = make_invitation_links(study_app.study.secret, "", count=1, expires=None)[0]
    for bad in (good[:-1], f"{good}x", f"{good}%00", good.replace(".", ".."), "/join/.", "/join/..."):
        assert study_app.visitor().get(bad).status in (403, 404)
    assert study_app.visitor().get(good).status == 200


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    body=st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    )
)
def test_any_json_is_refused_in_words(study_app, body):
    if not hasattr(study_app, "somebody"):
        study_app.somebody = study_app.participant()
    study_app.now += 60
    content = json.dumps(body).encode()
    for path in ("/api/answers", "/api/device", "/api/training", "/api/language"):
        reply = study_app.somebody.post(path, content)
        assert reply.status in (400, 413, 422)
        assert set(reply.json) == {"error", "message"}
