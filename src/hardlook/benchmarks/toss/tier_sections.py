"""The sections of tiers 1 and 2: which queries are found, and whether the support is looked at."""

from __future__ import annotations

from hardlook.benchmarks.one_shot_pairs.following_section import following_chart
from hardlook.benchmarks.toss.published_tables import level_dots, level_table, split_dots, split_table
from hardlook.benchmarks.toss.score_tables import class_heat, fold_tables
from hardlook.benchmarks.toss.split_words import LEVEL_WORDS, SPLIT_WORDS
from hardlook.benchmarks.toss.verdicts import salience_words, support_words
from hardlook.contract.scorecard import Scorecard, found
from hardlook.contract.sections import Block, DotChart, Section, dot_of
from hardlook.metrics.one_shot_scores import SPLITS

OURS = "this run"
SHOWN, SPURIOUS = "the support shows the class", "the support does not show it"


def complexity(scorecard: Scorecard) -> Section | None:
    """Tier 1: the four splits, salient against other targets, and what the masks follow."""
    splits = {split: score for split in SPLITS if (score := found(scorecard, "miou", split=split))}
    if not splits:
        return None
    ours = [dot_of(score, SPLIT_WORDS[split], OURS) for split, score in splits.items()]
    blocks: list[Block] = [
        DotChart(
            "Tier 1: mIoU of the four splits",
            "Easy or hard: whether a supervised model finds the object. Salient or not: whether it catches the eye. "
            "LCA weighs the first row most, HCA the last.",
            (*ours, *split_dots(SPLIT_WORDS)),
            axis="mIoU",
        )
    ]
    ends = [(name, found(scorecard, name)) for name in ("salient", "non-salient")]
    if all(score for _, score in ends):
        blocks.append(
            DotChart(
                "Salient and other targets",
                "All queries of tier 1, easy and hard together. A gap alone does not say why: a supervised model may "
                "have it too.",
                tuple(dot_of(score, name) for name, score in ends if score),
                axis="mIoU",
            )
        )
    if chart := following_chart(scorecard):
        blocks.append(chart)
    blocks.append(class_heat(scorecard, "split", SPLITS, SPLIT_WORDS, "IoU of each class in each split"))
    blocks += [*fold_tables(scorecard, ("lca", "hca")), split_table(scorecard)]
    return Section("Tier 1: which queries are found", salience_words(scorecard), tuple(blocks))


def cognizance(scorecard: Scorecard) -> Section | None:
    """Tier 2: every level, those that show the class apart from those that do not."""
    levels = {level: score for level in LEVEL_WORDS if (score := found(scorecard, "miou", level=level))}
    if not levels:
        return None
    rows = [
        dot_of(score, LEVEL_WORDS[level], SPURIOUS if level in ("L4", "L5", "L6") else SHOWN)
        for level, score in levels.items()
    ]
    chart = DotChart(
        "Tier 2: mIoU with the query's own object, by what the support shows",
        "Where the support shows the class, right is good. Where it does not, a model that looks at it finds nothing: "
        "left is good. A flat picture means that the support does not matter.",
        (*rows, *level_dots(LEVEL_WORDS)),
        axis="mIoU with the query's own object",
    )
    heat = class_heat(scorecard, "level", list(levels), dict.fromkeys(levels), "IoU of each class at each level")
    return Section(
        "Tier 2: does it look at the support?",
        support_words(scorecard),
        (chart, heat, *fold_tables(scorecard, ("scs",)), level_table(scorecard)),
    )
