"""Which networks are trained, on which images, with which seeds, and which models without training stand beside them.

>>> trainings = list_trainings()
>>> len(trainings), sum(len(one.folds) for one in trainings)
(17, 68)
>>> trainings[1].name
'simpropnet-leave-out-seed0'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SELECTIONS = ("all", "leave-out", "sgtss")
COMPARED = ("simpropnet", "pfenet", "rpmm")
OTHERS = ("hsnet", "repri")
SEEDS = (0, 1, 2)
FLOORS = ("whole-image", "center-box", "saliency", "prototype", "prototype-resnet50")


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
    """The first seed of everything, then the others of the first network.

    Compared networks are trained on every selection, the others on all images.
    """
    numbers = tuple(range(folds))
    planned = [Training(network, selection, seeds[0], numbers) for network in compared for selection in SELECTIONS]
    planned += [Training(network, SELECTIONS[0], seeds[0], numbers) for network in others]
    return planned + [
        Training(network, selection, seed, numbers)
        for seed in seeds[1:]
        for network in compared[:1]
        for selection in SELECTIONS
    ]


def name_floor(floor: str, *, size: int, saliency: str) -> tuple[str, dict[str, str]]:
    """The model of a floor and its arguments: `prototype-resnet50` sees the backbone and the pixels of the networks.

    >>> name_floor("saliency", size=321, saliency="u2netp")
    ('saliency', {'model': 'u2netp'})
    """
    if floor == "saliency":
        return floor, {"model": saliency}
    if floor == "prototype-resnet50":
        seen = f"layer=stride8+stride16,size={size}"
        return "prototype", {"encoder": "resnet50-imagenet", "encoder_args": seen}
    return floor, {}
