"""Which networks are trained, on which images, with which seeds.

>>> trainings = list_trainings()
>>> len(trainings), sum(len(one.folds) for one in trainings)
(14, 56)
>>> trainings[1].name
'simpropnet-leave-out-seed0'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SELECTIONS = ("all", "leave-out", "sgtss")
COMPARED = ("simpropnet", "pfenet", "rpmm")
OTHERS = ("hsnet", "repri")
SEEDS = (1, 2, 3)
"""Seeds beside 0, of the first network alone: how much a training varies."""


@dataclass(frozen=True)
class Training:
    """One network, trained on the images of a selection, on every fold."""

    network: str
    selection: str
    seed: int
    folds: tuple[int, ...] = (0, 1, 2, 3)

    @property
    def name(self) -> str:
        """Its folder."""
        return f"{self.network}-{self.selection}-seed{self.seed}"


def list_trainings(
    compared: Sequence[str] = COMPARED, others: Sequence[str] = OTHERS, seeds: Sequence[int] = SEEDS, folds: int = 4
) -> list[Training]:
    """Selections of the compared networks, the others on all images, and more seeds of the first."""
    numbers = tuple(range(folds))
    planned = [Training(network, selection, 0, numbers) for network in compared for selection in SELECTIONS]
    planned += [Training(network, "all", 0, numbers) for network in others]
    return planned + [Training(compared[0], "all", seed, numbers) for seed in seeds]
