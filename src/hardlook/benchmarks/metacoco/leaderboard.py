"""A run beside the published tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardlook.benchmarks.metacoco.published import TABLE_2, TABLE_3, Flags
from hardlook.benchmarks.metacoco.published_backbones import TABLE_6, TABLE_7
from hardlook.benchmarks.metacoco.scores import headline_choice
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import Section, Table

if TYPE_CHECKING:
    import polars as pl


def leaderboard(records: pl.DataFrame, scorecard: Scorecard) -> Section:
    """Tables 2, 3, 6 and 7 of the paper, below this run's blind accuracies, a row for each number of ways."""
    ours = _blind(records, scorecard)
    name = scorecard.model or "this run"
    first = [
        (name, "", ways, "", *(_value(ours.get((ways, shots))) for shots in (1, 5)), "this run")
        for ways in sorted({ways for ways, shots in ours if shots in (1, 5)})
    ]
    rows = [
        (
            row.method + (f" on {row.built_on}" if row.built_on else ""),
            row.backbone or "",
            row.ways,
            _marks(row.flags),
            row.one_shot.value,
            row.five_shot.value,
            f"Table {row.table}",
        )
        for row in (*TABLE_2, *TABLE_3, *TABLE_6, *TABLE_7)
    ]
    table = Table(
        "Published accuracies",
        "Tasks drawn without regard to context, as we infer. Rows of this run are of other images unless MetaCoCo's "
        "own were run. GL: pretrained on global labels; LL: trained on tasks; TT: trains on the supports at test time; "
        "a question mark where the paper's mark cannot be settled.",
        ("method", "backbone", "ways", "uses", "1 shot", "5 shots", "where from"),
        (*first, *rows),
    )
    return Section("Beside the published tables", _words(ours, bool(first)), (table,))


def _blind(records: pl.DataFrame, scorecard: Scorecard) -> dict[tuple[int, int], Score]:
    """Blind accuracies by ways and shots."""
    ways, shots = headline_choice(records, scorecard)
    return {
        (int(score.slice.get("ways", ways)), int(score.slice.get("shots", shots))): score
        for score in scorecard.scores
        if score.name == "blind" and set(score.slice) in (set(), {"ways", "shots"})
    }


def _value(score: Score | None) -> float | None:
    return score.value if score else None


def _marks(flags: Flags | None) -> str:
    if flags is None:
        return ""
    named = {"GL": flags.pretrained, "LL": flags.episodic, "TT": flags.adapts}
    return " ".join(name + ("" if mark else "?") for name, mark in named.items() if mark is not False)


def _words(ours: dict[tuple[int, int], Score], shown: bool) -> str:
    if not ours:
        return "This run has no blind tasks."
    if not shown:
        return "The paper has 1 and 5 shots, this run's blind tasks have others."
    said: dict[str, list[str]] = {}
    for (ways, shots), score in sorted(ours.items()):
        said.setdefault(score.comparable, []).append(f"{ways}-way {shots}-shot")
    if len(said) == 1:
        only = next(iter(said))
        return only[:1].upper() + only[1:] + "."
    return " ".join(f"{', '.join(where)}: {words}." for words, where in said.items())
