"""Scores of TOSS from cell totals: LCA, HCA, SCS, GS, and the mIoU of every split, level, class and fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.benchmarks.one_shot_pairs.cells import (
    INTERSECTION,
    UNION,
    Cells,
    Chosen,
    NamedScore,
    Totals,
    add_up,
    scores_of_pairs,
    tally_cells,
)
from hardlook.benchmarks.one_shot_pairs.following import TRUTH, tally_following
from hardlook.benchmarks.one_shot_pairs.means import (
    Values,
    class_ious,
    foreground_background_iou,
    mean_iou,
    mean_of,
    pair_iou,
)
from hardlook.benchmarks.one_shot_pairs.options import void_reading
from hardlook.benchmarks.toss.comparison import RanPairs, comparable_words, ran_pairs
from hardlook.benchmarks.toss.left_out import left_out_of
from hardlook.benchmarks.toss.levels import tell_levels
from hardlook.benchmarks.toss.options import TossOptions, mixed_reading, scs_reading
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import Scorecard
from hardlook.contract.tally import SumTally
from hardlook.metrics.one_shot_scores import SPLITS, class_iou, generalization_score, lca_hca
from hardlook.metrics.support_cognizance import LEVELS, POOLED_LEVELS, RELEASED_GROUPS, scs_paper, scs_released

if TYPE_CHECKING:
    import polars as pl

LABELS = ("tier", "fold", "split", "class", "shots")
SALIENT, NOT_SALIENT = ("easy_sal", "hard_sal"), ("easy_nsal", "hard_nsal")
SPURIOUS = ("L4", "L5", "L6")
SAME_CLASS = ("L2", "L3", "L2+L3")
FIRST = ("lca", "hca", "scs", "gs")
FIXED, COMPLEXITY, COGNIZANCE, GENERAL = 0, 1, 2, 3


def score_pairs(card: BenchmarkCard, records: pl.DataFrame, options: TossOptions) -> Scorecard:
    """Every score with its interval over query images."""
    scored, _ = _told(records, options)
    scores = scores_of_pairs(tally_pairs(records, options), options)
    void_ignored = void_reading(options) == "ignored"
    left_out = left_out_of(records, scored, scores, scs=scs_reading(options), void_ignored=void_ignored)
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=left_out)


def tally_pairs(records: pl.DataFrame, options: TossOptions) -> list[SumTally]:
    """The pixels of every tier, fold, split, class and number of shots; then what the masks of each number go with."""
    first, void_ignored = options.shots[0], void_reading(options) == "ignored"
    scored, similar_above = _told(records, options)
    cells = add_up(scored, LABELS, void_ignored=void_ignored)
    reading, ran = scs_reading(options), ran_pairs(scored)

    def name_scores(totals: Totals) -> Sequence[NamedScore]:
        return [
            score
            for shots in options.shots
            for score in _of_shots(cells, totals, cells.where(shots=shots), reading, _shots_slice(shots, first))
        ]

    def more(score: NamedScore) -> Mapping[str, Any]:
        how = f"scs={reading}" if score.name == "scs" else ""
        if similar_above is not None and score.slice.get("level") in ("L2", "L3"):
            how = f"L2 has cosines above {similar_above:.4f}"
        return {"reading": how, "comparable": comparable_words(score.name, score.slice, ran, options)}

    tallies = tally_cells(cells, name_scores, key=("toss", "bootstrap"), more=more)
    return tallies + _followed(scored, options, void_ignored, ran)


def _told(records: pl.DataFrame, options: TossOptions) -> tuple[pl.DataFrame, float | None]:
    """The records that are scored, with L2 told from L3 where an encoder was asked, and the cosine between them."""
    kept = records.filter(~records["mixed"]) if mixed_reading(options) == "ours" else records
    return tell_levels(kept, options.shots[0])


def _followed(scored: pl.DataFrame, options: TossOptions, void_ignored: bool, ran: RanPairs) -> list[SumTally]:
    """What the masks go with on the targets of tier 1 that are not salient, for each number of shots."""
    import polars as pl

    others = scored.filter((pl.col("tier") == COMPLEXITY) & pl.col("split").is_in(NOT_SALIENT))
    return [
        tally
        for shots in options.shots
        for tally in tally_following(
            others.filter(pl.col("shots") == shots),
            void_ignored=void_ignored,
            key=("toss", "following", shots),
            where=_shots_slice(shots, options.shots[0]),
            comparable=comparable_words(TRUTH, {}, ran, options),
        )
    ]


def _shots_slice(shots: int, first: int) -> dict[str, str]:
    return {} if shots == first else {"shots": str(shots)}


def _of_shots(cells: Cells, totals: Totals, chosen: Chosen, reading: str, where: Mapping[str, str]) -> list[NamedScore]:
    scores: list[NamedScore] = []
    if (fixed := chosen & cells.where(tier=FIXED)).any():
        scores += _means(cells, totals, fixed, where) + _folds(cells, totals, fixed, where)
        scores += _classes(cells, totals, fixed, where)
    if (tier1 := chosen & cells.where(tier=COMPLEXITY)).any():
        scores += query_complexity(cells, totals, tier1, where)
    if (tier2 := chosen & cells.where(tier=COGNIZANCE)).any():
        scores += support_cognizance(cells, totals, tier2, reading, where)
    if (tier3 := chosen & cells.where(tier=GENERAL)).any():
        one_model = class_ious(cells, totals, tier3)[1][:, None]
        scores.append(NamedScore("gs", where, generalization_score(one_model), tier3))
        scores += _means(cells, totals, tier3, {**where, "tier": "3"})
        scores += _classes(cells, totals, tier3, {**where, "tier": "3"})
    first = {name: place for place, name in enumerate(FIRST)}
    return sorted(scores, key=lambda score: first.get(score.name, len(FIRST)) if score.slice == where else len(FIRST))


def query_complexity(cells: Cells, totals: Totals, tier: Chosen, where: Mapping[str, str]) -> list[NamedScore]:
    """LCA and HCA, of all folds and of each; the salience gap; the mIoU of every split, fold and class."""
    scores: list[NamedScore] = []
    low, high = [], []
    for fold in cells.values_of("fold", tier):
        here = tier & cells.where(fold=fold)
        splits = {split: mean_iou(cells, totals, here & cells.where(split=split)) for split in SPLITS}
        fold_low, fold_high = lca_hca(splits)
        low.append(fold_low)
        high.append(fold_high)
        at = {**where, "fold": str(fold)}
        scores += [NamedScore("lca", at, fold_low, here), NamedScore("hca", at, fold_high, here)]
        scores += [
            NamedScore("miou", {**at, "split": split}, values, here & cells.where(split=split))
            for split, values in splits.items()
            if (here & cells.where(split=split)).any()
        ]
    headline = [NamedScore("lca", where, mean_of(low), tier), NamedScore("hca", where, mean_of(high), tier)]
    ends = {}
    for name, splits_of in (("salient", SALIENT), ("non-salient", NOT_SALIENT)):
        end = tier & cells.where(split=splits_of)
        ends[name] = mean_iou(cells, totals, end)
        headline.append(NamedScore(name, where, ends[name], end))
    headline.append(NamedScore("salience-gap", where, ends["salient"] - ends["non-salient"], tier))
    for split in SPLITS:
        here = tier & cells.where(split=split)
        if here.any():
            scores += _means(cells, totals, here, {**where, "split": split})
            scores += _classes(cells, totals, here, {**where, "split": split})
    return headline + scores


def support_cognizance(
    cells: Cells, totals: Totals, tier: Chosen, reading: str, where: Mapping[str, str]
) -> list[NamedScore]:
    """SCS of all folds and of each, how well spurious supports are rejected, and every level."""
    scores, folds = [], []
    for fold in cells.values_of("fold", tier):
        here = tier & cells.where(fold=fold)
        folds.append(_fold_scs(cells, totals, here, reading))
        scores.append(NamedScore("scs", {**where, "fold": str(fold)}, folds[-1], here))
    present = set(cells.values_of("split", tier))
    levels = [level for level in (*LEVELS[:2], *SAME_CLASS, *LEVELS[4:]) if level in present]
    found = {level: mean_iou(cells, totals, tier & cells.where(split=level)) for level in levels}
    spurious = [found[level] for level in SPURIOUS if level in found]
    headline = [NamedScore("scs", where, mean_of(folds), tier)]
    if spurious:
        chosen = tier & cells.where(split=SPURIOUS)
        headline.append(NamedScore("rejection", where, 1 - mean_of(spurious), chosen))
    for level in levels:
        here = tier & cells.where(split=level)
        at = {**where, "level": level}
        scores += _means(cells, totals, here, at) + _folds(cells, totals, here, at) + _classes(cells, totals, here, at)
    return headline + scores


def _fold_scs(cells: Cells, totals: Totals, chosen: Chosen, reading: str) -> Values:
    classes = cells.values_of("class", chosen)

    def pooled(levels: Sequence[str]) -> Totals:
        at = [chosen & cells.where(**{"class": name, "split": tuple(levels)}) for name in classes]
        return np.stack([totals[:, one].sum(1) for one in at], axis=1)

    if reading == "released":
        groups = [("L2", "L3", "L2+L3") if "L2" in group else group for group in RELEASED_GROUPS]
        sums = np.stack([pooled(group) for group in groups], axis=2)
        return scs_released(sums[..., INTERSECTION], sums[..., UNION])
    untold = "L2+L3" in cells.values_of("split", chosen)
    sums = np.stack([pooled((level,)) for level in (POOLED_LEVELS if untold else LEVELS)], axis=2)
    return scs_paper(class_iou(sums[..., INTERSECTION], sums[..., UNION]))


def _means(cells: Cells, totals: Totals, chosen: Chosen, where: Mapping[str, str]) -> list[NamedScore]:
    return [
        NamedScore("miou", where, mean_iou(cells, totals, chosen), chosen),
        NamedScore("fb-iou", where, foreground_background_iou(cells, totals, chosen), chosen),
        NamedScore("pair-iou", where, pair_iou(totals, chosen), chosen),
    ]


def _folds(cells: Cells, totals: Totals, chosen: Chosen, where: Mapping[str, str]) -> list[NamedScore]:
    at = [(fold, chosen & cells.where(fold=fold)) for fold in cells.values_of("fold", chosen)]
    return [NamedScore("miou", {**where, "fold": str(fold)}, mean_iou(cells, totals, one), one) for fold, one in at]


def _classes(cells: Cells, totals: Totals, chosen: Chosen, where: Mapping[str, str]) -> list[NamedScore]:
    names, ious = class_ious(cells, totals, chosen)
    return [
        NamedScore("iou", {**where, "class": name}, ious[:, place], chosen & cells.where(**{"class": name}))
        for place, name in enumerate(names)
    ]
