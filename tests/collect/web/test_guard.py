"""The checks before every page: hosts, methods, sizes, timeouts, rate limits and headers."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from web_visitors import FORM, JSON, ask

from hardlook.collect.web.app import make_app
from hardlook.collect.web.guard import (
    CONTENT_SECURITY_POLICY,
    MAX_PATH_LENGTH,
    MAX_QUERY_LENGTH,
    PublicAddress,
    RateLimiter,
    address_key,
    client_address,
)
from hardlook.errors import OptionError

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
def test_only_our_own_names_are_answered(make_study_app, clicks_study, host, allowed):
    study_app = make_study_app(clicks_study, public_url="https://study.example")
    reply = ask(study_app.app, "GET", "/privacy", [(b"host", host.encode())])
    assert reply.status == (200 if allowed else 421)


def test_no_host_and_two_hosts(study_app):
    assert ask(study_app.app, "GET", "/privacy", []).status == 421
    assert ask(study_app.app, "GET", "/privacy", [HOST, (b"host", b"evil.example")]).status == 421


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_a_public_address_is_one(url):
    with pytest.raises(OptionError, match="not a public address"):
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
def test_a_public_address_is_written_as_browsers_do(make_study_app, clicks_study, url, origin):
    """Else no form that a browser sends would be taken for our own."""
    assert PublicAddress(url=url).origin == origin
    host = origin.partition("://")[2]
    visitor = make_study_app(clicks_study, public_url=url).visitor(host=host, origin=origin)
    assert visitor.join().status == 303 and visitor.post("/api/pause", {}).status == 200


def test_a_trusted_proxy_needs_a_public_address_in_numbers():
    with pytest.raises(OptionError, match="without a public address"):
        PublicAddress(trusted_proxy="127.0.0.1")
    with pytest.raises(OptionError, match="not the address of a proxy"):
        PublicAddress(url="https://x.example", trusted_proxy="localhost")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "XYZ"])
@pytest.mark.parametrize("path", ["/", "/api/state", "/pictures/training-0/image", "/nowhere", "/research"])
def test_methods(study_app, method, path):
    reply = study_app.participant().send(method, path)
    assert reply.status == 405 and reply.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("path", ["/", "/work", "/api/state", "/pictures/training-0/image", "/static/study.css"])
def test_what_is_read_is_not_posted_to(study_app, path):
    reply = study_app.participant().post(path, {})
    assert reply.status == 405 and set(reply.headers["allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize("path", ["/join", "/api/answers", "/api/batch", "/api/trials/training-0/show"])
def test_what_is_posted_to_is_not_read(study_app, path):
    reply = study_app.participant().get(path)
    assert reply.status == 405 and reply.headers["allow"] == "POST"


def test_only_the_participants_pages_can_be_framed_and_only_where_the_study_says_so(make_study_app, clicks_study):
    origins = ("https://worker.mturk.com", "https://workersandbox.mturk.com")
    submit = "https://www.mturk.com/mturk/externalSubmit"
    app = make_study_app(clicks_study, platform="mturk", frame_origins=origins, completion_url=submit)
    visitor = app.participant()
    framing = f"frame-ancestors {' '.join(origins)}"
    for path in (
        "/",
        "/join/no-such-token",
        "/work",
        "/done",
        "/privacy",
        "/?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE",
    ):
        headers = visitor.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.endswith(framing) and "x-frame-options" not in headers
        assert f"form-action 'self' https://www.mturk.com {' '.join(origins)};" in policy
        assert "script-src 'self';" in policy and "unsafe" not in policy and "*" not in policy
        assert headers["referrer-policy"] == "strict-origin-when-cross-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
    key = "a-key-that-only-researchers-have"
    others = ["/research", "/research/login", f"/research/key/{key}", "/research/participants", "/api/state", "/health"]
    others += [
        "/static/study.css",
        "/pictures/training-0/image",
        "/nowhere",
        "/joined",
        "/Work",
        "//",
        "/work/",
        "/done/x",
    ]
    for path in others:
        headers = visitor.get(path).headers
        assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY, path
        assert headers["x-frame-options"] == "DENY", path


def test_pages_in_frames_need_https(make_study_app, clicks_study):
    origins = ("https://worker.mturk.com",)
    for address in ("http://study.example", ""):
        host = "127.0.0.1" if address else "0.0.0.0"
        study = replace(clicks_study, settings=clicks_study.settings.model_copy(update={"frame_origins": origins}))
        with pytest.raises(OptionError, match="over https only"):
            make_app(study, None, PublicAddress(host, address), research_key="k" * 16)
    assert make_study_app(clicks_study, frame_origins=origins, public_url="https://study.example")


def test_every_answer_has_the_headers(study_app):
    visitor = study_app.participant()
    answers = [visitor.get(path) for path in (*PAGES, "/nowhere", "/api/state", "/pictures/training-0/image")]
    answers += [visitor.post("/api/batch", b"{"), visitor.send("PUT", "/"), visitor.send("GET", "/" + "x" * 9999)]
    answers.append(ask(study_app.app, "GET", "/", []))
    for reply in answers:
        assert reply.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"
        assert "strict-transport-security" not in reply.headers
        assert reply.headers["cache-control"] in ("no-store", "no-cache")
        assert not any("server" == name or "powered" in name for name in reply.headers)
    assert (
        "unsafe" not in CONTENT_SECURITY_POLICY
        and "*" not in CONTENT_SECURITY_POLICY
        and "data:" not in CONTENT_SECURITY_POLICY
    )
    assert visitor.get("/api/state").headers["cache-control"] == "no-store"
    assert visitor.get("/pictures/training-0/image").headers["cache-control"] == "no-store"
    assert visitor.get("/static/study.css").headers["cache-control"] == "no-cache"


def test_https_is_kept_to(make_study_app, clicks_study):
    study_app = make_study_app(clicks_study, public_url="https://study.example")
    reply = ask(study_app.app, "GET", "/privacy", [(b"host", b"study.example")])
    assert reply.headers["strict-transport-security"].startswith("max-age=")


def test_head_is_get_without_the_body(study_app):
    visitor = study_app.participant()
    for path in (*PAGES, "/api/state", "/pictures/training-0/image", "/nowhere"):
        got, head = visitor.get(path), visitor.send("HEAD", path)
        assert (head.status, head.content) == (got.status, b""), path
        assert head.headers.get("content-type") == got.headers.get("content-type")


def test_a_file_that_the_browser_has_is_not_sent_again(study_app):
    visitor = study_app.visitor()
    first = visitor.get("/static/study.css")
    again = visitor.get("/static/study.css", headers=[("if-none-match", first.headers["etag"])])
    assert (first.status, again.status, again.content) == (200, 304, b"")
    assert visitor.get("/static/study.css", headers=[("if-none-match", '"other"')]).status == 200


def test_long_addresses(study_app):
    visitor = study_app.visitor()
    assert visitor.get("/" + "x" * MAX_PATH_LENGTH).status == 414
    assert visitor.get("/?" + "x" * (MAX_QUERY_LENGTH + 1)).status == 414
    assert visitor.get("/privacy?" + "x" * MAX_QUERY_LENGTH).status == 200


@pytest.mark.parametrize("path", ["/api/answers", "/join", "/research/login", "/nowhere"])
def test_large_bodies_are_refused_while_they_come(study_app, path):
    visitor, most = study_app.participant(), study_app.study.settings.limits.body_bytes
    assert visitor.post(path, b"x" * (most + 1)).status == 413
    stated = [("content-length", str(most + 1))]
    assert visitor.post(path, b"x", headers=stated).status == 413
    assert visitor.post(path, b"x", headers=[("content-length", "9" * 400)]).status == 413
    assert visitor.post(path, b"x", headers=[("content-length", "-1")]).status == 413
    # Chunked, and a length that lies: the rest is never asked for.
    left = iter([b"x" * 1000] * 1000)
    assert visitor.post(path, b"", chunks=list(left), headers=[("content-length", "10")]).status == 413


def test_the_largest_body_that_may_be_is_read(study_app):
    visitor = study_app.participant()
    most = study_app.study.settings.limits.body_bytes
    body = b"{}".ljust(most)
    assert visitor.post("/api/pause", body).status == 200
    parts = [body[start : start + 7] for start in range(0, len(body), 7)]
    assert visitor.post("/api/pause", b"", chunks=parts).status == 200


def test_a_body_that_does_not_come_is_not_waited_for(make_study_app, clicks_study):
    study_app = make_study_app(clicks_study, body_timeout=0.02)
    visitor = study_app.participant()
    reply = visitor.post("/api/answers", b"", chunks=[b"{"], patient=False)
    assert (reply.status, reply.error, reply.headers["connection"]) == (408, "too-slow", "close")


def test_one_who_leaves_is_not_answered(study_app):
    import asyncio

    sent = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/api/answers", "query_string": b"", "headers": [HOST]}
    asyncio.run(study_app.app(scope, receive, send))
    asyncio.run(study_app.app({"type": "websocket", "path": "/"}, receive, send))
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
def test_what_is_no_json(study_app, path):
    visitor = study_app.participant()
    for body in MALFORMED:
        reply = visitor.post(path, body)
        assert (reply.status, reply.error) == (400, "not-json"), body
    assert study_app.store.answers().height == 0


@pytest.mark.parametrize("path", ["/api/answers", "/api/training", "/api/device", "/api/batch", "/api/language"])
def test_what_is_json_and_no_record(study_app, path):
    visitor = study_app.participant()
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
def test_content_types(study_app, kind):
    visitor = study_app.participant()
    reply = visitor.post("/api/pause", b"{}", kind=kind)
    assert (reply.status, reply.error) == (415, "content-type")
    assert visitor.post("/api/pause", b"{}", kind="Application/JSON; charset=UTF-8").status == 200


@given(st.lists(st.floats(0, 5), max_size=60), st.integers(1, 20))
def test_no_window_holds_more_than_a_bucket_and_its_inflow(pauses, rate):
    buckets, now, granted = RateLimiter(rate), 0.0, []
    for pause in pauses:
        now += pause
        if not buckets.take("a", now):
            granted.append(now)
    for first in range(len(granted)):
        for last in range(first, len(granted)):
            assert last - first + 1 <= rate + (granted[last] - granted[first]) * rate / 60 + 1e-6


@given(st.integers(1, 20), st.integers(0, 60))
def test_the_wait_that_is_told_is_enough_and_not_too_long(rate, asked):
    buckets = RateLimiter(rate)
    for _ in range(asked):
        buckets.take("a", 0.0)
    wait = buckets.take("a", 0.0)
    assert (wait > 0) == (asked >= rate)
    if wait:
        assert buckets.take("a", wait * 0.99) > 0
        assert buckets.take("a", wait * 1.000001) == 0


def test_keys_do_not_share_and_a_clock_set_back_takes_nothing():
    buckets = RateLimiter(1)
    assert buckets.take("a", 100.0) == 0 and buckets.take("b", 100.0) == 0
    assert buckets.take("a", 50.0) == pytest.approx(60.0)
    assert buckets.take("a", 110.0) == 0


def test_something_that_costs_more_than_a_bucket_costs_a_bucket():
    buckets = RateLimiter(2)
    assert buckets.take("a", 0.0, tokens=10) == 0
    assert buckets.take("a", 0.0) == pytest.approx(30.0)


def test_memory_is_bounded_and_the_latest_stay():
    buckets = RateLimiter(1, max_keys=100)
    for number in range(10_000):
        buckets.take(str(number), 0.0)
    assert len(buckets) == 100
    assert buckets.take("9999", 0.0) > 0


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_that_cannot_be(rate):
    with pytest.raises(ValueError, match="positive rate"):
        RateLimiter(rate)


def test_a_household_is_one_address():
    assert address_key("2001:db8:1:2::1") == address_key("2001:db8:1:2:ffff::9") != address_key("2001:db8:1:3::1")
    assert address_key("fe80::1%eth0") == address_key("fe80::2")


@pytest.mark.parametrize(
    ("peer", "headers", "proxy", "expected"),
    [
        ("1.1.1.1", ["9.9.9.9"], "", "1.1.1.1"),
        ("1.1.1.1", ["9.9.9.9"], "2.2.2.2", "1.1.1.1"),
        ("2.2.2.2", [], "2.2.2.2", "2.2.2.2"),
        ("2.2.2.2", [""], "2.2.2.2", "2.2.2.2"),
        ("2.2.2.2", ["forged", "9.9.9.9"], "2.2.2.2", "9.9.9.9"),
        ("2.2.2.2", ["forged, 9.9.9.9"], "2.2.2.2", "9.9.9.9"),
    ],
)
def test_only_the_trusted_proxys_own_word_counts(peer, headers, proxy, expected):
    assert client_address(peer, headers, proxy) == expected


def test_a_participant_is_limited_and_told_when_to_come_back(make_study_app, clicks_study):
    limits = clicks_study.settings.limits.model_copy(update={"per_participant": 5})
    study_app = make_study_app(clicks_study, limits=limits)
    visitor, other = study_app.visitor(), study_app.visitor()
    visitor.join(), other.join()
    statuses = [visitor.get("/api/state").status for _ in range(6)]
    assert statuses == [200] * 4 + [429] * 2
    refused = visitor.get("/api/state")
    assert refused.error == "too-many" and int(refused.headers["retry-after"]) == 12
    assert other.get("/api/state").status == 200
    study_app.now += 12
    assert visitor.get("/api/state").status == 200


def test_an_address_is_limited_whatever_it_asks(make_study_app, clicks_study):
    limits = clicks_study.settings.limits.model_copy(update={"per_address": 3})
    study_app = make_study_app(clicks_study, limits=limits)
    here, there = study_app.visitor(), study_app.visitor(client="10.1.1.1")
    assert [here.get(path).status for path in ("/privacy", "/nowhere", "/privacy", "/privacy")] == [200, 404, 200, 429]
    # What it says of itself changes nothing, since no proxy is trusted here.
    assert here.get("/privacy", headers=[("x-forwarded-for", "8.8.8.8")]).status == 429
    assert there.get("/privacy").status == 200


def test_a_trusted_proxys_visitors_are_counted_apart(make_study_app, clicks_study):
    limits = clicks_study.settings.limits.model_copy(update={"per_address": 1})
    study_app = make_study_app(
        clicks_study, limits=limits, public_url="https://study.example", trusted_proxy="127.0.0.1"
    )
    visitor = study_app.visitor(host="study.example")
    for name, status in (("8.8.8.8", 200), ("8.8.8.8", 429), ("8.8.4.4", 200)):
        assert visitor.get("/privacy", headers=[("x-forwarded-for", name)]).status == status


def test_joining_costs_more_than_reading(make_study_app, clicks_study):
    limits = clicks_study.settings.limits.model_copy(update={"per_address": 60})
    study_app = make_study_app(clicks_study, limits=limits)
    statuses = [study_app.visitor().join().status for _ in range(5)]
    # Three requests each (page, form, state) and ten for the new participant.
    assert statuses == [303] * 4 + [429]
    assert study_app.store.participants().height == 4
