from __future__ import annotations

import pytest

from hardlook.world.planted import PlantedWorld
from hardlook.world.render import RenderedScene


@pytest.fixture(scope="package")
def scenes() -> tuple[RenderedScene, ...]:
    """One block: every concept in every context once."""
    return tuple(PlantedWorld(seed=11, count=96))
