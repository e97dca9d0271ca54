import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from command_server import hardlook_command

pytest.importorskip("uvicorn", reason="the extra web is not installed")


@pytest.fixture
def served(tmp_path):
    """A server as a user starts it, on a free port; it is ended by Ctrl-C."""
    words = [*hardlook_command(), "serve", str(tmp_path), "--port", "0", "--json"]
    environment = {**os.environ, "HARDLOOK_CACHE": str(tmp_path / "cache")}
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    yield server, json.loads(server.stdout.readline())["address"]
    server.kill()
    server.communicate()


def get(address, path, **headers):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_it_serves_on_loopback_and_ends_quietly(served):
    server, address = served
    assert address.startswith("http://127.0.0.1:")
    status, page = get(address, "/")
    assert status == 200
    assert "There is no run here" in page
    assert get(address, "/", Host="evil.example")[0] == 421
    assert get(address, "/?q=" + "x" * 70_000)[0] in (400, 414)
    server.send_signal(signal.SIGINT)
    _, errors = server.communicate(timeout=30)
    assert "Traceback" not in errors


def test_a_port_in_use_is_one_message(hardlook, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = hardlook("serve", tmp_path, "--port", port)
    assert answer.code == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in answer.err
    assert "choose another --port" in answer.err


def test_a_folder_that_is_not_there(hardlook, tmp_path):
    answer = hardlook("serve", tmp_path / "nowhere")
    assert answer.code == 1
    assert "there is no such folder" in answer.err


def test_other_hosts_are_warned_about(hardlook, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("hardlook.cli.serve.serve_app", lambda app, listening, to_open: seen.append((app, listening)))
    answer = hardlook("serve", tmp_path, "--host", "0.0.0.0", "--port", 0)
    assert answer.code == 0
    assert "warning: 0.0.0.0 can be reached from other machines" in answer.err
    assert answer.out.startswith("http://") and "0.0.0.0" not in answer.out
    quiet = hardlook("serve", tmp_path, "--port", 0)
    assert quiet.code == 0 and "warning" not in quiet.err
    for _, listening in seen:
        listening.close()


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_the_remedy_is_named(hardlook, tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    answer = hardlook("serve", tmp_path, "--port", 0)
    assert answer.code == 1
    assert 'pip install "hardlook[web]"' in answer.err
    assert "Traceback" not in answer.err


def test_help_says_what_it_does(hardlook):
    text = " ".join(hardlook("serve", "--help").out.split())
    assert "hardlook serve runs --port 0 --open" in text
    assert "open to others" in text


def test_a_folder_without_runs_is_served_with_a_word(served, tmp_path):
    server, _ = served
    server.send_signal(signal.SIGINT)
    _, errors = server.communicate(timeout=30)
    assert f"{tmp_path}: there is no run below this folder yet" in errors
