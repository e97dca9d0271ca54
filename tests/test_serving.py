"""Servers: slow heads of requests are hung up on, signals let callers close, and the printed address can be reached."""

import json
import signal
import socket
import subprocess
import time
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from command_server import python_command

from hardlook.serving import listen, send_text, serve_in_background, server_url

pytest.importorskip("uvicorn", reason="the extra web is not installed")

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


async def hello(scope, receive, send):
    await send_text(send, 200, "hello")


@pytest.fixture
def connect():
    """`connect()`: a connection to a server that waits .3 s for a head."""
    opened = []
    with serve_in_background(hello, head_timeout=0.3) as address:

        def open_connection():
            host, port = urlsplit(address).hostname, urlsplit(address).port
            opened.append(socket.create_connection((host, port), timeout=3))
            return opened[-1]

        yield open_connection
        for connection in opened:
            connection.close()


def seconds_until_closed(connection, byte=b""):
    """How long the server keeps a connection, which gets a byte every 50 ms where one is given."""
    began = time.monotonic()
    connection.settimeout(0.05)
    while time.monotonic() < began + 3:
        try:
            if connection.recv(1000) == b"":
                break
        except TimeoutError:
            if byte:
                connection.sendall(byte)
        except ConnectionError:
            break
    return time.monotonic() - began


@pytest.mark.parametrize("first", [b"", b"G", HEAD], ids=["nothing", "letter", "half"])
def test_a_head_that_does_not_arrive_is_hung_up_on(connect, first):
    connection = connect()
    connection.sendall(first)
    assert 0.2 < seconds_until_closed(connection) < 2


def test_a_head_that_comes_byte_by_byte_gets_no_more_time(connect):
    connection = connect()
    connection.sendall(HEAD + b"X-Slow: ")
    assert 0.2 < seconds_until_closed(connection, b"x") < 2


def test_the_second_head_of_a_connection_is_timed_too(connect):
    connection = connect()
    connection.sendall(HEAD + b"\r\n")
    assert b"200 OK" in connection.recv(1000)
    connection.sendall(HEAD)
    assert 0.2 < seconds_until_closed(connection) < 2


def test_a_request_that_takes_longer_than_its_head_is_answered():
    import asyncio

    async def slow(scope, receive, send):
        await asyncio.sleep(0.4)
        await send_text(send, 200, "late")

    with serve_in_background(slow, head_timeout=0.2) as address, urlopen(address, timeout=5) as response:
        assert response.read() == b"late"


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_on_all_interfaces_names_an_address_that_can_be_reached(host):
    try:
        listen(host, 0).close()
    except Exception as error:
        pytest.skip(f"this machine has no {host}: {error}")
    with serve_in_background(hello, host=host) as address:
        assert urlsplit(address).hostname not in ("0.0.0.0", "::")
        with urlopen(address, timeout=5) as response:
            assert response.read() == b"hello"


def test_without_a_network_the_address_is_that_of_this_machine(monkeypatch):
    class Unreachable(socket.socket):
        def connect(self, address):
            raise OSError("Network is unreachable")

    listening = listen("0.0.0.0", 0)
    monkeypatch.setattr(socket, "socket", Unreachable)
    assert urlsplit(server_url("0.0.0.0", listening)).hostname == "127.0.0.1"
    listening.close()


SERVER = """
import json, sys
from hardlook.serving import listen, send_text, serve

async def hello(scope, receive, send):
    await send_text(send, 200, "hello")

listening = listen("127.0.0.1", 0)
print(json.dumps(listening.getsockname()[1]), flush=True)
try:
    serve(hello, listening)
finally:
    print("closed", flush=True)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_callers_close_what_they_opened_after_a_signal(number, code):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("this signal is ignored here, as under nohup")
    server = subprocess.Popen([*python_command(), "-c", SERVER], stdout=subprocess.PIPE, text=True)
    port = json.loads(server.stdout.readline())
    with urlopen(f"http://127.0.0.1:{port}/", timeout=10) as response:
        assert response.read() == b"hello"
    server.send_signal(number)
    assert server.communicate(timeout=20)[0] == "closed\n"
    assert server.returncode == code
