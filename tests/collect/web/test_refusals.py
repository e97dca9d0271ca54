"""What goes wrong inside is said without its insides: no path, no statement, no traceback, no password."""

import logging

import pytest

from hardlook.errors import DataError

WAYS = (("GET", "/api/state"), ("POST", "/api/batch"), ("GET", "/pictures/training-0/image"), ("GET", "/done"))


@pytest.fixture
def visitor(hall):
    return hall.participant()


def broken(error):
    def fail(*words):
        raise error

    return fail


@pytest.mark.parametrize(("method", "path"), WAYS)
def test_a_database_that_is_away_is_said_to_come_back(hall, visitor, monkeypatch, caplog, method, path):
    secret = "postgresql://me:hush@there/x"
    monkeypatch.setattr(hall.store, "participant", broken(DataError("no connection", file=secret)))
    with caplog.at_level(logging.ERROR):
        reply = visitor.get(path) if method == "GET" else visitor.post(path, {})
    assert reply.status == 503 and reply.headers["retry-after"] == "5"
    assert "hush" not in reply.text and "Traceback" not in reply.text
    assert "a request could not be done" in caplog.text


@pytest.mark.parametrize(("method", "path"), WAYS)
def test_a_fault_of_ours_is_logged_and_not_shown(hall, visitor, monkeypatch, caplog, method, path):
    monkeypatch.setattr(hall.store, "participant", broken(RuntimeError(f"at {hall.study.path}")))
    with caplog.at_level(logging.ERROR):
        reply = visitor.get(path) if method == "GET" else visitor.post(path, {})
    assert reply.status == 500
    assert str(hall.study.path) not in reply.text and "RuntimeError" not in reply.text
    assert "RuntimeError" in caplog.text


def test_health_is_that_of_the_database(hall, monkeypatch):
    visitor = hall.visitor()
    assert visitor.get("/health").json == {"ok": True}
    monkeypatch.setattr(hall.store, "participant", broken(DataError("no connection")))
    assert visitor.get("/health").status == 503


def test_programs_get_json_and_people_get_pages(hall, visitor):
    for path in ("/api/nowhere", "/pictures/x", "/pictures/x/y/z"):
        assert set(visitor.get(path).json) == {"error", "message"}
    for path in ("/nowhere", "/join/x/y", "/static/nothing.js", "/work/"):
        page = visitor.get(path)
        assert page.status == 404 and page.text.startswith("<!doctype html>")
    assert '<html lang="de">' in visitor.get("/nowhere?lang=de").text
