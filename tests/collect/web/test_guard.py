"""What stands before every page: hosts, methods, sizes, patience, headers."""

import json

import pytest

from hardlook.collect.web.guard import MOST_PATH, MOST_QUERY, POLICY
from hardlook.collect.web.public_address import PublicAddress
from hardlook.errors import OptionError

from .visitors import FORM, JSON, ask

HOST = (b"host", b"127.0.0.1:8000")
NO_ADDRESSES = ("study.example", "ftp://x", "https://", "https://x/path", "https://x?a", "https://u@x", "javascript:x")
NO_ADDRESSES += ("http://x:0", "http://x:65536", "http://x:", "http://a b", "http://a\r\nb", "http://\0", "https://x'y")
NO_ADDRESSES += ("http://[", "http://[::1", "http://[127.0.0.1]", "https://\u2100.example", "https://caf\u00e9.example")
PAGES = ("/", "/work", "/done", "/privacy", "/health", "/static/study.css", "/api/openapi.json", "/research/login")


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8000", True),
        ("localhost", True),
        ("[::1]:8000", True),
        ("study.example", True),
        ("STUDY.example:443", True),
        ("evil.example", False),
        ("study.example.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("study.example@evil.example", False),
        ("10.0.0.7", False),
        ("", False),
        # Brackets and ports that are none, which an address made from the header would carry on.
        ("[::1]:[", False),
        ("[::1]:@evil.example", False),
        ("[::1]:/api/", False),
        ("[127.0.0.1]", False),
        ("localhost:80/x", False),
        ("localhost:", False),
        ("localhost:8000 evil.example", False),
    ],
)
def test_only_our_own_names_are_answered(hall_of, clicks_study, host, allowed):
    hall = hall_of(clicks_study, public_url="https://study.example")
    reply = ask(hall.app, "GET", "/privacy", [(b"host", host.encode())])
    assert reply.status == (200 if allowed else 421)


def test_no_host_and_two_hosts(hall):
    assert ask(hall.app, "GET", "/privacy", []).status == 421
    assert ask(hall.app, "GET", "/privacy", [HOST, (b"host", b"evil.example")]).status == 421


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_a_public_address_is_one(url):
    with pytest.raises(OptionError, match="no public address"):
        PublicAddress(url=url)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://study.example", "https://study.example"),
        ("HTTPS://Study.Example/", "https://study.example"),
        ("https://study.example:443", "https://study.example"),
        ("http://study.example:80/", "http://study.example"),
        ("https://study.example:8443", "https://study.example:8443"),
        ("http://[2001:db8::1]:8000", "http://[2001:db8::1]:8000"),
    ],
)
def test_a_public_address_is_written_as_browsers_do(hall_of, clicks_study, url, origin):
    """Else no form that a browser sends would be taken for our own."""
    assert PublicAddress(url=url).origin == origin
    host = origin.partition("://")[2]
    visitor = hall_of(clicks_study, public_url=url).visitor(host=host, origin=origin)
    assert visitor.join().status == 303 and visitor.post("/api/pause", {}).status == 200


def test_a_trusted_proxy_needs_a_public_address_in_numbers():
    with pytest.raises(OptionError, match="without a public address"):
        PublicAddress(trusted_proxy="127.0.0.1")
    with pytest.raises(OptionError, match="no address of a proxy"):
        PublicAddress(url="https://x.example", trusted_proxy="localhost")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "XYZ"])
@pytest.mark.parametrize("path", ["/", "/api/state", "/pictures/training-0/image", "/nowhere", "/research"])
def test_methods(hall, method, path):
    reply = hall.participant().send(method, path)
    assert reply.status == 405 and reply.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("path", ["/", "/work", "/api/state", "/pictures/training-0/image", "/static/study.css"])
