"""A network small enough for a test, and torch on one thread."""

import pytest

from hardlook.networks.segnext import Architecture

TINY = Architecture(dims=(8, 8, 16, 16), depths=(1, 1, 2, 1), mlp_ratios=(2, 2, 2, 2), head=32, rank=4)


@pytest.fixture(autouse=True)
def always_on_one_thread(one_thread):
    """Every test of a folder whose conftest imports this."""


@pytest.fixture
def tiny():
    return TINY
