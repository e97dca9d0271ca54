"""`comparison.json`: everything that a comparison found, for other programs.

The schema is `hardlook.comparison/1`; docs/compare.md describes its fields. Undefined and infinite numbers are null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hardlook.comparison.families import headline_names, sizes
from hardlook.comparison.verdicts import meaning_of, sentence
from hardlook.comparison.winners import changes_of_winner, slice_winners

if TYPE_CHECKING:
    from hardlook.comparison.between_runs import Comparison
    from hardlook.comparison.differing_units import UnitCount
    from hardlook.runs.scoring import ScoredRun

SCHEMA = "hardlook.comparison/1"


def document_of(comparison: Comparison, runs: Sequence[ScoredRun], counts: Sequence[UnitCount] = ()) -> dict[str, Any]:
    """The comparison as JSON-like values; `counts` says how often each model is better on single units."""
    card = comparison.benchmark.card
    units = asdict(comparison.units)
    winners = slice_winners(comparison)
    found: dict[str, Any] = plain(
        {
            "schema": SCHEMA,
            "benchmark": {"name": card.name, "version": card.version},
            "models": [
                {"name": name, "folder": str(run.folder.path), "model": run.manifest["model"]}
                for name, run in zip(comparison.models, runs, strict=True)
            ],
            "readings": {one.name: one.value for one in comparison.benchmark.readings(runs[0].options)},
            "alpha": comparison.alpha,
            "level": 1 - comparison.alpha,
            "swaps": comparison.swaps,
            "resamples": comparison.resamples,
            "seed": comparison.seed,
            "units": {"shared": len(comparison.units.ids), "same": comparison.units.same, **_without(units, "ids")},
            "notes": list(comparison.notes),
            "headline": list(headline_names(card)),
            "sentences": [sentence(one, meaning_of(card, one.name)) for one in comparison.headline],
            "standings": {name: [asdict(place) for place in places] for name, places in comparison.standings.items()},
            "families": sizes(comparison.differences),
            "differences": [asdict(one) for one in comparison.differences],
            "scores": {model: [asdict(score) for score in scores] for model, scores in comparison.scores.items()},
            "winners": [asdict(winner) for winner in winners],
            "winner_changes": [
                {
                    "name": change.winner.name,
                    "slice": change.winner.slice,
                    "winner": change.winner.leaders[0],
                    "usual": change.usual,
                    "usual_leads": "over all units" if change.overall else "in most slices",
                }
                for change in changes_of_winner(winners)
            ],
            "single_units": [asdict(count) for count in counts],
        }
    )
    return found


def plain(value: Any) -> Any:
    """The value with lists for tuples and None for numbers that JSON cannot hold.

    >>> plain({"a": (1, float("inf")), "b": float("nan")})
    {'a': [1, None], 'b': None}
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def _without(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != key}
