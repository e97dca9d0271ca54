"""Which browser tests drive: the headless shell where there is one, since it opens no window and needs less time."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

# chromedriver finds no open page in the headless shell, so Selenium drives the full browser.
FULL = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHROMIUM = shutil.which("chromium-headless-shell") or FULL
CHROMEDRIVER = shutil.which("chromedriver")

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars"
).split()

NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
NEEDS_SELENIUM = [
    pytest.mark.browser,
    pytest.mark.skipif(FULL is None, reason="no chromium is installed"),
    pytest.mark.skipif(CHROMEDRIVER is None, reason="no chromedriver is installed (Debian: chromium-driver)"),
    pytest.mark.skipif(importlib.util.find_spec("selenium") is None, reason="selenium is not installed"),
]


def follow(page, selector: str) -> None:
    """Click on what leads to another page of Playwright's, and wait until all of that page is there.

    A click itself returns once the new page begins to arrive: what is counted then may be a part of it.
    """
    with page.expect_navigation(wait_until="load"):
        page.click(selector)


def start_selenium(profile: Path):
    """A browser with its own profile; the caller quits it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = FULL
    for flag in ("--headless", *FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(executable_path=CHROMEDRIVER))
