"""How many swaps a test takes, and which differences so many could never show.

Scores that are functions of sums take 9,999 swaps in little time. A tally that is `costly`, such as that of an AP, takes
999, and tries all swaps only where they are no more than that. A p-value from random swaps is at least 1 / (swaps + 1).
Holm's correction multiplies it by the size of the family, so a large family needs more swaps before it can say anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardlook.comparison.families import sizes
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

    Without it there are twice as many swaps as the smallest p-value needs to pass `alpha` among `comparisons`, those of
    the headline scores, and never fewer than usual.
    """
    usual = COSTLY_SWAPS if is_costly(tally) else SWAPS
    swaps = asked or max(usual, 2 * math.ceil(comparisons / alpha))
    most = swaps.bit_length() - 1 if is_costly(tally) else EXACT_CLUSTERS
    return SwapPlan(swaps, min(most, EXACT_CLUSTERS))


def cost_note(tallies: Iterable[Tally], asked: int | None) -> list[str]:
    """What was saved, in a sentence, where some scores are costly and the user named no number of swaps."""
    if asked is not None or not any(is_costly(tally) for tally in tallies):
        return []
    return [
        f"Scores here are no sums and take long: their p-values come from {COSTLY_SWAPS} random swaps, or from all "
        f"swaps of at most {COSTLY_SWAPS.bit_length() - 1} clusters. `--swaps` sets another number."
    ]


def reach_notes(differences: Iterable[Difference], alpha: float) -> list[str]:
    """Families in which no p-value of random swaps can be small enough after correction, a sentence each."""
    listed = list(differences)
    notes = []
    for family, count in sizes(listed).items():
        swaps = [one.swaps for one in listed if one.family == family and one.swaps and not math.isnan(one.p_value)]
        if swaps and count / (max(swaps) + 1) > alpha and any(not one.exact for one in listed if one.family == family):
            notes.append(
                f"Too few swaps for {family}: with {max(swaps):,} of them no p-value is below "
                f"{1 / (max(swaps) + 1):.2g}, and {count:,} comparisons are corrected together. `--swaps "
                f"{math.ceil(count / alpha)}` or more could tell."
            )
    return notes
