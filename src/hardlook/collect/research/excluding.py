"""Whom the saved rules leave out now, and whom a researcher should look at although no rule names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardlook.collect.research.snapshot import Snapshot
from hardlook.collect.results.exclusions import ExclusionRules, excluded, rules_of
from hardlook.collect.study.settings import StudySettings

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

# Nobody sees a picture and moves a hand in a sixth of a second; a slow machine shows pictures two frames late.
QUICKEST_MS, LATEST_MS, EARLIEST_SHARE, MOST_DROPPED = 150.0, 100.0, 0.3, 1


def saved_rules(store: Store) -> ExclusionRules:
    """The rules that the database holds; none are on where it holds none."""
    return rules_of(store.rules())


def left_out(snapshot: Snapshot, rules: ExclusionRules) -> dict[str, str]:
    """Participants by id whom the rules leave out, with the reasons."""
    return excluded(snapshot.quality, rules)


def worth_a_look(settings: StudySettings) -> ExclusionRules:
    """Limits past which a participant is flagged; they leave out nobody.

    >>> worth_a_look(StudySettings(kind="clicks", title="Cups")).least_inside
    0.7
    """
    return ExclusionRules(
        least_inside=settings.least_inside if settings.kind == "clicks" else None,
        least_reaction_ms=QUICKEST_MS,
        most_early_share=EARLIEST_SHARE,
        most_late_ms=LATEST_MS,
        most_dropped_batches=MOST_DROPPED,
    )
