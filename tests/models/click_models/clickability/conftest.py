"""A network small enough for a test, and torch on one thread."""

import pytest

from hardlook.models.click_models.clickability.architecture import Architecture

TINY = Architecture(dims=(8, 8, 16, 16), depths=(1, 1, 2, 1), mlp_ratios=(2, 2, 2, 2), head=32, rank=4)


@pytest.fixture(autouse=True)
def one_thread():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def tiny():
    return TINY
