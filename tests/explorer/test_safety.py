"""What must not happen: strangers reading, paths reaching the file system, scripts in names running."""

import json
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardlook.explorer.app import make_app
from hardlook.explorer.safety import MOST_QUERY
from hardlook.serving.hosts import may_ask

from .asking import Asking
from .hostile import IMAGE, SCRIPT, STEMS

TRAVERSALS = (
    "../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "/etc/passwd",
    "....//....//etc/passwd",
    "%2e%2e/%2e%2e/run.json",
    "..\\..\\windows\\win.ini",
    "file:///etc/passwd",
    "run.json%00.png",
    "seg/strange",
    "~/.ssh/id_rsa",
)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8000", True),
        ("127.0.0.1", True),
        ("localhost:8000", True),
        ("LOCALHOST", True),
        ("[::1]:8000", True),
        ("[::1]", True),
        ("evil.example", False),
        ("evil.example:8000", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1@evil.example", False),
        ("evil.example#127.0.0.1", False),
        ("127.0.0.1:8000:9", False),
        ("127.0.0.1:x", False),
        ("10.0.0.7", False),
        ("0.0.0.0:8000", False),
        ("", False),
    ],
)
def test_only_our_own_names_are_answered(ask, host, allowed):
    answer = ask("/", headers=[(b"host", host.encode())])
    assert answer.status == (200 if allowed else 421)
    assert ("strange" in answer.text) == allowed


def test_no_host_and_two_hosts_are_refused(ask):
    assert ask("/", headers=[]).status == 421
    assert ask("/", headers=[(b"host", b"localhost"), (b"host", b"evil.example")]).status == 421


def test_a_host_that_was_given_is_answered_and_wildcards_take_numbers():
    assert may_ask("box.lan:8000", "box.lan")
    assert not may_ask("other.lan", "box.lan")
    assert may_ask("192.168.1.4:8000", "0.0.0.0")
    assert may_ask("[fe80::1]:8000", "::")
    assert not may_ask("evil.example", "0.0.0.0")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
@pytest.mark.parametrize("path", ["/", "/run/x", "/nowhere", "/style.css"])
def test_pages_can_only_be_read(ask, method, path):
    answer = ask(path, method=method)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_head_has_no_body(ask, keys):
    for path in ("/", f"/run/{keys['strange']}", "/nowhere"):
        answer = ask(path, method="HEAD")
        assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/", "/nowhere", "/style.css", "/explorer.js", "/run/x", "/compare"])
def test_every_answer_carries_the_headers(ask, path):
    headers = ask(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in headers if name.startswith("access-control")]


def test_long_addresses_are_refused(ask, keys):
    page = f"/run/{keys['strange']}"
    assert ask(f"{page}?q=" + "x" * MOST_QUERY).status == 414
    assert ask("/" + "x" * 600).status == 414
    assert ask(f"{page}?" + "&".join(f"a{n}=1" for n in range(300))).status == 400
    assert ask(f"{page}?" + "&".join("is.context=%3Dsea" for n in range(300))).status == 400
    assert ask(f"{page}?q=" + "x" * 299).status == 200


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_parameter_is_a_path(ask, keys, path, made):
    key = keys["strange"]
    addresses = [
        f"/{path}",
        f"/run/{path}",
        f"/run/{path}/unit?id=scene-0001",
        f"/run/{key}/{path}",
        f"/run/{key}/unit?id={path}",
        f"/run/{key}/unit?id=scene-0001&with={path}",
        f"/run/{key}/unit?id=scene-0001&overlay={path}",
        f"/run/{key}/picture?id={path}&number=0",
        f"/run/{key}/picture?id=scene-0001&number={path}",
        f"/run/{key}?sort={path}",
        f"/run/{key}?order={path}",
        f"/run/{key}?page={path}",
        f"/run/{key}?{path}=1",
        f"/run/{key}?min.{path}=1",
        f"/compare?first={path}&second={key}",
        f"/compare?first={key}&second={path}",
        f"/compare?first={key}&second={keys['ragged']}&quality={path}",
        f"/style.css/{path}",
    ]
    for address in addresses:
        answer = ask(address)
        assert answer.status in (400, 404), address
        assert "root:" not in answer.text
        assert str(made) not in answer.text
        assert "Traceback" not in answer.text
    for name in ("q", "is.context"):
        answer = ask(f"/run/{key}?{name}={path}")
        assert answer.status in (200, 400)
        assert "root:" not in answer.text


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    where=st.sampled_from(
        ["/{}", "/run/{}", "/run/KEY/unit?id={}", "/run/KEY?q={}", "/run/KEY?{}=1", "/compare?first={}"]
    ),
    text=st.text(max_size=40),
)
def test_no_text_breaks_a_page(ask, keys, where, text):
    encoded = quote(text.encode("utf-8", "surrogatepass"), safe="")
    answer = ask(where.replace("KEY", keys["strange"]).format(encoded))
    assert answer.status in (200, 400, 404)


