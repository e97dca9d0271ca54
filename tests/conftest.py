"""Fixtures that several parts of the tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder that holds `data/` and `reference/`; tests that need it skip with the reason when it is absent."""
    folder = Path(os.environ.get("HARDLOOK_TEST_DATA", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder}; set HARDLOOK_TEST_DATA to the folder that holds data/")
    return folder
