"""What the report of TOSS shows: tier by tier, beside the published models, then pairs that show what happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.benchmarks.toss.galleries import galleries
from hardlook.benchmarks.toss.leaderboard import leaderboard
from hardlook.benchmarks.toss.published_tables import fixed_table, general_table
from hardlook.benchmarks.toss.score_tables import class_scores, fold_tables
from hardlook.benchmarks.toss.tier_sections import cognizance, complexity
from hardlook.contract.scorecard import Scorecard, found
from hardlook.contract.sections import DistributionChart, DotChart, Section, Table, dot_of

if TYPE_CHECKING:
    import polars as pl

WEAKEST = 12


def show(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections, those without content left out."""
    sections = [complexity(scorecard), cognizance(scorecard), _general(scorecard), _fixed(scorecard)]
    sections += [_shots(scorecard), leaderboard(scorecard), galleries(records, scorecard)]
    return [section for section in sections if section is not None]


def _general(scorecard: Scorecard) -> Section | None:
    classes = class_scores(scorecard, tier="3")
    total = found(scorecard, "gs")
    if not classes or total is None:
        return None
    ranked = sorted(classes, key=lambda score: score.value)
    spread = DistributionChart(
        "Tier 3: IoU of single classes",
        "Classes that resemble none of the training classes; GS is their mean.",
        (("classes", [score.value for score in ranked]),),
        axis="IoU",
    )
    weakest = DotChart(
        "The weakest classes of tier 3",
        "Lowest IoU first.",
        tuple(dot_of(score, score.slice["class"]) for score in ranked[:WEAKEST]),
        axis="IoU",
        references=(("GS", total.value),),
    )
    text = f"Over {len(ranked)} classes the mean is {total.value:.3f}, from {ranked[0].value:.3f} "
    text += f"({ranked[0].slice['class']}) to {ranked[-1].value:.3f} ({ranked[-1].slice['class']})."
    return Section(
        "Tier 3: classes never seen", text + _mixed_words(scorecard), (spread, weakest, general_table(scorecard))
    )


def _mixed_words(scorecard: Scorecard) -> str:
    """How many pairs join two classes, and what became of them."""
    for note in scorecard.left_out:
        if note.what.startswith("pairs of two classes"):
            fate = "kept" if note.what.endswith("(kept)") else "left out"
            return f" {note.count} of its pairs join two classes by a slip of names; they are {fate}."
    return ""


def _fixed(scorecard: Scorecard) -> Section | None:
    classes = class_scores(scorecard)
    total = found(scorecard, "miou")
    if not classes or total is None:
        return None
    ranked = sorted(classes, key=lambda score: -score.value)
    chart = DotChart(
        "Fixed pairs: IoU of each class",
        "Summed intersections over summed unions, with intervals over query images.",
        tuple(dot_of(score, score.slice["class"]) for score in ranked),
        axis="IoU",
        references=(("mIoU", total.value),),
    )
    return Section("Fixed pairs", "", (chart, *fold_tables(scorecard, ("miou",)), fixed_table(scorecard)))


def _shots(scorecard: Scorecard) -> Section | None:
    more = sorted({score.slice["shots"] for score in scorecard.scores if "shots" in score.slice}, key=int)
    if not more:
        return None
    names = [score.name for score in scorecard.headline]
    rows = []
    for name in dict.fromkeys(names):
        values = [found(scorecard, name), *(found(scorecard, name, shots=shots) for shots in more)]
        rows.append((name, *(score.value if score else None for score in values)))
    table = Table(
        "More supports beside the first number",
        "The same pairs with further supports of the same class, drawn by seed, none of them the query.",
        ("score", "first", *(f"{shots} shots" for shots in more)),
        tuple(rows),
    )
    return Section("More supports", "", (table,))
