"""A run beside the published tables."""

from __future__ import annotations

from hardlook.benchmarks.metacoco.published import TABLE_2, TABLE_3
from hardlook.benchmarks.metacoco.published_backbones import TABLE_6, TABLE_7
from hardlook.contract.scorecard import Scorecard
from hardlook.contract.sections import Section, Table


def leaderboard(scorecard: Scorecard) -> Section:
    """Tables 2, 3, 6 and 7 of the paper, with this run's blind accuracy in the first row."""
    ours = next((score for score in scorecard.scores if score.name == "blind" and not score.slice), None)
    first = (scorecard.model or "this run", "", None, None, ours.value if ours else None, "headline ways and shots")
    rows = [
        (
            row.method + (f" on {row.built_on}" if row.built_on else ""),
            row.backbone or "",
            row.ways,
            row.one_shot.value,
            row.five_shot.value,
            f"Table {row.table}",
        )
        for row in (*TABLE_2, *TABLE_3, *TABLE_6, *TABLE_7)
    ]
    table = Table(
        "Published accuracies",
        "Tasks drawn without regard to context, as we infer. Our first row is of other images unless MetaCoCo's own "
        "were run.",
        ("method", "backbone", "ways", "1 shot", "5 shots or this run", "where from"),
        (first, *rows),
    )
    why = (ours.comparable if ours else "") or "This run has no blind tasks."
    return Section(
        "Beside the published tables", why[:1].upper() + why[1:] + ("" if why.endswith(".") else "."), (table,)
    )
