"""Fixtures that several parts of the tests share."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# First calls compile kernels, so no deadline; in CI the same examples every time and half as many, elsewhere new ones.
CI = bool(os.environ.get("CI"))
settings.register_profile("hardlook", deadline=None, derandomize=CI, max_examples=50 if CI else 100)
settings.load_profile("hardlook")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder that holds `data/` and `reference/`; tests that need it skip with the reason when it is absent."""
    folder = Path(os.environ.get("HARDLOOK_TEST_DATA", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder}; set HARDLOOK_TEST_DATA to the folder that holds data/")
    return folder


@pytest.fixture(scope="session")
def ray_cluster():
    """Connect to a cluster of two workers, started once since that takes seconds; the engine uses what it finds."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("the extra ray is not installed")
    import ray

    support = str(Path(__file__).parent / "support")
    environment = {"PYTHONPATH": ":".join([support, *filter(None, sys.path)]), "OMP_NUM_THREADS": "1"}
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": environment},
    )
    yield
    ray.shutdown()


@pytest.fixture
def one_thread():
    """Torch on one thread: sums then come out alike on every machine, and two tests at once do not crowd each other."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
