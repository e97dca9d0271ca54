"""The rules of a course of clicks.

>>> Rules(rounds=5).perfect
'ours'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hardlook.errors import OptionError

GroupRule = Literal["threshold", "exact"]
PerfectRule = Literal["ours", "released"]


@dataclass(frozen=True)
class Rules:
    """How long courses go on and how they click.

    `rounds`: clicks a course. `groups`: `threshold` (pixels between two probabilities, ties shared) or `exact` (the
    mass between two bounds to the pixel). `perfect`: where there is nothing left to click, a course stops and its
    last IoU is repeated (`ours`), or it goes on with negative clicks at (0, 0) (`released`). That holds for a
    perfect mask and, which is rarer, for one whose wrong pixels have all been clicked. `seed` keys the draws.
    """

    rounds: int = 20
    groups: GroupRule = "threshold"
    perfect: PerfectRule = "ours"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise OptionError(f"{self.rounds} rounds", remedy="at least 1")
        if self.groups not in ("threshold", "exact") or self.perfect not in ("ours", "released"):
            raise OptionError(
                f"there are no rules groups={self.groups!r}, perfect={self.perfect!r}",
                remedy="groups is threshold or exact, perfect is ours or released",
            )