def test_what_is_read_is_not_posted_to(hall, path):
    reply = hall.participant().post(path, {})
    assert reply.status == 405 and set(reply.headers["allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize("path", ["/join", "/api/answers", "/api/batch", "/api/trials/training-0/show"])
def test_what_is_posted_to_is_not_read(hall, path):
    reply = hall.participant().get(path)
    assert reply.status == 405 and reply.headers["allow"] == "POST"


def test_every_answer_has_the_headers(hall):
    visitor = hall.participant()
    answers = [visitor.get(path) for path in (*PAGES, "/nowhere", "/api/state", "/pictures/training-0/image")]
    answers += [visitor.post("/api/batch", b"{"), visitor.send("PUT", "/"), visitor.send("GET", "/" + "x" * 9999)]
    answers.append(ask(hall.app, "GET", "/", []))
    for reply in answers:
        assert reply.headers["content-security-policy"] == POLICY
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"
        assert "strict-transport-security" not in reply.headers
        assert reply.headers["cache-control"] in ("no-store", "no-cache")
        assert not any("server" == name or "powered" in name for name in reply.headers)
    assert "unsafe" not in POLICY and "*" not in POLICY and "data:" not in POLICY
    assert visitor.get("/api/state").headers["cache-control"] == "no-store"
    assert visitor.get("/pictures/training-0/image").headers["cache-control"] == "no-store"
    assert visitor.get("/static/study.css").headers["cache-control"] == "no-cache"


def test_https_is_kept_to(hall_of, clicks_study):
    hall = hall_of(clicks_study, public_url="https://study.example")
    reply = ask(hall.app, "GET", "/privacy", [(b"host", b"study.example")])
    assert reply.headers["strict-transport-security"].startswith("max-age=")


def test_head_is_get_without_the_body(hall):
    visitor = hall.participant()
    for path in (*PAGES, "/api/state", "/pictures/training-0/image", "/nowhere"):
        got, head = visitor.get(path), visitor.send("HEAD", path)
        assert (head.status, head.content) == (got.status, b""), path
        assert head.headers.get("content-type") == got.headers.get("content-type")


def test_a_file_that_the_browser_has_is_not_sent_again(hall):
    visitor = hall.visitor()
    first = visitor.get("/static/study.css")
    again = visitor.get("/static/study.css", headers=[("if-none-match", first.headers["etag"])])
    assert (first.status, again.status, again.content) == (200, 304, b"")
    assert visitor.get("/static/study.css", headers=[("if-none-match", '"other"')]).status == 200


def test_long_addresses(hall):
    visitor = hall.visitor()
    assert visitor.get("/" + "x" * MOST_PATH).status == 414
    assert visitor.get("/?" + "x" * (MOST_QUERY + 1)).status == 414
    assert visitor.get("/privacy?" + "x" * MOST_QUERY).status == 200


@pytest.mark.parametrize("path", ["/api/answers", "/join", "/research/login", "/nowhere"])
def test_large_bodies_are_refused_while_they_come(hall, path):
    visitor, most = hall.participant(), hall.study.settings.limits.body_bytes
    assert visitor.post(path, b"x" * (most + 1)).status == 413
    said = [("content-length", str(most + 1))]
    assert visitor.post(path, b"x", headers=said).status == 413
    assert visitor.post(path, b"x", headers=[("content-length", "9" * 400)]).status == 413
    assert visitor.post(path, b"x", headers=[("content-length", "-1")]).status == 413
    # Chunked, and a length that lies: the rest is never asked for.
    left = iter([b"x" * 1000] * 1000)
    assert visitor.post(path, b"", chunks=list(left), headers=[("content-length", "10")]).status == 413


def test_the_largest_body_that_may_be_is_read(hall):
    visitor = hall.participant()
    most = hall.study.settings.limits.body_bytes
    body = b"{}".ljust(most)
    assert visitor.post("/api/pause", body).status == 200
    parts = [body[start : start + 7] for start in range(0, len(body), 7)]
    assert visitor.post("/api/pause", b"", chunks=parts).status == 200


def test_a_body_that_does_not_come_is_not_waited_for(hall_of, clicks_study):
    hall = hall_of(clicks_study, patience=0.02)
    visitor = hall.participant()
    reply = visitor.post("/api/answers", b"", chunks=[b"{"], patient=False)
    assert (reply.status, reply.error, reply.headers["connection"]) == (408, "too-slow", "close")


def test_one_who_leaves_is_not_answered(hall):
    import asyncio

    sent = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/api/answers", "query_string": b"", "headers": [HOST]}
    asyncio.run(hall.app(scope, receive, send))
    asyncio.run(hall.app({"type": "websocket", "path": "/"}, receive, send))
    assert sent == []


MALFORMED = [
    b"",
    b"{",
    b"}{",
    b"nul",
    b"{'key': 1}",
    b'{"a": 01}',
    b"\xff\xfe\x00",
    b'{"key": "\xe9"}',
    b'{"key": "\\ud800"}',
    b"\xef\xbb\xbf{}",
    b"[" * 8000,
    b'{"a":' * 3000,
    b"{}{}",
    b'{"a": 1e}',
    b"\0" * 100,
]


@pytest.mark.parametrize("path", ["/api/answers", "/api/training", "/api/device", "/api/batch", "/api/language"])
def test_what_is_no_json(hall, path):
    visitor = hall.participant()
    for body in MALFORMED:
        reply = visitor.post(path, body)
        assert (reply.status, reply.error) == (400, "not-json"), body
    assert hall.store.answers().height == 0


@pytest.mark.parametrize("path", ["/api/answers", "/api/training", "/api/device", "/api/batch", "/api/language"])
def test_what_is_json_and_no_record(hall, path):
    visitor = hall.participant()
    deep = b"[" * 100 + b"]" * 100
    wrong = [b"[]", b"null", b"1", b'"x"', b'{"x": NaN}', b'{"nobody": 1}', b'{"__proto__": {}}', deep]
    wrong += [b'{"x": 1e999}', b'{"x": ' + b"9" * 5000 + b"}", json.dumps({"k" * 3000: "v" * 3000}).encode()]
    for body in wrong:
        reply = visitor.post(path, body)
        assert reply.status in (400, 422), body
        assert len(reply.content) < 400, body


@pytest.mark.parametrize(
    "kind", ["", "text/plain", FORM, "multipart/form-data; boundary=x", "application/jsonx", f"{JSON}; charset=utf-16"]
)
def test_content_types(hall, kind):
    visitor = hall.participant()
    reply = visitor.post("/api/pause", b"{}", kind=kind)
    assert (reply.status, reply.error) == (415, "content-type")
    assert visitor.post("/api/pause", b"{}", kind="Application/JSON; charset=UTF-8").status == 200
