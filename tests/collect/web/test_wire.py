"""Bytes on a real socket that no browser would send: each gets a refusal, and the server goes on."""

import re
import socket
from urllib.parse import urlsplit

import pytest

from hardlook.serving import serve_in_background

pytest.importorskip("uvicorn", reason="the extra web is not installed")


@pytest.fixture
def wire(make_study_app, clicks_study):
    """`wire(bytes)`: what a server answers to them, until it hangs up."""
    study_app = make_study_app(clicks_study, body_timeout=0.3)
    with serve_in_background(study_app.app) as address:
        place = urlsplit(address)

        def send(content):
            with socket.create_connection((place.hostname, place.port), timeout=10) as connection:
                try:
                    connection.sendall(content.replace(b"HOST", place.netloc.encode()))
                    answer = bytearray()
                    while part := connection.recv(65_536):
                        answer += part
                except ConnectionError:
                    # It hung up while we were still sending, which is as good.
                    pass
            return bytes(answer)

        yield send
        assert b" 200 OK" in send(PLAIN)


PLAIN = b"GET /privacy HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"

POST = b"POST /join HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n"


def statuses(answer):
    return [int(found) for found in re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", answer)]


def test_lengths_that_contradict_each_other_smuggle_nothing(wire):
    second = b"GET /privacy HTTP/1.1\r\nHost: HOST\r\n\r\n"
    assert statuses(wire(POST + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd" + second)) == [400]
    assert statuses(wire(POST + b"Content-Length: +4\r\n\r\nabcd" + second)) == [400]
    assert statuses(wire(POST + b"Transfer-Encoding: xchunked\r\n\r\n" + second)) == [400]
    assert statuses(wire(POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\nabcd\r\n" + second)) == [400]
    both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert statuses(wire(POST + both + second)) == [415]


def test_a_head_without_end_is_not_kept(wire):
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1000) for number in range(300))
    assert statuses(wire(PLAIN[:-2] + lines + b"\r\n")) in ([400], [])
    assert statuses(wire(PLAIN[:-2] + b"Cookie: a=" + b"x" * 300_000 + b"\r\n\r\n")) in ([400], [])


def test_a_body_without_end_or_that_never_comes(wire):
    assert statuses(wire(POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")) == [408]
    assert statuses(wire(POST + b"Content-Length: 10\r\n\r\nx")) == [408]
    chunks = b"Transfer-Encoding: chunked\r\n\r\n" + b"400\r\n%s\r\n" % (b"x" * 1024) * 200
    assert statuses(wire(POST + chunks)) in ([413], [])
    assert statuses(wire(POST + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nabcd")) in ([408], [413])


def test_old_pipelined_and_strange_requests(wire):
    assert statuses(wire(b"GET /privacy HTTP/1.0\r\n\r\n")) == [421]
    assert statuses(wire(b"GET /privacy HTTP/1.0\r\nHost: HOST\r\n\r\n")) == [200]
    assert statuses(wire(PLAIN.replace(b"Connection: close\r\n", b"") * 20 + PLAIN)) == [200] * 21
    # The name in the address is not the one that was checked, so it must not be believed.
    assert statuses(wire(PLAIN.replace(b"/privacy", b"http://evil.example/privacy"))) == [404]
    assert statuses(wire(PLAIN.replace(b"Host: HOST", b"Host: HOST\r\nHost: evil.example"))) == [400]
    assert statuses(wire(PLAIN.replace(b"GET", b"CONNECT"))) == [405]
    assert statuses(wire(b"\x16\x03\x01\x02\x00\x01\r\n\r\n")) == [400]
    assert statuses(wire(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))[:1] in ([421], [400])
    upgrade = b"GET /work HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    assert statuses(wire(upgrade)) == [200]
