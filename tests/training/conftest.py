"""Every training on one thread, so that it adds in one order."""

import pytest


@pytest.fixture(autouse=True)
def always_on_one_thread(one_thread):
    """Every test of this folder."""
