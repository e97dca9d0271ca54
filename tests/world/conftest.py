from __future__ import annotations

import pytest

from hardlook.world.planted import PlantedWorld
from hardlook.world.render import Rendered


@pytest.fixture(scope="package")
def scenes() -> tuple[Rendered, ...]:
    """One block: every concept in every context once."""
    return tuple(PlantedWorld(seed=11, count=96))
