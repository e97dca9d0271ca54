"""A browser, and studies served to it."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from browser_visitor import DESKTOP, Visitor
from browsers import CHROMIUM, FLAGS, NEEDS_CHROMIUM
from played_studies import make_click_study, start_study_server

pytest.importorskip("starlette", reason="the extra web is not installed")

pytest.importorskip("sqlalchemy", reason="the extra web is not installed")

pytest.importorskip("uvicorn", reason="the extra web is not installed")

pytest.importorskip("playwright", reason="playwright is not installed")


def pytest_collection_modifyitems(items):
    """Whatever drives the browser says so, and skips with the reason where there is none."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()) and "collect/browser" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
            item.add_marker(NEEDS_CHROMIUM)


@pytest.fixture(scope="package")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    from playwright.sync_api import sync_playwright

    # Closed with this folder's last test: while it is open, its loop runs in the main thread.
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def study_server():
    with start_study_server() as study_server:
        yield study_server


@pytest.fixture
def serve(study_server):
    """A function that serves a study until the test is over, or another one comes to the same address."""
    with ExitStack() as stack:
        yield lambda study, marks=None: stack.enter_context(study_server.serve(study, marks))


@pytest.fixture
def visit(browser):
    """A function that opens a browser of a fresh person on a served study."""
    contexts = []

    def opened(served, look=DESKTOP, **options):
        context = browser.new_context(**{**look, **options})
        contexts.append(context)
        return Visitor(context, served)

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def discs(tmp_path, serve):
    """A served study of two sets of three discs."""
    return serve(*make_click_study(tmp_path / "study"))
