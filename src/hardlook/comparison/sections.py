"""What the page of a comparison shows, as sections: verdicts, ranking, slices, units, and how it was done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.comparison.difference_tables import difference_table
from hardlook.comparison.families import sizes
from hardlook.comparison.ranked_scores import score_blocks
from hardlook.comparison.slice_sections import slice_sections
from hardlook.comparison.unit_sections import unit_section
from hardlook.comparison.verdict_sections import other_scores, verdict_sections
from hardlook.contract.sections import Section

if TYPE_CHECKING:
    from hardlook.comparison.between_runs import Comparison
    from hardlook.comparison.differing_units import UnitQualities
    from hardlook.runs.scoring import ScoredRun

MOST_ROWS = 1_000


def show(
    comparison: Comparison, runs: Sequence[ScoredRun], qualities: UnitQualities | None, *, examples: int = 6
) -> list[Section]:
    """The sections of the page; `examples` bounds each gallery."""
    if not comparison.differences:
        return [Section("Side by side", "\n\n".join(comparison.notes), tuple(score_blocks(comparison)))]
    sections = verdict_sections(comparison)
    if len(comparison.notes) > 1:
        sections.append(Section("Before you read on", "\n\n".join(comparison.notes)))
    sections += [*other_scores(comparison), *slice_sections(comparison)]
    if qualities is not None:
        sections.append(unit_section(runs, qualities, examples))
    return [*sections, _everything(comparison)]


def _everything(comparison: Comparison) -> Section:
    """All differences in one table, the surest first, and how they were made."""
    ordered = sorted(comparison.differences, key=lambda one: (_last(one.adjusted), _last(one.p_value)))
    families = ", ".join(f"{name} ({count:,})" for name, count in sizes(comparison.differences).items())
    shown = ordered[:MOST_ROWS]
    text = (
        f"Each p-value is the share of swaps of whole clusters between two models after which they differ at least as "
        f"much as they do: {comparison.swaps:,} random swaps, or all of them where clusters are few. The "
        f"same swaps serve all scores and pairs. Holm's correction is made within families, each with its number of "
        f"comparisons: {families}. A difference is called one where the adjusted p is at most {comparison.alpha:g}."
    )
    if len(ordered) > len(shown):
        text += f" The table has the {len(shown):,} surest of {len(ordered):,} differences; `comparison.json` has all."
    table = difference_table("All differences, the surest first", comparison.benchmark.card, shown)
    return Section("All differences", text, (table,))


def _last(p_value: float) -> float:
    return math.inf if math.isnan(p_value) else p_value
