"""What a session notes about its machine, against what the machine says itself."""

from importlib import metadata
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hardlook
from hardlook.harness.runs import sessions
from hardlook.harness.runs.sessions import describe_hardware, list_versions

MEMORY = Path("/proc/meminfo")


@pytest.mark.skipif(not MEMORY.exists(), reason="the system has no /proc/meminfo")
def test_the_memory_is_what_the_system_says_in_gib():
    kib = next(int(line.split()[1]) for line in MEMORY.read_text().splitlines() if line.startswith("MemTotal:"))
    assert describe_hardware()["memory_gib"] == pytest.approx(kib / 2**20, abs=0.06)


def test_versions_are_those_of_the_libraries_and_absent_ones_are_left_out(monkeypatch):
    found = list_versions()
    assert (found["hardlook"], found["numpy"], found["polars"]) == (
        hardlook.__version__,
        np.__version__,
        pl.__version__,
    )
    assert found["scipy"] == metadata.version("scipy")
    monkeypatch.setattr(sessions, "_VERSIONED", ("no-such-package", "numpy"))
    assert list(list_versions()) == ["python", "hardlook", "numpy"]
