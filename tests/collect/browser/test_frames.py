"""The pages in a frame of another site, as MTurk shows an external question; and sites that may not frame them."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest
from browser_visitor import DESKTOP, PATIENCE
from played_studies import make_rating_study

from hardlook.collect.web.tokens import derive_completion_code
from hardlook.serving import serve_in_background

SUBMIT = "https://www.mturk.com/mturk/externalSubmit"
IDS = "workerId=A1WORKER&assignmentId=3ASSIGN&hitId=3HIT"
PREVIEW = "assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=3HIT"

# A page with a frame, whose address is what comes after the # of the page's own.
TASK = b"""<!doctype html><title>A task</title><iframe id="task" width="780" height="560"></iframe>
<script>document.getElementById("task").src = location.hash.slice(1)</script>"""


@pytest.fixture(scope="module")
def site():
    """The origin of a site that frames pages; its name is localhost, to a browser another site than 127.0.0.1."""

    async def respond(scope, receive, send):
        headers = [(b"content-type", b"text/html"), (b"content-length", str(len(TASK)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": TASK})

    with serve_in_background(respond) as address:
        yield address.replace("127.0.0.1", "localhost").rstrip("/")


@pytest.fixture
def worker(browser):
    """A worker's browser, in which MTurk's own address is ours; `sent` are the forms that it gets."""
    context = browser.new_context(**DESKTOP)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.sent, page.complaints = [], []

    def receive(route):
        page.sent.append({name: values[0] for name, values in parse_qs(route.request.post_data or "").items()})
        route.fulfill(status=200, content_type="text/html", body="<p id=received>received</p>")

    context.route(SUBMIT, receive)
    page.on("console", lambda said: said.type == "error" and page.complaints.append(said.text))
    yield page
    context.close()


def serve_task(serve, folder, origin):
    settings = {"platform": "mturk", "open_link": False, "frame_origins": (origin,), "completion_url": SUBMIT}
    return serve(make_rating_study(folder, **settings))


def open_in_frame(page, site, address):
    page.goto("about:blank")
    page.goto(f"{site}/#{address}")
    return page.frame_locator("#task")


def consent(place):
    place.locator("[name=agree]").check()
    place.locator("button[type=submit]").click()


def do_set(place, count=3):
    """Begin, rate everything, and stop after the set."""
    place.locator("[value=begin]").click()
    for answered in range(count):
        place.locator(f"#progress[value='{answered}']").wait_for(state="attached")
        place.locator(".question[data-phase=asked] .buttons [value='5']").click()
    place.locator("[value=stop]").click()


def test_a_task_of_mturk_from_its_preview_to_its_form(tmp_path, serve, site, worker):
    served = serve_task(serve, tmp_path / "study", site)
    frame = open_in_frame(worker, site, f"{served.address}/?{PREVIEW}")
    frame.locator(".notice").wait_for()
    assert frame.locator("form").count() == 0 and worker.context.cookies() == []
    assert served.store.participants().height == 0
    frame = open_in_frame(worker, site, f"{served.address}/?{IDS}")
    consent(frame)
    do_set(frame)
    frame.locator("#finish").click()
    frame.locator("#received").wait_for()
    [who] = served.store.participants()["id"]
    assert worker.sent == [{"assignmentId": "3ASSIGN", "code": derive_completion_code(served.study.secret, who)}]
    assert served.store.answers()["value"].to_list() == [5, 5, 5]
    # The cookies belong to this site's frame, not to all sites.
    cookies = worker.context.cookies()
    assert len(cookies) == 2 and all(cookie["sameSite"] == "None" and cookie["secure"] for cookie in cookies)
    assert all("localhost" in cookie["partitionKey"] for cookie in cookies)
    assert worker.complaints == []


def test_without_cookies_the_task_goes_on_in_a_window_and_its_code_comes_back(tmp_path, serve, site, worker):
    served = serve_task(serve, tmp_path / "study", site)
    frame = open_in_frame(worker, site, f"{served.address}/?{IDS}")
    frame.locator("[name=agree]").wait_for()
    # What a browser that keeps none in frames would send.
    worker.context.clear_cookies()
    consent(frame)
    with worker.context.expect_page() as opened:
        frame.locator("#window").click()
    window = opened.value
    consent(window)
    do_set(window)
    code = window.locator("#code").inner_text()
    assert window.locator("#finish").count() == 0
    frame.locator("[name=code]").fill(code)
    frame.locator("button[type=submit]").click()
    frame.locator("#received").wait_for()
    assert worker.sent == [{"assignmentId": "3ASSIGN", "code": code}]
    assert served.store.participants().height == 1 and served.store.answers().height == 3


@pytest.mark.parametrize("path", ["/", "/research/login", "/api/openapi.json"])
def test_no_other_page_and_no_other_site(tmp_path, serve, site, worker, path):
    """The researchers' pages in the frame of a site that is allowed, the participants' in one that is not."""
    allowed = "https://worker.mturk.com" if path == "/" else site
    served = serve_task(serve, tmp_path / "study", allowed)
    open_in_frame(worker, site, f"{served.address}{path}?{IDS}")
    worker.wait_for_timeout(200)
    [frame] = worker.main_frame.child_frames
    assert not frame.url.startswith(served.address) or frame.locator("h1").count() == 0
    assert any("frame-ancestors" in said for said in worker.complaints)
