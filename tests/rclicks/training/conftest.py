"""Training in seconds: a network of a few thousand weights, small scenes, and torch on one thread."""

from dataclasses import dataclass

import numpy as np
import pytest

from hardlook.networks.segnext import Architecture
from hardlook.rclicks.training.settings import TrainingSettings


@dataclass(frozen=True)
class Scene:
    """A grey picture with one bright spot inside a square object; people click the spot."""

    number: int
    shape: tuple[int, int] = (40, 56)

    def read(self):
        rng = np.random.default_rng(self.number)
        image = rng.integers(60, 90, (*self.shape, 3), dtype=np.uint8)
        target = np.zeros(self.shape, bool)
        target[8:32, 12:48] = True
        y, x = int(rng.integers(12, 28)), int(rng.integers(16, 40))
        image[y - 3 : y + 4, x - 3 : x + 4] = 250
        clicks = np.stack([rng.integers(x - 2, x + 3, 20), rng.integers(y - 2, y + 3, 20)], axis=1)
        return image, target, target, clicks


@pytest.fixture(autouse=True)
def always_on_one_thread(one_thread):
    """Every test of this folder."""


@pytest.fixture
def scenes():
    return [Scene(number) for number in range(10)]


@pytest.fixture
def tiny():
    return Architecture(dims=(8, 8, 16, 16), depths=(1, 1, 1, 1), mlp_ratios=(2, 2, 2, 2), head=32, rank=4)


@pytest.fixture
def brief():
    return TrainingSettings(epochs=3, batch=4, size=64, lr=0.003, seed=1)
