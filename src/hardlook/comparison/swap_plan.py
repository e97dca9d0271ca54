"""How many swaps a test takes, and which differences so many could never show.

Scores that are functions of sums afford 9,999 swaps. A tally that is `costly`, such as that of an AP, gets 999, and all
swaps only where they are no more than that. A p-value from random swaps is at least 1 / (swaps + 1). Holm's correction
multiplies it by the size of the family, so that a large family needs more swaps before it can say anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardlook.comparison.families import sizes
from hardlook.comparison.numbers_in_words import plural
from hardlook.stats.swap_counts import EXACT_CLUSTERS, swaps_tried

if TYPE_CHECKING:
    from hardlook.comparison.differences import Difference
    from hardlook.contract.tally import Tally

SWAPS, COSTLY_SWAPS = 9_999, 999


@dataclass(frozen=True)
class SwapPlan:
    """`swaps` random swaps, or every one where there are at most `exact_up_to` clusters."""

    swaps: int = SWAPS
    exact_up_to: int = EXACT_CLUSTERS

    def tried(self, clusters: int) -> int:
        """How many swaps of so many clusters are tried."""
        return swaps_tried(clusters, self.swaps, self.exact_up_to)


def is_costly(tally: Tally) -> bool:
    """Whether the tally says that each weighting of its units takes long."""
    return bool(getattr(tally, "costly", False))


def swap_plan(tally: Tally, asked: int | None, comparisons: int, alpha: float) -> SwapPlan:
    """The plan for one tally; `asked` is the number that the user gave and goes before everything.

    Without it, and where swaps are cheap, there are at least twice as many as the smallest p-value needs to pass
    `alpha` among `comparisons`, those of the headline scores.
    """
    if is_costly(tally):
        swaps = asked or COSTLY_SWAPS
        return SwapPlan(swaps, min(swaps.bit_length() - 1, EXACT_CLUSTERS))
    return SwapPlan(asked or max(SWAPS, 2 * math.ceil(comparisons / alpha)))


def cost_note(tallies: Sequence[Tally], asked: int | None, plans: Sequence[SwapPlan]) -> list[str]:
    """What was saved, in a sentence, where some scores are costly and the user named no number of swaps."""
    costly = [plan for tally, plan in zip(tallies, plans, strict=True) if is_costly(tally)]
    if asked is not None or not costly:
        return []
    noun = next(tally.resampled for tally in tallies if is_costly(tally))
    return [
        f"Scores here are no sums and take long: their p-values come from {costly[0].swaps:,} random swaps, or all "
        f"swaps where there are at most {costly[0].exact_up_to} {plural(noun)}. `--swaps` sets another number."
    ]


def reach_notes(differences: Iterable[Difference], alpha: float) -> list[str]:
    """Families in which no p-value of random swaps can be small enough after correction, a sentence each."""
    listed = list(differences)
    notes = []
    for family, count in sizes(listed).items():
        # Where all swaps were tried, more of them are not to be had.
        random = (one for one in listed if one.family == family and not one.exact and not math.isnan(one.p_value))
        swaps = max((one.swaps for one in random), default=0)
        if swaps and count > alpha * (swaps + 1):
            notes.append(
                f"Too few swaps for {family}: with {swaps:,} of them no p-value is below "
                f"{1 / (swaps + 1):.2g}, and {count:,} comparisons are corrected together. `--swaps "
                f"{math.ceil(count / alpha)}` or more could tell."
            )
    return notes
