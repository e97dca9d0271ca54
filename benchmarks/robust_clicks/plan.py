"""Which networks are trained, on whose clicks, with which seeds; and who clicks in the test.

>>> [one.name for one in list_trainings(["centre"], [0, 1])]
['centre-seed0', 'centre-seed1']
>>> parse_regime("distance-G1"), parse_regime("uniform")
(('distance', 1), ('uniform', 0))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

REGIMES = ("centre", "distance", "uniform")
TESTED = ("distance", "uniform")
"""Click models of the test; the centre rule clicks one course in each."""

SEEDS = (0, 1, 2)
UNTRAINED = "untrained"
"""The network that all trainings begin with, of the first seed."""


@dataclass(frozen=True)
class Training:
    """One network, trained on the clicks of a regime."""

    regime: str
    seed: int

    @property
    def name(self) -> str:
        """Its folder."""
        return f"{self.regime}-seed{self.seed}"


def list_trainings(regimes: Sequence[str] = REGIMES, seeds: Sequence[int] = SEEDS) -> list[Training]:
    """Every regime with every seed, seed by seed."""
    return [Training(regime, seed) for seed in seeds for regime in regimes]


def parse_regime(regime: str) -> tuple[str, int]:
    """The click model and the clicking group of a regime, 0 for all groups."""
    clicks, _, group = regime.partition("-G")
    return clicks, int(group or 0)
