"""A local Ray cluster, started once for all tests that want one: starting it takes seconds."""

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def ray_cluster():
    """Connect to a cluster of two workers; the engine uses the connection it finds."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("the extra ray is not installed")
    import ray

    support = str(Path(__file__).parents[1] / "support")
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
