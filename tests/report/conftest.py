from __future__ import annotations

import pytest
from browsers import start_selenium


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """One browser for all tests of pages: starting it takes seconds."""
    started = start_selenium(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()
