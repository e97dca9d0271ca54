"""The dashboard in a real browser: it fits, is quiet, passes axe, runs no name as script, and needs none itself."""

from __future__ import annotations

import importlib.util
import socket
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from browsers import CHROMIUM, FLAGS, NEEDS_CHROMIUM, follow
from research_crowd import Person, take_part
from research_judging import judged_by, ratings_study, review_study

from hardlook.serving import add_headers, send_text, serve_in_background

from .conftest import KEY, Clock, crowd

AXE = importlib.util.find_spec("axe_playwright_python")

pytestmark = [
    pytest.mark.browser,
    NEEDS_CHROMIUM,
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]

LOOKS = [(1280, "dark"), (390, "light")]

PAGES = {
    "overview": "/research",
    "participants": "/research/participants?sort=inside",
    "delete": "/research/participants/1/delete",
    "images": "/research/images",
    "image": "/research/images/t000002",
    "rules": "/research/rules?least_inside=0.8",
    "export": "/research/export",
    "links": "/research/links",
    "refused": "/research/images/nowhere",
}

SCRIPT = "<script>window.hacked=1</script>"

STEMS = [SCRIPT, "<img src=x onerror=window.hacked=1>", '" onfocus=window.hacked=1 autofocus x="', *"abcde"]


class Served:
    """A study behind a server on a free port."""

    def __init__(self, study, store):
        import uvicorn

        from hardlook.collect.web.app import make_app

        self.study, self.store, self.clock = study, store, Clock()
        self.listening = socket.socket()
        self.listening.bind(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        app = make_app(study, store, research_key=KEY, clock=self.clock)
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none"))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listening]}, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def close(self):
        self.server.should_exit = True
        self.thread.join(10)
        self.listening.close()
        self.store.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Servers by kind of study; the one of clicks has names written to break out of a page."""
    folder = tmp_path_factory.mktemp("served")
    study, store, _ = crowd(folder / "clicks", stems=STEMS, title=f"Rectangles {SCRIPT}", description=SCRIPT)
    review, ratings = review_study(folder / "review"), ratings_study(folder / "ratings")
    servers = {
        "clicks": Served(study, store),
        "review": Served(review, judged_by(review, [lambda task: 1, lambda task: int(task.id[-1]) % 2])[0]),
        "ratings": Served(ratings, judged_by(ratings, [lambda task: 3, lambda task: 8])[0]),
    }
    yield servers
    for server in servers.values():
        server.close()


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium):
    """Open a logged-in page: `opened(server, width=..., ...)`; what its console complained of is in `.complaints`."""
    contexts = []

    def open_page(server, *, width=1280, scheme="light", scripts=True, login=True):
        context = chromium.new_context(
            viewport={"width": width, "height": 844},
            color_scheme=scheme,
            java_script_enabled=scripts,
            reduced_motion="reduce",
            bypass_csp=False,
            base_url=server.address,
        )
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.requested = [], []
        page.on("console", lambda said: page.complaints.append(said.text) if "status of 4" not in said.text else None)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.requested.append(request.url))
        if login:
            page.goto("/research/login")
            page.fill("input[name=key]", KEY)
            follow(page, "main button")
            assert page.url == f"{server.address}/research"
        return page

    yield open_page
    for context in contexts:
        context.close()


def looked_at(page, server, address, width):
    page.goto(address)
    page.locator("details").evaluate_all("boxes => boxes.forEach(box => { box.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.scripts.length") == 1
    assert page.complaints == []
    assert all(url.startswith((server.address, "data:")) for url in page.requested)


def grave_findings(page):
    script = Path(AXE.origin).with_name("axe.min.js").read_text(encoding="utf-8")
    # Through the debugger, which the page's own policy does not bind.
    page.evaluate(script + "; true")
    found = page.evaluate("axe.run(document).then(r => [r.violations, r.passes.length])")
    assert found[1] > 5
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found[0] if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.skipif(AXE is None, reason="axe-playwright-python is not installed")
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_page_fits_is_quiet_and_passes_axe(opened, served, width, scheme):
    server = served["clicks"]
    page = opened(server, width=width, scheme=scheme)
    for name, address in PAGES.items():
        looked_at(page, server, address, width)
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light"), name
        assert grave_findings(page) == [], name
    for kind in ("review", "ratings"):
        other = opened(served[kind], width=width, scheme=scheme)
        for address in ("/research", "/research/participants", "/research/images"):
            looked_at(other, served[kind], address, width)
            assert grave_findings(other) == [], (kind, address)
    door = opened(server, width=width, scheme=scheme, login=False)
    looked_at(door, server, "/research", width)
    assert grave_findings(door) == []


def test_clicks_lie_on_the_picture_where_they_were_made(opened, served):
    server = served["clicks"]
    page = opened(server)
    page.goto("/research/images/t000002?device=pc&mode=text")
    image = page.locator(".over img").bounding_box()
    wanted = ("t000002", "pc", "text")
    answers = server.store.answers().iter_rows(named=True)
    own = [row for row in answers if (row["task"], row["device"], row["mode"]) == wanted]
    scale = image["width"] / server.study.by_id["t000002"].width
    expected = sorted((image["x"] + row["x"] * scale, image["y"] + row["y"] * scale) for row in own)
    marks = [mark.bounding_box() for mark in page.locator(".over .mark").all()]
    drawn = sorted((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in marks)
    assert len(drawn) == len(expected) > 0
    for (x, y), (wanted_x, wanted_y) in zip(drawn, expected, strict=True):
        assert abs(x - wanted_x) < 1
        assert abs(y - wanted_y) < 1


def test_the_overview_renews_itself_and_leaves_the_reader_alone(opened, served):
    from hardlook.collect.research import snapshot

    server = served["clicks"]
    page = opened(server)
    page.clock.install()
    page.goto("/research")
    before = len(server.store.answers())
    assert f"{before} answers in all" in page.inner_text("main")
    take_part(server.study, server.store, Person("mobile"), now=9900.0)
    server.clock.now += snapshot.MAX_KEEP_SECONDS
    page.locator("#numbers .scroll").first.focus()
    page.clock.fast_forward(11_000)
    page.wait_for_timeout(300)
    assert f"{before} answers in all" in page.inner_text("main")
    page.evaluate("document.activeElement.blur()")
    page.clock.fast_forward(11_000)
    page.get_by_text(f"{before + 4} answers in all").wait_for(timeout=20_000)
    assert page.complaints == []


def test_everything_works_without_script(opened, served):
    server = served["clicks"]
    page = opened(server, scripts=False)
    follow(page, "text=Participants")
    follow(page, "text=inside >> nth=0")
    assert "sort=inside" in page.url
    follow(page, "text=Rules >> nth=0")
    page.fill("input[name=least_inside]", "0.5")
    follow(page, "text=Preview")
    assert "1 participant left out (0 with the saved rules)" in page.inner_text("main")
    follow(page, "text=Save these rules")
    assert "The rules are saved." in page.inner_text("main")
    assert server.store.rules()["least_inside"] == 0.5
    server.store.set_rules({})
    follow(page, "nav >> text=Images")
    page.fill("input[name=q]", "b")
    follow(page, "main button")
    follow(page, ".tasks a >> nth=-1")
    page.select_option("select[name=device]", "mobile")
    follow(page, "main button")
    assert page.locator(".panels > li").count() == 2
    follow(page, "nav >> text=Links")
    page.fill("input[name=count]", "3")
    follow(page, "text=Make links")
    assert len(page.input_value("textarea").split()) == 3
    follow(page, "nav >> text=Export")
    follow(page, "text=Make the files")
    for _ in range(300):
        if page.locator("a.download[href$=zip]").count():
            break
        page.wait_for_timeout(100)
        page.goto("/research/export")
    with page.expect_download() as waiting:
        page.click("a.download[href$=zip]")
    assert waiting.value.suggested_filename.endswith(".zip")
    assert Path(waiting.value.path()).read_bytes()[:2] == b"PK"
    follow(page, "text=Log out")
    assert page.url.endswith("/research/login")
    page.goto("/research")
    assert "Log in first." in page.inner_text("main")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_links_from_webmail_open_the_dashboard(opened, served, scripts):
    """Browsers keep our cookies back where a link on another site, as localhost is, led here."""
    server, page = served["clicks"], opened(served["clicks"], login=False, scripts=scripts)
    links = {"in": f"/research/key/{quote(KEY)}", "wrong": "/research/key/x"}
    links["people"] = "/research/participants?sort=inside"
    mail = "".join(f'<a id="{name}" href="{server.address}{link}">{name}</a> ' for name, link in links.items())

    async def webmail(scope, receive, send):
        await send_text(add_headers(send, [(b"content-type", b"text/html")]), 200, mail)

    with serve_in_background(webmail) as address:
        inbox = address.replace("127.0.0.1", "localhost")
        page.goto(inbox)
        follow(page, "#wrong")
        assert "This is not the key" in page.content()
        page.goto(inbox)
        follow(page, "#people")
        page.wait_for_selector("input[name=key]")
        page.goto(inbox)
        follow(page, "#in")
        page.wait_for_url(f"{server.address}/research")
        assert page.locator("h1").inner_text() == "Overview"
        # The key does not stay in the history, so that going back leads to the mail.
        page.go_back()
        assert page.url == inbox
        follow(page, "#people")
        page.wait_for_selector("table")
        assert page.locator("h1").inner_text() == "Participants" and page.url.endswith("?sort=inside")
        assert page.complaints == []