@pytest.mark.parametrize("query", ["%ff%fe", "%00", "a=%", "&&&=", "=", "%zz=1", "q=\x7f"])
def test_odd_query_strings_are_survived(ask, keys, query):
    assert ask(f"/run/{keys['strange']}?{query}").status in (200, 400)


class Elements(HTMLParser):
    """Every element with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


@pytest.fixture(scope="module")
def hostile_pages(ask, keys):
    run = f"/run/{keys['hostile']}"
    pages = ["/", run, f"{run}?q={quote(IMAGE)}", f"{run}?q={quote(SCRIPT)}", f"/{quote(SCRIPT)}"]
    pages += [f"{run}/unit?id={quote(stem)}" for stem in STEMS]
    pages += [f"{run}?sort={quote(IMAGE)}", f"/compare?first={quote(SCRIPT)}"]
    return {page: ask(page) for page in pages}


def test_names_are_text_and_never_markup(hostile_pages):
    for page, answer in hostile_pages.items():
        for tag, attributes in Elements(answer.text).found:
            assert tag != "script" or attributes == {"src": "/explorer.js", "defer": None}, page
            assert not [name for name in attributes if name.startswith("on") or name == "style"], (
                page,
                tag,
                attributes,
            )
            for name in ("href", "src", "action"):
                assert attributes.get(name, "/").startswith(("/", "#", "data:,")), (page, tag, attributes)
            assert tag not in ("iframe", "object", "embed", "base", "style"), page
            assert tag != "img" or attributes["src"].startswith("/run/"), page


def test_hostile_names_are_shown_as_they_are(hostile_pages, keys):
    run = f"/run/{keys['hostile']}"
    assert IMAGE in hostile_pages["/"].words
    assert all(stem in hostile_pages[run].words for stem in STEMS if "<" not in stem)
    unit = hostile_pages[f"{run}/unit?id={quote(STEMS[2])}"]
    assert unit.status == 200
    assert "{{7*7}}" in unit.words
    assert unit.text.count("<img ") == 3


def test_units_with_any_id_have_pictures(ask, keys):
    for stem in STEMS:
        answer = ask(f"/run/{keys['hostile']}/picture?id={quote(stem)}&number=1")
        assert (answer.status, answer.headers["content-type"]) == (200, "image/png")
        assert answer.content.startswith(b"\x89PNG")


def test_the_command_of_a_hostile_unit_is_one_word_a_name(ask, keys):
    import html
    import re
    import shlex

    page = ask(f"/run/{keys['hostile']}/unit?id={quote(STEMS[0])}").text
    words = shlex.split(html.unescape(re.search('id="command">(.*?)</code>', page)[1]))
    assert words[:3] == ["hardlook", "run", "closed-miou"]
    assert words[words.index("--unit") + 1] == STEMS[0]


def test_errors_name_no_path_outside(copied):
    path = copied / "seg" / "strange" / "run.json"
    manifest = json.loads(path.read_text())
    manifest["options"] |= {"data": {"voc": "/nowhere/secret place/VOC2012"}}
    path.write_text(json.dumps(manifest))
    ask = Asking(make_app(copied))
    (page,) = [link for link in ask("/").links("/run/") if "strange" in ask(link).words.split(" Benchmark ")[0]]
    unit = ask(ask(page).links("/unit?")[0])
    assert unit.status == 200
    assert "No picture: " in unit.words
    reason = unit.words.split("No picture: ")[1].split("The record")[0]
    assert "secret" not in reason
    assert "nowhere" not in reason
    assert " /" not in reason
