from __future__ import annotations

import pytest
import report_browser


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """One browser for all tests of pages: starting it takes seconds."""
    started = report_browser.start(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()
