"""`hardlook collect serve` as a user starts it: addresses, warnings, a real socket, and an end without noise."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from urllib.parse import urlencode, urlsplit

import pytest

pytest.importorskip("uvicorn", reason="the extra web is not installed")
pytest.importorskip("sqlalchemy", reason="the extra web is not installed")

from hardlook.collect.study.folder import make_study, open_study
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import RatingTask
from hardlook.collect.web.gate import research_key


@pytest.fixture
def study(tmp_path):
    tasks = [RatingTask(f"t{n}", f"pair/{n}", "pair", ("cat", "dog"), "path", 0.25) for n in range(2)]
    settings = StudySettings(kind="ratings", title="Alike", devices=("any",), batch_size=2, target_answers=2)
    return make_study(tmp_path / "study", settings, tasks, made={"of": "a test"}).path


@pytest.fixture
def served(study):
    """A server as a user starts it, on a free port."""
    words = [sys.executable, "-m", "hardlook", "collect", "serve", str(study), "--port", "0", "--json"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    yield server, json.loads(server.stdout.readline())
    server.kill()
    server.communicate()


def ask(address, method, path, body=None, **headers):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer, answer.read().decode("utf-8", "replace")


@pytest.fixture
def quiet(monkeypatch):
    """Everything but the serving itself."""
    seen = []
    monkeypatch.setattr("hardlook.serving.listening.serve", lambda app, listening, to_open: seen.append(listening))
    yield seen
    for listening in seen:
        listening.close()


def test_a_real_server_from_consent_to_a_stored_answer(served, study):
    server, addresses = served
    address = addresses["address"]
    assert address.startswith("http://127.0.0.1:") and addresses["listening"] == address
    page, text = ask(address, "GET", "/")
    assert page.status == 200 and "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["server"] is None
    form = page.headers["set-cookie"].partition(";")[0]
    token = re.search('name="csrf" value="([^"]+)"', text)[1]
    fields = urlencode({"csrf": token, "token": "", "agree": "yes", "language": "en"})
    joined, _ = ask(address, "POST", "/join", fields, Cookie=form, Content_Type="application/x-www-form-urlencoded")
    assert joined.status == 303
    session = joined.headers["set-cookie"].partition(";")[0]
    state = json.loads(ask(address, "GET", "/api/state", Cookie=session)[1])
    own = {"Cookie": session, "X_CSRF_Token": state["csrf"], "Content_Type": "application/json"}
    trial = json.loads(ask(address, "POST", "/api/batch", "{}", **own)[1])["batch"]["trials"][0]["id"]
    assert ask(address, "POST", f"/api/trials/{trial}/show", "{}", **own)[0].status == 200
    body = json.dumps({"key": "k" * 16, "trial": trial, "value": 7})
    # As chunks, whose length nobody says beforehand.
    answer, text = ask(address, "POST", "/api/answers", (part.encode() for part in (body[:9], body[9:])), **own)
    assert (answer.status, json.loads(text)["stored"]) == (200, True)
    endless = (b"x" * 4096 for _ in range(1000))
    try:
        assert ask(address, "POST", "/api/answers", endless, **own)[0].status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # the server hung up while we were still sending, which is as good

    assert ask(address, "GET", "/", Host="evil.example")[0].status == 421
    assert ask(address, "GET", "/health")[1] == '{"ok":true}'
    door, _ = ask(address, "GET", urlsplit(addresses["researchers"]).path)
    assert (door.status, door.headers["location"]) == (303, "/research")
    server.send_signal(signal.SIGINT)
    _, errors = server.communicate(timeout=30)
    assert "Traceback" not in errors
    assert (study / "answers.sqlite").is_file()


def test_addresses_for_people(hardlook, study, quiet):
    answer = hardlook("collect", "serve", study, "--port", 0)
    assert answer.code == 0 and not answer.err
    key = research_key(open_study(study).secret)
    assert re.search(r"participants  http://127\.0\.0\.1:\d+/\n", answer.out)
    assert re.search(rf"researchers   http://127\.0\.0\.1:\d+/research/key/{re.escape(key)}\n", answer.out)
    settings = json.loads((study / "study.json").read_text())
    (study / "study.json").write_text(json.dumps({**settings, "open_link": False}))
    assert "by invitation: hardlook collect invite" in hardlook("collect", "serve", study, "--port", 0).out


def test_strangers_without_https_are_warned_about(hardlook, study, quiet):
    answer = hardlook("collect", "serve", study, "--host", "0.0.0.0", "--port", 0)
    assert answer.code == 0 and "warning: 0.0.0.0 can be reached from other machines" in answer.err
    assert "nothing on the way is encrypted" in answer.err
    with_https = ("--public-url", "https://study.example", "--trusted-proxy", "10.0.0.1", "--json")
    behind = hardlook("collect", "serve", study, "--host", "0.0.0.0", "--port", 0, *with_https)
    assert behind.code == 0 and not behind.err
    said = json.loads(behind.out)
    assert said["address"] == "https://study.example/"
    assert said["researchers"].startswith("https://study.example/research/key/")


def test_a_proxy_that_is_not_trusted_is_warned_about(hardlook, study, quiet):
    answer = hardlook("collect", "serve", study, "--port", 0, "--public-url", "https://study.example")
    assert answer.code == 0 and "all who come through the proxy count as one address" in answer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--public-url", "study.example"), "is no public address"),
        (("--trusted-proxy", "127.0.0.1"), "without a public address"),
        (("--database", "mysql://me:hush@there/x"), ""),
        (("--database", "sqlite:////nowhere/at/all.sqlite"), ""),
    ],
)
def test_options_that_cannot_be(hardlook, study, quiet, words, message):
    answer = hardlook("collect", "serve", study, "--port", 0, *words)
    assert answer.code == 1 and message in answer.err and "remedy" in answer.err
    assert "hush" not in answer.err + answer.out and "Traceback" not in answer.err and not quiet


def test_a_database_named_by_the_environment(hardlook, study, quiet, tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_DATABASE", f"sqlite:///{tmp_path / 'elsewhere.sqlite'}")
    assert hardlook("collect", "serve", study, "--port", 0).code == 0
    assert (tmp_path / "elsewhere.sqlite").is_file() and not (study / "answers.sqlite").exists()


def test_the_database_of_another_study(hardlook, study, quiet, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(study, other)
    (other / "tasks.jsonl").write_text((study / "tasks.jsonl").read_text().replace("dog", "cow"))
    database = f"sqlite:///{tmp_path / 'one.sqlite'}"
    assert hardlook("collect", "serve", study, "--port", 0, "--database", database).code == 0
    answer = hardlook("collect", "serve", other, "--port", 0, "--database", database)
    assert answer.code == 1 and "one.sqlite" in answer.err


def test_no_study_and_a_port_in_use(hardlook, study, tmp_path):
    nothing = hardlook("collect", "serve", tmp_path / "nowhere", "--port", 0)
    assert nothing.code == 1 and "no study here" in nothing.err
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = hardlook("collect", "serve", study, "--port", port)
    assert answer.code == 1 and f"cannot listen on 127.0.0.1 port {port}" in answer.err


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "sqlalchemy"])
def test_without_the_extra_the_remedy_is_named(hardlook, study, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    answer = hardlook("collect", "serve", study, "--port", 0)
    assert answer.code == 1 and 'pip install "hardlook[web]"' in answer.err


def test_help_says_what_it_does(hardlook):
    text = " ".join(hardlook("collect", "serve", "--help").out.split())
    assert "hardlook collect serve study --open" in text and "HARDLOOK_DATABASE" in text


@pytest.mark.parametrize("verb", [("serve", "--port", 0), ("rehearse", "--participants", 1)])
def test_a_study_with_a_mode_that_it_was_not_made_for_is_refused(hardlook, tmp_path, verb):
    made = hardlook("collect", "init", "clicks", tmp_path / "s", "--scenes", 1, "--training", 0)
    assert made.code == 0, made.err
    path = tmp_path / "s" / "study.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "modes": ["cut-out", "silhouette"]}))
    answer = hardlook("collect", verb[0], tmp_path / "s", *verb[1:])
    assert answer.code == 1 and f"file: {path}" in answer.err and "'silhouette'" in answer.err
