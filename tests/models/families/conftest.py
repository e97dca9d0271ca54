"""Folders of small models with random weights, each written once for all tests that use it."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def hub_folder(tmp_path_factory):
    """A function from a family to the folder of its small model."""
    from tiny_hub_models import write_hub_folder

    made = {}

    def find_folder(family: str):
        if family not in made:
            made[family] = write_hub_folder(tmp_path_factory.mktemp(family), family)
        return made[family]

    return find_folder


@pytest.fixture(scope="session")
def pictures():
    """Three images of different sizes."""
    rng = np.random.default_rng(3)
    return [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in ((40, 52), (64, 48), (33, 33))]
