"""Internal errors are reported without details: no path, no statement, no traceback, no password."""

import logging
import re
from importlib.resources import files

import pytest

from hardlook.collect.web.pages import list_languages, load_texts
from hardlook.errors import DataError

WAYS = (("GET", "/api/state"), ("POST", "/api/batch"), ("GET", "/pictures/training-0/image"), ("GET", "/done"))


@pytest.fixture
def visitor(study_app):
    return study_app.participant()


def broken(error):
    def fail(*words):
        raise error

    return fail


@pytest.mark.parametrize(("method", "path"), WAYS)
def test_a_database_that_is_away_is_said_to_come_back(study_app, visitor, monkeypatch, caplog, method, path):
    secret = "postgresql://me:hush@there/x"
    monkeypatch.setattr(study_app.store, "participant", broken(DataError("no connection", file=secret)))
    with caplog.at_level(logging.ERROR):
        reply = visitor.get(path) if method == "GET" else visitor.post(path, {})
    assert reply.status == 503 and reply.headers["retry-after"] == "5"
    assert "hush" not in reply.text and "Traceback" not in reply.text
    assert "a request failed" in caplog.text


@pytest.mark.parametrize(("method", "path"), WAYS)
def test_a_fault_of_ours_is_logged_and_not_shown(study_app, visitor, monkeypatch, caplog, method, path):
    monkeypatch.setattr(study_app.store, "participant", broken(RuntimeError(f"at {study_app.study.path}")))
    with caplog.at_level(logging.ERROR):
        reply = visitor.get(path) if method == "GET" else visitor.post(path, {})
    assert reply.status == 500
    assert str(study_app.study.path) not in reply.text and "RuntimeError" not in reply.text
    assert "RuntimeError" in caplog.text


def test_health_is_that_of_the_database(study_app, monkeypatch):
    visitor = study_app.visitor()
    assert visitor.get("/health").json == {"ok": True}
    monkeypatch.setattr(study_app.store, "participant", broken(DataError("no connection")))
    assert visitor.get("/health").status == 503


def test_programs_get_json_and_people_get_pages(study_app, visitor):
    for path in ("/api/nowhere", "/pictures/x", "/pictures/x/y/z"):
        assert set(visitor.get(path).json) == {"error", "message"}
    for path in ("/nowhere", "/join/x/y", "/static/nothing.js", "/done/"):
        page = visitor.get(path)
        assert page.status == 404 and page.text.startswith("<!doctype html>")
    assert '<html lang="de">' in visitor.get("/nowhere?lang=de").text


# What only a program meets, or a page that asks again by itself.
FOR_PROGRAMS = {"field", "content-type", "not-json", "not-a-form", "language", "key-used", "no-picture", "bad-value"}

FOR_PROGRAMS |= {"unknown-participant", "unknown-device"}

MODULES = {"web": ("joining", "refusals", "site", "trials"), "store": ("records",)}


def codes():
    """Every code that a participant can be refused with, as the sources name them."""
    for package, names in MODULES.items():
        for name in names:
            text = files(f"hardlook.collect.{package}").joinpath(f"{name}.py").read_text(encoding="utf-8")
            yield from re.findall(r'Refused\(\s*\d+, "([a-z-]+)"', text)
            for listed in re.findall(r"Codes: ([a-z, \n-]+)\.", text):
                yield from re.split(r",\s+", listed)
    yield from ("needs-pc", "needs-mobile", "nowhere")


@pytest.mark.parametrize("language", list_languages())
def test_people_have_words_for_every_refusal(language):
    found = set(codes())
    assert {"too-early", "returned", "invitation", "not-now", "failed", "no-session"} <= found
    for code in found - FOR_PROGRAMS:
        assert load_texts(language)[f"refused.{code}"], code


def test_a_refusal_is_told_in_the_participants_language(make_study_app, clicks_study):
    study_app, german = make_study_app(clicks_study, devices=("mobile",)), load_texts("de")
    visitor = study_app.visitor()
    refused = visitor.join("/?lang=de", agree="")
    assert '<html lang="de">' in refused.text and german["refused.no-consent"] in refused.text
    visitor.join("/?lang=de")
    for path, body, code in (
        ("/api/batch", {}, "no-device"),
        ("/api/device", {"device": "pc"}, "needs-mobile"),
        ("/api/trials/nobodys-trial/show", {}, "unknown-trial"),
        ("/api/answers", {"key": "k" * 16, "trial": "t" * 16, "x": 1.0, "y": 1.0}, "unknown-trial"),
    ):
        assert visitor.post(path, body).json == {"error": code, "message": german[f"refused.{code}"]}
    assert visitor.post("/api/batch", {}).json["message"] != load_texts("en")["refused.no-device"]
    assert german["refused.nowhere"] in visitor.get("/nowhere?lang=de").text
