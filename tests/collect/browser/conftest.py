"""A browser, and studies served to it."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from browser_visitor import CHROMIUM, DESKTOP, FLAGS, Visitor
from played_studies import make_click_study, open_house

pytest.importorskip("starlette", reason="the extra web is not installed")

pytest.importorskip("sqlalchemy", reason="the extra web is not installed")

pytest.importorskip("uvicorn", reason="the extra web is not installed")

pytest.importorskip("playwright", reason="playwright is not installed")


def pytest_collection_modifyitems(items):
    """Whatever drives the browser says so, and skips with the reason where there is none."""
    absent = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()) and "collect/browser" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
            item.add_marker(absent)


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
def house():
    with open_house() as house:
        yield house


@pytest.fixture
def serve(house):
    """A function that serves a study until the test is over, or another one comes to the same address."""
    with ExitStack() as stack:
        yield lambda study, marks=None: stack.enter_context(house.showing(study, marks))


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
