"""A run beside the published models."""

from __future__ import annotations

from hardlook.benchmarks.toss.published import PUBLISHED
from hardlook.contract.scorecard import Scorecard, found
from hardlook.contract.sections import Section, Table

COLUMNS = ("lca", "hca", "scs", "gs")


def leaderboard(scorecard: Scorecard) -> Section | None:
    """The four scores of every published model, and ours in the first row."""
    ours = [found(scorecard, name) for name in COLUMNS]
    if not any(ours):
        return None
    stands: dict[str, list[str]] = {}
    for name, score in zip(COLUMNS, ours, strict=True):
        if score and score.comparable:
            stands.setdefault(score.comparable, []).append(name.upper())
    why = " ".join(f"{', '.join(names)}: {words}." for words, names in stands.items())
    rows = [
        (scorecard.model or "this run", *(score.value if score else None for score in ours), "this run"),
        *((row.method, *(row.values.get(name) for name in COLUMNS), row.source) for row in PUBLISHED),
    ]
    table = Table(
        "LCA, HCA, SCS and GS of published models",
        "Values printed in the paper. HSNet's SCS and PFENet's cannot be recomputed from their own levels.",
        ("model", *(name.upper() for name in COLUMNS), "where from"),
        tuple(rows),
    )
    return Section("Beside the published models", why, (table,))
