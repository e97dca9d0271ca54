"""Our splits, levels, folds and fixed pairs beside what the paper prints for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hardlook.benchmarks.toss.published import METHODS, TIER_1, TIER_2, TIER_3, FoldResult
from hardlook.benchmarks.toss.published_biases import REMEDIES
from hardlook.benchmarks.toss.split_words import SPLIT_WORDS
from hardlook.contract.scorecard import Scorecard, found
from hardlook.contract.sections import Dot, Table
from hardlook.metrics.one_shot_scores import SPLITS

LEVELS = ("L0", "L1", "L2", "L3", "L2+L3", "L4", "L5", "L6")
PUBLISHED_DOTS = "the paper's Baseline"
Cell = str | float | None


@dataclass(frozen=True)
class PrintedRow:
    """A score of ours by name and slice, and what is printed for it by method."""

    label: str
    name: str
    where: Mapping[str, str] = field(default_factory=dict)
    printed: Mapping[str, FoldResult] = field(default_factory=dict)


def split_table(scorecard: Scorecard) -> Table:
    """Tier 1: every split, LCA and HCA, of each fold."""
    rows = [PrintedRow(SPLIT_WORDS[split], "miou", {"split": split}, _printed(TIER_1, split)) for split in SPLITS]
    rows += [PrintedRow(name.upper(), name, {}, _printed(TIER_1, name)) for name in ("lca", "hca")]
    return _table(scorecard, "Tier 1 beside the published models", rows, METHODS)


def level_table(scorecard: Scorecard) -> Table:
    """Tier 2: every level of each fold; the paper prints L2 and L3 together."""
    rows = [PrintedRow(level, "miou", {"level": level}, _printed(TIER_2, level)) for level in LEVELS]
    there = [row for row in rows if row.printed or found(scorecard, row.name, **row.where)]
    return _table(scorecard, "Tier 2 beside the published models", there, METHODS)


def general_table(scorecard: Scorecard) -> Table:
    """Tier 3: the one model that ran, and the published models of each fold."""
    return _table(scorecard, "Tier 3 beside the published models", [PrintedRow("GS", "gs", {}, TIER_3)], METHODS)


def fixed_table(scorecard: Scorecard) -> Table:
    """Fixed pairs: mIoU of each fold, the published ones of PASCAL-5i without any remedy."""
    printed = {method: rows["none"] for method, rows in REMEDIES.items()}
    rows = [PrintedRow("mIoU", "miou", {}, printed)]
    return _table(scorecard, "Fixed pairs beside the published models", rows, tuple(REMEDIES))


def split_dots(words: Mapping[str, str]) -> list[Dot]:
    """The paper's Baseline in every split, for the chart of ours."""
    return _dots(TIER_1["Baseline"], SPLITS, words)


def level_dots(words: Mapping[str, str]) -> list[Dot]:
    """The paper's Baseline at every level, for the chart of ours."""
    return _dots(TIER_2["Baseline"], [level for level in LEVELS if level in TIER_2["Baseline"]], words)


def _dots(printed: Mapping[str, FoldResult], names: Sequence[str], words: Mapping[str, str]) -> list[Dot]:
    return [Dot(words[name], printed[name].mean, group=PUBLISHED_DOTS) for name in names]


def _printed(table: Mapping[str, Mapping[str, FoldResult]], name: str) -> dict[str, FoldResult]:
    return {method: rows[name] for method, rows in table.items() if name in rows}


def _table(scorecard: Scorecard, title: str, rows: Sequence[PrintedRow], methods: Sequence[str]) -> Table:
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        ours = found(scorecard, row.name, **row.where)
        means = [row.printed[method].mean if row.printed else None for method in methods]
        cells.append((row.label, "all", ours.value if ours else None, *means))
        for fold in range(4):
            here = found(scorecard, row.name, **row.where, fold=str(fold))
            folds = [row.printed[method].folds[fold] if row.printed else None for method in methods]
            cells.append((row.label, f"fold {fold}", here.value if here else None, *folds))
    cells = [row for row in cells if any(cell is not None for cell in row[2:])]
    stands = [score.comparable for row in rows if (score := found(scorecard, row.name, **row.where))]
    why = next((words for words in stands if words), "")
    caption = "Printed values and printed means; the published folds are those of PASCAL-5i."
    caption += f" {why[:1].upper()}{why[1:]}." if why else ""
    return Table(title, caption, ("what", "fold", scorecard.model or "this run", *methods), tuple(cells))
